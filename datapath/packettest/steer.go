package packettest

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket/layers"
)

// The egress's SID, with room for a number behind 80 bits, and two routers' SIDs on the way there.
var (
	MergeSID = addr("fcbb:bb00:4:0:f::")
	ViaSID1  = addr("fcbb:bb00:1:e::")
	ViaSID2  = addr("fcbb:bb00:2:e::")
)

// Steered is a segment list, and what packets on it look like. Form is "none", "tlv" or "sid".
type Steered struct {
	Name     string
	Segments []netip.Addr
	Reduced  bool
	Form     string
	Flow     uint32

	destination func(number uint32) netip.Addr
	extensions  func(next layers.IPProtocol, number, timestamp uint32) []byte
}

// SteeredLists returns a list of each kind that has headers of its own. Numbers in the headers are
// of epoch 5.
func SteeredLists() []Steered {
	const flow = 0x54321
	always := func(a netip.Addr) func(
		uint32) netip.Addr {
		return func(uint32) netip.Addr { return a }
	}
	numbered := func(n uint32) netip.Addr {
		return withArgument(MergeSID, uint64(flow)<<28|uint64(n&0xffff)<<12)
	}
	type ext = func(layers.IPProtocol, uint32, uint32) []byte
	srh := func(left, last uint8, wire ...netip.Addr) ext {
		return func(next layers.IPProtocol, _, _ uint32) []byte {
			return SRH(next, left, last, wire...)
		}
	}
	withTLV := func(plain ext) ext {
		return func(next layers.IPProtocol, number, timestamp uint32) []byte {
			return append16(plain(next, 0, 0), flow, number, timestamp)
		}
	}
	withSID := func(left, last uint8, rest ...netip.Addr) ext {
		return func(next layers.IPProtocol, number, _ uint32) []byte {
			return SRH(next, left, last, append([]netip.Addr{numbered(number)}, rest...)...)
		}
	}
	two, three := []netip.Addr{ViaSID1, MergeSID}, []netip.Addr{ViaSID1, ViaSID2, MergeSID}
	one := two[1:]
	return []Steered{
		{"one, no SRH", one, true, "none", 0, always(MergeSID), nil},
		{"one", one, false, "none", 0, always(MergeSID), srh(0, 0, MergeSID)},
		{"three", three, false, "none", 0, always(ViaSID1), srh(2, 2, MergeSID, ViaSID2, ViaSID1)},
		{"three, reduced", three, true, "none", 0, always(ViaSID1), srh(2, 1, MergeSID, ViaSID2)},
		{"one, TLV", one, true, "tlv", flow, always(MergeSID), withTLV(srh(0, 0, MergeSID))},
		{"two, TLV", two, false, "tlv", flow, always(ViaSID1),
			withTLV(srh(1, 1, MergeSID, ViaSID1))},
		{"three, reduced, TLV", three, true, "tlv", flow, always(ViaSID1),
			withTLV(srh(2, 1, MergeSID, ViaSID2))},
		{"one, no SRH, SID", one, true, "sid", flow, numbered, nil},
		{"one, SID", one, false, "sid", flow, numbered, withSID(0, 0)},
		{"two, SID", two, false, "sid", flow, always(ViaSID1), withSID(1, 1, ViaSID1)},
		{"three, reduced, SID", three, true, "sid", flow, always(ViaSID1), withSID(2, 1, ViaSID2)},
	}
}

// append16 puts a redundancy TLV of 16 bytes behind the segments of an SRH.
func append16(srh []byte, flow, number, timestamp uint32) []byte {
	srh = append(slices.Clone(srh), 124, 14, 0, 5)
	srh = binary.BigEndian.AppendUint32(srh, flow)
	srh = binary.BigEndian.AppendUint32(srh, number)
	srh = binary.BigEndian.AppendUint32(srh, timestamp)
	srh[1] += 2 // units of 8 bytes
	return srh
}

func withArgument(sid netip.Addr, argument uint64) netip.Addr {
	octets := sid.As16()
	binary.BigEndian.PutUint64(octets[8:], binary.BigEndian.Uint64(octets[8:])|argument)
	return netip.AddrFrom16(octets)
}

// Outer returns what is around a packet on the list.
func (s Steered) Outer(inner []byte, number, timestamp, label uint32, class, hopLimit uint8) Outer {
	o := Outer{Src: EdgeAddr, Dst: s.destination(number), TrafficClass: class, FlowLabel: label,
		HopLimit: hopLimit}
	if s.extensions != nil {
		o.Extensions = s.extensions(ProtocolOf(inner), number, timestamp)
	}
	return o
}

// Arrived returns what is around the packet when it comes to the last segment.
func (s Steered) Arrived(inner []byte, number, timestamp, label uint32, class,
	hopLimit uint8) Outer {
	o := s.Outer(inner, number, timestamp, label, class, hopLimit)
	if len(o.Extensions) > 0 {
		o.Extensions[3] = 0 // segments left
		o.Dst, _ = netip.AddrFromSlice(o.Extensions[8:24])
	}
	return o
}
