package telemetry

import "encoding/binary"

// Types of the INT shim (INT 2.1 section 5.3).
const (
	TypeMD uint8 = 1
	TypeMX uint8 = 3
)

// DefaultINTPort is the UDP destination port that says that INT follows, if nothing else is agreed:
// none is assigned.
const DefaultINTPort = 33122

const (
	intVersion   = 2
	shimSize     = 4
	headerSize   = 12 // of INT-MD and of INT-MX
	headerWords  = headerSize / word
	maxHopWords  = 31
	maxShimWords = 255
)

// Shim is the INT shim for TCP and UDP (INT 2.1 section 5.3).
type Shim struct {
	Type  uint8
	NPT   uint8 // what Value is: see the methods
	Words uint8 // of 4 octets, header and stack, the shim not counted
	Value uint16
}

// OriginalPort returns the UDP destination port that the source replaced: NPT is 1.
func (s Shim) OriginalPort() (uint16, bool) { return s.Value, s.NPT == 1 }

// OriginalProtocol returns the protocol behind the INT that a UDP header of its own carries: NPT
// is 2.
func (s Shim) OriginalProtocol() (uint8, bool) { return uint8(s.Value), s.NPT == 2 }

// parseShim returns the shim and the octets that it counts.
func parseShim(b []byte) (Shim, []byte, error) {
	if len(b) < shimSize {
		return Shim{}, nil, Truncated
	}
	s := Shim{Type: b[0] >> 4, NPT: b[0] >> 2 & 3, Words: b[1],
		Value: binary.BigEndian.Uint16(b[2:])}
	if len(b) < shimSize+word*int(s.Words) {
		return Shim{}, nil, Truncated
	}
	if s.Words < headerWords {
		return Shim{}, nil, BadLength
	}
	return s, b[shimSize : shimSize+word*int(s.Words)], nil
}

// MD is shim, header and stack of INT-MD 2.1 (sections 5.3 and 5.7).
type MD struct {
	Shim          Shim // Type and Words are set when it is written
	Discard       bool // D: the sink discards the packet
	HopsExceeded  bool // E: a node did not push, as Remaining was 0
	MTUExceeded   bool // M: a node did not push, as the packet would have become too long
	HopWords      uint8
	Remaining     uint8 // how many nodes may still push; never a length
	Instructions  Instructions
	DomainID      uint16
	DSInstruction uint16
	DSFlags       uint16
	// Stack is the newest node first, HopWords words each. Less than HopWords words at its end are
	// metadata of the source alone.
	Stack []byte
}

// ParseMD parses INT-MD from its shim on. It returns how many octets it takes.
func ParseMD(b []byte) (MD, int, error) {
	shim, b, err := parseShim(b)
	if err != nil {
		return MD{}, 0, err
	}
	if shim.Type != TypeMD {
		return MD{}, 0, BadType
	}
	if b[0]>>4 != intVersion {
		return MD{}, 0, BadVersion
	}
	m := MD{
		Shim: shim, Discard: b[0]&8 != 0, HopsExceeded: b[0]&4 != 0, MTUExceeded: b[0]&2 != 0,
		HopWords: b[2] & maxHopWords, Remaining: b[3],
		Instructions:  Instructions(binary.BigEndian.Uint16(b[4:])),
		DomainID:      binary.BigEndian.Uint16(b[6:]),
		DSInstruction: binary.BigEndian.Uint16(b[8:]),
		DSFlags:       binary.BigEndian.Uint16(b[10:]),
		Stack:         b[headerSize:],
	}
	if m.Instructions.Words() > int(m.HopWords) {
		return MD{}, 0, BadLength
	}
	return m, shimSize + len(b), nil
}

// AppendBinary appends shim, header and stack.
func (m MD) AppendBinary(b []byte) ([]byte, error) {
	switch words := headerWords + len(m.Stack)/word; {
	case len(m.Stack)%word != 0:
		return b, NotWords
	case words > maxShimWords || m.HopWords > maxHopWords:
		return b, TooLong
	case m.Instructions.Words() > int(m.HopWords):
		return b, BadLength
	default:
		b = append(b, TypeMD<<4|m.Shim.NPT&3<<2, uint8(words))
	}
	b = binary.BigEndian.AppendUint16(b, m.Shim.Value)
	b = append(b, intVersion<<4|bit(m.Discard, 8)|bit(m.HopsExceeded, 4)|bit(m.MTUExceeded, 2), 0,
		m.HopWords, m.Remaining)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Instructions))
	b = binary.BigEndian.AppendUint16(b, m.DomainID)
	b = binary.BigEndian.AppendUint16(b, m.DSInstruction)
	b = binary.BigEndian.AppendUint16(b, m.DSFlags)
	return append(b, m.Stack...), nil
}

func bit(set bool, value uint8) uint8 {
	if set {
		return value
	}
	return 0
}

// Hops returns how many slots of nodes the stack has, those that are free included.
func (m *MD) Hops() int {
	if m.HopWords == 0 {
		return 0
	}
	return len(m.Stack) / (word * int(m.HopWords))
}

// FreeSlots returns how many slots at the top of the stack no node has written yet: in Domain, the
// source leaves them free, and counts them in the low octet of DSFlags.
func (m *MD) FreeSlots() int {
	if m.DomainID != Domain {
		return 0
	}
	return min(int(m.DSFlags&freeSlots), m.Hops())
}

const freeSlots = 0xff

// Hop returns what node i of Hops wrote, 0 being the first on the way, and the domain-specific part
// of it.
func (m MD) Hop(i int) (Metadata, []byte) {
	size := word * int(m.HopWords)
	from := (m.Hops() - 1 - i) * size
	octets := m.Stack[from : from+size]
	before := word * (m.Instructions &^ ChecksumComplement).Words()
	after := word * (m.Instructions & ChecksumComplement).Words()
	return readMetadata(octets, m.Instructions&^ChecksumComplement), octets[before : size-after]
}

// AppendSamples appends one sample per node that wrote, the first on the way first.
func (m *MD) AppendSamples(to []Sample, path uint64) []Sample {
	size, of, hops := word*int(m.HopWords), m.Instructions&^ChecksumComplement, m.Hops()
	for i := range hops - m.FreeSlots() {
		from := (hops - 1 - i) * size
		to = append(to, Sample{Path: path, Hop: uint8(i), Ingress: allOnes, Egress: allOnes})
		to[len(to)-1].read(m.Stack[from:from+size], of)
	}
	return to
}

// MX is shim and header of INT-MX 2.1 (section 5.8): nodes report, and write nothing.
type MX struct {
	Shim          Shim
	Discard       bool
	Instructions  Instructions
	DomainID      uint16
	DSInstruction uint16
	DSFlags       uint16
	Source        []byte // domain-specific metadata that the source alone wrote
}

// ParseMX parses INT-MX from its shim on. It returns how many octets it takes.
func ParseMX(b []byte) (MX, int, error) {
	shim, b, err := parseShim(b)
	if err != nil {
		return MX{}, 0, err
	}
	if shim.Type != TypeMX {
		return MX{}, 0, BadType
	}
	if b[0]>>4 != intVersion {
		return MX{}, 0, BadVersion
	}
	return MX{
		Shim: shim, Discard: b[0]&8 != 0,
		Instructions:  Instructions(binary.BigEndian.Uint16(b[4:])),
		DomainID:      binary.BigEndian.Uint16(b[6:]),
		DSInstruction: binary.BigEndian.Uint16(b[8:]),
		DSFlags:       binary.BigEndian.Uint16(b[10:]),
		Source:        b[headerSize:],
	}, shimSize + len(b), nil
}
