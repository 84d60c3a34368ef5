package packetgen

// quicFirst are first bytes by the version in front of which they are seen: Initial, 0-RTT,
// Handshake and Retry of both versions, and short headers.
var quicFirst = [...]byte{0xc0, 0xc3, 0xd0, 0xe0, 0xf0, 0x40, 0x5f, 0x43, 0x00, 0x80}

// quicVersions are version 1, version 2, that of a version negotiation, and one that nobody knows.
var quicVersions = [...][4]byte{{0, 0, 0, 1}, {0, 0, 0, 1}, {0x6b, 0x33, 0x43, 0xcf}, {},
	{0x1a, 0x2a, 0x3a, 0x4a}}

// appendQUIC appends a QUIC header with a connection ID, most often one of the world's.
func (g *Generator) appendQUIC() {
	id := pick(g, g.world.ConnectionIDs)
	first := quicFirst[g.below(len(quicFirst))]
	g.frame = append(g.frame, first)
	if first&0x80 != 0 {
		version := quicVersions[g.below(len(quicVersions))]
		g.frame = append(g.frame, version[:]...)
		length := len(id)
		if g.oneIn(8) {
			length = g.below(22)
		}
		g.frame = append(g.frame, byte(length))
	}
	at := len(g.frame)
	g.frame = append(g.frame, id...)
	switch {
	case g.oneIn(8): // of another server or configuration
		g.frame[at+g.below(len(id))] ^= byte(1 + g.below(255))
	case g.oneIn(8): // cut off
		g.frame = g.frame[:at+g.below(len(id))]
		return
	}
	g.appendNoise(g.payloadLength())
}
