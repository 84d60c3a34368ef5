package model

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// TelemetryReasons is a set of reasons to report a packet at the sink.
type TelemetryReasons uint8

// The reasons.
const (
	TelemetryEach        TelemetryReasons = 1 << iota // the packet has telemetry
	TelemetryGap                                      // the flow had paused
	TelemetryQueue                                    // a queue on the way is long
	TelemetryQueueChange                              // the longest queue on the way is another
	TelemetryNew                                      // the flow was not known
	TelemetryPath                                     // other nodes than before
	TelemetryEnd                                      // FIN or RST
	// TelemetryReasonBits is how many reasons there are.
	TelemetryReasonBits = iota
)

// TelemetryWatch is what is worth a report.
type TelemetryWatch struct {
	GapNS          uint64           // a pause counts above this; 0: none does
	GapRTTs        uint32           // and above so many round-trip times, where one is known
	QueueBytes     uint32           // a queue counts above this
	QueueChange    uint32           // another queue counts from this difference on, in octets
	Reasons        TelemetryReasons // those that are reported
	FlowIntervalNS uint64           // at least, between two reports of a flow
	Limit          uint32           // reports in a second
}

// TelemetrySeen is what the sink looks at for the flow of a packet.
type TelemetrySeen struct {
	Any      bool
	Carries  bool   // telemetry
	Protocol uint8  // of the inner packet
	Inner    []byte // with what stands behind it
	Queue    uint32 // the longest on the way
	Path     uint32 // hash of the nodes
	HasQueue bool
	HasPath  bool
}

const telemetryHopsMax = 16

// lookThrough takes the longest queue and the nodes from the stack.
func (s *TelemetrySeen) lookThrough(md telemetry.MD) {
	s.Path = 2166136261
	written := md.Hops() - md.FreeSlots()
	for i := range min(written, telemetryHopsMax) {
		hop, _ := md.Hop(written - 1 - i)
		if hop.Present&telemetry.NodeID != 0 {
			s.Path, s.HasPath = (s.Path^hop.NodeID)*16777619, true
		}
		if hop.Present&telemetry.Queue != 0 {
			s.Queue, s.HasQueue = max(s.Queue, hop.QueueBytes), true
		}
	}
}

// Flow is the flow of the inner packet, and its TCP flags.
func (s *TelemetrySeen) Flow() (t flow.Tuple, flags uint8, ok bool) {
	b, ports := s.Inner, true
	switch {
	case s.Protocol == 41 && len(b) >= 40 && b[0]>>4 == 6:
		t = flow.Tuple{Src: netip.AddrFrom16([16]byte(b[8:])), Protocol: b[6],
			Dst: netip.AddrFrom16([16]byte(b[24:]))}
		if b = b[40:]; t.Protocol == 0 && len(b) >= 2 { // hop-by-hop options
			t.Protocol, b = b[0], b[min(len(b), 8+8*int(b[1])):]
		}
	case s.Protocol == 4 && len(b) >= 20 && b[0]>>4 == 4 && b[0]&15 >= 5:
		t = flow.Tuple{Src: netip.AddrFrom4([4]byte(b[12:])), Protocol: b[9],
			Dst: netip.AddrFrom4([4]byte(b[16:]))}
		ports = binary.BigEndian.Uint16(b[6:])&0x3fff == 0
		b = b[min(len(b), 4*int(b[0]&15)):]
	default:
		return t, 0, false
	}
	if ports && (t.Protocol == 17 && len(b) >= 4 || t.Protocol == 6 && len(b) >= 14) {
		t.SrcPort, t.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		if t.Protocol == 6 {
			flags = b[13]
		}
	}
	return t, flags, true
}

// TelemetryFlow is what the sink remembers of a flow. Times are in nanoseconds of one clock.
type TelemetryFlow struct {
	LastNS, ReportNS, OpeningNS, RTTNS uint64

	Queue, Path       uint32
	Ended, Opening    bool
	HasPath, HasQueue bool
	reported          bool
}

// TelemetryFlows is the memory of a sink.
type TelemetryFlows struct {
	Watch TelemetryWatch
	Flows map[flow.Tuple]*TelemetryFlow
	// Reports of the second that began at SinceNS.
	SinceNS, Reports uint64
}

// TelemetryReport is what the sink says about a packet. Limited is its outcome if that is one of
// the limits.
type TelemetryReport struct {
	Reasons TelemetryReasons
	GapNS   uint64
	Limited TelemetryOutcome
	Silent  bool // there is nothing to say
}

// See notes a packet that came at a time.
func (m *TelemetryFlows) See(s TelemetrySeen, nowNS uint64) TelemetryReport {
	r := TelemetryReport{Silent: true}
	if !s.Any || m.Watch.Reasons == 0 {
		return r
	}
	if s.Carries {
		r.Reasons = TelemetryEach
	}
	var f *TelemetryFlow
	if tuple, flags, ok := s.Flow(); ok {
		f = m.Flows[tuple]
		if f == nil {
			f = &TelemetryFlow{LastNS: nowNS}
			m.Flows[tuple] = f
			r.Reasons |= TelemetryNew
		}
		r.Reasons |= f.see(&m.Watch, s, flags, nowNS, &r.GapNS)
	}
	r.Reasons &= m.Watch.Reasons
	switch {
	case r.Reasons == 0:
		return r
	case f != nil && f.reported && since(nowNS, f.ReportNS) < m.Watch.FlowIntervalNS:
		r.Limited = TelemetryFlowLimit
		return r
	case !m.take(nowNS):
		r.Limited = TelemetryLimit
		return r
	}
	if f != nil {
		f.ReportNS, f.reported = nowNS, true
	}
	r.Silent = false
	return r
}

// since is the time from then to now; 0 if then is later, noted by another processor.
func since(nowNS, thenNS uint64) uint64 { return uint64(max(0, int64(nowNS-thenNS))) }

func (m *TelemetryFlows) take(nowNS uint64) bool {
	if since(nowNS, m.SinceNS) >= 1e9 {
		m.SinceNS, m.Reports = nowNS, 0
	}
	if m.Reports >= uint64(m.Watch.Limit) {
		return false
	}
	m.Reports++
	return true
}

func (f *TelemetryFlow) see(w *TelemetryWatch, s TelemetrySeen, flags uint8, nowNS uint64,
	gapNS *uint64) (reasons TelemetryReasons) {
	*gapNS = since(nowNS, f.LastNS)
	least := max(w.GapNS, uint64(w.GapRTTs)*f.RTTNS)
	if least > 0 && *gapNS > least && !f.Ended {
		reasons |= TelemetryGap
	}
	f.LastNS += *gapNS
	const fin, syn, rst, ack = 1, 2, 4, 16
	if flags&(syn|ack) == syn {
		if f.Ended {
			reasons |= TelemetryNew
		}
		f.OpeningNS, f.Opening, f.Ended = nowNS, true, false
	} else if f.Opening {
		f.RTTNS, f.Opening = since(nowNS, f.OpeningNS), false
	}
	if flags&(fin|rst) != 0 && !f.Ended {
		f.Ended = true
		reasons |= TelemetryEnd
	}
	return reasons | f.way(w, s)
}

func (f *TelemetryFlow) way(w *TelemetryWatch, s TelemetrySeen) (reasons TelemetryReasons) {
	if s.HasQueue {
		change := max(s.Queue, f.Queue) - min(s.Queue, f.Queue)
		if s.Queue > w.QueueBytes {
			reasons |= TelemetryQueue
		}
		if f.HasQueue && change >= w.QueueChange {
			reasons |= TelemetryQueueChange
		}
		if !f.HasQueue || change >= w.QueueChange {
			f.Queue = s.Queue
		}
		f.HasQueue = true
	}
	if s.HasPath {
		if f.HasPath && f.Path != s.Path {
			reasons |= TelemetryPath
		}
		f.Path, f.HasPath = s.Path, true
	}
	return reasons
}

var telemetryReasonNames = [TelemetryReasonBits]string{"each", "gap", "queue", "queue_change",
	"new_flow", "path", "end"}

// String returns the names of the reasons.
func (r TelemetryReasons) String() string {
	text := ""
	for ; r != 0; r &= r - 1 {
		if text != "" {
			text += ", "
		}
		text += telemetryReasonNames[bits.TrailingZeros8(uint8(r))]
	}
	return text
}
