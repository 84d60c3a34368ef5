package packetgen

import "encoding/binary"

const (
	tcpHeaderLength = 20
	udpHeaderLength = 8
	maxTCPOptions   = 40
)

// payloadLength is mostly short, and now and then one that makes the packet too big.
func (g *Generator) payloadLength() int {
	if g.oneIn(16) {
		return 1180 + g.below(320)
	}
	return g.below(48)
}

// appendTransport appends the upper layer of a packet.
func (g *Generator) appendTransport(s segment) {
	g.transport, g.protocol = len(g.frame), s.Protocol
	switch s.Protocol {
	case protocolTCP:
		g.appendTCP(s)
		g.appendNoise(g.payloadLength())
	case protocolUDP:
		g.appendUDP(s)
	case protocolICMP, protocolICMPv6:
		g.appendICMP(s, s.Dst.Is6())
	default:
		g.appendNoise(g.payloadLength())
	}
}

func (g *Generator) appendTCP(s segment) {
	at := len(g.frame)
	b := g.appendZeros(tcpHeaderLength)
	binary.BigEndian.PutUint16(b, s.SrcPort)
	binary.BigEndian.PutUint16(b[2:], s.DstPort)
	binary.BigEndian.PutUint32(b[4:], s.seq)
	binary.BigEndian.PutUint32(b[8:], s.ack)
	b[13] = s.flags
	binary.BigEndian.PutUint16(b[14:], 0xffff)
	if s.flags&flagSYN != 0 || g.oneIn(3) {
		g.appendTCPOptions()
	}
	words := (len(g.frame) - at) / 4
	g.frame[at+12] = uint8(words)<<4 | uint8(g.below(2)) // with a reserved bit
}

// segmentSizes are values of the MSS option that are seen; random ones come on top.
var segmentSizes = [...]uint16{536, 1220, 1360, 1440, 1460, 8960, 65535}

// appendTCPOptions appends options up to a multiple of 4 bytes, at random alignment: some
// have no MSS, two, one behind the end of the options, or one that is cut off.
func (g *Generator) appendTCPOptions() {
	at := len(g.frame)
	for range g.below(8) {
		g.appendTCPOption(maxTCPOptions - (len(g.frame) - at))
	}
	for (len(g.frame)-at)%4 != 0 {
		g.frame = append(g.frame, uint8(g.below(2))) // end of the options, or no operation
	}
}

// appendTCPOption appends an option if it fits into room bytes.
func (g *Generator) appendTCPOption(room int) {
	var option [10]byte
	size := 1
	switch g.below(12) {
	case 0, 1, 2: // maximum segment size
		size = copy(option[:], []byte{2, 4})
		mss := segmentSizes[g.below(len(segmentSizes))]
		if g.oneIn(4) {
			mss = uint16(g.random.Uint32())
		}
		binary.BigEndian.PutUint16(option[size:], mss)
		size += 2
	case 3, 4, 5: // no operation
		option[0] = 1
	case 6: // SACK permitted
		size = copy(option[:], []byte{4, 2})
	case 7: // timestamps
		size = copy(option[:], []byte{8, 10, 1, 2, 3, 4, 5, 6, 7, 8})
	case 8: // window scale
		size = copy(option[:], []byte{3, 3, 7})
	case 9: // any kind, any length
		binary.BigEndian.PutUint16(option[:], uint16(g.random.Uint32()))
		size = 2
	case 10: // an MSS of the wrong length
		size = copy(option[:], []byte{2, uint8(g.below(7)), 0xff, 0xff})
	default:
		size = g.below(2) // end of the options, or nothing at all
	}
	if size <= room {
		g.frame = append(g.frame, option[:size]...)
	}
}

// appendUDP appends a UDP packet. The UDP length may be less than what the IP header
// leaves.
func (g *Generator) appendUDP(s segment) {
	at := len(g.frame)
	b := g.appendZeros(udpHeaderLength)
	binary.BigEndian.PutUint16(b, s.SrcPort)
	binary.BigEndian.PutUint16(b[2:], s.DstPort)
	if len(g.world.ConnectionIDs) > 0 && !g.oneIn(4) {
		g.appendQUIC()
	} else {
		g.appendNoise(g.payloadLength())
	}
	binary.BigEndian.PutUint16(b[4:], uint16(len(g.frame)-at))
	if g.oneIn(16) {
		g.appendNoise(g.below(8))
	}
}

// sumTransport makes the checksum of TCP and ICMP right in most packets. Nothing looks at that of
// UDP.
func (g *Generator) sumTransport(header ipHeader) {
	at := 2
	switch g.protocol {
	case protocolTCP:
		at = 16
	case protocolICMP, protocolICMPv6:
	default:
		return
	}
	addresses := g.frame[header.at+12 : header.at+20]
	if header.ipv6 {
		addresses = g.frame[header.at+8 : header.at+40]
	}
	b := g.frame[g.transport:]
	pseudo := sum(addresses, uint32(g.protocol)+uint32(len(b)))
	if g.protocol == protocolICMP {
		pseudo = 0
	}
	binary.BigEndian.PutUint16(b[at:], g.checksum(sum(b, pseudo)))
}
