package packetgen

import (
	"encoding/binary"
	"net/netip"
)

const (
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
	etherTypeVLAN = 0x8100
	etherTypeQinQ = 0x88a8

	ipv4HeaderLength = 20
	ipv6HeaderLength = 40
)

// appendLink appends an Ethernet header, of one frame in sixteen to a group, with VLAN tags in two
// of five: one, two, or sometimes one too many.
func (g *Generator) appendLink(etherType uint16) {
	g.appendNoise(12)
	if g.frame[1]&7 != 0 {
		g.frame[0] &^= 1 // for one node
	}
	tags := 0
	if g.percent(40) {
		tags = 1 + g.below(2)
	}
	if g.oneIn(40) {
		tags = 3
	}
	for range tags {
		tag := uint16(etherTypeVLAN)
		if g.oneIn(3) {
			tag = etherTypeQinQ
		}
		g.frame = binary.BigEndian.AppendUint16(g.frame, tag)
		g.frame = binary.BigEndian.AppendUint16(g.frame, uint16(g.random.Uint32()))
	}
	if g.oneIn(50) {
		etherType = uint16(g.random.Uint32())
	}
	g.frame = binary.BigEndian.AppendUint16(g.frame, etherType)
}

// etherTypeOf returns the EtherType for an address's family.
func etherTypeOf(addr netip.Addr) uint16 {
	if addr.Is4() {
		return etherTypeIPv4
	}
	return etherTypeIPv6
}

// edgePacket makes a frame with one packet.
func (g *Generator) edgePacket() {
	s := g.edgeSegment()
	g.matchFamily(&s)
	g.appendLink(etherTypeOf(s.Dst))
	g.appendPacket(s)
}

// matchFamily makes the source an address of the destination's family.
func (g *Generator) matchFamily(s *segment) {
	if !s.Dst.IsValid() {
		s.Dst = g.anyAddr(true)
	}
	if s.Src.Is4() != s.Dst.Is4() || !s.Src.IsValid() {
		s.Src = g.client(s.Dst.Is6())
	}
}

// appendPacket appends an IP packet up to its last byte.
func (g *Generator) appendPacket(s segment) {
	header := ipHeader{at: len(g.frame), ipv6: s.Dst.Is6()}
	g.headers = append(g.headers, header)
	if header.ipv6 {
		g.appendIPv6Header(s.Src, s.Dst)
		g.appendExtensions(g.chainLength())
	} else {
		g.appendIPv4Header(s.Src, s.Dst)
	}
	g.frame[g.nextHeader] = s.Protocol
	g.appendTransport(s)
	g.fit(header, len(g.frame))
	g.sumTransport(header)
}

// trafficClass returns that byte of either family: any DSCP and ECN.
func (g *Generator) trafficClass() uint8 { return uint8(g.random.Uint32()) }

// hopLimit returns one that mostly suffices.
func (g *Generator) hopLimit() uint8 {
	if g.oneIn(20) {
		return uint8(g.below(4))
	}
	return uint8(4 + g.below(252))
}

// fragmentIDs is how many packets of a flow can be told apart by their fragments: few, so that they
// meet.
const fragmentIDs = 4

// laterOffset returns one of which some lie within the first fragment.
func (g *Generator) laterOffset() int { return 8 * (1 + g.below(24)) }

// appendIPv4Header appends a header, with options in one of five.
func (g *Generator) appendIPv4Header(src, dst netip.Addr) {
	words := 5
	if g.oneIn(5) {
		words += 1 + g.below(10)
	}
	at := len(g.frame)
	b := g.appendZeros(ipv4HeaderLength)
	b[0] = 4<<4 | uint8(words)
	b[1] = g.trafficClass()
	binary.BigEndian.PutUint16(b[4:], uint16(g.below(fragmentIDs)))
	switch g.below(24) {
	case 0:
		binary.BigEndian.PutUint16(b[6:], uint16(g.random.Uint32())) // any fragment
	case 1:
		binary.BigEndian.PutUint16(b[6:], uint16(g.laterOffset()/8))
	case 2:
		b[6] = 0x20 // the first fragment
	default:
		b[6] = uint8(g.below(2)) << 6 // DF or not
	}
	b[8] = g.hopLimit()
	copy(b[12:], src.AsSlice())
	copy(b[16:], dst.AsSlice())
	g.nextHeader = at + 9
	g.appendIPv4Options(4*words - ipv4HeaderLength)
}

// appendIPv4Options appends IPv4 options of all kinds, in that many bytes: one of eight times
// anything.
func (g *Generator) appendIPv4Options(length int) {
	if g.oneIn(8) {
		g.appendNoise(length)
		return
	}
	for length > 0 {
		size := 1 + g.below(min(length, 12))
		b := g.appendZeros(size)
		if b[0] = 1; size > 1 {
			b[0], b[1] = pick(g, []uint8{7, 68, 148, 30, 130}), uint8(size)
			if g.oneIn(32) {
				b[0] = pick(g, []uint8{131, 137})
			}
		}
		length -= size
	}
}

// appendIPv6Header appends a fixed header.
func (g *Generator) appendIPv6Header(src, dst netip.Addr) {
	at := len(g.frame)
	b := g.appendZeros(ipv6HeaderLength)
	binary.BigEndian.PutUint32(b, g.random.Uint32())
	b[0] = 6<<4 | b[0]&0x0f
	b[7] = g.hopLimit()
	copy(b[8:], src.AsSlice())
	copy(b[24:], dst.AsSlice())
	g.nextHeader = at + 6
}

// fit makes the length field of an IP header say that its packet ends at end, and the
// IPv4 checksum right in most headers.
func (g *Generator) fit(header ipHeader, end int) {
	b := g.frame[header.at:]
	if header.ipv6 {
		binary.BigEndian.PutUint16(b[4:], uint16(end-header.at-ipv6HeaderLength))
		return
	}
	binary.BigEndian.PutUint16(b[2:], uint16(end-header.at))
	g.sumIPv4(b)
}

// sumIPv4 makes the checksum of most headers right.
func (g *Generator) sumIPv4(b []byte) {
	if len(b) < ipv4HeaderLength {
		return
	}
	binary.BigEndian.PutUint16(b[10:], 0)
	s := sum(b[:min(int(b[0]&0x0f)*4, len(b))], 0)
	if g.oneIn(8) {
		binary.BigEndian.PutUint16(b[10:], g.checksum(s))
		return
	}
	binary.BigEndian.PutUint16(b[10:], fold(s))
}

// checksum returns the Internet checksum for a sum. One of eight is wrong: rewriting has
// to carry the fault along rather than to mend it.
func (g *Generator) checksum(sum uint32) uint16 {
	switch g.below(32) {
	case 0:
		return 0
	case 1:
		return 0xffff
	case 2, 3:
		return uint16(g.random.Uint32())
	}
	return fold(sum)
}

// fold returns the checksum for a sum.
func fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// sum adds the 16-bit words of b to a sum (RFC 1071), not folded.
func sum(b []byte, start uint32) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		start += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		start += uint32(b[0]) << 8
	}
	return start
}
