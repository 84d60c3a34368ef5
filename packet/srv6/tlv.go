package srv6

import (
	"fmt"
	"slices"
)

// TLV types of an SRH (IANA, "Segment Routing Header TLVs").
const (
	TLVPad1 uint8 = 0 // one octet, without a length
	TLVPadN uint8 = 4 // 2 to 7 octets
	TLVHMAC uint8 = 5 // see HMAC
)

const (
	maxPadValue = 5   // RFC 8754 section 2.1.1.2
	maxTLVValue = 255 // the length is one octet
	tlvHeader   = 2   // type and length
)

// TLV is a type, length, value object of an SRH (RFC 8754 section 2.1). Any type is kept as it is,
// known or not; padding too, so that a header can be written back as it was.
type TLV struct {
	Type  uint8
	Value []byte // none for Pad1
	// DigestLength is for HMAC TLVs only: the length octet counts the digest alone. See HMAC.
	DigestLength bool
}

// AlignTLVs appends the one Pad1 or PadN that makes the TLVs a multiple of 8 octets, as an SRH
// needs. It appends nothing if they are.
func AlignTLVs(tlvs []TLV) []TLV {
	switch missing := (unit - tlvsSize(tlvs)%unit) % unit; missing {
	case 0:
		return tlvs
	case 1:
		return append(tlvs, TLV{Type: TLVPad1})
	default:
		return append(tlvs, TLV{Type: TLVPadN, Value: make([]byte, missing-tlvHeader)})
	}
}

// size returns how many octets the TLV takes on the wire.
func (t TLV) size() int {
	if t.Type == TLVPad1 {
		return 1
	}
	return tlvHeader + len(t.Value)
}

func tlvsSize(tlvs []TLV) int {
	size := 0
	for _, t := range tlvs {
		size += t.size()
	}
	return size
}

// check refuses a TLV that has no valid wire format.
func (t TLV) check() error {
	switch {
	case t.Type == TLVPad1 && len(t.Value) > 0:
		return fmt.Errorf("Pad1 with a value of %d octets; it has none", len(t.Value))
	case t.Type == TLVPadN && len(t.Value) > maxPadValue:
		return fmt.Errorf("PadN of %d octets of padding; it has 0 to %d", len(t.Value), maxPadValue)
	case len(t.Value) > maxTLVValue:
		return fmt.Errorf("value of %d octets, above the %d that its length field can say",
			len(t.Value), maxTLVValue)
	case t.DigestLength && (t.Type != TLVHMAC || !countsDigest(len(t.Value)-hmacFixed)):
		return fmt.Errorf("type %d with a value of %d octets: only an HMAC TLV can count its "+
			"digest alone", t.Type, len(t.Value))
	case !t.DigestLength && t.Type == TLVHMAC && countsDigest(len(t.Value)):
		return fmt.Errorf("HMAC TLV with a value of %d octets would be read as if its length "+
			"counted the digest alone", len(t.Value))
	}
	return nil
}

func (t TLV) append(b []byte) []byte {
	if t.Type == TLVPad1 {
		return append(b, TLVPad1)
	}
	length := len(t.Value)
	if t.DigestLength {
		length -= hmacFixed
	}
	return append(append(b, t.Type, uint8(length)), t.Value...)
}

// parseTLVs reads all of b. The order of types is not judged, nor is the content of padding (RFC
// 8754: ignored on receipt).
func parseTLVs(b []byte) ([]TLV, error) {
	var tlvs []TLV
	for len(b) > 0 {
		tlv, err := parseTLV(b)
		if err != nil {
			return nil, fmt.Errorf("TLV %d: %w", len(tlvs)+1, err)
		}
		tlvs = append(tlvs, tlv)
		b = b[tlv.size():]
	}
	return tlvs, nil
}

// parseTLV reads the TLV at the start of b.
func parseTLV(b []byte) (TLV, error) {
	if b[0] == TLVPad1 {
		return TLV{Type: TLVPad1}, nil
	}
	if len(b) < tlvHeader {
		return TLV{}, fmt.Errorf("type %d has no room for its length", b[0])
	}
	tlv := TLV{Type: b[0]}
	length := int(b[1])
	if tlv.Type == TLVPadN && length > maxPadValue {
		return TLV{}, fmt.Errorf("PadN of %d octets of padding; it has 0 to %d", length,
			maxPadValue)
	}
	if tlv.Type == TLVHMAC && countsDigest(length) {
		tlv.DigestLength = true
		length += hmacFixed
	}
	if tlvHeader+length > len(b) {
		return TLV{}, fmt.Errorf("type %d with %d octets runs past the end of the header, %d "+
			"octets on", tlv.Type, length, len(b)-tlvHeader)
	}
	tlv.Value = slices.Clone(b[tlvHeader : tlvHeader+length])
	return tlv, nil
}
