package srpolicy

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"sextant/packet/srv6"
)

// MaxHeader is the greatest length of a list's outer headers in bytes: what a driver leaves room
// for. It is enough for 8 segments with a redundancy TLV.
const MaxHeader = 192

const (
	ipv6Header  = 40
	srhFixed    = 8
	nextInIPv6  = 6 // offset of Next Header in the IPv6 header
	hopLimitAt  = 7
	sourceAt    = 8
	destination = 24
	routing     = 43 // protocol number of a routing header
	tlvNumberAt = 8  // offset of the sequence in the TLV
	sidNumberAt = 8  // offset of the half of a redundancy SID that holds the number
)

// Source is what a head-end puts into all outer headers.
type Source struct {
	Addr     netip.Addr // of the outer packets; End.MERGE must take it for infrastructure
	HopLimit uint8
	Epoch    uint8 // of the numbers, in redundancy TLVs
}

// Header is a segment list as outer headers: IPv6, with an SRH where one is needed. The data plane
// writes the octets in front of a packet and fills in traffic class, flow label, payload length,
// the inner protocol and the number.
type Header struct {
	List       string // its name
	Octets     []byte // a multiple of 8
	NextAt     int    // offset of the octet that names the inner protocol
	Redundancy Redundancy
	// NumberAt are the offsets of what holds the number, as 8 octets each; 0: none. In the TLV
	// form: sequence and timestamp. In the SID form: the lower half of the redundancy SID, which
	// can be the destination, in the SRH, or both.
	NumberAt [2]int
}

// Destination returns the first segment.
func (h Header) Destination() netip.Addr {
	return netip.AddrFrom16([16]byte(h.Octets[destination:]))
}

// Segments returns the list in the order in which its segments are visited.
func (h Header) Segments() []netip.Addr {
	segments := []netip.Addr{h.Destination()}
	if h.NextAt == nextInIPv6 {
		return segments
	}
	srh, _, err := srv6.ParseSRH(h.Octets[ipv6Header:])
	if err != nil {
		return segments
	}
	if int(srh.SegmentsLeft) == len(srh.Segments)-1 { // not reduced: the first one is there, too
		segments = segments[:0]
	}
	for i := range srh.Segments {
		segments = append(segments, srh.Segments[len(srh.Segments)-1-i])
	}
	return segments
}

// Header returns the outer headers of a list, as a head-end of this source writes them.
func (l List) Header(s Source) (Header, error) {
	srh, needed, err := l.srh(s)
	if err != nil {
		return Header{}, fmt.Errorf("segment list %s: %w", l.Name, err)
	}
	h := Header{List: l.Name, Redundancy: l.Redundancy, NextAt: nextInIPv6,
		Octets: make([]byte, ipv6Header)}
	h.Octets[0] = 6 << 4
	h.Octets[hopLimitAt] = s.HopLimit
	copy(h.Octets[sourceAt:], s.Addr.AsSlice())
	copy(h.Octets[destination:], l.Segments[0].AsSlice())
	if needed {
		h.Octets[nextInIPv6] = routing
		h.NextAt = ipv6Header
		if h.Octets, err = srh.AppendBinary(h.Octets); err != nil {
			return Header{}, fmt.Errorf("segment list %s: %w", l.Name, err)
		}
	}
	if len(h.Octets) > MaxHeader {
		return Header{}, fmt.Errorf("segment list %s: outer headers of %d bytes, above the %d "+
			"that fit before a packet; "+
			"compress the list", l.Name, len(h.Octets), MaxHeader)
	}
	return h, l.placeNumber(&h, srh, needed)
}

// srh returns the list's segment routing header; needed is false if it can be left out.
func (l List) srh(s Source) (h srv6.SRH, needed bool, err error) {
	if len(l.Segments) == 0 {
		return h, false, fmt.Errorf("it has no segments")
	}
	// An SRH with a TLV and one segment is not reduced: erratum 7081 of RFC 8754.
	if l.Reduced && !(l.Redundancy == TLV && len(l.Segments) == 1) {
		h, needed, err = srv6.NewReducedSRH(0, l.Segments)
	} else {
		h, err = srv6.NewSRH(0, l.Segments)
		needed = true
	}
	if l.Redundancy == TLV {
		h.TLVs = []srv6.TLV{srv6.Redundancy{Epoch: s.Epoch, Flow: l.Flow}.TLV()}
	}
	return h, needed, err
}

// placeNumber says where the number goes, and puts the flow there.
func (l List) placeNumber(h *Header, srh srv6.SRH, hasSRH bool) error {
	switch l.Redundancy {
	case TLV:
		if l.Flow == 0 {
			return fmt.Errorf("segment list %s: numbered, but flow 0; choose another", l.Name)
		}
		h.NumberAt[0] = ipv6Header + srhFixed + len(srh.Segments)*16 + tlvNumberAt
	case SID:
		last := l.Segments[len(l.Segments)-1]
		sid, err := srv6.RedundancySID(netip.PrefixFrom(last, 80), l.Flow, 0)
		if err != nil {
			return fmt.Errorf("segment list %s: %w", l.Name, err)
		}
		if masked, _ := last.Prefix(80); masked.Addr() != last {
			return fmt.Errorf("segment list %s: the last segment %s has an argument, which is "+
				"for the number", l.Name, last)
		}
		h.placeSID(sid, len(l.Segments) == 1, hasSRH && len(srh.Segments) > 0)
	}
	return nil
}

func (h *Header) placeSID(sid netip.Addr, isDestination, inSRH bool) {
	places := h.NumberAt[:0]
	if isDestination {
		places = append(places, destination+sidNumberAt)
	}
	if inSRH { // the last segment is the first of the list
		places = append(places, ipv6Header+srhFixed+sidNumberAt)
	}
	octets := sid.As16()
	for _, at := range places {
		copy(h.Octets[at:], octets[8:])
	}
}

// Fill writes into octets, a copy of h.Octets, what a packet contributes: its length in bytes,
// protocol (4 or 41), traffic class, flow label, and number and time (TAI in microseconds, the low
// 32 bits).
func (h Header) Fill(octets []byte, length int, protocol, class uint8, label, number,
	timestamp uint32) {
	binary.BigEndian.PutUint32(octets, 6<<28|uint32(class)<<20|label)
	binary.BigEndian.PutUint16(octets[4:], uint16(len(octets)-ipv6Header+length))
	octets[h.NextAt] = protocol
	switch h.Redundancy {
	case TLV:
		binary.BigEndian.PutUint32(octets[h.NumberAt[0]:], number)
		binary.BigEndian.PutUint32(octets[h.NumberAt[0]+4:], timestamp)
	case SID:
		for _, at := range h.NumberAt {
			if at != 0 {
				low := octets[at+4:]
				binary.BigEndian.PutUint32(low, binary.BigEndian.Uint32(low)|(number&0xffff)<<12)
			}
		}
	}
}
