package loadgen_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/lab/loadgen"
)

func TestParseSources(t *testing.T) {
	prefix := netip.MustParsePrefix
	tests := []struct {
		text string
		want []netip.Prefix
	}{
		{"192.0.2.1", []netip.Prefix{prefix("192.0.2.1/32")}},
		{"2001:db8::7", []netip.Prefix{prefix("2001:db8::7/128")}},
		{"2001:db8::7, 2001:db8:1::/64", []netip.Prefix{prefix("2001:db8::7/128"),
			prefix("2001:db8:1::/64")}},
		{"10.1.0.9/24", []netip.Prefix{prefix("10.1.0.9/24")}}, // begins at 9
	}
	for _, test := range tests {
		got, err := loadgen.ParseSources(test.text)
		if err != nil {
			t.Errorf("ParseSources(%q): %v", test.text, err)
			continue
		}
		if diff := cmp.Diff(test.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("ParseSources(%q) (-want +got):\n%s", test.text, diff)
		}
	}
}

func TestParseSourcesRefuses(t *testing.T) {
	for _, text := range []string{"", "web1", "192.0.2.1,", "192.0.2.0/33", "192.0.2.1-9"} {
		if got, err := loadgen.ParseSources(text); err == nil {
			t.Errorf("ParseSources(%q) = %v, want an error", text, got)
		}
	}
}
