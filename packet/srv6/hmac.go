package srv6

import (
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	hmacFixed   = 6  // D and reserved bits, key id
	digestUnit  = 8  // a digest is a multiple of it
	maxDigest   = 32 // octets
	reducedFlag = 1 << 15
)

// HMAC is the content of an HMAC TLV (RFC 8754 section 2.1.2). HMACKey computes and VerifyHMAC
// verifies the digest.
//
// The RFC defines Length as that of "the variable-length data". Linux counts everything behind the
// length octet, as all other TLVs do; tcpdump reads it as the digest's length. The first is 6 more
// than a multiple of 8 and the second a multiple of 8, so both are told apart and read;
// CountsDigest says which it was.
type HMAC struct {
	// D: destination address verification is off, because the segment list is reduced
	ReducedPath bool
	// the 15 bits behind D; 0 when sent, kept because they are part of the text that is signed
	Reserved     uint16
	KeyID        uint32
	Digest       []byte // 8, 16, 24 or 32 octets
	CountsDigest bool
}

// countsDigest reports whether the length octet of an HMAC TLV can only be the length of its
// digest.
func countsDigest(length int) bool {
	return length >= digestUnit && length <= maxDigest && length%digestUnit == 0
}

// ParseHMAC reads an HMAC TLV.
func ParseHMAC(t TLV) (HMAC, error) {
	if t.Type != TLVHMAC {
		return HMAC{}, fmt.Errorf("TLV of type %d is not an HMAC TLV, type %d", t.Type, TLVHMAC)
	}
	if !countsDigest(len(t.Value) - hmacFixed) {
		return HMAC{}, fmt.Errorf("HMAC TLV of %d octets: a digest has 8, 16, 24 or 32, behind "+
			"%d others", len(t.Value), hmacFixed)
	}
	flags := binary.BigEndian.Uint16(t.Value)
	return HMAC{
		ReducedPath:  flags&reducedFlag != 0,
		Reserved:     flags &^ reducedFlag,
		KeyID:        binary.BigEndian.Uint32(t.Value[2:]),
		Digest:       slices.Clone(t.Value[hmacFixed:]),
		CountsDigest: t.DigestLength,
	}, nil
}

// TLV returns the TLV that carries h.
func (h HMAC) TLV() (TLV, error) {
	if !countsDigest(len(h.Digest)) {
		return TLV{}, fmt.Errorf("HMAC TLV: digest of %d octets; cut or pad it with zeros to 8, "+
			"16, 24 or 32", len(h.Digest))
	}
	if h.Reserved&reducedFlag != 0 {
		return TLV{}, fmt.Errorf("HMAC TLV: reserved bits %#x need more than 15 bits", h.Reserved)
	}
	flags := h.Reserved
	if h.ReducedPath {
		flags |= reducedFlag
	}
	value := binary.BigEndian.AppendUint16(make([]byte, 0, hmacFixed+len(h.Digest)), flags)
	value = binary.BigEndian.AppendUint32(value, h.KeyID)
	return TLV{Type: TLVHMAC, Value: append(value, h.Digest...), DigestLength: h.CountsDigest}, nil
}
