package telemetry

import (
	"encoding/binary"
	"math/bits"
)

// IPv6 options that carry IOAM (RFC 9486 section 3), and the types of IOAM in them.
const (
	OptionIOAM          uint8 = 0x31 // nodes on the way change it
	OptionIOAMImmutable uint8 = 0x11
	OptionPathTracing   uint8 = 0x32

	ioamPreallocated = 0
	ioamDirectExport = 4
)

const (
	optionHeader    = 2  // type and length
	traceHeader     = 10 // reserved, IOAM type, trace header
	maxTraceWords   = 61 // 244 octets: the option's length is one octet
	maxTraceRemain  = 1<<7 - 1
	fractionsPerSec = 1e6
	nsPerSec        = 1e9
)

// TraceType is the IOAM-Trace-Type (RFC 9197 section 4.4.1): 24 bits, what each node writes.
type TraceType uint32

// The fields of a node that this package reads; any other takes its place in the octets.
const (
	TraceNode         TraceType = 0x800000 // hop limit 8, node 24
	TraceInterfaces   TraceType = 0x400000 // ingress 16, egress 16
	TraceSeconds      TraceType = 0x200000
	TraceFraction     TraceType = 0x100000
	TraceTransitDelay TraceType = 0x080000 // nanoseconds
	TraceQueueDepth   TraceType = 0x020000 // Linux: octets
	TraceNodeWide     TraceType = 0x008000 // hop limit 8, node 56
	TraceIfsWide      TraceType = 0x004000 // ingress 32, egress 32
	TraceOpaque       TraceType = 0x000002 // behind the rest, with a length of its own

	traceWide     TraceType = 0x00e000 // 8 octets
	traceReserved TraceType = 0x000001
)

// Words returns how many words of 4 octets a node writes, the opaque snapshot not counted.
func (t TraceType) Words() int {
	t &^= TraceOpaque | traceReserved
	return bits.OnesCount32(uint32(t)) + bits.OnesCount32(uint32(t&traceWide))
}

// traceFields are the fields of IOAM that tell what an instruction of INT asks for.
var traceFields = map[Instructions]TraceType{
	NodeID: TraceNode, Interfaces: TraceInterfaces,
	IngressTime: TraceSeconds | TraceFraction,
	HopLatency:  TraceTransitDelay, Queue: TraceQueueDepth,
	WideInterfaces: TraceIfsWide,
}

// TraceTypeOf asks for what the instructions ask for, where IOAM can.
func TraceTypeOf(of Instructions) (asked TraceType) {
	for bit, fields := range traceFields {
		if of&bit != 0 {
			asked |= fields
		}
	}
	return asked
}

// Trace is a pre-allocated trace option (RFC 9197 section 4.4, RFC 9486).
type Trace struct {
	Option         uint8 // OptionIOAM or OptionIOAMImmutable
	Namespace      uint16
	Overflow       bool  // a node found no room
	OtherFlags     uint8 // the three bits after Overflow: Loopback, Active (RFC 9322), reserved
	RemainingWords uint8 // free words, in front
	Type           TraceType
	Data           []byte // the newest node first, behind the free words
}

// ParseTrace parses a pre-allocated trace from the type of its option on. It returns how many
// octets it takes.
func ParseTrace(b []byte) (Trace, int, error) {
	option, size, err := parseIOAM(b, ioamPreallocated)
	if err != nil {
		return Trace{}, 0, err
	}
	if len(option) < traceHeader {
		return Trace{}, 0, BadLength
	}
	fields := binary.BigEndian.Uint16(option[4:])
	t := Trace{
		Option: b[0], Namespace: binary.BigEndian.Uint16(option[2:]),
		Overflow: fields&(1<<10) != 0, OtherFlags: uint8(fields >> 7 & 7),
		RemainingWords: uint8(fields & maxTraceRemain),
		Type:           TraceType(binary.BigEndian.Uint32(option[6:]) >> 8),
		Data:           option[traceHeader:],
	}
	if int(fields>>11) != t.Type.Words() || len(t.Data)%word != 0 ||
		word*int(t.RemainingWords) > len(t.Data) {
		return Trace{}, 0, BadLength
	}
	return t, size, nil
}

// parseIOAM returns the data of an IOAM option, and the size of the option.
func parseIOAM(b []byte, kind uint8) ([]byte, int, error) {
	if len(b) < optionHeader || len(b) < optionHeader+int(b[1]) {
		return nil, 0, Truncated
	}
	if b[0] != OptionIOAM && b[0] != OptionIOAMImmutable {
		return nil, 0, BadType
	}
	size := optionHeader + int(b[1])
	if size < optionHeader+2 {
		return nil, 0, BadLength
	}
	if b[3] != kind {
		return nil, 0, BadType
	}
	return b[optionHeader:size], size, nil
}

// AppendBinary appends the option from its type on. It must start at a multiple of 4 octets.
func (t Trace) AppendBinary(b []byte) ([]byte, error) {
	switch {
	case t.Option != OptionIOAM && t.Option != OptionIOAMImmutable:
		return b, BadType
	case len(t.Data)%word != 0:
		return b, NotWords
	case len(t.Data) > word*maxTraceWords || t.OtherFlags > 7 || t.Type >= 1<<24:
		return b, TooLong
	case word*int(t.RemainingWords) > len(t.Data):
		return b, BadLength
	}
	fields := uint16(t.Type.Words())<<11 | uint16(t.OtherFlags)<<7 | uint16(t.RemainingWords)
	if t.Overflow {
		fields |= 1 << 10
	}
	b = append(b, t.Option, uint8(traceHeader+len(t.Data)), 0, ioamPreallocated)
	b = binary.BigEndian.AppendUint16(b, t.Namespace)
	b = binary.BigEndian.AppendUint16(b, fields)
	b = binary.BigEndian.AppendUint32(b, uint32(t.Type)<<8)
	return append(b, t.Data...), nil
}

// AppendSamples appends one sample per node, the first on the way first. It appends none if the
// nodes do not end where the data ends.
func (t Trace) AppendSamples(to []Sample, path uint64) ([]Sample, error) {
	size, from := word*t.Type.Words(), len(to)
	data := t.Data[word*int(t.RemainingWords):]
	for len(data) > 0 {
		if len(data) < size || size == 0 && t.Type&TraceOpaque == 0 {
			return to[:from], BadLength
		}
		s := t.sample(data)
		s.Path = path
		data = data[size:]
		if t.Type&TraceOpaque != 0 {
			if len(data) < word || len(data) < word+word*int(data[0]) {
				return to[:from], Truncated
			}
			data = data[word+word*int(data[0]):]
		}
		to = append(to, s)
	}
	turn(to[from:])
	return to, nil
}

// turn puts samples that came newest first in the order of the way.
func turn(samples []Sample) {
	for i, j := 0, len(samples)-1; i < j; i, j = i+1, j-1 {
		samples[i], samples[j] = samples[j], samples[i]
	}
	for i := range samples {
		samples[i].Hop = uint8(i)
	}
}

// sample reads one node. Seconds and fraction are POSIX time with microseconds, as Linux writes
// them; another fraction leaves the time unknown.
func (t Trace) sample(b []byte) Sample {
	s := Sample{Ingress: allOnes, Egress: allOnes}
	seconds := allOnes
	for field := TraceNode; field > TraceOpaque; field >>= 1 {
		if t.Type&field == 0 {
			continue
		}
		v := binary.BigEndian.Uint32(b)
		switch field {
		case TraceSeconds:
			seconds = v
		case TraceFraction:
			if seconds != allOnes && v < fractionsPerSec {
				s.TimeNS = uint64(seconds)*nsPerSec + uint64(v)*(nsPerSec/fractionsPerSec)
				s.Known |= FieldTime
			}
		default:
			s.setTraced(field, v, b)
		}
		b = b[word:]
		if field&traceWide != 0 {
			b = b[word:]
		}
	}
	return s
}

func (s *Sample) setTraced(field TraceType, v uint32, b []byte) {
	switch {
	case field == TraceNode && v&low24 != low24:
		s.Node, s.Known = uint64(v&low24), s.Known|FieldNode
	case field == TraceInterfaces && v != allOnes:
		s.Ingress, s.Egress = narrow(uint16(v>>16)), narrow(uint16(v))
		s.Known |= FieldInterfaces
	case field == TraceTransitDelay && v != allOnes:
		s.DelayNS, s.Known = v, s.Known|FieldDelay
	case field == TraceQueueDepth && v != allOnes:
		s.QueueBytes, s.Known = v, s.Known|FieldQueue
	case field == TraceNodeWide && binary.BigEndian.Uint64(b)<<8>>8 != low56:
		s.Node, s.Known = binary.BigEndian.Uint64(b)<<8>>8, s.Known|FieldNode
	case field == TraceIfsWide && binary.BigEndian.Uint64(b) != allOnes8:
		s.Ingress, s.Egress = v, binary.BigEndian.Uint32(b[word:])
		s.Known |= FieldInterfaces
	}
}

// DirectExport is the header of IOAM direct export (RFC 9326 section 3.2): nodes report, and write
// nothing.
type DirectExport struct {
	Namespace   uint16
	Flags       uint8
	Type        TraceType
	HasFlow     bool
	Flow        uint32
	HasSequence bool
	Sequence    uint32
}

// ParseDirectExport parses a direct-export option from the type of its option on. It returns how
// many octets it takes.
func ParseDirectExport(b []byte) (DirectExport, int, error) {
	const fixed, flow, sequence = 10, 0x80, 0x40
	option, size, err := parseIOAM(b, ioamDirectExport)
	if err != nil {
		return DirectExport{}, 0, err
	}
	if len(option) < fixed {
		return DirectExport{}, 0, BadLength
	}
	d := DirectExport{Namespace: binary.BigEndian.Uint16(option[2:]), Flags: option[4],
		Type:    TraceType(binary.BigEndian.Uint32(option[6:]) >> 8),
		HasFlow: option[5]&flow != 0, HasSequence: option[5]&sequence != 0}
	rest := option[fixed:]
	for _, field := range []struct {
		has  bool
		into *uint32
	}{{d.HasFlow, &d.Flow}, {d.HasSequence, &d.Sequence}} {
		if !field.has {
			continue
		}
		if len(rest) < word {
			return DirectExport{}, 0, BadLength
		}
		*field.into = binary.BigEndian.Uint32(rest)
		rest = rest[word:]
	}
	return d, size, nil
}

// FindOption returns the first option of that type in an IPv6 hop-by-hop or destination options
// header, from its type on.
func FindOption(header []byte, option uint8) ([]byte, error) {
	if len(header) < 8 || len(header) < 8+8*int(header[1]) {
		return nil, Truncated
	}
	b := header[optionHeader : 8+8*int(header[1])]
	for len(b) > 0 {
		size := 1 // Pad1 has no length
		if b[0] != 0 {
			if len(b) < optionHeader || len(b) < optionHeader+int(b[1]) {
				return nil, Truncated
			}
			size = optionHeader + int(b[1])
		}
		if b[0] == option {
			return b[:size], nil
		}
		b = b[size:]
	}
	return nil, NotFound
}
