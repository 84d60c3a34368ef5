package packetgen

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/srv6"
)

// hostPacket makes a frame with a packet in an outer one.
func (g *Generator) hostPacket() {
	if g.oneIn(25) {
		g.edgePacket() // not SRv6
		return
	}
	s := g.hostSegment()
	g.matchFamily(&s)
	g.appendLink(etherTypeIPv6)
	outer := ipHeader{at: len(g.frame), ipv6: true}
	g.headers = append(g.headers, outer)
	g.appendOuter()
	g.frame[g.nextHeader] = g.innerProtocol(s.Dst)
	g.appendPacket(s)
	if g.oneIn(10) {
		g.appendNoise(1 + g.below(16)) // between the ends of both packets
	}
	g.fit(outer, len(g.frame))
}

// innerProtocol returns the protocol number for a packet of an address's family,
// sometimes a wrong one.
func (g *Generator) innerProtocol(dst netip.Addr) uint8 {
	if g.oneIn(25) {
		return g.anyProtocol(true)
	}
	if dst.Is4() != g.oneIn(60) {
		return protocolIPv4
	}
	return protocolIPv6
}

// appendOuter appends the outer header and its extension headers.
func (g *Generator) appendOuter() {
	src, at := pick(g, g.world.Infrastructure), len(g.frame)
	if !src.IsValid() || g.oneIn(16) {
		src = g.anyAddr(true)
	}
	if len(g.world.Decapsulating) > 0 && g.percent(30) {
		g.appendIPv6Header(src, g.decapsulating())
		g.appendExtensions(g.chainLength())
		if len(g.world.HMACKeys) > 0 && g.percent(50) {
			g.appendSRH(1+g.below(6), 0)
		}
	} else {
		g.appendIPv6Header(src, g.offering())
		g.appendOfferExtensions()
	}
	if g.percent(50) {
		g.frame[at+1] &^= 0x10 // no CE, which would end half of the packets
	}
}

// appendOfferExtensions appends an SRH in half of the packets, and rarely more.
func (g *Generator) appendOfferExtensions() {
	if g.oneIn(8) {
		g.appendExtensions(g.below(4))
	}
	if g.percent(50) {
		segments := 1 + g.below(6)
		if len(g.world.HMACKeys) > 0 && g.oneIn(6) {
			segments += g.below(9)
		}
		g.appendSRH(segments, g.below(segments+1))
	}
	if g.oneIn(8) {
		g.appendExtensions(g.chainLength())
	}
}

// decapsulating returns a SID that is always last, sometimes as if it were not.
func (g *Generator) decapsulating() netip.Addr {
	sid := pick(g, g.world.Decapsulating)
	if g.oneIn(10) {
		return g.withArgument(sid)
	}
	return sid.Addr()
}

// offering returns a SID that is followed by none to five candidates, or something near
// to it.
func (g *Generator) offering() netip.Addr {
	sid := pick(g, g.world.Offering)
	switch {
	case !sid.IsValid() || g.oneIn(30):
		return g.inBlock()
	case g.oneIn(60):
		return g.anyAddr(true)
	case g.percent(50):
		return sid.Addr()
	}
	return g.withArgument(sid)
}

// withArgument puts ids of candidates behind a SID, and rarely anything.
func (g *Generator) withArgument(sid netip.Prefix) netip.Addr {
	a := sid.Addr().As16()
	argument := a[(sid.Bits()+7)/8:]
	for range 1 + g.below(5) {
		if len(argument) < 2 {
			break
		}
		id := uint16(g.random.Uint32())
		if other := pick(g, g.world.Others); other.IsValid() && !g.oneIn(8) {
			b := other.As16()
			id = binary.BigEndian.Uint16(b[4:])
		}
		binary.BigEndian.PutUint16(argument, id)
		argument = argument[2:]
	}
	if len(argument) > 0 && g.oneIn(16) {
		argument[len(argument)-1] = uint8(g.random.Uint32())
	}
	if len(argument) > 2 && g.oneIn(8) {
		mark := srv6.CopyMark(g.below(srv6.Copies))
		binary.BigEndian.PutUint16(argument[2*g.below(len(argument)/2):], uint16(mark))
	}
	return netip.AddrFrom16(a)
}
