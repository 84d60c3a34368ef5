package srv6_test

import (
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/packet/srv6"
)

func TestCarrier(t *testing.T) {
	tests := []struct {
		ids  []srv6.CSID
		want string
	}{
		{[]srv6.CSID{1}, "fcbb:bb00:1::"},
		{[]srv6.CSID{2, 3, 0xd6}, "fcbb:bb00:2:3:d6::"},
		{[]srv6.CSID{1, 2, 3, 4, 5, 6}, "fcbb:bb00:1:2:3:4:5:6"},
		{[]srv6.CSID{0xffff}, "fcbb:bb00:ffff::"},
	}
	for _, test := range tests {
		got, err := testBlock(t).Carrier(test.ids...)
		if err != nil || got != netip.MustParseAddr(test.want) {
			t.Errorf("Carrier(%v) = %s, %v, want %s", test.ids, got, err, test.want)
		}
	}
}

func TestCarrierRefuses(t *testing.T) {
	block := testBlock(t)
	_, err := block.Carrier()
	wantError(t, err, "of 0 ids: it holds 1 to 6")
	_, err = block.Carrier(1, 2, 3, 4, 5, 6, 7)
	wantError(t, err, "of 7 ids: it holds 1 to 6")
	_, err = block.Carrier(1, 0, 3)
	wantError(t, err, "id 2 of 3 is 0")
	_, err = srv6.Block{}.Carrier(1)
	wantError(t, err, "block is not set")
}

func TestCSIDsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"fcbb:bb00::":       "holds no id",
		"fcbb:bb01:1::":     "is not in the SID block fcbb:bb00::/32",
		"fcbb:bb00:1:0:2::": "id 0x2 comes after the 0",
		"fcbb:bb00::1":      "id 0x1 comes after the 0",
		"192.0.2.1":         "is not in the SID block",
	} {
		_, err := testBlock(t).CSIDs(netip.MustParseAddr(text))
		wantError(t, err, want)
	}
}

// The path of RFC 9800's example in one container: node 2, node 3, then End.DT46 there.
func TestShift(t *testing.T) {
	tests := []struct {
		addr, want string
		id         srv6.CSID
	}{
		{"fcbb:bb00:2:3:d6::", "fcbb:bb00:3:d6::", 3},
		{"fcbb:bb00:3:d6::", "fcbb:bb00:d6::", 0xd6},
		{"fcbb:bb00:d6::", "fcbb:bb00::", 0},
		{"fcbb:bb00::", "fcbb:bb00::", 0},
		{"fcbb:bb00:1:2:3:4:5:6", "fcbb:bb00:2:3:4:5:6:0", 2},
	}
	for _, test := range tests {
		got, id := srv6.Shift(netip.MustParseAddr(test.addr))
		if got != netip.MustParseAddr(test.want) || id != test.id {
			t.Errorf("Shift(%s) = %s, %s, want %s, %s", test.addr, got, id, test.want, test.id)
		}
	}
}

// Shifting a carrier visits its ids in order, and ends with the bare block.
func TestShiftVisitsAll(t *testing.T) {
	block := testBlock(t)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) srv6.CSID {
			return srv6.CSID(rapid.Uint16Range(1, 0xffff).Draw(t, "id"))
		})
		ids := rapid.SliceOfN(id, 1, srv6.MaxCarrierCSIDs).Draw(t, "ids")
		addr, err := block.Carrier(ids...)
		if err != nil {
			t.Fatal(err)
		}
		for rest := ids; len(rest) > 0; rest = rest[1:] {
			if got, err := block.CSIDs(addr); err != nil || !slices.Equal(got, rest) {
				t.Fatalf("CSIDs(%s) = %v, %v, want %v", addr, got, err, rest)
			}
			var active srv6.CSID
			addr, active = srv6.Shift(addr)
			if len(rest) > 1 && active != rest[1] || len(rest) == 1 && active != 0 {
				t.Fatalf("active id after the shift of %v is %s", rest, active)
			}
		}
		if addr != block.Prefix().Addr() {
			t.Errorf("carrier ends as %s, want the bare block", addr)
		}
	})
}
