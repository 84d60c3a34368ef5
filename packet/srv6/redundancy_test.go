package srv6_test

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/packet/srv6"
)

func TestRedundancyTLV(t *testing.T) {
	want := srv6.Redundancy{Flags: 0x80, Epoch: 7, Flow: 0x01020304, Sequence: 0xfffffffe,
		Timestamp: 0xa0b0c0d0}
	tlv := want.TLV()
	h, err := srv6.NewSRH(41, []netip.Addr{netip.MustParseAddr("fc00::1")})
	if err != nil {
		t.Fatal(err)
	}
	h.TLVs = []srv6.TLV{tlv}
	octets, err := h.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(octets[24:]); got != "7c0e8007"+"01020304"+"fffffffe"+"a0b0c0d0" {
		t.Errorf("on the wire: %s", got)
	}
	parsed, _, err := srv6.ParseSRH(octets)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := srv6.ParseRedundancy(parsed.TLVs[0]); err != nil || got != want {
		t.Errorf("read back %+v, %v", got, err)
	}
	for _, bad := range []srv6.TLV{{Type: 125, Value: make([]byte, 14)},
		{Type: 124, Value: make([]byte, 13)}, {Type: 124, Value: make([]byte, 15)}, {Type: 124}} {
		if got, err := srv6.ParseRedundancy(bad); err == nil {
			t.Errorf("type %d with %d octets was read as %+v", bad.Type, len(bad.Value), got)
		}
	}
}

// The example of xdpfrer's own test.
func TestRedundancySIDOfXdpfrer(t *testing.T) {
	sid, err := srv6.RedundancySID(netip.MustParsePrefix("5f00:0:0:8:f::/80"), 0x10110, 0x0015)
	if err != nil || sid != netip.MustParseAddr("5f00:0:0:8:f:1011:1:5000") {
		t.Errorf("%s, %v", sid, err)
	}
	function, flow, sequence := srv6.ParseRedundancySID(sid)
	if function != netip.MustParsePrefix("5f00:0:0:8:f::/80") || flow != 0x10110 ||
		sequence != 0x15 {
		t.Errorf("%s, flow %#x, number %#x", function, flow, sequence)
	}
}

func TestRedundancySIDRefuses(t *testing.T) {
	good := netip.MustParsePrefix("5f00:0:0:8:f::/80")
	for _, test := range []struct {
		function netip.Prefix
		flow     uint32
	}{{good, 0}, {good, 1 << 20}, {netip.MustParsePrefix("5f00::/64"), 1},
		{netip.MustParsePrefix("192.0.2.0/24"), 1}, {netip.Prefix{}, 1}} {
		if sid, err := srv6.RedundancySID(test.function, test.flow, 1); err == nil {
			t.Errorf("%s, flow %d: %s", test.function, test.flow, sid)
		}
	}
}

func TestRedundancySIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var octets [16]byte
		copy(octets[:10], rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "locator and function"))
		octets[0] = 0xfc // not an IPv4 address
		function := netip.PrefixFrom(netip.AddrFrom16(octets), 80)
		flow, sequence := rapid.Uint32Range(1, srv6.MaxRedundancySIDFlow).Draw(t, "flow"),
			rapid.Uint16().Draw(t, "number")
		sid, err := srv6.RedundancySID(function, flow, sequence)
		if err != nil {
			t.Fatal(err)
		}
		gotFunction, gotFlow, gotSequence := srv6.ParseRedundancySID(sid)
		if gotFunction != function || gotFlow != flow || gotSequence != sequence {
			t.Fatalf("%s: %s, %d, %d", sid, gotFunction, gotFlow, gotSequence)
		}
	})
}

// FuzzRedundancy feeds foreign octets: what is read is written back as it was.
func FuzzRedundancy(f *testing.F) {
	f.Add(make([]byte, 14), make([]byte, 16))
	f.Add([]byte("fourteen bytes"), netip.MustParseAddr("5f00:0:0:8:f:1011:1:5000").AsSlice())
	f.Fuzz(func(t *testing.T, value, address []byte) {
		if r, err := srv6.ParseRedundancy(srv6.TLV{Type: srv6.TLVRedundancy,
			Value: value}); err == nil && string(r.TLV().Value) != string(value) {
			t.Errorf("TLV %x was read as %+v", value, r)
		}
		sid, ok := netip.AddrFromSlice(address)
		if !ok {
			return
		}
		function, flow, sequence := srv6.ParseRedundancySID(sid)
		again, err := srv6.RedundancySID(function, flow, sequence)
		if reserved := address[len(address)-1] != 0 ||
			address[len(address)-2]&0xf != 0; !sid.Is6() || flow == 0 || reserved {
			return
		}
		if err != nil || again != sid {
			t.Errorf("SID %s was written back as %s, %v", sid, again, err)
		}
	})
}
