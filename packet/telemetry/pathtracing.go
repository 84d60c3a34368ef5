package telemetry

const (
	midpointSize = 3
	maxInterface = 1<<12 - 1
	maxLoad      = 15
	stampMask    = 255
)

// Midpoint is what a node writes for SRv6 Path Tracing, 3 octets: the Midpoint Compressed Data of
// draft-filsfils-ippm-path-tracing.
type Midpoint struct {
	Interface uint16 // 12 bits, of the interface that the packet left through
	Load      uint8  // 4 bits
	Stamp     uint8  // 8 bits of the clock's nanoseconds: see TimeNS
}

// PathTrace is the hop-by-hop option of Path Tracing: the newest node first, zeros behind the
// first node.
type PathTrace []byte

// ParsePathTrace parses the option from its type on. It returns how many octets it takes.
func ParsePathTrace(b []byte) (PathTrace, int, error) {
	if len(b) < optionHeader || len(b) < optionHeader+int(b[1]) {
		return nil, 0, Truncated
	}
	if b[0] != OptionPathTracing {
		return nil, 0, BadType
	}
	size := optionHeader + int(b[1])
	return PathTrace(b[optionHeader:size]), size, nil
}

// AppendBinary appends the option from its type on.
func (p PathTrace) AppendBinary(b []byte) ([]byte, error) {
	if len(p) > 255 {
		return b, TooLong
	}
	return append(append(b, OptionPathTracing, uint8(len(p))), p...), nil
}

// Hops returns how many nodes wrote. A node whose three octets are zero cannot be told from none.
func (p PathTrace) Hops() int {
	hops := len(p) / midpointSize
	for hops > 0 && p.slot(hops-1) == (Midpoint{}) {
		hops--
	}
	return hops
}

func (p PathTrace) slot(i int) Midpoint {
	b := p[midpointSize*i:]
	return Midpoint{uint16(b[0])<<4 | uint16(b[1])>>4, b[1] & maxLoad, b[2]}
}

// Hop returns what node i of Hops wrote, 0 being the first on the way.
func (p PathTrace) Hop(i int) Midpoint { return p.slot(p.Hops() - 1 - i) }

// Push makes the step of a node: what is there moves by one node, the last falls out.
func (p PathTrace) Push(m Midpoint) error {
	if m.Interface > maxInterface || m.Load > maxLoad {
		return TooLong
	}
	if len(p) < midpointSize {
		return BadLength
	}
	whole := p[:len(p)/midpointSize*midpointSize]
	copy(whole[midpointSize:], whole)
	p[0], p[1], p[2] = uint8(m.Interface>>4), uint8(m.Interface<<4)|m.Load, m.Stamp
	return nil
}

// TimeNS returns the latest time not after notAfterNS (nanoseconds of POSIX time) whose nanoseconds
// within the second, shifted right by shift (8, 12, 16 or 20: the node's template), end in the
// stamp. It is right if the node's clock agrees and notAfterNS is less than 2^(shift+8) ns later.
// The low bits are zero. It is false if there is no such time.
func (m Midpoint) TimeNS(notAfterNS uint64, shift uint) (uint64, bool) {
	second, tick := notAfterNS/nsPerSec, notAfterNS%nsPerSec>>shift
	back := (tick - uint64(m.Stamp)) & stampMask
	if back <= tick {
		return second*nsPerSec + (tick-back)<<shift, true
	}
	last := uint64(nsPerSec-1) >> shift
	back = (last - uint64(m.Stamp)) & stampMask
	if second == 0 || back > last {
		return 0, false
	}
	return (second-1)*nsPerSec + (last-back)<<shift, true
}

// PathTracing is how nodes write for Path Tracing.
type PathTracing struct {
	// Shift is how far they shift their clock: 8, 12, 16 or 20, their template. VPP shifts by 8 for
	// template 3, too, which means 20.
	Shift uint
	// LoadSwapped says that they write the load into bits 4 to 7 of the interface, as VPP does on a
	// little-endian processor, whose number must not have bits there then.
	LoadSwapped bool
}

// AppendSamples appends one sample per node, the first on the way first: the interface that the
// packet left through, and the time as TimeNS finds it. The load has no scale that all nodes share,
// and is left out.
func (p PathTrace) AppendSamples(to []Sample, path, notAfterNS uint64, of PathTracing) []Sample {
	for i := range p.Hops() {
		m := p.Hop(i)
		if of.LoadSwapped {
			m.Interface &^= maxLoad << 4
		}
		s := Sample{Path: path, Hop: uint8(i), Ingress: allOnes, Egress: uint32(m.Interface),
			Known: FieldInterfaces}
		if t, ok := m.TimeNS(notAfterNS, of.Shift); ok {
			s.TimeNS, s.Known = t, s.Known|FieldTime
		}
		to = append(to, s)
	}
	return to
}
