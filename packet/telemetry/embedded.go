package telemetry

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
)

const (
	ethernetHeader = 14
	vlanTag        = 4
	etherVLAN      = 0x8100
	etherIPv4      = 0x0800
	etherIPv6      = 0x86dd

	ipv4Header     = 20
	ipv6Header     = 40
	udpHeader      = 8
	protocolIPv4   = 4
	protocolTCP    = 6
	protocolUDP    = 17
	protocolIPv6   = 41
	hopByHop       = 0
	routing        = 43
	destinationOpt = 60
	segmentRouting = 4  // routing type
	routingFixed   = 8  // of a segment routing header, before the list
	segmentSize    = 16 // an address
	maxHeaders     = 16 // of one packet; more are not looked behind
)

// Packet is the telemetry in a packet, whole or truncated: the inner contents of a report. MD, MX,
// Trace, Direct and PathTrace are those found last.
type Packet struct {
	Has       Carried
	Flow      flow.Tuple // of the innermost IP header; without ports if they are cut off
	MD        MD
	MX        MX
	Trace     Trace
	Direct    DirectExport
	PathTrace PathTrace
	// Segments is the segment routing header (RFC 8754) found first, whole and with a segment list
	// that fits into it; nil if there is none.
	Segments []byte

	ends []byte // both addresses of the innermost IP header
}

// Carried is a set of what a packet carries.
type Carried uint8

// What a packet can carry.
const (
	HasFlow Carried = 1 << iota
	HasMD
	HasMX
	HasTrace
	HasDirectExport
	HasPathTrace
)

// ParsePacket looks through the headers of a packet. A UDP destination port that equals intPort
// says that INT follows. InType is InEthernet, InIPv4 or InIPv6. Beside an error, Packet is what
// was found before it: a packet in a report is often cut off.
func ParsePacket(b []byte, kind InType, intPort uint16) (Packet, error) {
	p := Packet{}
	err := p.Parse(b, kind, intPort)
	return p, err
}

// Parse is ParsePacket into a packet that is there. What Has does not name may be left of an
// earlier one.
func (p *Packet) Parse(b []byte, kind InType, intPort uint16) error {
	p.Has, p.Segments, p.ends = 0, nil, nil
	err := p.parse(b, kind, intPort)
	switch len(p.ends) {
	case 0:
		p.Flow = flow.Tuple{}
	case 8:
		p.Flow.Src, p.Flow.Dst = netip.AddrFrom4([4]byte(p.ends)),
			netip.AddrFrom4([4]byte(p.ends[4:]))
	default:
		p.Flow.Src, p.Flow.Dst = netip.AddrFrom16([16]byte(p.ends)),
			netip.AddrFrom16([16]byte(p.ends[16:]))
	}
	return err
}

func (p *Packet) parse(b []byte, kind InType, intPort uint16) error {
	next, b, err := firstHeader(b, kind)
	for range maxHeaders {
		if err != nil {
			return err
		}
		switch next {
		case protocolIPv4:
			next, b, err = p.ipv4(b)
		case protocolIPv6:
			next, b, err = p.ipv6(b)
		case hopByHop, routing, destinationOpt:
			next, b, err = p.extension(next, b)
		case protocolUDP:
			if next, b, err = p.udp(b, intPort); err == nil && next == noNextHeader {
				return nil
			}
		case protocolTCP:
			return p.ports(b)
		default:
			return nil
		}
	}
	return TooLong
}

const noNextHeader = 59

// firstHeader returns the protocol number of the packet's first IP header.
func firstHeader(b []byte, kind InType) (uint8, []byte, error) {
	switch kind {
	case InIPv4:
		return protocolIPv4, b, nil
	case InIPv6:
		return protocolIPv6, b, nil
	case InEthernet:
	default:
		return 0, nil, BadType
	}
	if len(b) < ethernetHeader {
		return 0, nil, Truncated
	}
	kindOf, b := binary.BigEndian.Uint16(b[12:]), b[ethernetHeader:]
	if kindOf == etherVLAN {
		if len(b) < vlanTag {
			return 0, nil, Truncated
		}
		kindOf, b = binary.BigEndian.Uint16(b[2:]), b[vlanTag:]
	}
	switch kindOf {
	case etherIPv4:
		return protocolIPv4, b, nil
	case etherIPv6:
		return protocolIPv6, b, nil
	}
	return 0, nil, NotFound
}

func (p *Packet) ipv4(b []byte) (uint8, []byte, error) {
	if len(b) < ipv4Header {
		return 0, nil, Truncated
	}
	size := word * int(b[0]&15)
	switch {
	case b[0]>>4 != 4:
		return 0, nil, BadVersion
	case size < ipv4Header:
		return 0, nil, BadLength
	}
	p.Has |= HasFlow
	p.ends, p.Flow.Protocol, p.Flow.SrcPort, p.Flow.DstPort = b[12:20], b[9], 0, 0
	if binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
		return noNextHeader, nil, nil // a later fragment
	}
	if len(b) < size {
		return 0, nil, Truncated
	}
	return b[9], b[size:], nil
}

func (p *Packet) ipv6(b []byte) (uint8, []byte, error) {
	if len(b) < ipv6Header {
		return 0, nil, Truncated
	}
	if b[0]>>4 != 6 {
		return 0, nil, BadVersion
	}
	p.Has |= HasFlow
	p.ends, p.Flow.Protocol, p.Flow.SrcPort, p.Flow.DstPort = b[8:40], b[6], 0, 0
	return b[6], b[ipv6Header:], nil
}

// extension takes an extension header and the options that it knows in it.
func (p *Packet) extension(kind uint8, b []byte) (uint8, []byte, error) {
	if len(b) < 8 || len(b) < 8+8*int(b[1]) {
		return 0, nil, Truncated
	}
	header, rest := b[:8+8*int(b[1])], b[8+8*int(b[1]):]
	p.Flow.Protocol = b[0]
	if kind == routing {
		if p.Segments == nil && isSegmentRouting(header) {
			p.Segments = header
		}
		return b[0], rest, nil
	}
	for _, of := range [...]uint8{OptionIOAM, OptionIOAMImmutable, OptionPathTracing} {
		option, err := FindOption(header, of)
		if err == error(NotFound) {
			continue
		}
		if err == nil {
			err = p.option(option)
		}
		if err != nil {
			return 0, nil, err
		}
	}
	return b[0], rest, nil
}

// isSegmentRouting reports whether a routing header is a segment routing header whose lengths agree
// (RFC 8754 section 2).
func isSegmentRouting(b []byte) bool {
	const kind, left, last = 2, 3, 4
	return b[kind] == segmentRouting && b[left] <= b[last] &&
		len(b) >= routingFixed+segmentSize*(int(b[last])+1)
}

// SegmentList is the segment list of a header that Packet.Segments names, the last segment first,
// and the segment that is active.
func SegmentList(header []byte) (list, active []byte) {
	list = header[routingFixed : routingFixed+segmentSize*(int(header[4])+1)]
	return list, list[segmentSize*int(header[3]):][:segmentSize]
}

func (p *Packet) option(b []byte) (err error) {
	if b[0] == OptionPathTracing {
		p.PathTrace, _, err = ParsePathTrace(b)
		p.Has |= HasPathTrace
		return err
	}
	if len(b) > 3 && b[3] == ioamDirectExport {
		if p.Direct, _, err = ParseDirectExport(b); err == nil {
			p.Has |= HasDirectExport
		}
		return err
	}
	if p.Trace, _, err = ParseTrace(b); err == nil {
		p.Has |= HasTrace
	}
	return err
}

func (p *Packet) ports(b []byte) error {
	if len(b) < 4 {
		return Truncated
	}
	p.Flow.SrcPort, p.Flow.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return nil
}

// udp takes a UDP header and the INT behind it. Its next header is that of a packet inside.
func (p *Packet) udp(b []byte, intPort uint16) (uint8, []byte, error) {
	if err := p.ports(b); err != nil {
		return 0, nil, err
	}
	if p.Flow.DstPort != intPort {
		return noNextHeader, nil, nil
	}
	if len(b) < udpHeader+shimSize {
		return 0, nil, Truncated
	}
	b = b[udpHeader:]
	var shim Shim
	var size int
	var err error
	if b[0]>>4 == TypeMX {
		p.MX, size, err = ParseMX(b)
		shim = p.MX.Shim
	} else {
		p.MD, size, err = ParseMD(b)
		shim = p.MD.Shim
	}
	if err != nil {
		return 0, nil, err
	}
	if p.Has |= HasMD; b[0]>>4 == TypeMX {
		p.Has = p.Has&^HasMD | HasMX
	}
	if port, ok := shim.OriginalPort(); ok {
		p.Flow.DstPort = port
		return noNextHeader, nil, nil
	}
	if protocol, ok := shim.OriginalProtocol(); ok {
		p.Flow.Protocol, p.Flow.SrcPort, p.Flow.DstPort = protocol, 0, 0
		return protocol, b[size:], nil
	}
	return noNextHeader, nil, nil
}

// EmbeddedMD finds the INT-MD in a packet, as ParsePacket does.
func EmbeddedMD(packet []byte, kind InType, intPort uint16) (MD, error) {
	p, err := ParsePacket(packet, kind, intPort)
	switch {
	case p.Has&HasMD != 0:
		return p.MD, nil
	case err == nil:
		return MD{}, NotFound
	}
	return MD{}, err
}
