package packetgen

import (
	"encoding/binary"
	"slices"
)

// ICMP types, of which some quote a packet.
var (
	icmpTypes   = [...]uint8{3, 3, 3, 11, 12, 8, 8, 0, 4, 5}
	icmpv6Types = [...]uint8{2, 2, 1, 3, 4, 128, 128, 129, 135, 0}
)

// icmpOf returns ICMP for an address's family.
func icmpOf(ipv6 bool) uint8 {
	if ipv6 {
		return protocolICMPv6
	}
	return protocolICMP
}

// appendICMP appends a message: mostly one that quotes a packet of the flow s, the other way round,
// and else an echo request or anything.
func (g *Generator) appendICMP(s segment, ipv6 bool) {
	types := icmpTypes
	if ipv6 {
		types = icmpv6Types
	}
	b := g.appendZeros(8)
	b[0] = types[g.below(len(types))]
	if g.oneIn(4) {
		b[1] = uint8(g.below(5))
	}
	binary.BigEndian.PutUint32(b[4:], uint32(1200+g.below(400)))
	if g.oneIn(4) {
		g.appendNoise(g.payloadLength())
		return
	}
	g.appendQuote(s)
}

// appendQuote appends what a router quotes of a packet that the service sent to the client:
// sometimes of something else, sometimes cut off.
func (g *Generator) appendQuote(s segment) {
	s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
	s.Protocol = protocolTCP
	if g.oneIn(4) {
		s.Protocol = protocolUDP
	}
	switch g.below(16) {
	case 0:
		s.Src = g.client(s.Dst.Is6())
	case 1:
		s.Protocol = g.anyProtocol(s.Dst.Is6())
	case 2:
		if s.Dst.Is6() { // no packet to it leaves the domain
			s.Dst = g.offering()
		}
	}
	start, next := len(g.frame), g.nextHeader
	header := ipHeader{at: start, ipv6: s.Dst.Is6()}
	if header.ipv6 {
		g.appendIPv6Header(s.Src, s.Dst)
		if g.oneIn(4) {
			g.appendExtensions(g.below(3))
		}
	} else {
		g.appendIPv4Header(s.Src, s.Dst)
	}
	g.frame[g.nextHeader] = s.Protocol
	at := len(g.frame)
	g.appendZeros(tcpHeaderLength)
	b := g.frame[at:]
	binary.BigEndian.PutUint16(b, s.SrcPort)
	binary.BigEndian.PutUint16(b[2:], s.DstPort)
	binary.BigEndian.PutUint32(b[4:], s.seq)
	g.fit(header, len(g.frame))
	g.nextHeader = next
	if g.oneIn(4) {
		g.cutQuote(start)
	}
}

// cutQuote ends the frame somewhere behind start.
func (g *Generator) cutQuote(start int) {
	const smallest = 8 // bytes of an extension header
	g.frame = g.frame[:start+g.below(len(g.frame)-start)]
	g.extensions = slices.DeleteFunc(g.extensions,
		func(e extension) bool { return e.at+smallest > len(g.frame) })
}

// routerPacket makes a frame in which a router of the SR domain says that an outer packet of the
// edge's is too big: mostly one that is about a service's client, and quotes enough.
func (g *Generator) routerPacket() {
	s := g.toService()
	g.matchFamily(&s)
	if g.oneIn(16) {
		s.Dst = g.anyAddr(s.Dst.Is6())
	}
	g.appendLink(etherTypeIPv6)
	header := ipHeader{at: len(g.frame), ipv6: true}
	g.headers = append(g.headers, header)
	g.appendIPv6Header(pick(g, g.world.Infrastructure), g.world.Edge)
	if g.oneIn(20) {
		g.appendExtensions(1)
	}
	g.frame[g.nextHeader] = protocolICMPv6
	g.transport, g.protocol = len(g.frame), protocolICMPv6
	b := g.appendZeros(8)
	b[0] = 2
	if g.oneIn(8) {
		b[0] = icmpv6Types[g.below(len(icmpv6Types))]
	}
	binary.BigEndian.PutUint32(b[4:], uint32(1250+g.below(300)))
	g.quoteOuter(s)
	g.fit(header, len(g.frame))
	g.sumTransport(header)
}

// quoteOuter appends the start of an outer packet with the packet s in it.
func (g *Generator) quoteOuter(s segment) {
	start, src, next := len(g.frame), g.world.Edge, g.nextHeader
	if g.oneIn(12) {
		src = g.client(true)
	}
	g.appendIPv6Header(src, g.offering())
	if g.percent(30) {
		segments := 1 + g.below(6)
		g.appendSRH(segments, g.below(segments+1))
	}
	g.frame[g.nextHeader] = g.innerProtocol(s.Dst)
	inner := ipHeader{at: len(g.frame), ipv6: s.Dst.Is6()}
	if inner.ipv6 {
		g.appendIPv6Header(s.Src, s.Dst)
	} else {
		g.appendIPv4Header(s.Src, s.Dst)
	}
	g.frame[g.nextHeader] = s.Protocol
	g.appendNoise(g.below(64))
	g.fit(inner, inner.at+1000+g.below(600))
	g.nextHeader = next
	if g.oneIn(6) {
		g.cutQuote(start)
	}
}
