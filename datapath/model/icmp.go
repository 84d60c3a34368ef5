package model

import (
	"encoding/binary"
	"net/netip"
)

const (
	icmpHeaderLength   = 8
	icmpChecksumOffset = 2
	icmpMTUOffset      = 4
	// bytes of a transport header that an ICMP error quotes at least (RFC 792)
	quotedTransport    = 8
	ipv4FragmentOffset = 0x1fff

	icmpUnreachable          = 3
	icmpFragNeeded           = 4 // code
	icmpEchoRequest          = 8
	icmpTimeExceeded         = 11
	icmpParameterProblem     = 12
	icmpv6Unreachable        = 1
	icmpv6TooBig             = 2
	icmpv6TimeExceeded       = 3
	icmpv6AddressUnreachable = 3 // code: also a problem of a link
	icmpv6LastError          = 4 // the four errors are 1 to 4
	icmpv6EchoRequest        = 128
	icmpv6EchoReply          = 129
	icmpv6RouterSolicitation = 133 // the first type of neighbour discovery (RFC 4861)
	icmpv6Redirect           = 137 // and the last
)

// icmpKind is what an ICMP packet is, of the IP header's own family.
type icmpKind uint8

const (
	icmpNone   icmpKind = iota // not ICMP
	icmpQuotes                 // an error: the flow is the one that it quotes, seen from the client
	icmpEcho                   // an echo request
	icmpOther
)

// isICMP reports whether the upper layer is ICMP of the packet's own family.
func (p *packet) isICMP() bool {
	if p.ipv6 {
		return p.protocol == protocolICMPv6
	}
	return p.protocol == protocolICMP
}

// parseICMP parses the ICMP header at p.upper. An error makes the packet one of the flow that it
// quotes, the other way round: that hashes to the same chain, and the same host has its socket.
func (p *packet) parseICMP() {
	b := p.data[p.upper:p.end]
	request := uint8(icmpEchoRequest)
	if p.ipv6 {
		request = icmpv6EchoRequest
	}
	switch {
	case len(b) < icmpHeaderLength:
		p.note(ReasonBadTransport)
	case isICMPError(b[0], p.ipv6):
		if !p.parseQuote() {
			p.note(ReasonICMPQuote)
		}
	case b[0] == request && b[1] == 0:
		p.icmp = icmpEcho
	default:
		p.icmp = icmpOther
	}
}

func isICMPError(kind uint8, ipv6 bool) bool {
	if ipv6 {
		return kind > 0 && kind <= icmpv6LastError
	}
	return kind == icmpUnreachable || kind == icmpTimeExceeded || kind == icmpParameterProblem
}

// parseQuote takes the flow from the packet quoted in an ICMP error. It is false unless that is a
// packet from the address that the error came to.
func (p *packet) parseQuote() bool {
	quoted := packet{data: p.data, start: p.upper + icmpHeaderLength, end: p.end, ipv6: p.ipv6}
	if !quoted.parseQuotedHeader() || quoted.src != p.dst {
		return false
	}
	b := quoted.data[quoted.upper:quoted.end]
	if quoted.protocol != protocolTCP && quoted.protocol != protocolUDP ||
		len(b) < quotedTransport {
		return false
	}
	p.src, p.protocol, p.icmp = quoted.dst, quoted.protocol, icmpQuotes
	p.transport = transport{
		srcPort: binary.BigEndian.Uint16(b[2:]), dstPort: binary.BigEndian.Uint16(b),
		seq: binary.BigEndian.Uint32(b[4:]),
	}
	return true
}

// parseQuotedHeader parses an IP header which may be all there is of a packet.
func (p *packet) parseQuotedHeader() bool {
	b := p.data[p.start:p.end]
	if p.ipv6 {
		if len(b) < ipv6HeaderLength || b[0]>>4 != 6 {
			return false
		}
		p.src, p.dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		p.protocol, p.upper = b[6], p.start+ipv6HeaderLength
		p.end = min(p.end, p.upper+int(binary.BigEndian.Uint16(b[4:])))
		return p.walkExtensions(encapsulated) == ReasonNone && p.fragment.kind != fragmentLater
	}
	if len(b) < ipv4HeaderLength || b[0]>>4 != 4 {
		return false
	}
	header, total := int(b[0]&0x0f)*4, int(binary.BigEndian.Uint16(b[2:]))
	if header < ipv4HeaderLength || header > len(b) || total < header ||
		binary.BigEndian.Uint16(b[6:])&ipv4FragmentOffset != 0 {
		return false
	}
	p.src, p.dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	p.protocol, p.upper = b[9], p.start+header
	p.end = min(p.end, p.start+total)
	return true
}
