package datapath

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/te/frer"
	"sextant/te/srpolicy"
)

// TestHeadendTakeover: a head-end that takes over goes on numbering where the last one stopped, in
// the same epoch; after Unload the next one starts again, and nothing is left behind.
func TestHeadendTakeover(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	config := HeadendConfig{
		Domain: Domain{
			Secret: testSecret,
			Source: netip.MustParseAddr("fd00:5e::1"),
		},
		HopLimit:   63,
		Epoch:      9,
		Interfaces: []HeadendInterface{{Name: "near"}},
		Uplinks:    []string{"far"},
		Local:      []string{"far"},
	}
	open := func(epoch uint8) *Headend {
		t.Helper()
		config.Epoch = epoch
		h, err := OpenHeadend(w.dir, config)
		must(t, err)
		t.Cleanup(h.Close)
		table, err := srpolicy.Compile(steerRules(), steerPolicies(), h.Source(), nil)
		must(t, err)
		must(t, h.SetTable(table))
		attachments, err := h.Commit()
		must(t, err)
		if len(attachments) != 3 {
			t.Errorf("attached %v, want the loop, near, and far's egress", attachments)
		}
		return h
	}
	numbered := func(h *Headend) uint64 {
		t.Helper()
		n, err := h.Numbered(255)
		must(t, err)
		return n
	}
	first := open(250)
	must(t, first.maps["sequences"].Put(uint32(255), sequence{Next: 4711}))
	second := open(251)
	if numbered(second) != 4711 || second.Source().Epoch != 250 {
		t.Errorf("taken over at number %d of epoch %d, want 4711 of 250", numbered(second),
			second.Source().Epoch)
	}
	must(t, Unload(w.dir))
	if _, err := netlink.LinkByName(loopOuter); err == nil {
		t.Error("the loop is still there")
	}
	third := open(251)
	if numbered(third) != 0 || third.Source().Epoch != 251 {
		t.Errorf("after Unload: number %d of epoch %d, want 0 of 251", numbered(third),
			third.Source().Epoch)
	}
	must(t, Unload(w.dir))
}

// TestMergeTakeover: an egress that takes over remembers what came, so that no copy passes twice; a
// deleted instance remembers nothing.
func TestMergeTakeover(t *testing.T) {
	w := newWorld(t)
	s := newSender(t, rand.New(rand.NewPCG(3, 3)), srpolicy.TLV, mergeInstances[0])
	frame := s.next()
	pass := func(m *Merge) uint32 {
		t.Helper()
		verdict, _ := newRunner(m.programs["merge"], w.near).run(t, frame)
		return verdict
	}
	first := newTwoMerges(t, w).program
	_, err := first.Commit()
	must(t, err)
	if verdict := pass(first); verdict != xdpPass {
		t.Errorf("the first copy: %d", verdict)
	}
	second := newTwoMerges(t, w).program
	if verdict := pass(second); verdict != xdpDrop {
		t.Errorf("a copy after the takeover: %d", verdict)
	}
	must(t, second.DeleteInstance(0))
	if verdict := pass(second); verdict != xdpDrop {
		t.Errorf("a copy of no instance: %d", verdict)
	}
	must(t, second.SetInstance(0, mergeInstances[0]))
	if verdict := pass(second); verdict != xdpPass {
		t.Errorf("the first copy of a new instance: %d", verdict)
	}
	stats, err := second.Stats(0, 3)
	must(t, err)
	if stats.Passed != 1 || stats.Duplicate != 0 || len(stats.Paths) != 3 {
		t.Errorf("a new instance counts %+v", stats)
	}
	must(t, Unload(w.dir))
}

func TestInstanceRefused(t *testing.T) {
	w := newWorld(t)
	m := newTwoMerges(t, w).program
	good := mergeInstances[0]
	for name, spoil := range map[string]func(*Instance){
		"another node's SID": func(i *Instance) { i.SID = netip.MustParsePrefix("fcbb:0:9::/48") },
		"no path":            func(i *Instance) { i.Flows = nil },
		"nine paths":         func(i *Instance) { i.Flows = make([]uint32, 9) },
		"short history":      func(i *Instance) { i.Rules.HistoryLog2 = 3 },
	} {
		bad := good
		spoil(&bad)
		if err := m.SetInstance(5, bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNumbersRunOnAfterUnload: a head-end that is unloaded and started again goes on with its
// numbers, so that an egress drops none of its packets, also where numbers have no epoch; and its
// loop goes with it.
func TestNumbersRunOnAfterUnload(t *testing.T) {
	n := newNetwork(t, "r2", "r3")
	rules, policy := mirrorPolicy(twoLists(srpolicy.SID))
	settings := tlvSettings
	settings.Bits, settings.Reset = frer.BitsSID, longReset
	n.openHeadend(rules, policy)
	m := n.openMerge(settings, "r2", "r3")
	const datagrams = 50
	for turn := range uint64(4) {
		if got := n.datagrams("[2001:db8:2::2]:4433", datagrams); got != datagrams {
			t.Errorf("after %d restarts: %d of %d datagrams arrived", turn, got, datagrams)
		}
		n.do("pe1", func() (err error) {
			dir := filepath.Join(n.dir, "pe1")
			n.numbers, err = DetachHeadend(dir)
			if err = errors.Join(err, Unload(dir)); err == nil {
				if _, there := net.InterfaceByName(loopOuter); there == nil {
					err = errors.New("the loop is left over")
				}
			}
			return err
		})
		if n.numbers[0] != (turn+1)*datagrams {
			t.Errorf("numbers go on with %v, want %d", n.numbers, (turn+1)*datagrams)
		}
		n.openHeadend(rules, policy)
	}
	if stats := settled(t, m, 2); stats.Passed != 4*datagrams || stats.Missing() != 0 ||
		stats.Resets != 1 {
		t.Errorf("%+v", stats)
	}
	n.do("pe1", func() error {
		if numbers, err := DetachHeadend(filepath.Join(n.dir, "nobody")); numbers != nil ||
			err != nil {
			t.Errorf("where no head-end is: %v, %v", numbers, err)
		}
		return nil
	})
}

// TestCopiesSurviveTheTable: copies that are in the loop when the table is replaced take the
// policy's new lists, wherever its rule is now; those of a policy that is gone are dropped.
func TestCopiesSurviveTheTable(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	h := newTwoHeadends(t, w, Internal).program
	lists := func(segments ...string) (all []srpolicy.List) {
		for _, s := range segments {
			all = append(all, srpolicy.List{Segments: []netip.Addr{netip.MustParseAddr(s)},
				Reduced: true})
		}
		return all
	}
	policy := func(name string, index uint32, segments ...string) srpolicy.Policy {
		paths := []srpolicy.CandidatePath{{Action: srpolicy.Mirror, Lists: lists(segments...)}}
		return srpolicy.Policy{Name: name, Index: index, Paths: paths}
	}
	set := func(rules []srpolicy.Rule, policies ...srpolicy.Policy) {
		t.Helper()
		table, err := srpolicy.Compile(rules, policies, h.Source(), nil)
		must(t, err)
		must(t, h.SetTable(table))
	}
	all, web := srpolicy.Rule{Policy: "all"},
		srpolicy.Rule{Policy: "web", Match: srpolicy.Match{Protocol: 6}}
	other := policy("web", 9, "fcbb:bb00:1::", "fcbb:bb00:1:1::")
	frame := benchArriving(t, benchACK(benchClientV6, hostVIPv6), 1).octets
	arrival, inside := newRunner(h.programs[Internal], w.near),
		newRunner(h.programs[Internal], h.loop.inner)
	for _, test := range []struct {
		name    string
		replace func()
		want    []uint32
	}{
		{"the same table", func() {}, []uint32{xdpRedirect, xdpRedirect, xdpDrop}},
		{"another rule in front", func() {
			set([]srpolicy.Rule{web, all}, other,
				policy("all", 4, "fcbb:bb00:1::", "fcbb:bb00:2::"))
		},
			[]uint32{xdpRedirect, xdpRedirect, xdpDrop}},
		{"a list more", func() {
			set([]srpolicy.Rule{all}, policy("all", 4, "fcbb:bb00:1::", "fcbb:bb00:2::",
				"fcbb:bb00:6::"))
		},
			[]uint32{xdpRedirect, xdpRedirect, xdpRedirect}},
		{"another policy", func() { set([]srpolicy.Rule{web}, other) },
			[]uint32{xdpDrop, xdpDrop, xdpDrop}},
	} {
		set([]srpolicy.Rule{all}, policy("all", 4, "fcbb:bb00:1::", "fcbb:bb00:2::"))
		verdict, note := arrival.run(t, frame)
		if verdict != xdpRedirect {
			t.Fatalf("%s: the packet was not copied: %d", test.name, verdict)
		}
		note = slices.Clone(note)
		test.replace()
		for i, want := range test.want {
			if got, _ := inside.run(t, note); got != want {
				t.Errorf("%s: copy %d: verdict %d, want %d", test.name, i, got, want)
			}
		}
	}
}
