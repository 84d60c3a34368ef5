package model

import (
	"encoding/binary"
	"slices"

	"sextant/packet/telemetry"
)

// TelemetryEncoding is the form in which a source inserts telemetry.
type TelemetryEncoding uint8

// The encodings, in the program's order.
const (
	EncodingINT TelemetryEncoding = iota
	EncodingIOAM
	EncodingPathTracing
)

// OptionOctetsMax is how long a hop-by-hop header is that a source inserts: HOP_OPTIONS_MAX.
const OptionOctetsMax = 264

const (
	optionsFixed    = 6  // of a hop-by-hop header, before the data of its one option
	traceFixed      = 10 // of a trace, before what nodes write
	midpointOctets  = 3
	hopOptionsLimit = 8 // options that are walked: HOP_OPTIONS
	optionPadN      = 1
	// octets of a hop-by-hop header that a sink can move: INT_HEAD less the IPv6 header
	hopOptionsMoved = 240
)

// optionData is how many octets the option of so many nodes has.
func (e TelemetryEncoding) optionData(of telemetry.Instructions, hops uint8) int {
	if e == EncodingPathTracing {
		return midpointOctets * int(hops)
	}
	return traceFixed + 4*telemetry.TraceTypeOf(of).Words()*int(hops)
}

// OptionOctets is how long the hop-by-hop header of so many nodes is; 0: INT has none.
func (e TelemetryEncoding) OptionOctets(of telemetry.Instructions, hops uint8) int {
	if e == EncodingINT {
		return 0
	}
	return (optionsFixed + e.optionData(of, hops) + 7) &^ 7
}

// telemetryOption is an option with telemetry in a frame's hop-by-hop header.
type telemetryOption struct {
	frame  []byte
	header []byte // the hop-by-hop header
	at     int    // of the option, from the start of the frame
	octets []byte // the option
	alone  bool   // besides, there is only padding
	from   int    // where the padding before the option begins, in the header
	to     int    // where that behind it ends
}

const hopByHopAt = 14 + 40

// findOption returns the first option with telemetry. It is false if there is none, or options are
// not whole.
func findOption(frame []byte) (o telemetryOption, ok bool) {
	if len(frame) < hopByHopAt+2 || frame[14]>>4 != 6 || frame[14+6] != 0 {
		return o, false
	}
	size := 8 + 8*int(frame[hopByHopAt+1])
	payload := int(binary.BigEndian.Uint16(frame[14+4:]))
	if size > payload || hopByHopAt+payload > len(frame) {
		return o, false
	}
	o = telemetryOption{frame: frame, header: frame[hopByHopAt : hopByHopAt+size], alone: true,
		from: 2}
	rest := o.header[2:]
	for range hopOptionsLimit {
		if len(rest) == 0 {
			break
		}
		octets := 1
		if rest[0] != 0 {
			// one octet behind the header may be read as a length, which then is too long
			if len(rest) < 2 || len(rest) < 2+int(rest[1]) {
				break
			}
			octets = 2 + int(rest[1])
		}
		at := len(o.header) - len(rest)
		switch kind := rest[0]; {
		case o.octets == nil && (kind == telemetry.OptionIOAM ||
			kind == telemetry.OptionPathTracing):
			o.octets = rest[:octets]
			o.at = hopByHopAt + at
		case kind > optionPadN && o.octets == nil:
			o.alone, o.from = false, at+octets
		case kind > optionPadN && o.to == 0:
			o.alone, o.to = false, at
		}
		rest = rest[octets:]
	}
	if o.to == 0 {
		o.to = len(o.header) - len(rest)
	}
	o.alone = o.alone && len(rest) == 0
	return o, o.octets != nil
}

// carried says what the option has: present, if it is of this domain; ok, if its fields agree.
func (n TelemetryNode) carried(o telemetryOption) (trace telemetry.Trace, present, ok bool) {
	if o.octets[0] == telemetry.OptionPathTracing {
		return trace, true, true
	}
	if len(o.octets) < 2+traceFixed {
		return trace, true, false
	}
	if o.octets[3] != 0 || binary.BigEndian.Uint16(o.octets[4:]) != n.Namespace {
		return trace, false, false
	}
	trace, _, err := telemetry.ParseTrace(o.octets)
	return trace, true, err == nil && (o.at-hopByHopAt)%4 == 0
}

// findOption returns an option of the domain. The result stands if it is counted.
func (n TelemetryNode) findOption(frame []byte) (o telemetryOption, r TelemetryResult, has bool) {
	o, has = findOption(frame)
	if !has {
		return o, r, false
	}
	_, present, ok := n.carried(o)
	f := telemetryFrame{frame: frame, ip: frame[14:]}
	switch {
	case !present:
		return o, r, false
	case !n.trusts(f):
		return o, o.only(TelemetryOutside), true
	case !ok:
		return o, o.only(TelemetryBroken), true
	}
	return o, r, true
}

func (o telemetryOption) only(outcome TelemetryOutcome) TelemetryResult {
	return TelemetryResult{Frame: o.frame, Outcome: outcome, Counted: true}
}

// writes returns the frame with an option of the same length in place of what it has.
func (o telemetryOption) writes(outcome TelemetryOutcome, option []byte) TelemetryResult {
	r := o.only(outcome)
	r.Frame = slices.Concat(o.frame[:o.at], option, o.frame[o.at+len(option):])
	return r
}

// traceOf is what a node writes into a trace.
func traceOf(of telemetry.TraceType, hopLimit uint8, seen telemetry.Metadata) (b []byte) {
	const unknown = ^uint32(0)
	word := func(v uint32) { b = binary.BigEndian.AppendUint32(b, v) }
	for field := telemetry.TraceNode; field > telemetry.TraceOpaque; field >>= 1 {
		switch {
		case of&field == 0:
		case field == telemetry.TraceNode:
			word(uint32(hopLimit)<<24 | seen.NodeID&0xffffff)
		case field == telemetry.TraceInterfaces:
			word(uint32(seen.Ingress)<<16 | uint32(seen.Egress))
		case field == telemetry.TraceQueueDepth && seen.Present&telemetry.Queue != 0:
			word(seen.QueueBytes)
		case field == telemetry.TraceNodeWide:
			word(uint32(hopLimit) << 24)
			word(seen.NodeID)
		case field == telemetry.TraceIfsWide:
			word(seen.WideIngress)
			word(seen.WideEgress)
		default:
			word(unknown)
			if field == 0x2000 {
				word(unknown)
			}
		}
	}
	if of&telemetry.TraceOpaque != 0 {
		word(0x00ffffff)
	}
	return b
}

// sourceOption inserts an option into a packet that has no hop-by-hop header. It panics if the
// option does not fit, which only a mistake in this package can bring about.
func (n TelemetryNode) sourceOption(f telemetryFrame, class TelemetryClass,
	seen telemetry.Metadata) TelemetryResult {
	size := n.Encoding.OptionOctets(class.Instructions, class.Hops)
	if !n.fits(f, size) {
		return f.only(TelemetryMTU)
	}
	header := []byte{f.ip[6], byte(size/8 - 1), optionPadN, 0}
	var err error
	if n.Encoding == EncodingIOAM {
		of := telemetry.TraceTypeOf(class.Instructions)
		free := of.Words() * (int(class.Hops) - 1)
		trace := telemetry.Trace{Option: telemetry.OptionIOAM, Namespace: n.Namespace, Type: of,
			RemainingWords: uint8(free),
			Data:           append(make([]byte, 4*free), traceOf(of, f.ip[7], seen)...)}
		header, err = trace.AppendBinary(header)
	} else {
		trace := make(telemetry.PathTrace, midpointOctets*int(class.Hops))
		_ = trace.Push(n.midpoint(seen))
		header, err = trace.AppendBinary(header)
	}
	if err != nil {
		panic("model: an option that does not fit: " + err.Error())
	}
	header = appendPadding(header, size-len(header))
	r := f.only(TelemetryInserted)
	r.Frame = slices.Concat(f.frame[:hopByHopAt], header, f.frame[hopByHopAt:])
	r.Frame[14+6] = 0
	binary.BigEndian.PutUint16(r.Frame[14+4:],
		uint16(len(header))+binary.BigEndian.Uint16(f.ip[4:]))
	return r
}

// midpoint is what a node writes for Path Tracing; the stamp is the lowest octet of EgressTimeNS.
func (n TelemetryNode) midpoint(seen telemetry.Metadata) telemetry.Midpoint {
	return telemetry.Midpoint{Interface: uint16(min(seen.WideEgress, 0xfff)),
		Stamp: uint8(seen.EgressTimeNS)}
}

// transitOption adds what the node knows to an option.
func (n TelemetryNode) transitOption(o telemetryOption, trace telemetry.Trace,
	seen telemetry.Metadata) TelemetryResult {
	if o.octets[0] == telemetry.OptionPathTracing {
		path := telemetry.PathTrace(slices.Clone(o.octets[2:]))
		if path.Push(n.midpoint(seen)) != nil {
			return o.only(TelemetryHops)
		}
		return o.writes(TelemetryInPlace, slices.Concat(o.octets[:2], path))
	}
	node := traceOf(trace.Type, o.frame[14+7], seen)
	option := slices.Clone(o.octets)
	if len(node) > 4*int(trace.RemainingWords) {
		option[6] |= 4
		return o.writes(TelemetryHops, option)
	}
	free := 4*int(trace.RemainingWords) - len(node)
	option[7] -= uint8(len(node) / 4)
	copy(option[2+traceFixed+free:], node)
	return o.writes(TelemetryInPlace, option)
}

// sinkOption takes an option out.
func (n TelemetryNode) sinkOption(o telemetryOption, trace telemetry.Trace) TelemetryResult {
	r := o.only(TelemetryRemoved)
	if f, ok := walkTelemetry(o.frame); ok {
		r.Seen = TelemetrySeen{Any: true, Carries: true, Protocol: f.next, Inner: f.ip[f.outer:]}
		if !isEncapsulated(f.next) {
			r.Seen.Protocol, r.Seen.Inner = 41, f.ip
		}
		if o.octets[0] == telemetry.OptionPathTracing {
			r.Seen.lookThroughMidpoints(o.octets[2:])
		} else {
			r.Seen.lookThroughTrace(trace)
		}
	}
	var header []byte
	if !o.alone {
		if o.from > hopOptionsMoved {
			r.Outcome = TelemetryRefused
			return r
		}
		header = appendPadding(slices.Clone(o.header[:o.from]), (o.to-o.from)%8)
		header = append(header, o.header[o.to:]...)
		header[1] = uint8(len(header)/8 - 1)
	}
	r.Frame = slices.Concat(o.frame[:hopByHopAt], header, o.frame[hopByHopAt+len(o.header):])
	if o.alone {
		r.Frame[14+6] = o.header[0]
	}
	payload := binary.BigEndian.Uint16(o.frame[14+4:])
	binary.BigEndian.PutUint16(r.Frame[14+4:], payload+uint16(len(header)-len(o.header)))
	return r
}

// appendPadding appends as many octets that say nothing, fewer than 8.
func appendPadding(b []byte, octets int) []byte {
	if octets < 2 {
		return append(b, make([]byte, octets)...)
	}
	return append(append(b, optionPadN, byte(octets-2)), make([]byte, octets-2)...)
}

// lookThroughTrace takes the longest queue and the nodes from a trace.
func (s *TelemetrySeen) lookThroughTrace(trace telemetry.Trace) {
	s.Path = 2166136261
	size := 4 * trace.Type.Words()
	if trace.Type&telemetry.TraceOpaque != 0 || size == 0 {
		return
	}
	trace.Data, trace.RemainingWords = trace.Data[4*int(trace.RemainingWords):], 0
	trace.Data = trace.Data[:min(len(trace.Data)/size, telemetryHopsMax)*size]
	samples, _ := trace.AppendSamples(nil, 0)
	for _, sample := range samples {
		if sample.Known&telemetry.FieldQueue != 0 {
			s.Queue, s.HasQueue = max(s.Queue, sample.QueueBytes), true
		}
	}
	for node := range slices.Chunk(trace.Data, size) { // newest first
		number := binary.BigEndian.Uint32(node) & 0xffffff
		if trace.Type&telemetry.TraceNode != 0 && number != 0xffffff {
			s.Path, s.HasPath = (s.Path^number)*16777619, true
		}
	}
}

// lookThroughMidpoints takes the interfaces of the way from Path Tracing.
func (s *TelemetrySeen) lookThroughMidpoints(b []byte) {
	s.Path = 2166136261
	for range telemetryHopsMax {
		if len(b) < midpointOctets {
			return
		}
		if b[0]|b[1]|b[2] != 0 {
			number := uint32(b[0])<<4 | uint32(b[1])>>4
			s.Path, s.HasPath = (s.Path^number)*16777619, true
		}
		b = b[midpointOctets:]
	}
}
