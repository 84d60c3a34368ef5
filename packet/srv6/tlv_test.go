package srv6_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/packet/srv6"
)

func TestAlignTLVs(t *testing.T) {
	pad := func(octets int) srv6.TLV {
		return srv6.TLV{Type: srv6.TLVPadN, Value: make([]byte, octets)}
	}
	tests := map[int][]srv6.TLV{ // by the octets of the value in front
		6:  nil,
		5:  {{Type: srv6.TLVPad1}},
		4:  {pad(0)},
		3:  {pad(1)},
		2:  {pad(2)},
		1:  {pad(3)},
		0:  {pad(4)},
		7:  {pad(5)},
		14: nil,
	}
	for octets, want := range tests {
		tlvs := []srv6.TLV{{Type: 252, Value: make([]byte, octets)}}
		if diff := cmp.Diff(append(tlvs, want...), srv6.AlignTLVs(tlvs),
			compareOptions); diff != "" {
			t.Errorf("behind a value of %d octets (-want +got):\n%s", octets, diff)
		}
	}
	if got := srv6.AlignTLVs(nil); got != nil {
		t.Errorf("padding where there is nothing to pad: %v", got)
	}
}

// An HMAC survives TLV, header and octets, with its length counted either way.
func TestHMACRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := 8 * rapid.IntRange(1, 4).Draw(t, "digest units")
		want := srv6.HMAC{
			ReducedPath: rapid.Bool().Draw(t, "D"), Reserved: rapid.Uint16Range(0, 0x7fff).Draw(t,
				"reserved"),
			KeyID: rapid.Uint32().Draw(t, "key id"), Digest: rapid.SliceOfN(rapid.Byte(), size,
				size).Draw(t, "digest"),
			CountsDigest: rapid.Bool().Draw(t, "counts digest"),
		}
		tlv, err := want.TLV()
		if err != nil {
			t.Fatal(err)
		}
		h := drawSRH(t)
		h.TLVs = srv6.AlignTLVs([]srv6.TLV{{Type: 252, Value: rapid.SliceOfN(rapid.Byte(), 0,
			9).Draw(t, "before")}, tlv})
		b := roundTrip(t, h)
		if !bytes.Contains(b, want.Digest) {
			t.Fatalf("digest %x is not in %x", want.Digest, b)
		}
		got, err := srv6.ParseHMAC(tlv)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestHMACRefuses(t *testing.T) {
	_, err := srv6.ParseHMAC(srv6.TLV{Type: 4})
	wantError(t, err, "type 4 is not an HMAC TLV")
	for _, octets := range []int{0, 6, 13, 15, 46} {
		_, err := srv6.ParseHMAC(srv6.TLV{Type: srv6.TLVHMAC, Value: make([]byte, octets)})
		wantError(t, err, "a digest has 8, 16, 24 or 32")
	}
	for _, octets := range []int{0, 7, 20, 40} {
		_, err := srv6.HMAC{Digest: make([]byte, octets)}.TLV()
		wantError(t, err, "cut or pad it with zeros to 8, 16, 24 or 32")
	}
	_, err = srv6.HMAC{Digest: make([]byte, 32), Reserved: 0x8000}.TLV()
	wantError(t, err, "more than 15 bits")
}
