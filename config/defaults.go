package config

import "sextant/packet/srv6"

// What a node file need not say.
const (
	DefaultSocket = "/run/sextant/agent.sock"
	DefaultWeight = 1
)

// overheads are the most bytes that an encapsulation puts before a packet: the IPv6 header (RFC
// 8200 section 3), and a segment routing header of 8 bytes and 16 per segment (RFC 8754 section 2)
// with the longest chain, or that without its first segment.
var overheads = map[Encapsulation]int{
	Carrier:    ipv6HeaderBytes,
	SRH:        ipv6HeaderBytes + 8 + 16*srv6.MaxCarrierCSIDs,
	SRHReduced: ipv6HeaderBytes + 8 + 16*(srv6.MaxCarrierCSIDs-1),
}

const (
	ipv6HeaderBytes = 40
	hmacBytes       = 40 // of the TLV
)

// overheadOf is what an edge's packets need. A node that is none can't know what its domain's edges
// choose: most are carriers.
func overheadOf(e *Edge) int {
	if e == nil {
		return ipv6HeaderBytes
	}
	overhead := max(overheads[e.Encapsulation], ipv6HeaderBytes)
	if e.Encapsulation == Carrier && e.twoCarriers() {
		overhead += 8 + 16 // an SRH with one carrier, behind that of the path
	}
	if e.HMAC == nil || e.Encapsulation == Carrier {
		return overhead
	}
	return overhead + hmacBytes
}

// dynamicDefaults are the parameters of the SRLB paper, section III-C. Only
// the number of workers, which is a property of the server, has no default.
var dynamicDefaults = Accept{Policy: Dynamic, Window: 50, LowPermille: 400, HighPermille: 600,
	Initial: 1}

func newAccept(p Policy) Accept {
	if p == Dynamic {
		return dynamicDefaults
	}
	return Accept{Policy: p}
}
