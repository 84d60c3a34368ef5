package model

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// Flags of TCP.
const (
	tcpFIN = 0x01
	tcpSYN = 0x02
	tcpRST = 0x04
	tcpACK = 0x10
)

func flowletMix(x uint64) uint64 {
	for range 2 {
		x = (x ^ x>>32) * 0xd6e8feb86659fd93
	}
	return x ^ x>>32
}

// hash is that of a flow.
func (e FlowletEnds) hash() uint64 {
	x := uint64(0)
	for _, a := range []netip.Addr{e.Local, e.Remote} {
		b := a.As16()
		x = flowletMix(x ^ binary.BigEndian.Uint64(b[:]))
		x = flowletMix(x ^ binary.BigEndian.Uint64(b[8:]))
	}
	return flowletMix(x ^ (uint64(e.Protocol)<<32 | uint64(e.LocalPort)<<16 | uint64(e.RemotePort)))
}

func (f *FlowletFlow) underWay() uint32 {
	if !f.TCP {
		return 0
	}
	return f.End - f.Acknowledged
}

// leftBehind are octets under way over the former path.
func (f *FlowletFlow) leftBehind() uint32 {
	if behind := f.Since - f.Acknowledged; f.TCP && int32(behind) > 0 {
		return behind
	}
	return 0
}

func (f *FlowletFlow) heavy() bool { return f.underWay()-f.leftBehind() >= flowletHeavy }

// why a flow may take another path.
type flowletReason int

const (
	flowletStays flowletReason = iota
	flowletBegins
	flowletLeaves
)

// reason says whether a packet of a flow may take another path.
func (m *Flowlets) reason(f *FlowletFlow, p *flowletPacket, g *FlowletGroup, hash uint32,
	again bool, now uint64) flowletReason {
	at := slices.IndexFunc(g.Paths, func(p FlowletPath) bool { return p.SID == f.Path })
	if at < 0 || g.Paths[at].Down {
		return flowletLeaves
	}
	gap := uint64(m.Gap)
	switch measure := m.Measures[f.Path]; m.Choice {
	case FlowletByFlow:
		return flowletStays
	case FlowletByMeasure:
		told := hash != 0 && f.KernelHash != 0 && hash != f.KernelHash
		unheard := again && measure.RoundTrip != 0 &&
			passedSince(f.Heard, now) > measure.patience()
		if m.broken(g.Paths[at], p.answered(), now) || told || unheard {
			return flowletLeaves
		}
		if p.tcp && f.underWay() == 0 && p.carries() {
			return flowletBegins
		}
		least, most := m.delays(g, p.answered(), now)
		gap = max(gap, most-least)
	}
	if f.leftBehind() == 0 && passedSince(f.Last, now) > gap {
		return flowletBegins
	}
	return flowletStays
}

// Send is a frame that leaves, with the hash that the kernel gave it.
func (m *Flowlets) Send(frame []byte, hash uint32, now uint64) (sent FlowletSent) {
	sent.Frame = frame
	p, ok := flowletRead(frame, false)
	if !ok || p.ends.Local == m.Source && slices.Contains([]uint8{4, 41, 43}, p.ends.Protocol) {
		return sent
	}
	g := m.group(p.ends.Remote)
	if g == nil {
		return sent
	}
	p.readTransport(frame, false)
	f := m.flow(p.ends, now)
	sent.Flow = f
	ends := p.end()
	if p.tcp && (!f.TCP || p.flags&tcpSYN != 0 && p.sequence != f.Acknowledged) {
		f.End, f.Acknowledged, f.Since, f.Resent = p.sequence, p.sequence, p.sequence, p.sequence
		f.TCP = true
	}
	again := p.answered() && int32(ends-f.End) <= 0
	if again {
		m.lost(f, ends)
	}
	if p.tcp && p.flags&tcpRST != 0 {
		hash = 0 // its own, not the flow's
	}
	m.chooseFor(f, &p, g, hash, again, now)
	if f.Last = now; hash != 0 {
		f.KernelHash = hash
	}
	if !f.Path.IsValid() {
		sent.Pathless = true
		return sent
	}
	path := g.Paths[slices.IndexFunc(g.Paths, func(p FlowletPath) bool { return p.SID == f.Path })]
	if p.length+40 > path.MTU {
		sent.TooLong = true
		return sent
	}
	measure := m.Measures[f.Path]
	if p.tcp {
		if p.answered() {
			measure.tried(now)
		}
		f.sent(measure, ends, now)
	} else {
		measure.count(int64(p.length/flowletForgets), now)
	}
	measure.Packets++
	measure.Bytes += uint64(p.length)
	sent.Path, sent.Interface = f.Path, path.Interface
	sent.Frame = m.outer(frame, &p, path)
	return sent
}

// carries says whether there is anything behind the headers.
func (p *flowletPacket) carries() bool { return p.length+14 > p.payload }

// end is where a segment ends: SYN and FIN take a number each.
func (p *flowletPacket) end() uint32 {
	ends := p.sequence + uint32(max(p.length+14-p.payload, 0))
	if p.flags&tcpSYN != 0 {
		ends++
	}
	if p.flags&tcpFIN != 0 {
		ends++
	}
	return ends
}

// answered says whether the packet is acknowledged: acknowledgements and resets are not.
func (p *flowletPacket) answered() bool {
	return p.tcp && p.flags&tcpRST == 0 && p.end() != p.sequence
}

func (m *Flowlets) flow(ends FlowletEnds, now uint64) *FlowletFlow {
	if m.Flows[ends] == nil {
		m.Flows[ends] = &FlowletFlow{Last: now, Heard: now}
	}
	return m.Flows[ends]
}

// chooseFor gives a flow the path of its packet.
func (m *Flowlets) chooseFor(f *FlowletFlow, p *flowletPacket, g *FlowletGroup, hash uint32,
	again bool, now uint64) {
	why := m.reason(f, p, g, hash, again, now)
	if why == flowletStays {
		return
	}
	var left netip.Addr
	if why == flowletLeaves {
		left = f.Path
		if before := m.Measures[left]; before != nil {
			before.Left++
		}
	}
	path, ok := m.choose(g, p.ends.hash(), left, p.answered(), now)
	if path.SID == f.Path {
		return
	}
	if ok && f.Path.IsValid() {
		m.Measures[path.SID].Moves++
	}
	f.Former, f.Since = netip.Addr{}, f.Acknowledged
	if why == flowletBegins {
		f.Former, f.Since = f.Path, f.End
	}
	f.TimedAt, f.NextAt, f.Path = 0, 0, path.SID
}

// sent notes what a segment adds.
func (f *FlowletFlow) sent(m *FlowletMeasure, ends uint32, now uint64) {
	fresh := int32(ends - f.End)
	if fresh <= 0 {
		return
	}
	m.Lost -= m.Lost >> 6
	m.count(int64(fresh), now)
	f.End = ends
	if !f.heavy() {
		return
	}
	if m.Silent == 0 {
		m.Silent = now
	}
	switch {
	case f.TimedAt == 0:
		f.TimedAt, f.Timed = now, ends
	case f.NextAt == 0 && passedSince(f.TimedAt, now) >= m.RoundTrip/2:
		f.NextAt, f.Next = now, ends
	}
}

// lost notes a segment that comes again.
func (m *Flowlets) lost(f *FlowletFlow, ends uint32) {
	path := f.Former
	if int32(ends-f.Since) > 0 {
		path = f.Path
	}
	f.TimedAt, f.NextAt = 0, 0
	if measure := m.Measures[path]; measure != nil {
		measure.Lost += (FlowletLost - measure.Lost) >> 6
	}
	if int32(ends-f.Resent) > 0 {
		f.Resent = ends
	}
}

// outer is the frame behind its outer header: H.Encaps.Red with one SID, RFC 8986 section 5.2.
func (m *Flowlets) outer(frame []byte, p *flowletPacket, path FlowletPath) []byte {
	out := append(slices.Clone(frame[:12]), 0x86, 0xdd)
	label := uint32(p.ends.hash()) & 0xfffff
	out = binary.BigEndian.AppendUint32(out, 6<<28|uint32(p.class)<<20|label)
	out = binary.BigEndian.AppendUint16(out, uint16(p.length))
	next := uint8(41)
	if p.ipv4 {
		next = 4
	}
	out = append(append(out, next, uint8(m.HopLimit)), m.Source.AsSlice()...)
	return append(append(out, path.SID.AsSlice()...), frame[14:]...)
}

// Heard is a frame that arrives. It returns the frame as the host takes it, and the flow whose
// segments it acknowledges, nil if there is none.
func (m *Flowlets) Heard(frame []byte, now uint64) ([]byte, *FlowletFlow) {
	p, ok := flowletRead(frame, true)
	if ok && !p.ipv4 && (p.ends.Protocol == 41 || p.ends.Protocol == 4) {
		p.ipv4 = p.ends.Protocol == 4
		ok = p.read(frame, 54, true)
	}
	if !ok {
		return frame, nil
	}
	p.readTransport(frame, true)
	if !p.tcp {
		return frame, nil
	}
	var f *FlowletFlow
	if p.flags&tcpACK != 0 {
		f = m.acknowledged(&p, now)
	}
	if p.flags&tcpSYN == 0 {
		return frame, f
	}
	if g := m.group(p.ends.Remote); g != nil {
		headers := 40 + 20 + 40
		if p.ipv4 {
			headers = 40 + 20 + 20
		}
		if int(g.MTU()) > headers && p.payload <= len(frame) && p.payload >= p.transport+20 {
			frame = slices.Clone(frame)
			clampMSS(frame[p.transport:p.payload], uint16(int(g.MTU())-headers))
		}
	}
	return frame, f
}

func (m *Flowlets) acknowledged(p *flowletPacket, now uint64) *FlowletFlow {
	f := m.Flows[p.ends]
	if f == nil || !f.TCP {
		return nil
	}
	newly := p.acknowledges - f.Acknowledged
	if newly > f.underWay() {
		return nil
	}
	octets := f.receives(p)
	behind, once := f.leftBehind(), f.has(f.Resent)
	f.Heard, f.Acknowledged = now, p.acknowledges
	if once {
		f.Resent = f.Acknowledged // numbers that are left far behind would be ahead again
	}
	sent := uint64(0) // when what is acknowledged was sent, as far as is known
	if f.TimedAt != 0 && f.has(f.Timed) {
		sent = f.TimedAt
		m.noteRoundTrip(f, now)
	}
	if behind > 0 && newly > 0 {
		brought := uint64(0) // what was sent once, the former path brought
		if once {
			brought = now
		}
		m.Measures[f.Former].heard(min(newly, behind), once, brought, 0, now)
	}
	if newly < behind {
		return f
	}
	f.Since = f.Acknowledged
	switch {
	case newly == 0:
		sent = m.toldOf(f, p, octets, now)
	case f.underWay() == 0:
		sent = f.Last
	}
	came := newly > behind && once || newly == 0 && sent != 0
	waits := uint64(0)
	if f.heavy() {
		waits = now
		if waits = f.TimedAt; waits == 0 {
			waits = min(f.Last, now)
		}
	}
	m.Measures[f.Path].heard(newly-behind, came, sent, waits, now)
	return f
}

// receives notes what a segment of the other end brings, and says whether it is new.
func (f *FlowletFlow) receives(p *flowletPacket) bool {
	if end := p.end(); p.carries() && (!f.Receives || int32(end-f.Received) > 0) {
		f.Received, f.Receives = end, true
		return true
	}
	return false
}

// toldOf is when the flow sent what a segment of the other end tells of that acknowledges nothing
// new; 0: of nothing. A duplicate acknowledgement, RFC 5681 section 2, comes a round trip behind
// what arrived; octets of the other end come if acknowledgements arrived a round trip ago.
func (m *Flowlets) toldOf(f *FlowletFlow, p *flowletPacket, octets bool, now uint64) uint64 {
	measure := m.Measures[f.Path]
	if measure == nil {
		return 0
	}
	ago := now - measure.RoundTrip
	switch waits := f.underWay() > 0; {
	case waits && !p.carries():
		return ago
	case waits || !octets:
		return 0
	default:
		return min(f.Last, ago)
	}
}

// has says whether what ends there was acknowledged.
func (f *FlowletFlow) has(end uint32) bool { return int32(f.Acknowledged-end) >= 0 }

// noteRoundTrip takes the segment that was timed as a measure, and the next one in its place.
func (m *Flowlets) noteRoundTrip(f *FlowletFlow, now uint64) {
	took := passedSince(f.TimedAt, now)
	f.TimedAt, f.Timed, f.NextAt = f.NextAt, f.Next, 0
	if f.has(f.Timed) {
		f.TimedAt = 0
	}
	if measure := m.Measures[f.Path]; measure != nil && took < 1<<32 {
		measure.roundTrip(took, now)
	}
}

// tried notes a packet that tries a path that was silent.
func (m *FlowletMeasure) tried(now uint64) {
	if m.Silent != 0 && passedSince(m.Silent, now) >= m.retry() {
		m.Silent, m.Tries = now-m.patience()-1, min(m.Tries+1, 7)
	}
}

// heard notes that octets are no longer under way, and whether the path brought anything.
func (m *FlowletMeasure) heard(octets uint32, came bool, sent, waits, now uint64) {
	if m == nil {
		return
	}
	if octets != 0 {
		m.count(-int64(octets), now)
	}
	if came {
		m.Came = now
	}
	if m.Silent == 0 || sent >= m.Silent {
		m.Silent, m.Tries = waits, 0
	}
}

// roundTrip smooths as RFC 6298 does. The first variation is half of what it has: few segments of a
// path are timed, and it must not wait for long until they have told that it is steady.
func (m *FlowletMeasure) roundTrip(took, now uint64) {
	if m.RoundTrip == 0 {
		m.RoundTrip, m.Variation = took, took/4
	} else {
		off := max(took, m.RoundTrip) - min(took, m.RoundTrip)
		m.Variation += off>>2 - m.Variation>>2
		m.RoundTrip += took>>3 - m.RoundTrip>>3
	}
	m.Measured = now
}
