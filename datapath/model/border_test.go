package model_test

import (
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/te/srpolicy"
)

// TestHeadendCases gives frames of all kinds, broken ones too, to a head-end that steers everything
// by another interface.
func TestHeadendCases(t *testing.T) {
	ways := map[string][2]uint32{
		packettest.External: {external, internal}, packettest.Mixed: {mixed, internal},
		packettest.Internal: {internal, external},
	}
	for _, test := range packettest.HeadendCases(t) {
		t.Run(test.Side+"/"+test.Name, func(t *testing.T) {
			h := newHeadend(t, ways[test.Side][1], srpolicy.Path, 0,
				steerList(packettest.SteeredLists()[0]))
			s := h.Process(ways[test.Side][0], 0, test.Frame)
			if got := outcome(s.Results[0]); got != test.Want {
				t.Errorf("got %s, want %s", got, test.Want)
			}
		})
	}
}

// TestMergeCases gives frames of all kinds, broken ones too, to an egress.
func TestMergeCases(t *testing.T) {
	for _, test := range packettest.MergeCases(t) {
		t.Run(test.Name, func(t *testing.T) {
			m := &model.Merge{
				Interfaces:     map[uint32]struct{}{internal: {}},
				SIDs:           []netip.Prefix{netip.PrefixFrom(packettest.MergeSID, 80)},
				Block:          mustBlock(t),
				Locators:       []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")},
				Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
			}
			if got := outcome(m.Process(internal, 0, test.Frame)); got != test.Want {
				t.Errorf("got %s, want %s", got, test.Want)
			}
		})
	}
}
