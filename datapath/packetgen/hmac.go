package packetgen

import (
	"net/netip"
	"slices"

	"sextant/packet/srv6"
)

// Offsets of an IPv6 header's addresses.
const (
	sourceOffset      = 8
	destinationOffset = 24
)

// appendHMAC appends an HMAC TLV to the SRH that ends the frame and begins at an offset, mostly one
// that verifies. The SRH has no TLVs yet, and its length field says so.
func (g *Generator) appendHMAC(at int) {
	if len(g.headers) == 0 {
		return
	}
	b, outer := g.frame[at:], g.frame[g.headers[0].at:]
	source := netip.AddrFrom16([16]byte(outer[sourceOffset:]))
	if left := int(b[3]); left <= int(b[4]) && !g.oneIn(8) {
		copy(b[8+16*left:], outer[destinationOffset:destinationOffset+16])
	}
	if g.oneIn(10) {
		b[5] = uint8(g.random.Uint32()) // flags
	}
	if g.oneIn(10) {
		b[4] = b[1]/2 - 1 - uint8(g.below(2)) // segments are taken for TLVs
	}
	header, _, err := srv6.ParseSRH(b)
	if err != nil {
		return
	}
	header.TLVs = g.otherTLVs()
	key := pick(g, g.world.HMACKeys)
	signed, err := key.Sign(source, header)
	if err != nil {
		return
	}
	if g.oneIn(12) {
		signed.TLVs = append(signed.TLVs, g.otherTLVs()...)
	}
	if octets, err := signed.AppendBinary(nil); err == nil {
		g.frame = append(g.frame[:at], octets...)
		g.spoilHMAC(at)
	}
}

// otherTLVs are TLVs that have nothing to do with HMACs: mostly none.
func (g *Generator) otherTLVs() []srv6.TLV {
	switch g.below(12) {
	case 0:
		return []srv6.TLV{{Type: 124, Value: make([]byte, 14)}}
	case 1:
		return []srv6.TLV{{Type: srv6.TLVPadN, Value: make([]byte, 4)}, {}, {}}
	case 2:
		return slices.Repeat([]srv6.TLV{{}}, 8) // with the HMAC, more than are looked at
	case 3:
		// sometimes more than is looked at
		return []srv6.TLV{{Type: 124, Value: make([]byte, 62+16*g.below(3))}}
	}
	return nil
}

// spoilHMAC makes something wrong with the SRH at an offset, sometimes.
func (g *Generator) spoilHMAC(at int) {
	b := g.frame[at:]
	tlvs := b[8+16*(int(b[4])+1):]
	if len(tlvs) == 0 || !g.oneIn(6) {
		return
	}
	switch g.below(4) {
	case 0:
		tlvs[len(tlvs)-1-g.below(32)] ^= 1 << g.below(8) // the digest, as a rule
	case 1:
		tlvs[g.below(min(len(tlvs), 8))] = uint8(g.random.Uint32()) // type, length, D, key
	case 2:
		b[8+g.below(16)] ^= 1 // a segment
	default:
		g.frame[g.headers[0].at+sourceOffset+15] ^= 1
	}
}
