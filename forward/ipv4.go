package forward

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
		p.fragment = fragmentOf(field<<units, uint32(binary.BigEndian.Uint16(b[4:])), total-headerLength)
	}
	return ReasonNone
}
