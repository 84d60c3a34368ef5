package model

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipv4HeaderLength   = 20
	ipv4MinIHL         = 5
	ipv4TTLOffset      = 8
	ipv4ChecksumOffset = 10
	ipv4MoreAndOffset  = 0x3fff // MF and the offset, in the 16 bits at offset 6
)

// IPv4 options (RFC 791 section 3.1).
const (
	ipv4OptionEnd         = 0
	ipv4OptionNop         = 1
	ipv4LooseSourceRoute  = 131
	ipv4StrictSourceRoute = 137
)

// judgeIPv4 judges the header of an IPv4 packet that may be forwarded: its checksum (RFC 1812
// section 5.2.2), and as a
// problem its options (RFC 7126).
func (p *packet) judgeIPv4() Reason {
	if p.ipv6 {
		return ReasonNone
	}
	header := p.data[p.start:p.upper]
	if foldChecksum(checksumOf(header, 0)) != 0 {
		return ReasonBadChecksum
	}
	if !areOptions(header[ipv4HeaderLength:]) {
		p.note(ReasonIPOptions)
	}
	return ReasonNone
}

// areOptions reports whether b is IPv4 options, none of which is a source route.
func areOptions(b []byte) bool {
	for len(b) > 0 && b[0] != ipv4OptionEnd {
		length := 1
		if b[0] != ipv4OptionNop {
			if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
				return false
			}
			length = int(b[1])
		}
		if b[0] == ipv4LooseSourceRoute || b[0] == ipv4StrictSourceRoute {
			return false
		}
		b = b[length:]
	}
	return true
}

// parseIPv4Header parses the header and checks that there are options for
// its length (RFC 791 section 3.1).
func (p *packet) parseIPv4Header(limit int) Reason {
	b := p.data[p.start:limit]
	if len(b) < ipv4HeaderLength {
		return ReasonTruncated
	}
	ihl := b[0] & 0x0f
	if b[0]>>4 != 4 || ihl < ipv4MinIHL {
		return ReasonBadIPHeader
	}
	headerLength := int(ihl) * 4
	if len(b) < headerLength {
		return ReasonTruncated
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total < headerLength || total > len(b) {
		return ReasonBadLength
	}
	p.end = p.start + total
	p.upper = p.start + headerLength
	p.trafficClass = b[1]
	p.protocol = b[9]
	p.src = netip.AddrFrom4([4]byte(b[12:]))
	p.dst = netip.AddrFrom4([4]byte(b[16:]))
	if field := binary.BigEndian.Uint16(b[6:]); field&ipv4MoreAndOffset != 0 {
		const units = 3 // of 8 bytes, behind three flags
		p.fragment = fragmentOf(field<<units, uint32(binary.BigEndian.Uint16(b[4:])),
			total-headerLength)
	}
	return ReasonNone
}
