package model

import (
	"encoding/binary"
	"slices"
)

// The ECN codepoints (RFC 3168 section 5), and a mark for the packet that a CE on
// the outer header has to end.
const (
	notECT = 0
	ect1   = 1
	ect0   = 2
	ce     = 3

	ecnMask = 3
	ecnDrop = 4
)

// combinedECN is the ECN field that leaves a tunnel, by the inner field and the
// outer one (RFC 6040 figure 4).
var combinedECN = [4][4]uint8{
	notECT: {notECT: notECT, ect0: notECT, ect1: notECT, ce: ecnDrop},
	ect0:   {notECT: ect0, ect0: ect0, ect1: ect1, ce: ce},
	ect1:   {notECT: ect1, ect0: ect1, ect1: ect1, ce: ce},
	ce:     {notECT: ce, ect0: ce, ect1: ce, ce: ce},
}

// take gives the inner packet to the local stack. mssLimit is that of a SYN, 0 for
// none.
func (v *visit) take(r Result, inner *packet, mssLimit uint16) Result {
	if reason := inner.combineECN(v.outer.trafficClass); reason != ReasonNone {
		return r.drop(reason)
	}
	if inner.fragment.kind == fragmentFirst && inner.protocol == protocolTCP {
		v.host.fragments.remember(inner)
	}
	b := make([]byte, 0, v.frame.network+len(inner.data)-inner.start)
	b = v.frame.appendLinkHeader(b, inner.etherType())
	b = append(b, inner.data[inner.start:]...)
	if mssLimit != 0 && inner.transport.has(tcpFlagSYN) {
		header := b[v.frame.network+inner.upper-inner.start:]
		clampMSS(header[:inner.transport.headerLength], mssLimit)
	}
	r.Verdict, r.Frame, r.Taken = HandToKernel, b, true
	return r
}

// combineECN gives the packet the ECN field that leaves the tunnel of the outer traffic class.
func (p *packet) combineECN(outerClass uint8) Reason {
	ecn := combinedECN[p.ecn()][outerClass&ecnMask]
	switch ecn {
	case ecnDrop:
		return ReasonECN
	case p.ecn():
		return ReasonNone
	}
	p.data = slices.Clone(p.data)
	setECN(p.data[p.start:], p.ipv6, ecn)
	p.trafficClass = p.trafficClass&^ecnMask | ecn
	return ReasonNone
}

// etherType returns the packet's own.
func (p *packet) etherType() uint16 {
	if p.ipv6 {
		return etherTypeIPv6
	}
	return etherTypeIPv4
}

// ecn returns the ECN field, right from the bytes: End.DT* does not parse more.
func (p *packet) ecn() uint8 {
	second := p.data[p.start+1]
	if p.ipv6 {
		second >>= ipv6ECNShift
	}
	return second & ecnMask
}

// ipv6ECNShift is where the ECN field lies in the second byte of an IPv6 header.
const ipv6ECNShift = 4

// setECN writes the ECN field of an IP header, and the checksum that covers it.
func setECN(header []byte, ipv6 bool, ecn uint8) {
	if ipv6 {
		header[1] = header[1]&^(ecnMask<<ipv6ECNShift) | ecn<<ipv6ECNShift
		return
	}
	before := binary.BigEndian.Uint16(header)
	header[1] = header[1]&^ecnMask | ecn
	updateChecksum(header[ipv4ChecksumOffset:], before, binary.BigEndian.Uint16(header))
}

// checkVersion checks as much of an IP header as decapsulation needs.
func (p *packet) checkVersion(limit int) Reason {
	version, length := uint8(4), ipv4HeaderLength
	if p.ipv6 {
		version, length = 6, ipv6HeaderLength
	}
	if limit-p.start < length {
		return ReasonTruncated
	}
	if p.data[p.start]>>4 != version {
		return ReasonBadIPHeader
	}
	return ReasonNone
}
