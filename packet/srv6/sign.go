package srv6

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
)

// HMACForm says what an HMAC is computed over.
type HMACForm uint8

// The forms. A digest in one of them does not verify in the other.
const (
	// HMACStandard is RFC 8754 section 2.1.2.1: source address, Last Entry, Flags, the 16 bits
	// behind the TLV's length, key id, segments.
	HMACStandard HMACForm = iota
	// HMACLinux is what Linux does (net/ipv6/seg6_hmac.c, seg6_hmac_compute): without the 16 bits
	// behind the TLV's length. Linux sees an HMAC TLV only if it is the last one, and Flags have
	// LinuxHMACFlag.
	HMACLinux
)

// LinuxHMACFlag in the Flags of an SRH says that there is an HMAC TLV (SR6_FLAG1_HMAC, from a draft
// of RFC 8754, which left it out).
const LinuxHMACFlag = 0x08

// Lengths of a secret in octets. RFC 2104 section 3 discourages less than the digest, Linux takes
// at most 64, and so do we: longer ones would be hashed to 32 octets first.
const (
	MinHMACSecret = 16
	MaxHMACSecret = 64
)

// HMACSecret is what an HMAC key is made of. It prints as a placeholder whatever the verb or the
// encoder, like flow.Secret.
type HMACSecret struct{ octets string }

const hiddenSecret = "(secret)"

// NewHMACSecret takes 1 to 64 octets.
func NewHMACSecret(octets []byte) (HMACSecret, error) {
	if len(octets) < 1 || len(octets) > MaxHMACSecret {
		return HMACSecret{}, fmt.Errorf("HMAC secret of %d octets; it has 1 to %d", len(octets),
			MaxHMACSecret)
	}
	return HMACSecret{string(octets)}, nil
}

// ParseHMACSecret reads hexadecimal digits, two for each of 16 to 64 octets. The error never
// repeats the text.
func ParseHMACSecret(text string) (HMACSecret, error) {
	octets, err := hex.DecodeString(text)
	if err != nil || len(octets) < MinHMACSecret || len(octets) > MaxHMACSecret {
		return HMACSecret{}, fmt.Errorf("the key is not %d to %d hexadecimal digits, two for "+
			"each byte; make it with: openssl rand -hex %d",
			2*MinHMACSecret, 2*MaxHMACSecret, maxDigest)
	}
	return NewHMACSecret(octets)
}

// Octets returns what the placeholder hides.
func (s HMACSecret) Octets() []byte { return []byte(s.octets) }

// Equal compares without telling by its time where secrets differ.
func (s HMACSecret) Equal(o HMACSecret) bool { return hmac.Equal(s.Octets(), o.Octets()) }

// String returns a placeholder, not the secret.
func (s HMACSecret) String() string { return hiddenSecret }

// Format writes the placeholder for every verb.
func (s HMACSecret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hiddenSecret)) }

// MarshalText returns the placeholder, so that JSON, YAML and slog do not print the octets either.
func (s HMACSecret) MarshalText() ([]byte, error) { return []byte(hiddenSecret), nil }

// HMACKey is a pre-shared key for HMAC-SHA-256.
type HMACKey struct {
	ID     uint32 // by which the TLV names it; 0 is none
	Form   HMACForm
	Secret HMACSecret
}

// Digest computes the HMAC of a header with the TLV t, of which the digest is not looked at. Source
// is the IPv6 header's. Neither Segments Left nor the destination is covered, so it stays right on
// the way; nor are other TLVs, the tag and what follows the SRH.
func (k HMACKey) Digest(source netip.Addr, h SRH, t HMAC) [sha256.Size]byte {
	mac := hmac.New(sha256.New, k.Secret.Octets())
	address := source.As16()
	mac.Write(address[:])
	mac.Write([]byte{h.LastEntry, h.Flags})
	if k.Form == HMACStandard {
		flags := t.Reserved
		if t.ReducedPath {
			flags |= reducedFlag
		}
		mac.Write(binary.BigEndian.AppendUint16(nil, flags))
	}
	mac.Write(binary.BigEndian.AppendUint32(nil, k.ID))
	for _, segment := range h.Segments {
		address = segment.As16()
		mac.Write(address[:])
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

// Sign returns the header with an HMAC TLV behind its other TLVs, which must be a multiple of 8
// octets. The D bit is set if the list is reduced, and LinuxHMACFlag in the Linux form.
func (k HMACKey) Sign(source netip.Addr, h SRH) (SRH, error) {
	if k.Form == HMACLinux {
		h.Flags |= LinuxHMACFlag
	}
	t := HMAC{KeyID: k.ID, ReducedPath: h.SegmentsLeft > h.LastEntry}
	digest := k.Digest(source, h, t)
	t.Digest = digest[:]
	tlv, err := t.TLV()
	if err != nil {
		return SRH{}, err
	}
	h.TLVs = append(h.TLVs[:len(h.TLVs):len(h.TLVs)], tlv)
	return h, h.check(h.Size())
}

// Why VerifyHMAC refuses a header.
var (
	ErrNoHMAC      = errors.New("no HMAC TLV")
	ErrHMACTLV     = errors.New("HMAC TLV without a digest of 32 octets, or a second one")
	ErrHMACKey     = errors.New("unknown HMAC key")
	ErrHMACWrong   = errors.New("HMAC does not verify")
	ErrNotSegments = errors.New("destination is not the segment that is active")
)

// VerifyHMAC checks the HMAC TLV of a header that came with the given IPv6 addresses (RFC 8754
// section 2.1.2.1). Key finds a key by its id; key id 0 is nobody's.
func VerifyHMAC(source, destination netip.Addr, h SRH, key func(id uint32) (HMACKey, bool)) error {
	t, err := onlyHMAC(h)
	if err != nil {
		return err
	}
	k, ok := key(t.KeyID)
	if !ok || t.KeyID == 0 {
		return fmt.Errorf("%w: %d", ErrHMACKey, t.KeyID)
	}
	if !activeIs(destination, h, t) {
		return ErrNotSegments
	}
	if digest := k.Digest(source, h, t); !hmac.Equal(digest[:], t.Digest) {
		return ErrHMACWrong
	}
	return nil
}

// onlyHMAC finds the HMAC TLV of HMAC-SHA-256.
func onlyHMAC(h SRH) (found HMAC, err error) {
	for _, tlv := range h.TLVs {
		if tlv.Type != TLVHMAC {
			continue
		}
		t, err := ParseHMAC(tlv)
		if err != nil || len(t.Digest) != sha256.Size || t.CountsDigest || found.Digest != nil {
			return HMAC{}, ErrHMACTLV
		}
		found = t
	}
	if found.Digest == nil {
		return HMAC{}, ErrNoHMAC
	}
	return found, nil
}

// activeIs checks that the current segment is the destination; the first one of a reduced list
// can't be checked.
func activeIs(destination netip.Addr, h SRH, t HMAC) bool {
	if h.SegmentsLeft > h.LastEntry {
		return t.ReducedPath
	}
	return h.Segments[h.SegmentsLeft] == destination
}
