package model

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
)

// IP protocol numbers (IANA "Protocol Numbers").
const (
	protocolHopByHop    = 0
	protocolICMP        = 1
	protocolIPv4        = 4
	protocolTCP         = 6
	protocolUDP         = 17
	protocolIPv6        = 41
	protocolRouting     = 43
	protocolFragment    = 44
	protocolICMPv6      = 58
	protocolDestination = 60
)

// packet is an IP packet within data. Offsets count from the start of data, so
// that those of an outer and an inner packet can be compared.
type packet struct {
	data  []byte
	start int // of the IP header
	end   int // where the IP header says that the packet ends

	ipv6         bool
	src, dst     netip.Addr
	trafficClass uint8

	protocol uint8 // upper layer, or the header at which the walk ended
	upper    int   // offset of the upper layer
	// offset of the segment routing header, 0 without one; outer packets of a host only
	srh int

	// problem is the first error met, of those that are judged after the parse:
	// ReasonRoutingHeader, ReasonFragment, ReasonBadTransport, ReasonICMPQuote.
	problem Reason
	icmp    icmpKind

	fragment fragment

	transport transport
}

// flowLabel returns the label of an IPv6 packet.
func (p *packet) flowLabel() uint32 { return binary.BigEndian.Uint32(p.data[p.start:]) & 0xfffff }

// hopLimit returns that of an IPv6 packet.
func (p *packet) hopLimit() uint8 { return p.data[p.start+ipv6HopLimitOffset] }

// note keeps the first problem met.
func (p *packet) note(problem Reason) {
	if p.problem == ReasonNone {
		p.problem = problem
	}
}

// tuple returns the packet's flow; its ports are 0 if the transport has none.
func (p *packet) tuple() flow.Tuple {
	return flow.Tuple{
		Src: p.src, Dst: p.dst,
		SrcPort: p.transport.srcPort, DstPort: p.transport.dstPort,
		Protocol: p.protocol,
	}
}

// serviceKey returns the key of the service that the packet is for.
func (p *packet) serviceKey() ServiceKey {
	return ServiceKey{Addr: p.dst, Port: p.transport.dstPort, Protocol: p.protocol}
}

// parseHeader parses the fixed IP header (with the options of IPv4) at p.start. limit
// is where the bytes end that may belong to the packet.
func (p *packet) parseHeader(limit int) Reason {
	if p.ipv6 {
		return p.parseIPv6Header(limit)
	}
	return p.parseIPv4Header(limit)
}

// parseUpper walks over the extension headers of IPv6 and parses the transport
// header. The Reason is that of an error which ends the packet at once; others
// are left in p.problem.
func (p *packet) parseUpper(at place) Reason {
	if p.ipv6 {
		if reason := p.walkExtensions(at); reason != ReasonNone {
			return reason
		}
	}
	if p.problem == ReasonNone {
		p.parseTransport()
	}
	if at.strict() {
		return p.problem
	}
	return ReasonNone
}
