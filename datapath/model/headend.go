package model

import (
	"net/netip"
	"slices"
	"time"

	"sextant/packet/flow"
	"sextant/packet/srv6"
	"sextant/te/srpolicy"
)

// Headend is a node where SR policies choose traffic: its table, and the questions it asks the
// world. It remembers what it numbered, so that packets are processed one at a time.
type Headend struct {
	// Sides holds the head-end's interfaces, by index; on others it can't send.
	Sides          map[uint32]Side
	Block          srv6.Block
	Locators       []netip.Prefix // where SIDs are besides the block
	Infrastructure []netip.Prefix // sources that may send SRv6
	Table          srpolicy.Table
	// Flows have lists of their own, whatever the table says.
	Flows    map[flow.Tuple]srpolicy.Header
	Secret   flow.Secret // of the flow hash
	FlowHash flow.Function
	HopLimit uint8 // of answers
	// Loop is the interface at which packets come in again that were on their way out: this node is
	// no hop of theirs.
	Loop uint32
	// LoopLink are the Ethernet addresses with which the kernel gets a copy that only it can send.
	LoopLink [2 * 6]byte
	// NextHop asks routing for the way to dst, as for an [Edge].
	NextHop func(dst netip.Addr, choice uint8) NextHop

	// Clock is monotonic, for pauses of flows that chose of a group.
	Clock func() time.Duration

	// GoesOut is how much goes out over first segments, for flows that choose of a group.
	GoesOut map[netip.Addr]uint64

	numbers, turns map[uint32]uint64 // by policy
	groups         map[netip.Prefix]*Group
	choices        map[flow.Tuple]choice
}

// Steering is what a head-end makes of a frame.
type Steering struct {
	Entry  int    // of the table; -1: no rule chooses the packet
	Flow   bool   // it took a list of its flow, and no rule was asked
	Hash   uint64 // of the flow
	Number uint64 // of the packet, if a list that it takes has numbers
	Lists  []int  // which of the entry's lists it takes
	// Results are what becomes of it: one, or with several lists one per copy.
	Results []Result
}

// Process decides about a frame that came in by an interface. Timestamp is the time: TAI in
// microseconds, the low 32 bits.
func (h *Headend) Process(ingress uint32, timestamp uint32, data []byte) Steering {
	f, p, reason := h.parse(h.Sides[ingress], data)
	var r Result
	switch {
	case reason != ReasonNone:
		return Steering{Entry: -1, Results: []Result{r.drop(reason)}}
	case p == nil:
		return Steering{Entry: -1, Results: []Result{r.pass(data)}}
	}
	r.Flow = p.tuple()
	if p.staysOnLink(&f) {
		return Steering{Entry: -1, Results: []Result{r.pass(data)}}
	}
	s := steered{Headend: h, frame: &f, packet: p, ingress: ingress, timestamp: timestamp,
		result: r}
	header, own := h.Flows[r.Flow]
	if group := h.groupOf(p.dst); own || group != nil {
		return s.ofFlow(func() srpolicy.Header {
			if own {
				return header
			}
			return h.choose(group, p, r.Flow)
		})
	}
	entry, ok := h.Table.Find(srpolicy.Packet{
		Source: p.src, Destination: p.dst, Protocol: p.protocol, DSCP: p.trafficClass >> 2,
		SourcePort: p.transport.srcPort, DestinationPort: p.transport.dstPort,
	})
	if !ok {
		return Steering{Entry: -1, Results: []Result{r.pass(data)}}
	}
	s.entry = &h.Table[entry]
	return s.act(Steering{Entry: entry})
}

// parse parses as much of a frame as rules look at, and guards the domain on the way; p is nil if
// it is not an IP packet.
func (h *Headend) parse(side Side, data []byte) (f frame, p *packet, reason Reason) {
	if f, reason = parseFrame(data); reason != ReasonNone {
		return f, nil, reason
	}
	if f.etherType != etherTypeIPv4 && f.etherType != etherTypeIPv6 {
		return f, nil, ReasonNone
	}
	p = &packet{data: data, start: f.network, ipv6: f.etherType == etherTypeIPv6}
	if reason := p.parseHeader(len(data)); reason != ReasonNone {
		return f, nil, reason
	}
	if reason := p.judgeIPv4(); reason != ReasonNone {
		return f, nil, reason
	}
	if p.ipv6 {
		at, border := insideDomain, border{h.Block, h.Locators, h.Infrastructure}
		if border.isOutside(side, p.src) {
			at, reason = outsideDomain, border.judge(p)
		}
		if reason == ReasonNone {
			reason = p.walkExtensions(at)
		}
		if reason != ReasonNone {
			return f, nil, reason
		}
	}
	if p.problem == ReasonNone || p.problem == ReasonIPOptions {
		p.parsePorts()
	}
	if p.ipv6 && p.fragment.kind != fragmentNone {
		p.protocol = protocolFragment // what its fragments say of the upper layer may differ
	}
	return f, p, ReasonNone
}

// parsePorts reads the ports of TCP and UDP. A packet without any that can be read is steered by
// what else it has; an ICMP error by its own addresses, not by those that it quotes. Fragments,
// also first ones, have no ports, so that all of a packet go one way.
func (p *packet) parsePorts() {
	b := p.data[p.upper:p.end]
	whole := p.fragment.kind == fragmentNone
	switch {
	case whole && p.protocol == protocolTCP:
		p.transport.parseTCP(b)
	case whole && p.protocol == protocolUDP:
		p.transport.parseUDP(b)
	case p.fragment.kind != fragmentLater && p.isICMP() && len(b) >= icmpHeaderLength &&
		isICMPError(b[0], p.ipv6):
		p.icmp = icmpOther
	}
}

// staysOnLink reports whether a packet belongs to its link: no router sends it on, and so no
// head-end.
func (p *packet) staysOnLink(f *frame) bool {
	stays := func(a netip.Addr) bool { return !isSingleHost(a) || a.IsLinkLocalUnicast() }
	return !f.isUnicast() || stays(p.src) || stays(p.dst) || p.isNeighbourDiscovery()
}

func (p *packet) isNeighbourDiscovery() bool {
	b := p.data[p.upper:p.end]
	return p.ipv6 && p.isICMP() && p.fragment.kind == fragmentNone && len(b) >= icmpHeaderLength &&
		b[0] >= icmpv6RouterSolicitation && b[0] <= icmpv6Redirect
}

// steered is a packet that a rule has chosen.
type steered struct {
	*Headend
	frame     *frame
	packet    *packet
	ingress   uint32
	timestamp uint32
	entry     *srpolicy.Entry
	result    Result // what is known so far
}

func (s *steered) length() int { return s.packet.end - s.packet.start }

// isHop reports whether this node is a hop of the packet's. What comes out of the loop starts here,
// or has been counted by
// the kernel.
func (s *steered) isHop() bool { return s.ingress != s.Loop }

// ofFlow sends the packet along the list of its flow, which is asked for if none refuses it.
func (s *steered) ofFlow(list func() srpolicy.Header) Steering {
	out := Steering{Entry: -1, Flow: true}
	if s.refused(&out) {
		return out
	}
	s.entry = &srpolicy.Entry{Action: srpolicy.Path, Lists: []srpolicy.Header{list()}}
	out = s.act(out)
	out.Lists = nil // no policy's
	return out
}

// refused tells whether no list is for the packet, and says what becomes of it.
func (s *steered) refused(out *Steering) bool {
	switch {
	case s.packet.problem == ReasonIPOptions:
		out.Results = []Result{s.result.drop(ReasonIPOptions)}
	case s.isHop() && s.packet.hops() <= 1:
		s.result.Reason = ReasonHopLimit // the kernel answers
		out.Results = []Result{s.result.pass(s.packet.data)}
	default:
		return false
	}
	return true
}

func (s *steered) act(out Steering) Steering {
	if s.refused(&out) {
		return out
	}
	if s.entry.MTU != 0 && s.length() > int(s.entry.MTU) {
		out.Results = []Result{s.tooBig(int(s.entry.MTU))}
		return out
	}
	out.Hash = s.FlowHash.Hash(s.Secret, s.result.Flow)
	s.result.Hash = out.Hash
	switch s.entry.Action {
	case srpolicy.Path:
		return s.along(out, 0)
	case srpolicy.SplitFlow:
		share, _ := slices.BinarySearch(s.entry.Shares, uint32(out.Hash>>32))
		return s.along(out, min(share, len(s.entry.Lists)-1))
	case srpolicy.SplitPacket:
		turn := count(&s.turns, s.entry.Index)
		return s.along(out, int(s.entry.Turns[turn%uint64(len(s.entry.Turns))]))
	case srpolicy.Mirror:
		return s.mirror(out)
	}
	out.Results = []Result{s.result.drop(ReasonNoPath)}
	return out
}

// count returns a policy's counter, and raises it.
func count(counters *map[uint32]uint64, policy uint32) uint64 {
	if *counters == nil {
		*counters = map[uint32]uint64{}
	}
	n := (*counters)[policy]
	(*counters)[policy]++
	return n
}

// along sends the packet along one list.
func (s *steered) along(out Steering, list int) Steering {
	header := s.entry.Lists[list]
	hop := s.NextHop(header.Destination(), s.choice())
	if mtu := hop.MTU - len(header.Octets); hop.MTU > 0 && s.length() > mtu {
		out.Results = []Result{s.tooBig(mtu)}
		return out
	}
	s.forward()
	if header.Redundancy != srpolicy.None {
		out.Number = count(&s.numbers, s.entry.Index)
	}
	out.Lists = []int{list}
	out.Results = []Result{s.send(header, out.Number, s.ingress)}
	return out
}

// forward counts a hop.
func (s *steered) forward() {
	if s.isHop() {
		s.packet.countHop()
	}
}

// mirror sends the packet along all lists.
func (s *steered) mirror(out Steering) Steering {
	if mtu := s.leastMTU(); mtu > 0 && s.length() > mtu {
		out.Results = []Result{s.tooBig(mtu)}
		return out
	}
	s.forward()
	out.Number = count(&s.numbers, s.entry.Index)
	for list, header := range s.entry.Lists {
		out.Lists = append(out.Lists, list)
		out.Results = append(out.Results, s.send(header, out.Number, noInterface))
	}
	return out
}

// leastMTU returns what fits all lists, 0 if that is not known.
func (s *steered) leastMTU() int {
	least := 0
	for _, header := range s.entry.Lists {
		hop := s.NextHop(header.Destination(), s.choice())
		if mtu := hop.MTU - len(header.Octets); hop.MTU > 0 && (least == 0 || mtu < least) {
			least = mtu
		}
	}
	return least
}

// noInterface is where copies come in by: none of the node's own.
const noInterface = 0

// choice is that among equal paths: by the flow label, which is what a copy knows of the flow.
func (s *steered) choice() uint8 { return uint8(flow.Label(s.result.Hash) % pathChoices) }

// owns reports whether a next hop is reached by an interface on which the head-end sends itself.
func (s *steered) owns(hop NextHop) bool {
	_, own := s.Sides[hop.Interface]
	return own
}

// send encapsulates the packet for a list, and sends it to the first segment.
func (s *steered) send(header srpolicy.Header, number uint64, ingress uint32) Result {
	hop := s.NextHop(header.Destination(), s.choice())
	out := outgoing{ingress: ingress, frame: s.frame, length: len(header.Octets) + s.length()}
	verdict, reason := out.verdict(hop, s.owns(hop))
	if verdict == Drop {
		return s.result.drop(reason)
	}
	r := s.result
	r.Verdict = verdict
	if verdict != HandToKernel {
		r.Interface = hop.Interface
	}
	protocol := uint8(protocolIPv4)
	if s.packet.ipv6 {
		protocol = protocolIPv6
	}
	octets := slices.Clone(header.Octets)
	header.Fill(octets, s.length(), protocol, s.packet.trafficClass, flow.Label(r.Hash),
		uint32(number), s.timestamp)
	var b []byte
	if verdict == HandToKernel && ingress == noInterface {
		b = append(slices.Clone(s.LoopLink[:]), etherTypeIPv6>>8, etherTypeIPv6&0xff)
	} else {
		b = out.appendLinkHeader(nil, verdict, hop)
	}
	r.Frame = append(append(b, octets...), s.packet.data[s.packet.start:]...)
	return r
}

// tooBig tells the sender that its packet may have mtu bytes. How often is not limited here.
func (s *steered) tooBig(mtu int) Result {
	return s.result.tooBig(s.frame, s.packet, s.ingress, mtu, s.HopLimit)
}
