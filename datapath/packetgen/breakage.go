package packetgen

import "encoding/binary"

// breakFrame breaks the frame in one way or another.
func (g *Generator) breakFrame() {
	switch g.below(12) {
	case 0, 1:
		g.cut()
	case 2:
		g.cutPacket()
	case 3:
		g.lieAboutLength()
	case 4:
		g.spoilVersion()
	case 5:
		g.spoilTransport()
	case 6, 7, 8:
		g.spoilExtension()
	case 9:
		g.spoilNextHeader()
	default:
		g.flip()
	}
}

// garbage makes a frame of random bytes, of any length, most with an EtherType that makes
// them looked at.
func (g *Generator) garbage() []byte {
	g.appendNoise(g.below(200))
	if len(g.frame) >= 14 && g.percent(80) {
		etherType := uint16(etherTypeIPv6)
		if g.oneIn(2) {
			etherType = etherTypeIPv4
		}
		binary.BigEndian.PutUint16(g.frame[12:], etherType)
	}
	return g.frame
}

// cutLength returns a length for a frame of length bytes. It goes through all lengths in
// turn, so that many frames have been cut everywhere.
func (g *Generator) cutLength(length int) int {
	g.cuts++
	return g.cuts % length
}

// cut ends the frame early, whatever its headers say.
func (g *Generator) cut() {
	g.frame = g.frame[:g.cutLength(min(len(g.frame), 256))]
}

// cutPacket ends the packets early and makes the IP headers agree, so that the end comes
// within an extension header, the transport header, or the inner header.
func (g *Generator) cutPacket() {
	if len(g.headers) == 0 {
		return
	}
	last := g.headers[g.below(len(g.headers))]
	shortest := last.at + ipv4HeaderLength
	if last.ipv6 {
		shortest = last.at + ipv6HeaderLength
	}
	if shortest >= len(g.frame) {
		return
	}
	g.frame = g.frame[:shortest+g.cutLength(min(len(g.frame)-shortest, 200))]
	for _, header := range g.headers {
		if header.at <= last.at {
			g.fit(header, len(g.frame))
		}
	}
}

// lieAboutLength changes an IP header's length field by little or to anything.
func (g *Generator) lieAboutLength() {
	header := pick(g, g.headers)
	at := header.at + 2
	if header.ipv6 {
		at = header.at + 4
	}
	length := binary.BigEndian.Uint16(g.frame[at:]) + uint16(g.below(9)-4)
	if g.oneIn(3) {
		length = uint16(g.random.Uint32())
	}
	binary.BigEndian.PutUint16(g.frame[at:], length)
	if !header.ipv6 {
		g.sumIPv4(g.frame[header.at:])
	}
}

// spoilVersion changes the first byte of an IP header: version and header length.
func (g *Generator) spoilVersion() {
	at := pick(g, g.headers).at
	if g.oneIn(2) {
		g.frame[at] = uint8(g.random.Uint32())
		return
	}
	g.frame[at] = g.frame[at]&0xf0 | uint8(g.below(16))
}

// spoilTransport changes what the transport header says about lengths.
func (g *Generator) spoilTransport() {
	b := g.frame[g.transport:]
	switch {
	case g.protocol == protocolTCP && len(b) > 12:
		b[12] = uint8(g.random.Uint32())
	case g.protocol == protocolUDP && len(b) >= udpHeaderLength:
		length := binary.BigEndian.Uint16(b[4:]) + uint16(g.below(5)-2)
		if g.oneIn(2) {
			length = uint16(g.below(16))
		}
		binary.BigEndian.PutUint16(b[4:], length)
	default:
		g.flip()
	}
}

// spoilExtension changes one of the first bytes of an extension header: next header, length,
// routing type or fragment offset, segments left, last entry.
func (g *Generator) spoilExtension() {
	if len(g.extensions) == 0 {
		g.flip()
		return
	}
	b := g.frame[pick(g, g.extensions).at:]
	at := g.below(5)
	if g.oneIn(3) {
		b[at] = uint8(g.random.Uint32())
		return
	}
	b[at] += uint8(g.below(5) - 2)
}

// spoilNextHeader makes an IP header or an extension header be followed by something else.
func (g *Generator) spoilNextHeader() {
	at := g.nextHeader
	if header := pick(g, g.headers); g.oneIn(2) {
		at = header.at + 9
		if header.ipv6 {
			at = header.at + 6
		}
	}
	next := [...]uint8{
		protocolHopByHop, protocolICMP, protocolIPv4, protocolTCP, protocolUDP, protocolIPv6,
		protocolRouting, protocolFragment, 50, 51, protocolICMPv6, 59, protocolDestination, 255,
	}
	g.frame[at] = next[g.below(len(next))]
}

// flip flips bits in up to eight bytes, mostly of the headers.
func (g *Generator) flip() {
	for range 1 + g.below(8) {
		at := g.below(len(g.frame))
		if g.percent(70) {
			at = min(at, g.below(128))
		}
		g.frame[at] ^= 1 << g.below(8)
	}
}
