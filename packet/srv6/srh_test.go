package srv6_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sextant/packet/srv6"
)

// compareOptions compare headers as values.
var compareOptions = cmp.Options{cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmpopts.EquateEmpty()}

func addrs(texts ...string) []netip.Addr {
	result := make([]netip.Addr, len(texts))
	for i, text := range texts {
		result[i] = netip.MustParseAddr(text)
	}
	return result
}

func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNewSRH(t *testing.T) {
	h, err := srv6.NewSRH(41, addrs("fc00::1", "fc00::2", "fc00::3"))
	if err != nil {
		t.Fatal(err)
	}
	want := srv6.SRH{NextHeader: 41, SegmentsLeft: 2, LastEntry: 2,
		Segments: addrs("fc00::3", "fc00::2", "fc00::1")}
	if diff := cmp.Diff(want, h, compareOptions); diff != "" {
		t.Error(diff)
	}
	if h.Size() != 8+3*16 {
		t.Errorf("Size is %d, want 56", h.Size())
	}
}

func TestNewReducedSRH(t *testing.T) {
	h, ok, err := srv6.NewReducedSRH(4, addrs("fc00::1", "fc00::2", "fc00::3"))
	if err != nil || !ok {
		t.Fatalf("ok is %v, error %v", ok, err)
	}
	want := srv6.SRH{NextHeader: 4, SegmentsLeft: 2, LastEntry: 1,
		Segments: addrs("fc00::3", "fc00::2")}
	if diff := cmp.Diff(want, h, compareOptions); diff != "" {
		t.Error(diff)
	}
	if _, ok, err := srv6.NewReducedSRH(4, addrs("fc00::1")); ok || err != nil {
		t.Errorf("path of one segment: ok is %v, error %v, want no SRH and no error", ok, err)
	}
}

// The longest paths that fit, and one segment more.
func TestLongestPaths(t *testing.T) {
	path := make([]netip.Addr, srv6.MaxSegments+2)
	for i := range path {
		path[i] = netip.AddrFrom16([16]byte{0: 0xfc, 15: byte(i)})
	}
	h, err := srv6.NewSRH(41, path[:srv6.MaxSegments])
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, h)
	reduced, ok, err := srv6.NewReducedSRH(41, path[:srv6.MaxSegments+1])
	if err != nil || !ok {
		t.Fatalf("ok is %v, error %v", ok, err)
	}
	roundTrip(t, reduced)
	_, err = srv6.NewSRH(41, path[:srv6.MaxSegments+1])
	wantError(t, err, "128 segments; it lists 1 to 127")
	_, _, err = srv6.NewReducedSRH(41, path)
	wantError(t, err, "128 segments; it lists 1 to 127")
}

// roundTrip writes a header and reads it back.
func roundTrip(t interface {
	Helper()
	Fatalf(string, ...any)
}, h srv6.SRH) []byte {
	t.Helper()
	b, err := h.AppendBinary(nil)
	if err != nil {
		t.Fatalf("AppendBinary(%+v): %v", h, err)
	}
	got, size, err := srv6.ParseSRH(append(bytes.Clone(b), 0xee))
	if err != nil || size != len(b) || size != h.Size() {
		t.Fatalf("ParseSRH(%x): size %d, error %v; AppendBinary made %d octets, Size says %d", b,
			size, err, len(b), h.Size())
	}
	if diff := cmp.Diff(h, got, compareOptions); diff != "" {
		t.Fatalf("header changed (-written +read):\n%s", diff)
	}
	return b
}

func TestNewSRHRefuses(t *testing.T) {
	for name, path := range map[string][]netip.Addr{
		"not an IPv6 address": addrs("fc00::1", "192.0.2.1"),
		"without a zone":      addrs("fc00::1", "fe80::1%eth0"),
		"invalid IP":          {netip.MustParseAddr("fc00::1"), {}},
	} {
		_, err := srv6.NewSRH(41, path)
		wantError(t, err, name)
		_, _, err = srv6.NewReducedSRH(41, path)
		wantError(t, err, name)
		path[0], path[1] = path[1], path[0]
		_, _, err = srv6.NewReducedSRH(41, path)
		wantError(t, err, name)
		_, _, err = srv6.NewReducedSRH(41, path[:1])
		wantError(t, err, name)
	}
	_, err := srv6.NewSRH(41, nil)
	wantError(t, err, "0 segments")
	_, _, err = srv6.NewReducedSRH(41, nil)
	wantError(t, err, "no segments")
}

func TestAppendBinary(t *testing.T) {
	h := srv6.SRH{
		NextHeader: 41, SegmentsLeft: 1, LastEntry: 1, Flags: 0x20, Tag: 0xbeef,
		Segments: addrs("fc00::2", "fc00::1"),
		TLVs: []srv6.TLV{{Type: 252, Value: []byte{1, 2, 3}}, {Type: srv6.TLVPad1},
			{Type: srv6.TLVPadN}},
	}
	want := fromHex(t, "2905040101"+"20beef"+"fc000000000000000000000000000002"+
		"fc000000000000000000000000000001"+"fc03010203"+"00"+"0400")
	if got := roundTrip(t, h); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	got, err := h.AppendBinary([]byte{0xaa})
	if err != nil || !bytes.Equal(got[1:], want) || got[0] != 0xaa {
		t.Errorf("appended to an octet: %x, %v", got, err)
	}
}

func TestAppendBinaryRefuses(t *testing.T) {
	valid := srv6.SRH{NextHeader: 41, SegmentsLeft: 1, LastEntry: 1,
		Segments: addrs("fc00::2", "fc00::1")}
	large := srv6.TLV{Type: 252, Value: make([]byte, 254)}
	tests := map[string]struct {
		change func(*srv6.SRH)
		want   string
	}{
		"no segments": {func(h *srv6.SRH) { h.Segments = nil }, "0 segments"},
		"IPv4 segment": {func(h *srv6.SRH) { h.Segments = addrs("fc00::2", "192.0.2.1") },
			"segment 192.0.2.1"},
		"last entry": {func(h *srv6.SRH) { h.LastEntry = 2 },
			"last entry 2 does not fit 2 segments; set it to 1"},
		"segments left": {func(h *srv6.SRH) { h.SegmentsLeft = 3 },
			"segments left 3 is above last entry 1 plus 1"},
		"unaligned TLVs": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{{Type: 252,
				Value: []byte{1}}}
		}, "not a multiple of 8; pad them"},
		"Pad1 with a value": {func(h *srv6.SRH) { h.TLVs = []srv6.TLV{{Value: []byte{1}}} },
			"TLV 1 of 1: Pad1 with a value"},
		"long PadN": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{{Type: 4,
				Value: make([]byte, 6)}}
		}, "PadN of 6 octets"},
		"long value": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{{Type: 9,
				Value: make([]byte, 256)}}
		}, "value of 256 octets"},
		"too large": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{large, large, large, large, large, large, large, large}
		}, "2088 octets with TLVs, above the 2048"},
		"ambiguous HMAC": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{{Type: 5,
				Value: make([]byte, 16)}}
		}, "would be read as if"},
		"not an HMAC": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{{Type: 9, Value: make([]byte, 22), DigestLength: true}}
		}, "only an HMAC TLV"},
		"HMAC of odd length": {func(h *srv6.SRH) {
			h.TLVs = []srv6.TLV{{Type: 5, Value: make([]byte, 30), DigestLength: true},
				{Type: 9, Value: make([]byte, 3)}}
			h.TLVs[0].Value = h.TLVs[0].Value[:29]
		}, "only an HMAC TLV"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := valid
			test.change(&h)
			b, err := h.AppendBinary(nil)
			wantError(t, err, test.want)
			if b != nil {
				t.Errorf("octets with an error: %x", b)
			}
		})
	}
}

// A header of two segments, with fields changed to what must be refused.
func TestParseSRHRefuses(t *testing.T) {
	const segments = "fc000000000000000000000000000002" + "fc000000000000000000000000000001"
	tests := map[string]struct {
		hex  string
		want string
	}{
		"empty":                {"", "truncated: 0 of at least 8"},
		"foreign routing type": {"2904020101000000" + segments, "routing type is 2, not 4"},
		"last entry too high": {"2904040102000000" + segments,
			"last entry 2 needs a length of 6 or more, but it is 4"},
		"length 0": {"2900040000000000",
			"last entry 0 needs a length of 2 or more, but it is 0"},
		"segments left too high": {"2904040301000000" + segments,
			"segments left 3 is above last entry 1 plus 1"},
		"segments left 255": {"290404ff01000000" + segments, "segments left 255"},
		"TLV without length": {"2905040101000000" + segments + "0000000000000009",
			"TLV 8: type 9 has no room for its length"},
		"TLV past the end": {"2905040101000000" + segments + "0907000000000000",
			"TLV 1: type 9 with 7 octets runs past the end of the header, 6 octets on"},
		"second TLV past end": {"2905040101000000" + segments + "090000090400ffff",
			"TLV 3: type 9 with 4 octets"},
		"long PadN": {"2905040101000000" + segments + "0406000000000000",
			"PadN of 6 octets"},
		"HMAC past the end": {"2905040101000000" + segments + "0508000000000000",
			"type 5 with 14 octets"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, size, err := srv6.ParseSRH(fromHex(t, test.hex))
			wantError(t, err, test.want)
			if size != 0 {
				t.Errorf("size is %d with an error", size)
			}
		})
	}
}

// Segments left may be one above last entry: a reduced header at its first segment.
func TestParseSRHTakesReduced(t *testing.T) {
	h, _, err := srv6.ParseSRH(fromHex(t, "2902040100000000"+"fc000000000000000000000000000002"))
	if err != nil || h.SegmentsLeft != 1 || h.LastEntry != 0 {
		t.Errorf("got %+v, %v", h, err)
	}
}

// Every prefix of a header is truncated, and says so.
func TestParseSRHTruncated(t *testing.T) {
	whole := fromHex(t, "2905040101000000"+"fc000000000000000000000000000002"+
		"fc000000000000000000000000000001"+"0903010203040100")
	whole = append(whole[:len(whole)-3], 4, 1, 0)
	if _, _, err := srv6.ParseSRH(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, _, err := srv6.ParseSRH(whole[:n]); !errors.Is(err, srv6.ErrTruncated) {
			t.Errorf("%d of %d octets: error %v, want one that is ErrTruncated", n, len(whole), err)
		}
	}
}

// What is parsed does not share memory with the packet, which is reused for the next one.
func TestParseSRHCopies(t *testing.T) {
	b := fromHex(t, "2903040000000000"+"fc000000000000000000000000000002"+"0906010203040506")
	h, _, err := srv6.ParseSRH(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if h.Segments[0] != netip.MustParseAddr("fc00::2") || h.TLVs[0].Value[5] != 6 {
		t.Errorf("header changed with the packet: %+v", h)
	}
}

// drawSRH draws a header that can be written.
func drawSRH(t *rapid.T) srv6.SRH {
	segment := rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "segment")))
	})
	tlv := rapid.Custom(func(t *rapid.T) srv6.TLV {
		// 5 is left to the HMAC tests: not all lengths are its.
		kind := rapid.Byte().Filter(func(kind byte) bool { return kind != srv6.TLVHMAC }).Draw(t,
			"type")
		longest := map[byte]int{srv6.TLVPad1: 0, srv6.TLVPadN: 5}
		most, padding := longest[kind]
		if !padding {
			most = 40
		}
		return srv6.TLV{Type: kind, Value: rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, "value")}
	})
	h := srv6.SRH{
		NextHeader: rapid.Byte().Draw(t, "next header"), Flags: rapid.Byte().Draw(t, "flags"),
		Tag:      rapid.Uint16().Draw(t, "tag"),
		Segments: rapid.SliceOfN(segment, 1, 20).Draw(t, "segments"),
		TLVs:     srv6.AlignTLVs(rapid.SliceOfN(tlv, 0, 10).Draw(t, "TLVs")),
	}
	h.LastEntry = uint8(len(h.Segments) - 1)
	h.SegmentsLeft = uint8(rapid.IntRange(0, len(h.Segments)).Draw(t, "segments left"))
	return h
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, drawSRH(t)) })
}
