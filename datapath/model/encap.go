package model

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
)

// Encapsulation says how the edge writes a chain of backends into the outer packet.
type Encapsulation uint8

// The encapsulations.
const (
	// EncapsulationCarrier: compressed SIDs in the destination (NEXT-C-SID, RFC 9800).
	EncapsulationCarrier Encapsulation = iota
	// EncapsulationSRH: a segment routing header with all segments (RFC 8754).
	EncapsulationSRH
	// EncapsulationSRHReduced: one without the first segment, which the destination
	// has already (RFC 8754 section 4.1.1); none for a single segment.
	EncapsulationSRHReduced
)

// path is a chain of backends as segments.
type path struct {
	destination netip.Addr   // the first segment, or the carrier of all
	list        []netip.Addr // segments of the SRH in the order of travel; none: no SRH
	left        int          // segments left
	source      netip.Addr   // of the outer packet; the zero value: that of the edge
	signed      bool         // the SRH has an HMAC TLV
}

// path returns the segments of the ids on the way, and of the backends behind them. It is false if
// there is no backend, or a segment that has no SID.
func (e *Edge) path(way, backends []uint16) (path, bool) {
	if len(backends) == 0 {
		return path{}, false
	}
	ids := slices.Concat(way, backends)
	if e.Encapsulation == EncapsulationCarrier {
		if len(ids) <= srv6.MaxCarrierCSIDs {
			return path{destination: e.carrier(ids)}, true
		}
		return path{destination: e.carrier(way), list: []netip.Addr{e.carrier(backends)}, left: 1,
			signed: e.HMAC != nil}, true
	}
	sids := make([]netip.Addr, len(ids))
	for i, id := range ids {
		sids[i] = e.SID(id)
		if !sids[i].Is6() {
			return path{}, false
		}
	}
	p := path{destination: sids[0], list: sids, left: len(sids) - 1, signed: e.HMAC != nil}
	if e.Encapsulation == EncapsulationSRHReduced && !(p.signed && len(sids) == 1) {
		p.list = sids[1:]
	}
	return p, true
}

// carrier returns the block, the ids behind it, and zeros (RFC 9800 section 4.1).
// A chain has no more ids than fit.
func (e *Edge) carrier(ids []uint16) netip.Addr {
	const blockLength, idLength = 4, 2
	b := e.Block.Prefix().Addr().As16()
	for i, id := range ids {
		binary.BigEndian.PutUint16(b[blockLength+idLength*i:], id)
	}
	return netip.AddrFrom16(b)
}

// srhLength returns the length of the segment routing header in bytes.
func (p *path) srhLength() int {
	if len(p.list) == 0 {
		return 0
	}
	length := srhFixedLength + segmentLength*len(p.list)
	if p.signed {
		length += hmacTLVBytes
	}
	return length
}

// headerLength returns the length of all that is put before the inner packet.
func (p *path) headerLength() int { return ipv6HeaderLength + p.srhLength() }

// appendOuter appends the outer header of an inner packet.
func (e *Edge) appendOuter(b []byte, path *path, inner *packet, label uint32,
	hopLimit uint8) []byte {
	protocol := uint8(protocolIPv4)
	if inner.ipv6 {
		protocol = protocolIPv6
	}
	next := protocol
	if len(path.list) > 0 {
		next = protocolRouting
	}
	source := path.source
	if !source.IsValid() {
		source = e.Source
	}
	b = appendIPv6(b, e.trafficClass(inner), label, path.srhLength()+inner.end-inner.start, next,
		hopLimit, source, path.destination)
	if len(path.list) == 0 {
		return b
	}
	b = appendSRH(b, protocol, path.list, path.left)
	if path.signed {
		b = e.appendHMAC(b, e.outerSource(inner), path)
	}
	return b
}

func (e *Edge) hopLimit() uint8 { return uint8(e.HopLimit) }

// trafficClass is the outer one. Its DSCP is the inner one or the configured one (RFC 2983, uniform
// and pipe model), its ECN the inner one or none (RFC 6040 section 4.1, normal and compatibility
// mode).
func (e *Edge) trafficClass(inner *packet) uint8 {
	dscp, ecn := inner.trafficClass&^ecnMask, inner.trafficClass&ecnMask
	if e.DSCP >= 0 {
		dscp = uint8(e.DSCP) << 2
	}
	if !e.ECN {
		ecn = 0
	}
	return dscp | ecn
}

func appendIPv6(b []byte, class uint8, label uint32, payload int, next, hopLimit uint8, src,
	dst netip.Addr) []byte {
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(class)<<20|label)
	b = binary.BigEndian.AppendUint16(b, uint16(payload))
	b = append(b, next, hopLimit)
	return appendAddr(appendAddr(b, src), dst)
}

// appendSRH appends a segment routing header with the segments given in the order
// of travel; on the wire they are the other way round (RFC 8754 section 2).
func appendSRH(b []byte, next uint8, segments []netip.Addr, left int) []byte {
	const flags, tagHigh, tagLow = 0, 0, 0
	units := len(segments) * segmentLength / extensionUnit
	b = append(b, next, uint8(units), routingTypeSRH, uint8(left), uint8(len(segments)-1), flags,
		tagHigh, tagLow)
	for _, segment := range slices.Backward(segments) {
		b = appendAddr(b, segment)
	}
	return b
}

func appendAddr(b []byte, addr netip.Addr) []byte {
	a := addr.As16()
	return append(b, a[:]...)
}
