package packettest

import (
	"bytes"
	"net/netip"

	"github.com/gopacket/gopacket/layers"
)

// Extension returns an IPv6 extension header of 8 bytes and as many units of 8 more.
func Extension(next layers.IPProtocol, units int) []byte {
	b := make([]byte, 8+8*units)
	b[0], b[1] = byte(next), byte(units)
	return b
}

// Routing returns a routing header of a type, with room for as many addresses.
func Routing(next layers.IPProtocol, kind, left uint8, addresses int) []byte {
	b := Extension(next, 2*addresses)
	b[2], b[3] = kind, left
	return b
}

// SRH returns a segment routing header (RFC 8754 section 2), with the segments in wire order.
func SRH(next layers.IPProtocol, left, last uint8, wire ...netip.Addr) []byte {
	b := []byte{byte(next), byte(2 * len(wire)), 4, left, last, 0, 0, 0}
	for _, segment := range wire {
		b = append(b, segment.AsSlice()...)
	}
	return b
}

// Fragment returns a fragment header; bits are the offset, two reserved ones, and M.
func Fragment(next layers.IPProtocol, bits uint16) []byte {
	return []byte{byte(next), 0xff, byte(bits >> 8), byte(bits), 1, 2, 3, 4}
}

// Extensions returns count destination options headers, of which the last one names last.
func Extensions(count int, last layers.IPProtocol) []byte {
	var b []byte
	for i := range count {
		next := layers.IPProtocolIPv6Destination
		if i == count-1 {
			next = last
		}
		b = append(b, Extension(next, i%2)...)
	}
	return b
}

// Option returns a TCP option; its length follows from its data.
func Option(kind layers.TCPOptionKind, data ...byte) layers.TCPOption {
	return layers.TCPOption{OptionType: kind, OptionData: data}
}

// MSS returns the maximum segment size option.
func MSS(size uint16) layers.TCPOption {
	return Option(layers.TCPOptionKindMSS, byte(size>>8), byte(size))
}

// Patched returns a copy with some bytes changed.
func Patched(b []byte, at int, values ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], values)
	return b
}
