package model

import "encoding/binary"

const (
	tcpHeaderLength   = 20
	tcpChecksumOffset = 16
	udpHeaderLength   = 8

	tcpFlagSYN = 0x02
	tcpFlagRST = 0x04
	tcpFlagACK = 0x10
)

// transport is what a TCP or UDP header says; zero for other protocols.
type transport struct {
	srcPort, dstPort uint16
	seq, ack         uint32 // TCP
	flags            uint8  // TCP
	headerLength     int    // TCP, options included
}

// parseTransport parses the TCP, UDP or ICMP header at p.upper; a header that cannot be
// right is a problem of the packet.
func (p *packet) parseTransport() {
	if p.fragment.kind != fragmentNone {
		p.parseFragment()
		return
	}
	if p.isICMP() {
		p.parseICMP()
		return
	}
	b := p.data[p.upper:p.end]
	ok := true
	switch p.protocol {
	case protocolTCP:
		ok = p.transport.parseTCP(b)
	case protocolUDP:
		ok = p.transport.parseUDP(b)
	}
	if !ok {
		p.note(ReasonBadTransport)
	}
}

// parseTCP parses the header at the start of b (RFC 9293 section 3.1).
func (t *transport) parseTCP(b []byte) bool {
	if len(b) < tcpHeaderLength {
		return false
	}
	headerLength := int(b[12]>>4) * 4
	if headerLength < tcpHeaderLength || headerLength > len(b) {
		return false
	}
	*t = transport{
		srcPort:      binary.BigEndian.Uint16(b),
		dstPort:      binary.BigEndian.Uint16(b[2:]),
		seq:          binary.BigEndian.Uint32(b[4:]),
		ack:          binary.BigEndian.Uint32(b[8:]),
		flags:        b[13],
		headerLength: headerLength,
	}
	return true
}

// parseUDP parses the header at the start of b (RFC 768).
func (t *transport) parseUDP(b []byte) bool {
	if len(b) < udpHeaderLength {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < udpHeaderLength || length > len(b) {
		return false
	}
	*t = transport{
		srcPort: binary.BigEndian.Uint16(b),
		dstPort: binary.BigEndian.Uint16(b[2:]),
	}
	return true
}

// has reports whether all the flags are set.
func (t *transport) has(flags uint8) bool { return t.flags&flags == flags }

// opens reports whether the packet asks for a new connection: SYN without ACK.
func (t *transport) opens() bool { return t.flags&(tcpFlagSYN|tcpFlagACK) == tcpFlagSYN }
