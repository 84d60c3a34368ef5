package pcc

import "sextant/lb/pool"

// path is where a packet still goes: what is left of the carrier that an edge wrote.
type path struct {
	ids    [pool.MaxChain]uint16
	length uint8
	cond   bool // hosts send back what is not theirs (End.DT*.COND)
}

// verdict is what a host does with a packet.
type verdict uint8

const (
	taken verdict = iota // it has the connection
	// the packet is its own, but not the connection: its stack answers with a RST
	reset
	passed   // on to the next of the path
	returned // to an edge's End.SHADOW
	lost     // the host is not there, or nobody was named
	hung     // taken for a connection of the same ports that is over
)

func pathOf(ids []uint16) path {
	p := path{length: uint8(len(ids))}
	copy(p.ids[:], ids)
	return p
}

// opening is the path of a SYN: the candidates.
func opening(c *pool.Chain) path { return pathOf(c.IDs[:c.Candidates]) }

// ongoing is the path of a connection's later packets.
func ongoing(policy pool.Policy, c *pool.Chain) path {
	p := pathOf(c.IDs[:c.Length])
	p.cond = policy == pool.Shadow
	return p
}

// shadowed is the path that End.SHADOW gives a stray: one host, as the last offer.
func shadowed(c *pool.Chain) path {
	if c.Shadow != 0 {
		return pathOf([]uint16{c.Shadow})
	}
	return pathOf(c.IDs[:min(c.Length, 1)])
}

// host is who gets the packet next; the path is not empty.
func (p *path) host() uint16 { return p.ids[0] }

// arrive is what the host does that p names next, with a packet other than a SYN, and where the
// packet goes then. Here says that the host has the connection.
func (p path) arrive(here bool) (path, verdict) {
	switch {
	case here:
		return path{}, taken
	case p.cond:
		return path{}, returned
	case p.length == 1:
		return path{}, reset
	}
	return p.rest(), passed
}

// rest is the path without its first host.
func (p path) rest() path {
	return pathOf(p.ids[1:p.length])
}

// fate is how a packet ends, and how many hosts it visited.
type fate struct {
	verdict verdict
	hops    uint8
}

// deliver follows a packet of a connection from the edge with this chain to its end. A stray
// returns to the same edge. The host that owns it is in sockets; reachable tells which hosts are
// there.
func deliver(policy pool.Policy, c *pool.Chain, s sockets, reachable func(id uint16) bool) fate {
	p, hops := ongoing(policy, c), uint8(0)
	for p.length > 0 && reachable(p.host()) {
		hops++
		here, hangs := s.take(p.host())
		if hangs {
			return fate{hung, hops}
		}
		next, v := p.arrive(here)
		switch v {
		case taken, reset:
			return fate{v, hops}
		case returned:
			next = shadowed(c)
		}
		p = next
	}
	return fate{lost, hops}
}
