package model

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipv6HeaderLength    = 40
	flowLabelEnd        = 3 // offset of its low 8 bits
	ipv6HopLimitOffset  = 7
	ipv6AddressOffset   = 24 // of the destination
	extensionUnit       = 8  // extension headers are multiples of 8 bytes
	maxExtensions       = 8
	routingTypeSRH      = 4
	srhFixedLength      = 8
	srhSegmentsLeft     = 3 // offset within the header, of the other types too
	srhLastEntry        = 4 // offset within the header
	segmentLength       = 16
	fragmentMoreOffset  = 0xfff9 // offset and M, without the two reserved bits between
	fragmentHeaderBytes = 8
)

// place is where a packet is parsed; it says what its extension headers mean.
type place uint8

const (
	insideDomain  place = iota // on the edge, from a source that may use SRv6
	outsideDomain              // on the edge, from any other source
	localSID                   // on a host, addressed to a SID of it
	encapsulated               // on a host, within the outer packet
	// on the edge, an outer packet of its own that came back in an ICMP error
	quotedOuter
)

// strict reports whether a problem ends a packet at once, as there is no other
// destination whose business it could be.
func (p place) strict() bool { return p == localSID || p == encapsulated }

// parseIPv6Header parses the fixed header (RFC 8200 section 3).
func (p *packet) parseIPv6Header(limit int) Reason {
	b := p.data[p.start:limit]
	if len(b) < ipv6HeaderLength {
		return ReasonTruncated
	}
	if b[0]>>4 != 6 {
		return ReasonBadIPHeader
	}
	total := ipv6HeaderLength + int(binary.BigEndian.Uint16(b[4:]))
	if total > len(b) {
		return ReasonBadLength
	}
	p.end = p.start + total
	p.upper = p.start + ipv6HeaderLength
	p.trafficClass = b[0]<<4 | b[1]>>4
	p.protocol = b[6]
	p.src = netip.AddrFrom16([16]byte(b[8:]))
	p.dst = netip.AddrFrom16([16]byte(b[24:]))
	return ReasonNone
}

// isExtension reports whether protocol is a header which is walked over.
func isExtension(protocol uint8) bool {
	switch protocol {
	case protocolHopByHop, protocolDestination, protocolRouting, protocolFragment:
		return true
	}
	return false
}

// walkExtensions moves p.upper and p.protocol behind the extension headers
// (RFC 8200 section 4), or to the fragment header that ended the walk.
func (p *packet) walkExtensions(at place) Reason {
	for count := 0; isExtension(p.protocol); count++ {
		if count == maxExtensions {
			return ReasonExtensionChain
		}
		header, reason := p.extension()
		if reason != ReasonNone {
			return p.cutOff(at, reason)
		}
		ends, reason := p.visitExtension(header, at)
		if reason != ReasonNone {
			return reason
		}
		if ends {
			return ReasonNone
		}
		p.protocol = header[0]
		p.upper += len(header)
	}
	return ReasonNone
}

// cutOff judges a packet that ends within its extension headers. A first fragment should have them
// all (RFC 7112).
func (p *packet) cutOff(at place, reason Reason) Reason {
	if p.fragment.kind != fragmentFirst {
		return reason
	}
	p.note(ReasonTinyFragment)
	if at.strict() {
		return p.problem
	}
	return ReasonNone
}

// extension returns the extension header at p.upper.
func (p *packet) extension() ([]byte, Reason) {
	b := p.data[p.upper:p.end]
	if len(b) < extensionUnit {
		return nil, ReasonTruncated
	}
	size := fragmentHeaderBytes
	if p.protocol != protocolFragment {
		size = extensionUnit * (1 + int(b[1]))
	}
	if len(b) < size {
		return nil, ReasonTruncated
	}
	return b[:size], ReasonNone
}

// visitExtension judges one header. ends is true for a fragment: what follows
// its header need not be the start of an upper layer.
func (p *packet) visitExtension(header []byte, at place) (ends bool, reason Reason) {
	switch p.protocol {
	case protocolRouting:
		reason = p.visitRouting(header, at)
	case protocolFragment:
		// An atomic fragment is a whole packet (RFC 6946).
		if binary.BigEndian.Uint16(header[2:])&fragmentMoreOffset != 0 {
			ends = p.visitFragment(header, at)
		}
	}
	if reason == ReasonNone && at.strict() {
		reason = p.problem
	}
	return ends, reason
}

// visitFragment reads the header of a packet that is not whole. It reports whether the walk ends:
// what follows the header need not be the start of an upper layer.
func (p *packet) visitFragment(header []byte, at place) bool {
	if at == localSID || at == quotedOuter || p.fragment.kind != fragmentNone {
		p.note(ReasonFragment)
		return true
	}
	id := binary.BigEndian.Uint32(header[4:])
	p.fragment = fragmentOf(binary.BigEndian.Uint16(header[2:]), id, p.end-p.upper-len(header))
	if p.fragment.kind == fragmentLater {
		p.protocol = header[0] // the first of the first fragment's headers
	}
	return p.fragment.kind == fragmentLater
}

// visitRouting judges a routing header: the SRH by the place, and any other one
// by whether it still asks this node to do something.
func (p *packet) visitRouting(header []byte, at place) Reason {
	if header[2] == routingTypeSRH {
		switch at {
		case outsideDomain:
			return ReasonSRv6FromOutside
		case localSID, quotedOuter:
			return p.visitSRH(header)
		}
	}
	if header[srhSegmentsLeft] > 0 {
		p.note(ReasonRoutingHeader)
	}
	return ReasonNone
}

// visitSRH checks the segment routing header that is for this node (RFC 8754
// section 4.3.1.1) and remembers where it is.
func (p *packet) visitSRH(header []byte) Reason {
	segments := int(header[srhLastEntry]) + 1
	switch {
	case p.srh != 0,
		2*segments > int(header[1]),
		int(header[srhSegmentsLeft]) > segments:
		return ReasonBadSRH
	}
	p.srh = p.upper
	return ReasonNone
}

// segmentsLeft returns that of the SRH, 0 without one.
func (p *packet) segmentsLeft() int {
	if p.srh == 0 {
		return 0
	}
	return int(p.data[p.srh+srhSegmentsLeft])
}
