package datapath

import (
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/packet/cflb"
)

// TestSame: each part counts, at whatever depth, but not where it lies in memory.
func TestSame(t *testing.T) {
	codec := func(key byte) *cflb.Codec {
		c, err := cflb.New(cflb.Parameters{Fields: cflb.SourcePort, Radix: 4,
			Key: [cflb.KeyLength]byte{key}})
		must(t, err)
		return c
	}
	prefix := netip.MustParsePrefix("fd00::/64")
	for name, test := range map[string]struct {
		a, b any
		want bool
	}{
		"equal slices": {Domain{Locators: []netip.Prefix{prefix}},
			Domain{Locators: []netip.Prefix{prefix}}, true},
		"nil and empty": {Domain{}, Domain{Locators: []netip.Prefix{}}, true},
		"one more":      {Domain{}, Domain{Locators: []netip.Prefix{prefix}}, false},
		"another element": {EdgeConfig{Interfaces: []EdgeInterface{{Name: "a"}}},
			EdgeConfig{Interfaces: []EdgeInterface{{Name: "b"}}}, false},
		"embedded": {EdgeConfig{Domain: Domain{Source: prefix.Addr()}},
			EdgeConfig{}, false},
		"zones": {netip.MustParseAddr("fe80::1%a"),
			netip.MustParseAddr("fe80::1%b"), false},
		"equal codecs":     {CFLBConfig{IPv4: codec(1)}, CFLBConfig{IPv4: codec(1)}, true},
		"keys of codecs":   {CFLBConfig{IPv4: codec(1)}, CFLBConfig{IPv4: codec(2)}, false},
		"none and a codec": {CFLBConfig{}, CFLBConfig{IPv4: codec(1)}, false},
		"equal maps": {HeadendConfig{Numbers: map[uint32]uint64{1: 2}},
			HeadendConfig{Numbers: map[uint32]uint64{1: 2}}, true},
		"another key": {HeadendConfig{Numbers: map[uint32]uint64{1: 2}},
			HeadendConfig{Numbers: map[uint32]uint64{2: 2}}, false},
		"different numbers": {model.External, model.Internal, false},
	} {
		if got := Same(test.a, test.b); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
