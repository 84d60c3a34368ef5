package model

import (
	"net/netip"

	"sextant/packet/srv6"
)

// border is that of the SR domain: nothing from outside reaches a SID, has a segment routing
// header, or pretends to come from inside (RFC 8754 section 5.1).
type border struct {
	block          srv6.Block
	locators       []netip.Prefix
	infrastructure []netip.Prefix
}

func (b border) isSID(addr netip.Addr) bool {
	return b.block.Contains(addr) || containsAddr(b.locators, addr)
}

// isOutside reports whether an IPv6 source counts as outside, by what the interface faces.
func (b border) isOutside(side Side, src netip.Addr) bool {
	return side == External || side == Mixed && !containsAddr(b.infrastructure, src)
}

// judge refuses addresses that only the SR domain may use, also in what an ICMPv6 error quotes. The
// SRH is refused where the extension headers are walked over.
func (b border) judge(p *packet) Reason {
	switch {
	case b.isSID(p.dst):
		return ReasonSRv6FromOutside
	case b.isSID(p.src), containsAddr(b.infrastructure, p.src):
		return ReasonSpoofedSource
	}
	return b.judgeError(*p)
}

// judgeError refuses errors about packets to SIDs, which do not leave the domain, and errors in
// fragments. What else is wrong with the headers is told by who parses them.
func (b border) judgeError(p packet) Reason {
	const (
		quotedDestination = icmpHeaderLength + 24
		informational     = 128 // types from here on are no errors
	)
	if p.walkExtensions(outsideDomain) != ReasonNone || p.protocol != protocolICMPv6 {
		return ReasonNone
	}
	message := p.data[p.upper:p.end]
	if p.fragment.kind == fragmentLater || len(message) == 0 || message[0] >= informational {
		return ReasonNone
	}
	if p.fragment.kind == fragmentFirst {
		return ReasonFragment
	}
	if len(message) < icmpHeaderLength+ipv6HeaderLength {
		return ReasonNone
	}
	if b.isSID(netip.AddrFrom16([16]byte(message[quotedDestination:]))) {
		return ReasonSRv6FromOutside
	}
	return ReasonNone
}

// judgeTransit judges a packet that is for no SID of this node, on an interface inside the domain:
// the kernel would forward it to another node's SID, or follow its segment routing header, if this
// node has the address.
func (b border) judgeTransit(p *packet) Reason {
	switch {
	case containsAddr(b.infrastructure, p.src):
		return ReasonNone
	case b.isSID(p.dst):
		return ReasonOutsideDomain
	case p.walkExtensions(outsideDomain) == ReasonSRv6FromOutside:
		return ReasonSRv6FromOutside
	}
	return ReasonNone
}

// containsAddr reports whether one of the prefixes contains the address.
func containsAddr(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// transit is what becomes of a packet for no SID of this node.
func (r Result) transit(b border, p *packet) Result {
	if reason := b.judgeTransit(p); reason != ReasonNone {
		return r.drop(reason)
	}
	return r.pass(p.data)
}
