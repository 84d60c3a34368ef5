package datapath

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/linux/facts"
)

// steering runs a head-end on the interface near and an egress on far.
func steering(t *testing.T, w *world) *Headend {
	t.Helper()
	infrastructure := []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")}
	h, err := OpenHeadend(filepath.Join(w.dir, "headend"), HeadendConfig{
		Domain: Domain{
			Secret:         testSecret,
			Block:          block(t),
			Infrastructure: infrastructure,
			Source:         packettest.EdgeAddr,
		},
		HopLimit:   61,
		Interfaces: []HeadendInterface{{Name: "near", Side: Mixed}},
		Local:      []string{"far"},
	})
	must(t, err)
	t.Cleanup(h.Close)
	_, err = h.Commit()
	must(t, err)
	m, err := OpenMerge(filepath.Join(w.dir, "merge"), MergeConfig{
		Domain: Domain{
			Block:          block(t),
			Infrastructure: infrastructure,
		},
		Interfaces: []MergeInterface{{Name: "far"}},
		SIDs:       []MergeSID{{Prefix: netip.PrefixFrom(packettest.MergeSID, 80)}},
	})
	must(t, err)
	t.Cleanup(m.Close)
	_, err = m.Commit()
	must(t, err)
	return h
}

// TestStalePinsOfSteering: what a head-end and an egress pin is not stale, but a table of another
// shape and another program are.
func TestStalePinsOfSteering(t *testing.T) {
	w := newWorld(t)
	h := steering(t, w)
	if stale := stalePins(t, w.dir); len(stale) != 0 {
		t.Errorf("just pinned, and stale: %v", stale)
	}
	for _, table := range []string{"headend/policy_traffic", "merge/recoveries"} {
		must(t, os.Remove(filepath.Join(w.dir, table)))
		pinMap(t, filepath.Join(w.dir, table), &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8,
			ValueSize: 4, MaxEntries: 4})
	}
	l, err := link.LoadPinnedLink(filepath.Join(w.dir, "merge/link_merge_xdp_far"), nil)
	must(t, err)
	defer l.Close()
	must(t, l.Update(h.programs[Mixed]))
	stale := stalePins(t, w.dir)
	for pin, want := range map[string]string{
		"headend/policy_traffic": "another shape", "merge/recoveries": "another shape",
		"merge/link_merge_xdp_far": "has the tag " + tagOf(h.programs[Mixed]),
	} {
		if !strings.Contains(stale[pin], want) {
			t.Errorf("%s: %q, want %q", pin, stale[pin], want)
		}
	}
	if len(stale) != 3 {
		t.Errorf("stale: %v", stale)
	}
}

// TestPrograms: what runs on interfaces is told by the links that are pinned, as long as their
// interfaces are there, so that a program that was taken off, a foreign one, and an interface that
// was made anew can be told from the machine's facts.
func TestPrograms(t *testing.T) {
	w := newWorld(t)
	if none, err := Programs(w.dir); err != nil || none == nil || len(none) != 0 {
		t.Errorf("programs of nobody: %v, %v", none, err)
	}
	steering(t, w)
	check := func(when string, pinned, owners []string) {
		t.Helper()
		known := linux.Facts(linux.Query{Interfaces: []string{"near", "far"}})
		var err error
		known.Programs, err = Programs(w.dir)
		must(t, err)
		var got []string
		for _, p := range known.Programs {
			if p.Interface != loopInner {
				got = append(got, p.Interface)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(pinned, got); diff != "" {
			t.Errorf("%s: programs (-want +got):\n%s", when, diff)
		}
		var found []string
		for _, name := range []string{"near", "far"} {
			found = append(found, name+" "+programOwner(known, name))
		}
		if diff := cmp.Diff(owners, found); diff != "" {
			t.Errorf("%s: owners (-want +got):\n%s", when, diff)
		}
	}
	check("as it should be", []string{"far", "near"}, []string{"near own", "far own"})

	pass, err := linux.LoadXDPPass()
	must(t, err)
	defer pass.Close()
	off := func(path string) {
		t.Helper()
		l, err := link.LoadPinnedLink(filepath.Join(w.dir, path), nil)
		must(t, err)
		defer l.Close()
		must(t, l.Detach())
	}
	off("headend/link_headend_xdp_near")
	check("taken off", []string{"far"}, []string{"near none", "far own"})
	must(t, linux.AttachXDP("near", pass))
	check("another in its place", []string{"far"}, []string{"near foreign", "far own"})
	far, err := netlink.LinkByName("far")
	must(t, err)
	must(t, netlink.LinkDel(far))
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "far"},
		PeerName: "farpeer"}))
	check("made anew", nil, []string{"near foreign", "far none"})
}

// programOwner tells whose program runs on an interface, by the facts.
func programOwner(f facts.Facts, name string) string {
	on := f.Interfaces[name].XDPProgram
	switch {
	case on == 0:
		return "none"
	case slices.ContainsFunc(f.Programs, func(p facts.Program) bool {
		return p.Interface == name && p.ID == on
	}):
		return "own"
	}
	return "foreign"
}
