package datapath

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

const (
	membersMax = len(instanceCounters{}.Paths)
	mergeSIDs  = len(mergeSettings{}.SIDs)
	dscpAny    = 0xff

	numberWord = 8 // bytes
)

// ruleOf returns an entry of the table as the program reads it. Hops are numbers for first
// segments.
func ruleOf(e srpolicy.Entry, hop func(srpolicy.Header) uint16) rule {
	r := rule{
		Match: matchOf(e.Match), Policy: e.Index, MTU: e.MTU, Action: uint8(e.Action),
		Lists: uint8(len(e.Lists)), Turns: uint8(len(e.Turns)),
	}
	copy(r.Shares[:], e.Shares)
	copy(r.Schedule[:], e.Turns)
	for i, h := range e.Lists {
		r.List[i] = listOf(h, hop)
	}
	return r
}

func listOf(h srpolicy.Header, hop func(srpolicy.Header) uint16) list {
	l := list{
		Hop: hop(h), Words: uint8(len(h.Octets) / numberWord), Next: uint8(h.NextAt),
		Redundancy: uint8(h.Redundancy),
		NumberAt: [2]uint8{uint8(h.NumberAt[0] / numberWord),
			uint8(h.NumberAt[1] / numberWord)},
	}
	copy(l.Header[:], h.Octets)
	return l
}

func flowKeyOf(t flow.Tuple) flowKey {
	k := flowKey{Source: addressOf(t.Src), Destination: addressOf(t.Dst), Protocol: t.Protocol}
	if t.Src.Is4() {
		k.IPv4 = 1
	}
	binary.BigEndian.PutUint16(k.Ports[:], t.SrcPort)
	binary.BigEndian.PutUint16(k.Ports[2:], t.DstPort)
	return k
}

func (k flowKey) tuple() flow.Tuple {
	t := flow.Tuple{Src: netip.AddrFrom16(k.Source), Dst: netip.AddrFrom16(k.Destination),
		SrcPort: binary.BigEndian.Uint16(k.Ports[:]), Protocol: k.Protocol,
		DstPort: binary.BigEndian.Uint16(k.Ports[2:])}
	if k.IPv4 != 0 {
		t.Src, t.Dst = t.Src.Unmap(), t.Dst.Unmap()
	}
	return t
}

func matchOf(m srpolicy.Match) match {
	out := match{
		SourcePorts: portsOf(m.SourcePorts), DestinationPorts: portsOf(m.DestinationPorts),
		Protocol: m.Protocol, DSCP: dscpAny,
	}
	if m.ByDSCP {
		out.DSCP = m.DSCP
	}
	if m.Source.IsValid() {
		out.Source, out.Family = steerPrefix(m.Source)
	}
	if m.Destination.IsValid() {
		out.Destination, out.Family = steerPrefix(m.Destination)
	}
	return out
}

func steerPrefix(p netip.Prefix) (prefix, uint8) {
	if p.Addr().Is4() {
		return prefix{Address: addressOf(p.Addr()), Mask: maskOf(p.Bits() + 96)}, 4
	}
	return prefixOf(p), 6
}

func portsOf(p srpolicy.Ports) [2]uint16 {
	if p == (srpolicy.Ports{}) {
		return [2]uint16{0, 0xffff}
	}
	return [2]uint16{p.First, p.Last}
}
