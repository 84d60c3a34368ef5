package srv6

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// TLVRedundancy is the type of the redundancy TLV, from the experimental range whose data does not
// change en route (RFC 8754 section 8.2: 124 to 126).
const TLVRedundancy uint8 = 124

// redundancyOctets is the length of the TLV's value: with type and length, two units of 8 octets.
const redundancyOctets = 14

// Redundancy is the content of a redundancy TLV: the number of a packet that travels more than
// once, so that the egress knows its copies. No standard defines one; this is Sextant's own.
//
//	| Type 124 | Length 14 | Flags | Epoch |
//	| Flow                                 |
//	| Sequence                             |
//	| Timestamp                            |
//
// Flags are 0 when sent and ignored on receipt.
type Redundancy struct {
	Flags uint8
	// which life of the sender the numbers are of: a newer one (modulo 256) makes the egress begin
	// anew
	Epoch     uint8
	Flow      uint32 // the path of a protected flow; each copy of a packet has another
	Sequence  uint32 // the same in all copies of a packet
	Timestamp uint32 // when the packet was numbered: TAI in microseconds, the low 32 bits
}

// TLV returns the TLV that carries r. It is a multiple of 8 octets by itself.
func (r Redundancy) TLV() TLV {
	value := append(make([]byte, 0, redundancyOctets), r.Flags, r.Epoch)
	value = binary.BigEndian.AppendUint32(value, r.Flow)
	value = binary.BigEndian.AppendUint32(value, r.Sequence)
	return TLV{Type: TLVRedundancy, Value: binary.BigEndian.AppendUint32(value, r.Timestamp)}
}

// ParseRedundancy reads a redundancy TLV.
func ParseRedundancy(t TLV) (Redundancy, error) {
	if t.Type != TLVRedundancy {
		return Redundancy{}, fmt.Errorf("TLV of type %d is not a redundancy TLV, type %d", t.Type,
			TLVRedundancy)
	}
	if len(t.Value) != redundancyOctets {
		return Redundancy{}, fmt.Errorf("redundancy TLV of %d octets; it has %d", len(t.Value),
			redundancyOctets)
	}
	return Redundancy{
		Flags: t.Value[0], Epoch: t.Value[1],
		Flow:      binary.BigEndian.Uint32(t.Value[2:]),
		Sequence:  binary.BigEndian.Uint32(t.Value[6:]),
		Timestamp: binary.BigEndian.Uint32(t.Value[10:]),
	}, nil
}

// A redundancy SID is a locator of 64 bits, a function of 16, and as its argument a flow of 20
// bits, a number of 16, and 12 bits that are 0: the layout of EricssonResearch/xdpfrer ("PREF
// SID"), with which the SID form interoperates.
const (
	redundancySIDBits = 80
	// MaxRedundancySIDFlow is the greatest flow id that a redundancy SID can carry.
	MaxRedundancySIDFlow = 1<<20 - 1

	redundancyReserved = 12
)

// RedundancySID returns the SID of a function (a prefix of 80 bits) with a flow and a number as its
// argument. Flow 0 is refused: with number 0 it would be no argument at all.
func RedundancySID(function netip.Prefix, flow uint32, sequence uint16) (netip.Addr, error) {
	if !function.Addr().Is6() || function.Bits() != redundancySIDBits {
		return netip.Addr{}, fmt.Errorf("redundancy SID under %s: it needs an IPv6 prefix of %d "+
			"bits", function, redundancySIDBits)
	}
	if flow == 0 || flow > MaxRedundancySIDFlow {
		return netip.Addr{}, fmt.Errorf("redundancy SID under %s: flow %d; choose 1 to %d",
			function, flow, MaxRedundancySIDFlow)
	}
	octets := function.Masked().Addr().As16()
	argument := uint64(flow)<<28 | uint64(sequence)<<redundancyReserved
	low := binary.BigEndian.Uint64(octets[8:])
	binary.BigEndian.PutUint64(octets[8:], low|argument)
	return netip.AddrFrom16(octets), nil
}

// ParseRedundancySID returns the function, as a prefix of 80 bits, and the flow and number of a
// redundancy SID. The reserved bits are ignored, as a receiver has to; a SID that is the function
// alone has flow and number 0.
func ParseRedundancySID(sid netip.Addr) (function netip.Prefix, flow uint32, sequence uint16) {
	octets := sid.As16()
	low := binary.BigEndian.Uint64(octets[8:])
	function = netip.PrefixFrom(netip.AddrFrom16(octets), redundancySIDBits).Masked()
	return function, uint32(low>>28) & MaxRedundancySIDFlow, uint16(low >> redundancyReserved)
}
