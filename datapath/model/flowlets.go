package model

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"sextant/config"
)

// FlowletChoice is how a path is chosen for a flowlet.
type FlowletChoice uint32

// The choices.
const (
	FlowletByFlow    FlowletChoice = iota // one path for a flow, by hash
	FlowletAtRandom                       // any path for each flowlet
	FlowletByMeasure                      // the one on which a segment would meet the least
)

// What flowlets are measured by.
const (
	FlowletLost         = 65536 // the share of segments that came again, as 1
	flowletHeavy        = 2800  // octets that a receiver acknowledges at once: two segments
	flowletSegment      = 1500  // octets that a choice is about to add
	flowletForgets      = 8     // round trips in which octets decay that are never acknowledged
	flowletAge          = uint64(100 * time.Millisecond)
	flowletLeastSilence = uint64(time.Millisecond)
	flowletRetries      = 4 // patiences until a silent path is tried; then twice as many
	flowletRetry        = uint64(time.Second)
)

// FlowletPath is a way to the destinations of a group.
type FlowletPath struct {
	SID       netip.Addr // the list of segments: outer destination
	Delay     time.Duration
	Interface uint32 // to its first segment; 0: not known
	MTU       int    // of the way, outer header included
	Down      bool
}

// FlowletGroup is paths to the same destinations.
type FlowletGroup struct {
	Destinations []netip.Prefix
	Paths        []FlowletPath
}

// MTU is what fits all paths.
func (g FlowletGroup) MTU() uint32 {
	least := 0
	for i, p := range g.Paths {
		if i == 0 || p.MTU < least {
			least = p.MTU
		}
	}
	return uint32(least)
}

// FlowletMeasure is what is known of a path. Times are those of the monotonic clock, in ns.
type FlowletMeasure struct {
	Octets                      int64 // under way, at At
	At                          uint64
	RoundTrip, Variation        uint64
	Measured, Silent, Came      uint64
	Packets, Bytes, Moves, Left uint64
	Lost, Tries                 uint32
}

// FlowletEnds is a flow, as its host sees it.
type FlowletEnds struct {
	Local, Remote         netip.Addr
	LocalPort, RemotePort uint16
	Protocol              uint8
}

// FlowletFlow is what is known of a flow.
type FlowletFlow struct {
	Last, TimedAt, NextAt, Heard   uint64
	Timed, Next, End, Acknowledged uint32
	KernelHash, Since, Resent      uint32
	Path, Former                   netip.Addr // SIDs; the zero value: none
	TCP                            bool
	Received                       uint32 // where what the other end sent ends
	Receives                       bool   // that is known
}

// Flowlets is what bpf/flowlet.c does to packets, in Go.
type Flowlets struct {
	Source netip.Addr
	config.FlowletsOuter
	Gap      time.Duration
	Choice   FlowletChoice
	Groups   []FlowletGroup
	Measures map[netip.Addr]*FlowletMeasure // by SID
	Flows    map[FlowletEnds]*FlowletFlow
}

// FlowletSent is what became of a packet that leaves.
type FlowletSent struct {
	Flow  *FlowletFlow // nil: it is none of theirs
	Frame []byte       // as it leaves
	Path  netip.Addr   // the zero value: by the kernel's route
	// TooLong and Pathless say why it takes the kernel's route.
	TooLong, Pathless bool
	Interface         uint32
}

// flowletPacket is what a packet tells.
type flowletPacket struct {
	ends                   FlowletEnds
	payload, length        int // offset; of the IP packet
	sequence, acknowledges uint32
	class, flags           uint8
	tcp, isolated, ipv4    bool // isolated: a fragment, or too short for its ports
	transport              int
}

// read parses an IP packet at an offset.
func (p *flowletPacket) read(frame []byte, at int, arrives bool) bool {
	b := frame[at:]
	var source, destination netip.Addr
	switch {
	case len(b) >= 20 && p.ipv4 && b[0]>>4 == 4 && b[0]&15 >= 5:
		source, _ = netip.AddrFromSlice(b[12:16])
		destination, _ = netip.AddrFromSlice(b[16:20])
		p.ends.Protocol, p.class = b[9], b[1]
		p.transport = at + int(b[0]&15)*4
		p.isolated = binary.BigEndian.Uint16(b[6:])&0x3fff != 0
	case len(b) >= 40 && !p.ipv4 && b[0]>>4 == 6:
		source, _ = netip.AddrFromSlice(b[8:24])
		destination, _ = netip.AddrFromSlice(b[24:40])
		p.ends.Protocol, p.class = b[6], b[0]<<4|b[1]>>4
		p.transport = at + 40
	default:
		return false
	}
	p.ends.Local, p.ends.Remote = source, destination
	if arrives {
		p.ends.Local, p.ends.Remote = destination, source
	}
	p.length = len(b)
	return true
}

// readTransport parses the TCP or UDP header.
func (p *flowletPacket) readTransport(frame []byte, arrives bool) {
	p.payload = p.transport
	if p.isolated {
		p.payload = 0
		return
	}
	if p.ends.Protocol != 6 && p.ends.Protocol != 17 || p.transport+4 > len(frame) {
		return
	}
	b := frame[p.transport:]
	p.ends.LocalPort, p.ends.RemotePort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	if arrives {
		p.ends.LocalPort, p.ends.RemotePort = p.ends.RemotePort, p.ends.LocalPort
	}
	if p.ends.Protocol != 6 || len(b) < 20 {
		return
	}
	p.tcp = true
	p.sequence, p.acknowledges = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	p.flags = b[13]
	p.payload = p.transport + int(b[12]>>4)*4
}

// flowletRead parses a frame.
func flowletRead(frame []byte, arrives bool) (p flowletPacket, ok bool) {
	switch binary.BigEndian.Uint16(frame[12:]) {
	case 0x0800:
		p.ipv4 = true
	case 0x86dd:
	default:
		return p, false
	}
	return p, p.read(frame, 14, arrives)
}

// group is the one whose destinations are the longest prefix of an address; nil: none.
func (m *Flowlets) group(to netip.Addr) (found *FlowletGroup) {
	longest := -1
	for i := range m.Groups {
		for _, prefix := range m.Groups[i].Destinations {
			if prefix.Contains(to) && prefix.Bits() > longest {
				found, longest = &m.Groups[i], prefix.Bits()
			}
		}
	}
	return found
}

func passedSince(then, now uint64) uint64 { return max(now, then) - then }

// underWay are octets of a path: those that are never acknowledged decay.
func (m *FlowletMeasure) underWay(now uint64) uint64 {
	octets := uint64(min(max(m.Octets, 0), 1<<32-1))
	span := flowletForgets * m.RoundTrip
	if span == 0 {
		span = flowletAge
	}
	span = min(span, 1<<32-1)
	passed := min(passedSince(m.At, now), span)
	return octets - octets*passed/span
}

func (m *FlowletMeasure) count(octets int64, now uint64) {
	m.Octets, m.At = max(int64(m.underWay(now))+octets, 0), now
}

func (m *Flowlets) delay(p FlowletPath, now uint64) uint64 {
	measure := m.Measures[p.SID]
	if p.Delay != 0 {
		return uint64(p.Delay)
	}
	if passedSince(measure.Measured, now) > flowletAge {
		return 0
	}
	return measure.RoundTrip
}

func (m *FlowletMeasure) patience() uint64 {
	return m.RoundTrip + max(m.RoundTrip/4, 4*m.Variation, flowletLeastSilence)
}

// retry is how long a path is silent until a packet tries it.
func (m *FlowletMeasure) retry() uint64 {
	return min(flowletRetries*m.patience()<<(m.Tries&7), flowletRetry)
}

// broken says whether a path is taken for broken: a segment is late, and nothing else came of late.
// One packet that is acknowledged may try it after a while. By hash of the flow alone, as by ECMP,
// only one that is down is.
func (m *Flowlets) broken(p FlowletPath, tries bool, now uint64) bool {
	measure := m.Measures[p.SID]
	if p.Down || m.Choice == FlowletByFlow || measure.Silent == 0 || measure.RoundTrip == 0 {
		return p.Down
	}
	silence := passedSince(measure.Silent, now)
	return silence > measure.patience() &&
		passedSince(measure.Came, now) >= measure.RoundTrip/2 &&
		(!tries || silence < measure.retry())
}

// choose returns the path for a flowlet, another one than the one that the flow leaves if there is
// one; ok is false if all are down.
func (m *Flowlets) choose(g *FlowletGroup, hash uint64, left netip.Addr, tries bool,
	now uint64) (best FlowletPath, ok bool) {
	if len(g.Paths) == 0 {
		return best, false
	}
	if m.Choice == FlowletAtRandom {
		hash = flowletMix(hash ^ now)
	}
	first := (hash >> 32) % uint64(len(g.Paths))
	order := slices.Concat(g.Paths[first:], g.Paths[:first])
	index := uint32(0)
	usable := without(order, func(p FlowletPath) bool {
		return m.broken(p, tries, now) || left.IsValid() && p.SID == left
	})
	if len(usable) > 0 {
		index = uint32(hash) % uint32(len(usable))
	} else {
		usable = without(order, func(p FlowletPath) bool { return p.Down })
	}
	if len(usable) == 0 {
		return best, false
	}
	if m.Choice != FlowletByMeasure {
		return usable[index], true
	}
	least, _ := m.delays(g, tries, now)
	return slices.MinFunc(usable, func(a, b FlowletPath) int {
		return cmp.Compare(m.cost(a, least, now), m.cost(b, least, now))
	}), true
}

func without(paths []FlowletPath, not func(FlowletPath) bool) []FlowletPath {
	return slices.DeleteFunc(slices.Clone(paths), not)
}

// cost is what a segment would meet: octets under way, times delay, more where segments are lost.
func (m *Flowlets) cost(p FlowletPath, least, now uint64) uint64 {
	measure, delay := m.Measures[p.SID], m.delay(p, now)
	if delay == 0 {
		delay = least
	}
	delay = min(delay>>10+1, 1<<23-1)
	return (measure.underWay(now) + flowletSegment) >> 6 * delay * (256 + uint64(measure.Lost>>4))
}

// delays are the least that is known of a path that can be used, and the most.
func (m *Flowlets) delays(g *FlowletGroup, tries bool, now uint64) (least, most uint64) {
	for _, p := range g.Paths {
		if m.broken(p, tries, now) {
			continue
		}
		delay := m.delay(p, now)
		if delay != 0 && (least == 0 || delay < least) {
			least = delay
		}
		most = max(most, delay)
	}
	return least, most
}

// FlowletEndsOf are those of a frame that leaves the host, or arrives; ok is false if it has none.
func FlowletEndsOf(frame []byte, arrives bool) (ends FlowletEnds, ok bool) {
	p, ok := flowletRead(frame, arrives)
	if ok && arrives && !p.ipv4 && (p.ends.Protocol == 41 || p.ends.Protocol == 4) {
		p.ipv4 = p.ends.Protocol == 4
		ok = p.read(frame, 54, true)
	}
	if ok {
		p.readTransport(frame, arrives)
	}
	return p.ends, ok
}
