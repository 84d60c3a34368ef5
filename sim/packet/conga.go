package packet

// CONGA (Alizadeh et al., SIGCOMM 2014): the first switch of a packet, its leaf, sends each flowlet
// over the uplink whose path to the last switch is least congested. Packets collect the congestion
// of the busiest link of their path; the last switch returns it on packets of the other direction.
// Switches in between that have a choice hash.

// congestionTag is CONGA's header, in packet.via.
type congestionTag struct {
	uplink, congestion uint8 // of this packet; noUplink
	about, metric      uint8 // what comes back: an uplink of the other leaf, noUplink
}

const noUplink = 0xff

func unpackTag(via int32) congestionTag {
	v := uint32(via)
	return congestionTag{uint8(v), uint8(v >> 8), uint8(v >> 16), uint8(v >> 24)}
}

func (t congestionTag) pack() int32 {
	return int32(uint32(t.uplink) | uint32(t.congestion)<<8 | uint32(t.about)<<16 |
		uint32(t.metric)<<24)
}

// congestionMax is the greatest of CONGA's congestion values, which have 3 bits.
const congestionMax = 7

func quantize(utilization float64) uint8 {
	return uint8(min(utilization*(congestionMax+1), congestionMax))
}

// congestionAge is after how long without news a path counts as idle.
const congestionAge = 10 * Millisecond

// leafPair is what a leaf knows of the paths to and from another.
type leafPair struct {
	to   []leafMetric // by own uplink
	from []leafMetric // by uplink of the other, to be returned
	next int          // of from, to be returned next
}

type leafMetric struct {
	value uint8
	at    Time
}

// leaves is the state of a pair of leaves at the first of them.
func (s *Simulation) leaves(own, other Node) *leafPair {
	key := [2]Node{own, other}
	p := s.paths.leaves[key]
	if p == nil {
		p = &leafPair{to: make([]leafMetric, len(s.network.out[own])),
			from: make([]leafMetric, len(s.network.out[other]))}
		for i := range p.from {
			p.from[i].at = -never / 2
		}
		for i := range p.to {
			p.to[i].at = -never / 2
		}
		s.paths.leaves[key] = p
	}
	return p
}

// ends are the first and the last node of a packet's way.
func (s *Simulation) ends(e *packet) (src, dst Node) {
	if e.kind == datagram {
		c := &s.sources[e.flow]
		return c.src, c.dst
	}
	c := &s.connections[s.subflows[e.flow].connection]
	if e.kind == acknowledgement || e.kind == synAck {
		return c.dst, c.src
	}
	return c.src, c.dst
}

// congaArrived takes what a packet tells its last switch.
func (s *Simulation) congaArrived(e *packet, leaf Node) {
	src, _ := s.ends(e)
	first := s.network.entry[src]
	if first == leaf {
		return
	}
	t, p := unpackTag(e.via), s.leaves(leaf, first)
	if t.uplink != noUplink {
		p.from[t.uplink] = leafMetric{t.congestion, s.now}
	}
	if t.about != noUplink {
		p.to[t.about] = leafMetric{t.metric, s.now}
	}
}

// conga chooses the next hop.
func (s *Simulation) conga(e *packet, v Node, candidates []int32) int32 {
	src, _ := s.ends(e)
	f := s.flowlet(e, v)
	stale := s.now-f.last > s.paths.FlowletGap || !contains(candidates, f.link) ||
		s.links[f.link].down
	if v != s.network.entry[src] {
		if stale {
			f.link = candidates[hashed(mix(uint64(e.flow)))(v, len(candidates))]
			if s.links[f.link].down {
				f.link = s.alive(candidates)
			}
		}
	} else if stale {
		f.link = s.leastCongested(e, v, f.link, candidates)
	}
	f.last = s.now
	return f.link
}

// leastCongested is the uplink with the least congestion, the present one if no other is better.
func (s *Simulation) leastCongested(e *packet, v Node, present int32, candidates []int32) int32 {
	p := s.leaves(v, s.network.entry[e.route])
	best, least, equal := none, uint8(congestionMax+1), 0
	for _, l := range candidates {
		if s.links[l].down {
			continue
		}
		metric := quantize(s.utilization(l))
		if m := p.to[s.uplink[l]]; s.now-m.at <= congestionAge {
			metric = max(metric, m.value)
		}
		switch {
		case metric < least || metric == least && l == present:
			best, least, equal = l, metric, 1
		case metric == least && best != present:
			if equal++; s.paths.random.IntN(equal) == 0 {
				best = l
			}
		}
	}
	if best == none {
		return s.alive(candidates)
	}
	return best
}

// congaTag writes the header of a packet that leaves its first switch.
func (s *Simulation) congaTag(e *packet, v Node, link int32) {
	p, t := s.leaves(v, s.network.entry[e.route]), congestionTag{uplink: s.uplink[link],
		about: noUplink}
	for range p.from {
		i := p.next
		p.next = (p.next + 1) % len(p.from)
		if m := p.from[i]; s.now-m.at <= congestionAge {
			t.about, t.metric = uint8(i), m.value
			break
		}
	}
	e.via = t.pack()
}
