package datapath

import (
	"net/netip"
	"testing"

	"sextant/datapath/packettest"
	"sextant/te/srpolicy"
)

// TestHeadendCases: frames of all kinds, broken ones too, meet the fate that the shared table says,
// and no other counter rises.
func TestHeadendCases(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	h, err := OpenHeadend(w.dir, HeadendConfig{
		Domain: Domain{
			Secret:         testSecret,
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
			Source:         packettest.EdgeAddr,
		},
		HopLimit: 61,
		Interfaces: []HeadendInterface{{Side: External},
			{Side: Mixed}},
	})
	must(t, err)
	t.Cleanup(h.Close)
	list := srpolicy.List{Segments: []netip.Addr{packettest.MergeSID}, Reduced: true}
	policy := srpolicy.Policy{Name: "all",
		Paths: []srpolicy.CandidatePath{{Name: "only", Action: srpolicy.Path,
			Lists: []srpolicy.List{list}}}}
	table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "all"}}, []srpolicy.Policy{policy},
		h.Source(), nil)
	must(t, err)
	must(t, h.SetTable(table))
	w.openPorts(t, h.collection)
	sides := map[string]Side{packettest.External: External, packettest.Internal: Internal,
		packettest.Mixed: Mixed}
	for _, test := range packettest.HeadendCases(t) {
		w.run(t, test.Side+"/"+test.Name, func(t *testing.T) {
			subject{runner: newRunner(h.programs[sides[test.Side]], w.near),
				tables: h.collection}.check(t, test)
		})
	}
}

// TestMergeCases is the same for an egress.
func TestMergeCases(t *testing.T) {
	w := newWorld(t)
	m, err := OpenMerge(w.dir, MergeConfig{
		Domain: Domain{
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
		},
		SIDs:       []MergeSID{{Prefix: netip.PrefixFrom(packettest.MergeSID, 80)}},
		Interfaces: []MergeInterface{{Name: "near"}},
	})
	must(t, err)
	t.Cleanup(m.Close)
	for _, test := range packettest.MergeCases(t) {
		w.run(t, test.Name, func(t *testing.T) {
			subject{runner: newRunner(m.programs["merge"], w.near), tables: m.collection}.check(t,
				test)
		})
	}
}
