package srv6

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// RoutingType is the type of the IPv6 routing header that is an SRH (RFC 8754 section 2).
const RoutingType = 4

// MaxSegments is how many segments an SRH can list: its length field counts up to 255 units of 8
// octets, and a segment takes 2.
const MaxSegments = 127

const (
	unit        = 8                // extension headers are multiples of 8 octets
	fixedOctets = 8                // before the segment list
	maxSize     = unit * (1 + 255) // Hdr Ext Len is one octet
)

// ErrTruncated says that an SRH does not end within the octets given.
var ErrTruncated = errors.New("truncated")

// SRH is a Segment Routing Header (RFC 8754 section 2).
type SRH struct {
	NextHeader uint8 // 4 IPv4, 41 IPv6, 143 Ethernet, or an upper layer
	// index of the active segment; LastEntry + 1 while a reduced SRH is at its first one
	SegmentsLeft uint8
	LastEntry    uint8 // len(Segments) - 1
	Flags        uint8 // 0x20: O-flag (RFC 9259)
	Tag          uint16
	Segments     []netip.Addr // wire order: [0] is the last segment of the path
	// in order, with their padding, multiples of 8 octets together; see AlignTLVs
	TLVs []TLV
}

// NewSRH returns the SRH for a path at its source. The segments are in travel order, the first one
// to be visited first; the IPv6 destination is travel[0]. Next is the protocol of what follows.
func NewSRH(next uint8, travel []netip.Addr) (SRH, error) {
	if err := checkSegments(travel); err != nil {
		return SRH{}, fmt.Errorf("SRH: %w", err)
	}
	last := uint8(len(travel) - 1)
	return SRH{NextHeader: next, SegmentsLeft: last, LastEntry: last, Segments: reversed(travel)},
		nil
}

// NewReducedSRH returns the SRH for a path at its source without the first segment, which is in the
// IPv6 destination alone (RFC 8986 section 5.2, H.Encaps.Red). For a path of one segment ok is
// false: no SRH is needed.
func NewReducedSRH(next uint8, travel []netip.Addr) (h SRH, ok bool, err error) {
	if len(travel) == 1 {
		return SRH{}, false, checkSegment(travel[0])
	}
	// The reduced list may hold MaxSegments, one less than the path.
	if len(travel) == 0 {
		return SRH{}, false, errors.New("reduced SRH: the path has no segments; give at least one")
	}
	if err := checkSegments(travel[1:]); err != nil {
		return SRH{}, false, fmt.Errorf("reduced SRH: %w", err)
	}
	if err := checkSegment(travel[0]); err != nil {
		return SRH{}, false, fmt.Errorf("reduced SRH: %w", err)
	}
	left := uint8(len(travel) - 1)
	return SRH{NextHeader: next, SegmentsLeft: left, LastEntry: left - 1,
		Segments: reversed(travel[1:])}, true, nil
}

// Size returns how many octets the header takes on the wire.
func (h SRH) Size() int {
	return fixedOctets + addrOctets*len(h.Segments) + tlvsSize(h.TLVs)
}

// AppendBinary appends the header in wire format to b. It refuses what ParseSRH would refuse.
func (h SRH) AppendBinary(b []byte) ([]byte, error) {
	size := h.Size()
	if err := h.check(size); err != nil {
		return nil, fmt.Errorf("SRH: %w", err)
	}
	b = slices.Grow(b, size)
	b = append(b, h.NextHeader, uint8(size/unit-1), RoutingType, h.SegmentsLeft, h.LastEntry,
		h.Flags)
	b = binary.BigEndian.AppendUint16(b, h.Tag)
	for _, segment := range h.Segments {
		octets := segment.As16()
		b = append(b, octets[:]...)
	}
	for _, tlv := range h.TLVs {
		b = tlv.append(b)
	}
	return b, nil
}

// check refuses a header that has no valid wire format. Size is what it would take.
func (h SRH) check(size int) error {
	if err := checkSegments(h.Segments); err != nil {
		return err
	}
	if int(h.LastEntry) != len(h.Segments)-1 {
		return fmt.Errorf("last entry %d does not fit %d segments; set it to %d", h.LastEntry,
			len(h.Segments), len(h.Segments)-1)
	}
	if err := checkSegmentsLeft(h.SegmentsLeft, h.LastEntry); err != nil {
		return err
	}
	for i, tlv := range h.TLVs {
		if err := tlv.check(); err != nil {
			return fmt.Errorf("TLV %d of %d: %w", i+1, len(h.TLVs), err)
		}
	}
	if size%unit != 0 {
		return fmt.Errorf("TLVs of %d octets are not a multiple of %d; pad them with AlignTLVs",
			tlvsSize(h.TLVs), unit)
	}
	if size > maxSize {
		return fmt.Errorf("%d octets with TLVs, above the %d that its length field can say", size,
			maxSize)
	}
	return nil
}

// ParseSRH reads the SRH at the start of b, and returns its size in octets. It checks the rules of
// RFC 8754 section 2 and RFC 8986 section 4.1 (SL <= LE + 1, for reduced headers) and that all TLVs
// end inside the header. It copies what it keeps of b. The error wraps ErrTruncated if b ends
// before the header does.
func ParseSRH(b []byte) (h SRH, size int, err error) {
	size, err = measureSRH(b)
	if err != nil {
		return SRH{}, 0, fmt.Errorf("SRH: %w", err)
	}
	h = SRH{
		NextHeader: b[0], SegmentsLeft: b[3], LastEntry: b[4], Flags: b[5],
		Tag:      binary.BigEndian.Uint16(b[6:]),
		Segments: make([]netip.Addr, int(b[4])+1),
	}
	rest := b[fixedOctets:size]
	for i := range h.Segments {
		h.Segments[i] = netip.AddrFrom16([addrOctets]byte(rest))
		rest = rest[addrOctets:]
	}
	if h.TLVs, err = parseTLVs(rest); err != nil {
		return SRH{}, 0, fmt.Errorf("SRH: %w", err)
	}
	return h, size, nil
}

// measureSRH checks the fixed part of an SRH, and returns the size of the whole.
func measureSRH(b []byte) (size int, err error) {
	if len(b) < fixedOctets {
		return 0, fmt.Errorf("%w: %d of at least %d octets", ErrTruncated, len(b), fixedOctets)
	}
	length, routing, left, last := b[1], b[2], b[3], b[4]
	if routing != RoutingType {
		return 0, fmt.Errorf("routing type is %d, not %d", routing, RoutingType)
	}
	if size = unit * (1 + int(length)); size > len(b) {
		return 0, fmt.Errorf("%w: %d of %d octets", ErrTruncated, len(b), size)
	}
	if 2*(int(last)+1) > int(length) {
		return 0, fmt.Errorf("last entry %d needs a length of %d or more, but it is %d", last,
			2*(int(last)+1), length)
	}
	return size, checkSegmentsLeft(left, last)
}

func checkSegmentsLeft(left, last uint8) error {
	if int(left) > int(last)+1 {
		return fmt.Errorf("segments left %d is above last entry %d plus 1", left, last)
	}
	return nil
}

func checkSegments(segments []netip.Addr) error {
	if len(segments) < 1 || len(segments) > MaxSegments {
		return fmt.Errorf("%d segments; it lists 1 to %d", len(segments), MaxSegments)
	}
	for _, s := range segments {
		if err := checkSegment(s); err != nil {
			return err
		}
	}
	return nil
}

func checkSegment(s netip.Addr) error {
	if !s.Is6() || s.Zone() != "" {
		return fmt.Errorf("segment %s is not an IPv6 address without a zone", s)
	}
	return nil
}

// reversed turns travel order into wire order.
func reversed(travel []netip.Addr) []netip.Addr {
	wire := slices.Clone(travel)
	slices.Reverse(wire)
	return wire
}
