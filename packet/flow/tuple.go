package flow

import (
	"encoding/binary"
	"net/netip"
)

// Tuple is the 5-tuple of a TCP or UDP flow, as the client's packets carry it. Src and Dst are of
// the packet's IP version: an IPv6 packet between IPv4-mapped addresses is an IPv6 flow.
type Tuple struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	Protocol         uint8 // IP protocol number: 6 TCP, 17 UDP
}

// maxKeyLength is what an IPv6 tuple hashes: two addresses, two ports, one protocol. For IPv4 it is
// 13.
const maxKeyLength = 2*16 + 2*2 + 1

// Hash returns SipHash-1-3 under s over source address, destination address, source port,
// destination port and protocol, each in network order: 13 octets for IPv4, 37 for IPv6.
func (s Secret) Hash(t Tuple) uint64 {
	var space [maxKeyLength]byte
	return SipHash13(s, t.appendKey(space[:0]))
}

func (t Tuple) appendKey(b []byte) []byte {
	if t.Src.Is4() && t.Dst.Is4() {
		src, dst := t.Src.As4(), t.Dst.As4()
		b = append(append(b, src[:]...), dst[:]...)
	} else {
		src, dst := t.Src.As16(), t.Dst.As16()
		b = append(append(b, src[:]...), dst[:]...)
	}
	b = binary.BigEndian.AppendUint16(b, t.SrcPort)
	b = binary.BigEndian.AppendUint16(b, t.DstPort)
	return append(b, t.Protocol)
}

// Bucket maps a hash to one of buckets, 0 to buckets-1, evenly: the upper 32 bits of the hash,
// taken as a fraction of 2^32, times buckets. That is a multiplication and a shift where a
// remainder would be a division (Lemire, "Fast random integer generation in an interval", 2019).
func Bucket(hash uint64, buckets uint32) uint32 {
	return uint32((hash >> 32) * uint64(buckets) >> 32)
}

// labelMask selects the 20 bits of an IPv6 flow label.
const labelMask = 0xfffff

// Label returns the IPv6 flow label for a flow with this hash. It is never 0, which would mean "not
// labelled" (RFC 6437 section 2) and would let routers on the way choose another one.
func Label(hash uint64) uint32 {
	if label := uint32(hash & labelMask); label != 0 {
		return label
	}
	return 1
}
