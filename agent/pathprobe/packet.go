package pathprobe

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"sextant/packet/srv6"
)

// Port is where probes come back to, and what they seem to come from.
const Port = 7475

const (
	ipv6Header  = 40
	udpHeader   = 8
	payloadSize = 24
	hopLimit    = 64
	protocolUDP = 17
	inIPv6      = 41 // IPv6 in IPv6
	routing     = 43
)

// payload is what a probe carries. The cookie is drawn by each prober: packets without it are none
// of its.
type payload struct {
	cookie uint64
	list   uint32
	number uint32
}

var magic = [8]byte{'s', 'e', 'x', 't', 'a', 'n', 't', 'P'}

func (p payload) append(b []byte) []byte {
	b = append(b, magic[:]...)
	b = binary.BigEndian.AppendUint64(b, p.cookie)
	b = binary.BigEndian.AppendUint32(b, p.list)
	return binary.BigEndian.AppendUint32(b, p.number)
}

func parsePayload(b []byte) (p payload, ok bool) {
	if len(b) != payloadSize || [8]byte(b) != magic {
		return p, false
	}
	return payload{
		cookie: binary.BigEndian.Uint64(b[8:]), list: binary.BigEndian.Uint32(b[16:]),
		number: binary.BigEndian.Uint32(b[20:]),
	}, true
}

// headers are the outer headers of a list, for a probe of this package's one size.
func headers(own netip.Addr, segments []netip.Addr) ([]byte, error) {
	if len(segments) == 0 {
		return nil, fmt.Errorf("the list has no segments")
	}
	srh, needed, err := srv6.NewReducedSRH(inIPv6, segments)
	if err != nil {
		return nil, err
	}
	var routingHeader []byte
	next := uint8(inIPv6)
	if needed {
		next = routing
		if routingHeader, err = srh.AppendBinary(nil); err != nil {
			return nil, err
		}
	}
	outer := ipv6(own, segments[0], next, len(routingHeader)+ipv6Header+udpHeader+payloadSize)
	return append(outer, routingHeader...), nil
}

// ipv6 is an IPv6 header.
func ipv6(from, to netip.Addr, next uint8, length int) []byte {
	h := make([]byte, 8, ipv6Header+length)
	h[0] = 6 << 4
	binary.BigEndian.PutUint16(h[4:], uint16(length))
	h[6], h[7] = next, hopLimit
	h = append(h, from.AsSlice()...)
	return append(h, to.AsSlice()...)
}

// packet is a whole probe.
func packet(outer []byte, own netip.Addr, p payload) []byte {
	inner := ipv6(own, own, protocolUDP, udpHeader+payloadSize)
	inner = binary.BigEndian.AppendUint16(inner, Port)
	inner = binary.BigEndian.AppendUint16(inner, Port)
	inner = binary.BigEndian.AppendUint16(inner, udpHeader+payloadSize)
	inner = append(inner, 0, 0)
	inner = p.append(inner)
	binary.BigEndian.PutUint16(inner[ipv6Header+6:], checksum(inner))
	return append(append(make([]byte, 0, len(outer)+len(inner)), outer...), inner...)
}

// checksum is that of UDP over IPv6 (RFC 8200 section 8.1).
func checksum(inner []byte) uint16 {
	sum := uint32(protocolUDP) + udpHeader + payloadSize
	for b := inner[8:]; len(b) > 0; b = b[2:] { // the addresses, and the datagram
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	if sum == 0xffff {
		return 0xffff // its complement 0 would mean that there is none
	}
	return ^uint16(sum)
}
