package srv6_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/packet/srv6"
)

// hmacVectors are the headers that the kernel signed, and digests of the RFC's text over the same.
type hmacVectors struct {
	Key      string     `json:"key_ascii"`
	KeyID    uint32     `json:"key_id"`
	Source   netip.Addr `json:"source_address"`
	SRH      string     `json:"srh_captured_from_linux_6_18"`
	Linux    string     `json:"linux_hmac"`
	Standard string     `json:"rfc8754_hmac_flags_as_on_wire"`
	Zero     string     `json:"rfc8754_hmac_flags_zero"`
}

func hmacSecret(t testing.TB, octets string) srv6.HMACSecret {
	t.Helper()
	s, err := srv6.NewHMACSecret([]byte(octets))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one is a set of keys with one in it.
func one(k srv6.HMACKey) func(uint32) (srv6.HMACKey, bool) {
	return func(id uint32) (srv6.HMACKey, bool) { return k, id == k.ID }
}

// The digests of the vectors, in both forms; and each is refused in the other.
func TestHMACVectors(t *testing.T) {
	var v hmacVectors
	readJSON(t, "srh-hmac.json", &v)
	h, _, err := srv6.ParseSRH(fromHex(t, v.SRH))
	if err != nil {
		t.Fatal(err)
	}
	tlv, err := srv6.ParseHMAC(h.TLVs[0])
	if err != nil {
		t.Fatal(err)
	}
	linux := srv6.HMACKey{ID: v.KeyID, Form: srv6.HMACLinux, Secret: hmacSecret(t, v.Key)}
	standard := linux
	standard.Form = srv6.HMACStandard
	zero := h
	zero.Flags = 0
	for _, test := range []struct {
		name string
		key  srv6.HMACKey
		h    srv6.SRH
		want string
	}{{"linux", linux, h, v.Linux}, {"standard", standard, h, v.Standard},
		{"standard, flags 0", standard, zero, v.Zero}} {
		if got := test.key.Digest(v.Source, test.h, tlv); fmt.Sprintf("%x", got) != test.want {
			t.Errorf("%s: %x, want %s", test.name, got, test.want)
		}
	}
	destination := h.Segments[h.SegmentsLeft]
	if err := srv6.VerifyHMAC(v.Source, destination, h, one(linux)); err != nil {
		t.Errorf("what the kernel wrote: %v", err)
	}
	if err := srv6.VerifyHMAC(v.Source, destination, h, one(standard)); !errors.Is(err,
		srv6.ErrHMACWrong) {
		t.Errorf("in the RFC's form: %v", err)
	}
	// The same header, signed here.
	unsigned := h
	unsigned.TLVs, unsigned.Flags = nil, 0
	signed, err := linux.Sign(v.Source, unsigned)
	if err != nil {
		t.Fatal(err)
	}
	octets, err := signed.AppendBinary(nil)
	if err != nil || !bytes.Equal(octets, fromHex(t, v.SRH)) {
		t.Errorf("signed as %x, %v; want %s", octets, err, v.SRH)
	}
}

// Vectors of Linux 6.18 with other lengths of key and path: source 2001:db8:a::1.
func TestLinuxHMACOfOtherLengths(t *testing.T) {
	long := make([]byte, 64)
	for i := range long {
		long[i] = byte(i)
	}
	for _, test := range []struct {
		id     uint32
		key    string
		travel []netip.Addr
		want   string
	}{
		{0xdeadbeef, "0123456789abcdef0123456789abcdef", addrs("fc00:b::1", "fc00:c::1"),
			"65bca607bf03d560582401ea9943a56b4209bbeb8ebc1dbf228fdb6b9484e175"},
		{7, string(long), addrs("fc00:b::1", "fc00:c::1", "fc00:d::1", "fc00:e::1", "fc00:f::1",
			"fc00:f::2"), "8d57ca90057d35bab5729f8603f3c05326e1641e1b6e524dc7b8326cc5db7530"},
		{1, "k", addrs("fc00:b::1"),
			"5d8a6057121415eb6f0ff48f6b94c15ebf398c31e16c772cd8138bffd67950d2"},
	} {
		h, err := srv6.NewSRH(41, test.travel)
		if err != nil {
			t.Fatal(err)
		}
		key := srv6.HMACKey{ID: test.id, Form: srv6.HMACLinux, Secret: hmacSecret(t, test.key)}
		signed, err := key.Sign(netip.MustParseAddr("2001:db8:a::1"), h)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", signed.TLVs[0].Value[6:]); got != test.want {
			t.Errorf("key %d: %s, want %s", test.id, got, test.want)
		}
	}
}

// A signed header verifies at each of its segments, reduced or not, and with other TLVs; after a
// change of anything that is covered it does not.
func TestSignedVerifies(t *testing.T) {
	source := netip.MustParseAddr("fd00:5e::e1")
	rapid.Check(t, func(t *rapid.T) {
		key := srv6.HMACKey{ID: rapid.Uint32Min(1).Draw(t, "id"),
			Form: rapid.SampledFrom([]srv6.HMACForm{srv6.HMACStandard, srv6.HMACLinux}).Draw(t,
				"form")}
		key.Secret, _ = srv6.NewHMACSecret(rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "secret"))
		travel := make([]netip.Addr, rapid.IntRange(2, 6).Draw(t, "segments"))
		for i := range travel {
			travel[i] = netip.AddrFrom16([16]byte{0xfc, 0xbb, 15: byte(i + 1)})
		}
		h, err := srv6.NewSRH(41, travel)
		if rapid.Bool().Draw(t, "reduced") {
			h, _, err = srv6.NewReducedSRH(41, travel)
		}
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "another TLV") {
			h.TLVs = srv6.AlignTLVs([]srv6.TLV{{Type: 124, Value: make([]byte, 14)}})
		}
		signed, err := key.Sign(source, h)
		if err != nil {
			t.Fatal(err)
		}
		for i, destination := range travel {
			signed.SegmentsLeft = uint8(len(travel) - 1 - i)
			if err := srv6.VerifyHMAC(source, destination, signed, one(key)); err != nil {
				t.Fatalf("segment %d of %d: %v", i, len(travel), err)
			}
		}
		signed.SegmentsLeft = 0
		last := travel[len(travel)-1]
		other := key
		other.Secret, _ = srv6.NewHMACSecret(
			append(key.Secret.Octets()[:min(63, len(key.Secret.Octets()))], 0xff))
		tag := signed
		tag.Tag = 7
		flags := signed
		flags.Flags ^= 0x20
		segment := signed
		segment.Segments = slices.Clone(signed.Segments)
		segment.Segments[len(segment.Segments)-1] = source
		for name, got := range map[string]error{
			"another source":  srv6.VerifyHMAC(last, last, signed, one(key)),
			"another key":     srv6.VerifyHMAC(source, last, signed, one(other)),
			"other flags":     srv6.VerifyHMAC(source, last, flags, one(key)),
			"another segment": srv6.VerifyHMAC(source, segment.Segments[0], segment, one(key)),
		} {
			if wrong := other.Secret != key.Secret || name != "another key"; wrong != errors.Is(got,
				srv6.ErrHMACWrong) {
				t.Fatalf("%s: %v", name, got)
			}
		}
		if err := srv6.VerifyHMAC(source, last, tag, one(key)); err != nil {
			t.Fatalf("another tag, which is not covered: %v", err)
		}
		if err := srv6.VerifyHMAC(source, travel[0], signed, one(key)); !errors.Is(err,
			srv6.ErrNotSegments) {
			t.Fatalf("another destination: %v", err)
		}
	})
}

// What is refused before anything is computed.
func TestHMACRefused(t *testing.T) {
	source, sid := netip.MustParseAddr("fd00:5e::e1"), netip.MustParseAddr("fcbb:bb00:1::")
	key := srv6.HMACKey{ID: 7, Secret: hmacSecret(t, "k")}
	bare, err := srv6.NewSRH(41, []netip.Addr{sid})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := key.Sign(source, bare)
	if err != nil {
		t.Fatal(err)
	}
	with := func(tlvs ...srv6.TLV) srv6.SRH {
		h := bare
		h.TLVs = tlvs
		return h
	}
	short, err := srv6.HMAC{KeyID: 7, Digest: make([]byte, 24)}.TLV()
	if err != nil {
		t.Fatal(err)
	}
	counting := signed.TLVs[0]
	counting.DigestLength = true
	nobody, err := srv6.HMAC{Digest: make([]byte, 32)}.TLV()
	if err != nil {
		t.Fatal(err)
	}
	past := signed
	past.SegmentsLeft = 1 // as at the first segment of a reduced list, but D says that it is none
	for _, test := range []struct {
		name string
		h    srv6.SRH
		want error
	}{
		{"none", bare, srv6.ErrNoHMAC},
		{"other TLVs", with(srv6.TLV{Type: 124, Value: make([]byte, 14)}), srv6.ErrNoHMAC},
		{"24 octets", with(short), srv6.ErrHMACTLV},
		{"a length that counts the digest", with(counting), srv6.ErrHMACTLV},
		{"two", with(signed.TLVs[0], signed.TLVs[0]), srv6.ErrHMACTLV},
		{"key 0", with(nobody), srv6.ErrHMACKey},
		{"not reduced", past, srv6.ErrNotSegments},
	} {
		if err := srv6.VerifyHMAC(source, sid, test.h, one(key)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	zero := key
	zero.ID = 0
	if err := srv6.VerifyHMAC(source, sid, with(nobody), one(zero)); !errors.Is(err,
		srv6.ErrHMACKey) {
		t.Errorf("key 0 that is known: %v", err)
	}
	full := bare
	full.TLVs = slices.Repeat([]srv6.TLV{{Type: 124, Value: make([]byte, 254)}}, 8)
	if _, err := key.Sign(source, full); err == nil {
		t.Error("a header with no room for the TLV was signed")
	}
}

// Secrets are read with care, and never shown.
func TestHMACSecret(t *testing.T) {
	text := strings.Repeat("a5", 32)
	s, err := srv6.ParseHMACSecret(text)
	if err != nil || len(s.Octets()) != 32 {
		t.Fatalf("%d octets, %v", len(s.Octets()), err)
	}
	asJSON, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	key := srv6.HMACKey{ID: 7, Secret: s}
	for _, shown := range []string{string(asJSON), s.String(), fmt.Sprintf("%v %+v %#v %x %q %s %d",
		key, key, key, key, s, s, s)} {
		if !strings.Contains(shown, "(secret)") || strings.Contains(shown, "a5a5") ||
			strings.Contains(shown, "165") {
			t.Errorf("shown as %s", shown)
		}
	}
	for _, wrong := range []string{"", "a5", strings.Repeat("a5", 15), strings.Repeat("a5", 65),
		strings.Repeat("x5", 32), text + "a"} {
		if _, err := srv6.ParseHMACSecret(wrong); err == nil || len(wrong) > 2 &&
			strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, wrong := range [][]byte{nil, make([]byte, 65)} {
		if _, err := srv6.NewHMACSecret(wrong); err == nil {
			t.Errorf("%d octets were taken", len(wrong))
		}
	}
}

// FuzzVerifyHMAC feeds foreign headers: nothing verifies but what was signed, nothing panics.
func FuzzVerifyHMAC(f *testing.F) {
	var v hmacVectors
	readJSON(f, "srh-hmac.json", &v)
	f.Add(fromHex(f, v.SRH))
	key := srv6.HMACKey{ID: v.KeyID, Form: srv6.HMACLinux, Secret: hmacSecret(f, v.Key)}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, _, err := srv6.ParseSRH(b)
		if err != nil {
			return
		}
		destination := h.Segments[0]
		if int(h.SegmentsLeft) < len(h.Segments) {
			destination = h.Segments[h.SegmentsLeft]
		}
		verified := srv6.VerifyHMAC(v.Source, destination, h, one(key))
		h.TLVs = nil
		signed, err := key.Sign(v.Source, h)
		if err != nil {
			return // no room
		}
		if again := srv6.VerifyHMAC(v.Source, destination, signed, one(key)); again != nil {
			t.Fatalf("signed here, but: %v", again)
		}
		if verified == nil && h.Flags != signed.Flags {
			t.Logf("verified without the flag that Linux needs: %x", b)
		}
	})
}
