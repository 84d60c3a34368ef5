package srv6_test

import (
	"net/netip"
	"strings"
	"testing"

	"sextant/packet/srv6"
)

// testBlock is the block of all tests.
func testBlock(t testing.TB) srv6.Block {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return block
}

// wantError checks that err is one that says want.
func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

func TestBlock(t *testing.T) {
	block := testBlock(t)
	if got := block.Prefix(); got != netip.MustParsePrefix("fcbb:bb00::/32") {
		t.Errorf("Prefix is %s", got)
	}
	if got := block.String(); got != "fcbb:bb00::/32" {
		t.Errorf("String is %s", got)
	}
	for text, want := range map[string]bool{
		"fcbb:bb00::": true,
		"fcbb:bb00:ffff:ffff:ffff:ffff:ffff:ffff": true,
		"fcbb:bb01::":      false,
		"fcbb:baff:ffff::": false,
		"192.0.2.1":        false,
	} {
		if got := block.Contains(netip.MustParseAddr(text)); got != want {
			t.Errorf("Contains(%s) = %v", text, got)
		}
	}
	if (srv6.Block{}).Contains(netip.MustParseAddr("::1")) || block.Contains(netip.Addr{}) {
		t.Error("the zero block contains something, or a block the zero address")
	}
}

func TestParseBlockRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "not an IPv6 prefix",
		"fcbb:bb00::":      "not an IPv6 prefix",
		"fcbb:bb00::/129":  "not an IPv6 prefix",
		"fcbb:bb00::/48":   "of 32 bits",
		"10.0.0.0/32":      "of 32 bits",
		"fcbb:bb00:1::/32": "did you mean fcbb:bb00::/32?",
		"::/32":            "not routed",
		"ff0e:1::/32":      "not routed",
		"fe80:1::/32":      "not routed",
	} {
		_, err := srv6.ParseBlock(text)
		if text == "" || err != nil && strings.Contains(err.Error(), text) {
			wantError(t, err, want)
		} else {
			t.Errorf("ParseBlock(%q): error %v does not name the text", text, err)
		}
	}
}

func TestLocator(t *testing.T) {
	block := testBlock(t)
	for id, want := range map[srv6.CSID]string{1: "fcbb:bb00:1::/48",
		0xdfff: "fcbb:bb00:dfff::/48"} {
		got, err := block.Locator(id)
		if err != nil || got != netip.MustParsePrefix(want) {
			t.Errorf("Locator(%s) = %s, %v, want %s", id, got, err, want)
		}
	}
	for _, id := range []srv6.CSID{0, 0xe000, 0xffff} {
		_, err := block.Locator(id)
		wantError(t, err, "is not global")
	}
	_, err := srv6.Block{}.Locator(1)
	wantError(t, err, "block is not set")
}

func TestCSID(t *testing.T) {
	for id, want := range map[srv6.CSID]bool{0: false, 1: true, 0xdfff: true, 0xe000: false,
		0xffff: false} {
		if id.Global() != want {
			t.Errorf("CSID %s: Global is %v", id, id.Global())
		}
	}
	if got := srv6.CSID(0xd46).String(); got != "d46" {
		t.Errorf("String is %q, want d46", got)
	}
	if got, err := srv6.ParseCSID("e046"); err != nil || got != 0xe046 {
		t.Errorf("ParseCSID(e046) = %s, %v", got, err)
	}
	for _, text := range []string{"", "0", "10000", "0x1", "g"} {
		if _, err := srv6.ParseCSID(text); err == nil {
			t.Errorf("ParseCSID(%q) reads it", text)
		}
	}
}

func TestHasArgument(t *testing.T) {
	tests := []struct {
		sid, addr string
		want      bool
	}{
		{"fcbb:bb00:1::/48", "fcbb:bb00:1::", false},
		{"fcbb:bb00:1::/48", "fcbb:bb00:1:2::", true},
		{"fcbb:bb00:1::/48", "fcbb:bb00:1::1", true},
		{"fcbb:bb00:1:d46::/64", "fcbb:bb00:1:d46::", false},
		{"fcbb:bb00:1:d46::/64", "fcbb:bb00:1:d46:8000::", true},
		{"fcbb:bb00:1::1/128", "fcbb:bb00:1::1", false},
	}
	for _, test := range tests {
		if got := srv6.HasArgument(netip.MustParsePrefix(test.sid),
			netip.MustParseAddr(test.addr)); got != test.want {
			t.Errorf("HasArgument(%s, %s) = %v", test.sid, test.addr, got)
		}
	}
}
