package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"sextant/packet/flow"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

// TelemetryOutcome is what a program of in-band telemetry did with a packet.
type TelemetryOutcome uint8

// The outcomes, in the program's order.
const (
	TelemetryInserted TelemetryOutcome = iota
	TelemetryPushed
	TelemetryInPlace
	TelemetryRemoved
	TelemetryDiscarded
	TelemetryCarries
	TelemetrySegmented
	TelemetryMTU
	TelemetryHops
	TelemetryBroken
	TelemetryRefused
	TelemetryLost
	TelemetryFlowLimit
	TelemetryLimit
	TelemetryOutside
	TelemetryOutcomes
)

var telemetryOutcomeNames = [TelemetryOutcomes]string{"inserted", "pushed", "in_place", "removed",
	"discarded", "carries", "segmented", "mtu", "hops", "broken", "refused", "lost", "flow_limit",
	"limit", "outside"}

// String returns the outcome's name, as metrics have it.
func (o TelemetryOutcome) String() string { return telemetryOutcomeNames[o] }

// TelemetryNode is a node of a domain with INT-MD in the SRv6 encapsulation.
type TelemetryNode struct {
	Port uint16         // UDP destination port of INT
	SIDs []netip.Prefix // outer destinations of which this node is the sink
	MTU  int            // of the interface that packets leave by
	// Infrastructure is where outer sources of the domain are.
	Infrastructure []netip.Prefix

	Encoding  TelemetryEncoding // of the source
	Namespace uint16            // of IOAM
	// Plain are hosts between which packets get telemetry that nobody encapsulates.
	Plain []netip.Prefix
}

// TelemetryClass is what a source does with the packets that it chose.
type TelemetryClass struct {
	Instructions telemetry.Instructions
	Hops         uint8 // that write, at most, the source counted
	Slots        uint8 // left free for nodes that write in place
}

// TelemetryResult is what a program makes of a frame. Counted says that it has an outcome.
type TelemetryResult struct {
	Frame   []byte
	Outcome TelemetryOutcome
	Counted bool
	Seen    TelemetrySeen // sink: what it looks at for the flow
}

const (
	telemetryOuterMax = 256
	telemetryWordsMax = 255
	telemetryHeaders  = 24 // UDP, shim, INT-MD
	// TelemetryDomain is the domain in which DS Flags count free slots.
	TelemetryDomain = telemetry.Domain
)

// telemetryFrame is a frame with its outer headers walked.
type telemetryFrame struct {
	frame  []byte
	ip     []byte // the IPv6 packet, with what stands behind it
	outer  int    // octets of IPv6 and extension headers
	nextAt int    // where the last of them says what follows
	next   uint8
	room   int // octets of the packet behind the outer headers
}

func untouched(frame []byte) TelemetryResult { return TelemetryResult{Frame: frame} }

func (f telemetryFrame) only(o TelemetryOutcome) TelemetryResult {
	return TelemetryResult{Frame: f.frame, Outcome: o, Counted: true}
}

// telemetryRelevant says whether programs look further than the first two headers, and what they
// find there. TelemetrySource counts as a candidate what is.
func telemetryRelevant(frame []byte) (next uint8, ok bool) {
	if len(frame) < 14+42 || frame[12] != 0x86 || frame[13] != 0xdd {
		return 0, false
	}
	if next = frame[14+6]; next == 43 {
		next = frame[14+40]
	}
	return next, next != 59 // nothing follows
}

func mayCarry(next uint8) bool { return next == 17 || next == 0 || next == 60 || next == 43 }

func isEncapsulated(next uint8) bool { return next == 41 || next == 4 || next == 143 }

// walkTelemetry walks the outer headers.
func walkTelemetry(frame []byte) (telemetryFrame, bool) {
	f := telemetryFrame{frame: frame, ip: frame[14:], outer: 40, nextAt: 6}
	length := 40 + int(binary.BigEndian.Uint16(f.ip[4:]))
	if f.ip[0]>>4 != 6 || length > len(f.ip) {
		return f, false
	}
	f.next = f.ip[6]
	for range 3 {
		if f.next != 0 && f.next != 43 && f.next != 60 {
			break
		}
		if f.outer+8 > len(f.ip) || f.outer+8 > telemetryOuterMax {
			return f, false
		}
		f.nextAt, f.next = f.outer, f.ip[f.outer]
		f.outer += 8 + 8*int(f.ip[f.outer+1])
		if f.outer > telemetryOuterMax {
			return f, false
		}
	}
	f.room = length - f.outer
	return f, f.room >= 0
}

// carried returns the INT in the packet; present says that the port tells of one, which is broken
// if ok is false.
func (f telemetryFrame) carried(port uint16) (md telemetry.MD, size int, present, ok bool) {
	behind := f.ip[f.outer:]
	if f.next != 17 || len(behind) < 8 || binary.BigEndian.Uint16(behind[2:]) != port {
		return md, 0, false, false
	}
	if f.room < telemetryHeaders || int(binary.BigEndian.Uint16(behind[4:])) != f.room ||
		behind[6] != 0 || behind[7] != 0 {
		return md, 0, true, false
	}
	md, size, err := telemetry.ParseMD(behind[8:f.room])
	inner, _ := md.Shim.OriginalProtocol()
	return md, size, true, err == nil && md.Shim.NPT == 2 && isEncapsulated(inner) &&
		md.HopWords > 0
}

// with returns the frame with other octets in place of the first size behind the outer headers.
func (f telemetryFrame) with(next uint8, octets []byte, size int) []byte {
	frame := slices.Concat(f.frame[:14+f.outer], octets, f.ip[f.outer+size:])
	frame[14+f.nextAt] = next
	payload := binary.BigEndian.Uint16(frame[14+4:])
	binary.BigEndian.PutUint16(frame[14+4:], payload+uint16(len(octets)-size))
	return frame
}

func (n TelemetryNode) fits(f telemetryFrame, more int) bool {
	return int(binary.BigEndian.Uint16(f.ip[4:]))+more <= 0xffff && len(f.ip)+more <= n.MTU
}

// telemetryUDP is the UDP header of INT with the MD behind it. It panics if the MD does not fit,
// which only a mistake in this package can bring about.
func telemetryUDP(ports []byte, md telemetry.MD, room int) []byte {
	b := append([]byte{}, ports...)
	b = append(b, byte(room>>8), byte(room), 0, 0)
	b, err := md.AppendBinary(b)
	if err != nil {
		panic("model: INT-MD that does not fit: " + err.Error())
	}
	return b
}

// metadataOf is what a node pushes: ones behind what the instructions take.
func metadataOf(words uint8, of telemetry.Instructions, seen telemetry.Metadata) []byte {
	b := telemetry.AppendMetadata(nil, of, seen)
	for len(b) < 4*int(words) {
		b = append(b, 0xff)
	}
	return b
}

// within reports whether one of the prefixes has the address at an offset of the IPv6 packet.
func (f telemetryFrame) within(prefixes []netip.Prefix, at int) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		return p.Contains(netip.AddrFrom16([16]byte(f.ip[at:])))
	})
}

const sourceAt, destinationAt = 8, 24 // in an IPv6 header

// TelemetryClassOf is the number of the first match that a candidate's encapsulated packet meets,
// or itself if it is plain; -1: none. One that cannot be read meets none but the zero value.
func (n TelemetryNode) TelemetryClassOf(frame []byte, matches []srpolicy.Match) int {
	var packet srpolicy.Packet
	known := false
	if f, ok := walkTelemetry(frame); ok {
		var t flow.Tuple
		seen := TelemetrySeen{Any: true, Protocol: f.next, Inner: f.ip[f.outer:]}
		if next, _ := telemetryRelevant(frame); !isEncapsulated(f.next) && !isEncapsulated(next) &&
			n.isPlain(f) {
			seen.Protocol, seen.Inner = 41, f.ip
		}
		t, _, known = seen.Flow()
		packet = srpolicy.Packet{Source: t.Src, Destination: t.Dst, Protocol: t.Protocol,
			SourcePort: t.SrcPort, DestinationPort: t.DstPort}
		if known {
			class := seen.Inner[1]
			if seen.Protocol == 41 {
				class = seen.Inner[0]<<4 | class>>4
			}
			packet.DSCP = class >> 2
		}
	}
	return slices.IndexFunc(matches, func(m srpolicy.Match) bool {
		return m == (srpolicy.Match{}) || known && m.Matches(packet)
	})
}

// IsTelemetryCandidate says whether the packet counts where a source takes one in so many.
func (n TelemetryNode) IsTelemetryCandidate(frame []byte) bool {
	next, ok := telemetryRelevant(frame)
	return ok && (isEncapsulated(next) || mayCarry(next) ||
		n.isPlain(telemetryFrame{ip: frame[14:]}))
}

// isPlain reports whether a packet that is not encapsulated may get telemetry.
func (n TelemetryNode) isPlain(f telemetryFrame) bool {
	return n.Encoding != EncodingINT && f.within(n.Plain, destinationAt) &&
		f.within(n.Plain, sourceAt)
}

// trusts reports whether telemetry in options is of the domain.
func (n TelemetryNode) trusts(f telemetryFrame) bool {
	return f.within(n.Infrastructure, sourceAt) || f.within(n.Plain, sourceAt)
}

// TelemetrySource inserts telemetry into a candidate that was chosen, with what the node knows.
func (n TelemetryNode) TelemetrySource(frame []byte, class TelemetryClass,
	seen telemetry.Metadata) TelemetryResult {
	f, ok := walkTelemetry(frame)
	if !ok || n.hasNoPlace(f) {
		return f.only(TelemetryCarries)
	}
	if n.Encoding != EncodingINT {
		return n.sourceOption(f, class, seen)
	}
	words := class.Instructions.Words()
	more := telemetryHeaders + 4*words*(1+int(class.Slots))
	if !n.fits(f, more) {
		return f.only(TelemetryMTU)
	}
	md := telemetry.MD{Shim: telemetry.Shim{NPT: 2, Value: uint16(f.next)}, HopWords: uint8(words),
		Remaining: class.Hops - 1, Instructions: class.Instructions}
	if class.Slots > 0 {
		md.DomainID, md.DSFlags = TelemetryDomain, uint16(class.Slots)
	}
	for range 4 * words * int(class.Slots) {
		md.Stack = append(md.Stack, 0xff)
	}
	md.Stack = append(md.Stack, metadataOf(md.HopWords, class.Instructions, seen)...)
	label := binary.BigEndian.Uint32(f.ip) & 0xfffff
	ports := binary.BigEndian.AppendUint16(nil, uint16(0xc000|(label^label>>14)&0x3fff))
	ports = binary.BigEndian.AppendUint16(ports, n.Port)
	r := f.only(TelemetryInserted)
	r.Frame = f.with(17, telemetryUDP(ports, md, f.room+more), 0)
	return r
}

// hasNoPlace reports whether a packet has telemetry, or no place for it.
func (n TelemetryNode) hasNoPlace(f telemetryFrame) bool {
	if next, _ := telemetryRelevant(f.frame); !isEncapsulated(f.next) {
		if _, _, present, _ := f.carried(n.Port); present || isEncapsulated(next) || !n.isPlain(f) {
			return true
		}
	}
	if n.Encoding != EncodingINT {
		return f.ip[6] == 0
	}
	_, has := findOption(f.frame)
	return has
}

// find is what a transit looks at first. Done says that the result stands.
func (n TelemetryNode) find(frame []byte,
	seen telemetry.Metadata) (f telemetryFrame, md telemetry.MD, size int,
	r TelemetryResult, done bool) {
	next, ok := telemetryRelevant(frame)
	if !ok || !mayCarry(next) {
		return f, md, 0, untouched(frame), true
	}
	if o, r, has := n.findOption(frame); has {
		if !r.Counted {
			trace, _, _ := n.carried(o)
			r = n.transitOption(o, trace, seen)
		}
		return f, md, 0, r, true
	}
	f, ok = walkTelemetry(frame)
	if !ok {
		return f, md, 0, untouched(frame), true
	}
	md, size, present, ok := f.carried(n.Port)
	switch {
	case !present:
		return f, md, 0, untouched(frame), true
	case !f.within(n.Infrastructure, sourceAt):
		return f, md, 0, f.only(TelemetryOutside), true
	case !ok:
		return f, md, 0, f.only(TelemetryBroken), true
	}
	return f, md, size, r, false
}

// TelemetryTransit adds what the node knows.
func (n TelemetryNode) TelemetryTransit(frame []byte, seen telemetry.Metadata) TelemetryResult {
	f, md, size, r, done := n.find(frame, seen)
	if done {
		return r
	}
	hop := 4 * int(md.HopWords)
	words := 3 + len(md.Stack)/4
	flag := func(bit byte, outcome TelemetryOutcome) TelemetryResult {
		r := f.only(outcome)
		r.Frame = slices.Clone(frame)
		r.Frame[14+f.outer+12] |= bit
		return r
	}
	if md.Remaining == 0 {
		return flag(4, TelemetryHops)
	}
	metadata := metadataOf(md.HopWords, md.Instructions, seen)
	free := hop * int(md.DSFlags&0xff)
	if md.DomainID == TelemetryDomain && free > 0 && free <= len(md.Stack) &&
		string(md.Stack[free-hop:free-hop+4]) == "\xff\xff\xff\xff" {
		r := f.only(TelemetryInPlace)
		r.Frame = slices.Clone(frame)
		r.Frame[14+f.outer+15]--
		r.Frame[14+f.outer+23]--
		copy(r.Frame[14+f.outer+telemetryHeaders+free-hop:], metadata)
		return r
	}
	if words+int(md.HopWords) > telemetryWordsMax || !n.fits(f, hop) {
		return flag(2, TelemetryMTU)
	}
	r = f.only(TelemetryPushed)
	headers := slices.Clone(f.ip[f.outer : f.outer+telemetryHeaders])
	binary.BigEndian.PutUint16(headers[4:], uint16(f.room+hop))
	headers[9] += md.HopWords
	headers[15]--
	r.Frame = f.with(17, slices.Concat(headers, metadata, md.Stack), 8+size)
	return r
}

// TelemetrySink takes telemetry out.
func (n TelemetryNode) TelemetrySink(frame []byte) TelemetryResult {
	plain := len(n.Plain) > 0
	next, ok := telemetryRelevant(frame)
	if !ok || !mayCarry(next) && !isEncapsulated(next) && !plain ||
		!(telemetryFrame{ip: frame[14:]}).within(n.SIDs, destinationAt) {
		return untouched(frame)
	}
	if o, r, has := n.findOption(frame); has {
		if !r.Counted {
			trace, _, _ := n.carried(o)
			r = n.sinkOption(o, trace)
		}
		return r
	}
	f, ok := walkTelemetry(frame)
	if !ok {
		return untouched(frame)
	}
	md, size, present, ok := f.carried(n.Port)
	switch {
	case !present:
		r := untouched(frame)
		if isEncapsulated(f.next) {
			if f.within(n.Infrastructure, sourceAt) {
				r.Seen = TelemetrySeen{Any: true, Protocol: f.next, Inner: f.ip[f.outer:]}
			}
		} else if plain && n.trusts(f) {
			r.Seen = TelemetrySeen{Any: true, Protocol: 41, Inner: f.ip}
		}
		return r
	case !f.within(n.Infrastructure, sourceAt):
		return f.only(TelemetryOutside)
	case !ok:
		return f.only(TelemetryBroken)
	}
	r := f.only(TelemetryRemoved)
	inner, _ := md.Shim.OriginalProtocol()
	r.Seen = TelemetrySeen{Any: true, Protocol: inner, Inner: f.ip[f.outer+8+size:], Carries: true}
	r.Seen.lookThrough(md)
	if md.Discard {
		r.Outcome = TelemetryDiscarded
		return r
	}
	r.Frame = f.with(inner, nil, 8+size)
	return r
}
