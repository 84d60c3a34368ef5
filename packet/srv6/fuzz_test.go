package srv6_test

import (
	"bytes"
	"testing"

	"sextant/packet/srv6"
)

// FuzzParseSRH feeds foreign octets. What is accepted lies inside them, and is written back octet
// for octet.
func FuzzParseSRH(f *testing.F) {
	v := readVectors(f)
	for _, row := range append(v.Scapy, v.Linux...) {
		f.Add(fromHex(f, row.Hex)[ipv6Size:])
	}
	f.Add(fromHex(f,
		"2905040101000000fc000000000000000000000000000002fc0000000000000000000000000000010508000000000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, size, err := srv6.ParseSRH(b)
		if err != nil {
			return
		}
		if size > len(b) || size != h.Size() || int(h.LastEntry) != len(h.Segments)-1 ||
			int(h.SegmentsLeft) > len(h.Segments) {
			t.Fatalf("size %d of %d, header %+v", size, len(b), h)
		}
		again, err := h.AppendBinary(nil)
		if err != nil {
			t.Fatalf("accepted, but not written back: %v", err)
		}
		if !bytes.Equal(again, b[:size]) {
			t.Fatalf("read    %x\nwritten %x", b[:size], again)
		}
		for _, tlv := range h.TLVs {
			checkHMAC(t, tlv)
		}
	})
}

// checkHMAC checks that a TLV that is taken for an HMAC is written back as it was.
func checkHMAC(t *testing.T, tlv srv6.TLV) {
	hmac, err := srv6.ParseHMAC(tlv)
	if err != nil {
		return
	}
	again, err := hmac.TLV()
	if err != nil || !bytes.Equal(again.Value, tlv.Value) ||
		again.DigestLength != tlv.DigestLength {
		t.Fatalf("HMAC TLV %+v written back as %+v, %v", tlv, again, err)
	}
}
