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

	"sextant/config"
	"sextant/doctor"
	"sextant/forward/packettest"
	"sextant/kernel"
)

// steering runs a head-end on the interface near and an egress on far.
func steering(t *testing.T, w *world) *Headend {
	t.Helper()
	infrastructure := []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")}
	h, err := OpenHeadend(filepath.Join(w.dir, "headend"), HeadendConfig{
		Secret: testSecret, Block: block(t), Infrastructure: infrastructure, Source: packettest.EdgeAddr, HopLimit: 61,
		Interfaces: []HeadendInterface{{Name: "near", Side: Mixed}}, Local: []string{"far"},
	})
	must(t, err)
	t.Cleanup(h.Close)
	_, err = h.Commit()
	must(t, err)
	m, err := OpenMerge(filepath.Join(w.dir, "merge"), MergeConfig{
		Block: block(t), Infrastructure: infrastructure, Interfaces: []MergeInterface{{Name: "far"}},
		SIDs: []MergeSID{{Prefix: netip.PrefixFrom(packettest.MergeSID, 80)}},
	})
	must(t, err)
	t.Cleanup(m.Close)
	_, err = m.Commit()
	must(t, err)
	return h
}

// steeringNode is the node file of the same.
func steeringNode(t *testing.T) *config.Node {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(`
node: router1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
headend: {interfaces: [{name: near}], local: [far], source: fd00:5e::1}
merge: {interfaces: [{name: far}], sids: [{prefix: "fcbb:bb00:1:f::/80", flows: [1, 2]}]}
`))
	must(t, err)
	return node
}

// TestStalePinsOfSteering: what a head-end and an egress pin is not stale, but a table of another shape and another program are.
func TestStalePinsOfSteering(t *testing.T) {
	w := newWorld(t)
	h := steering(t, w)
	if stale := stalePins(t, w.dir); len(stale) != 0 {
		t.Errorf("just pinned, and stale: %v", stale)
	}
	for _, table := range []string{"headend/policy_traffic", "merge/recoveries"} {
		must(t, os.Remove(filepath.Join(w.dir, table)))
		pinMap(t, filepath.Join(w.dir, table), &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 4, MaxEntries: 4})
	}
	l, err := link.LoadPinnedLink(filepath.Join(w.dir, "merge/link_merge_xdp_far"), nil)
	must(t, err)
	defer l.Close()
	must(t, l.Update(h.programs[Mixed]))
	stale := stalePins(t, w.dir)
	for pin, want := range map[string]string{
		"headend/policy_traffic": "another shape", "merge/recoveries": "another shape", "merge/link_merge_xdp_far": "has the tag " + tagOf(h.programs[Mixed]),
	} {
		if !strings.Contains(stale[pin], want) {
			t.Errorf("%s: %q, want %q", pin, stale[pin], want)
		}
	}
	if len(stale) != 3 {
		t.Errorf("stale: %v", stale)
	}
}

// TestPrograms: what runs on interfaces is told by the links that are pinned, as long as their interfaces are there; and the doctor names
// a program that was taken off, one of somebody else, and an interface that was made anew.
func TestPrograms(t *testing.T) {
	w := newWorld(t)
	if none, err := Programs(w.dir); err != nil || none == nil || len(none) != 0 {
		t.Errorf("programs of nobody: %v, %v", none, err)
	}
	steering(t, w)
	check := func(when string, pinned, findings []string) {
		t.Helper()
		facts := kernel.Facts(kernel.Query{Interfaces: doctor.Interfaces(steeringNode(t))})
		var err error
		facts.Programs, err = Programs(w.dir)
		must(t, err)
		var got []string
		for _, p := range facts.Programs {
			if p.Interface != loopInner {
				got = append(got, p.Interface)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(pinned, got); diff != "" {
			t.Errorf("%s: programs (-want +got):\n%s", when, diff)
		}
		var found []string
		for _, f := range doctor.Diagnose(steeringNode(t), facts, "v1") {
			if strings.HasPrefix(f.Code, "program_") {
				found = append(found, f.Code+" "+f.On)
			}
		}
		if diff := cmp.Diff(findings, found); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", when, diff)
		}
	}
	check("as it should be", []string{"far", "near"}, nil)

	pass, err := kernel.LoadXDPPass()
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
	check("taken off", []string{"far"}, []string{"program_missing near"})
	must(t, kernel.AttachXDP("near", pass))
	check("another in its place", []string{"far"}, []string{"program_foreign near"})
	far, err := netlink.LinkByName("far")
	must(t, err)
	must(t, netlink.LinkDel(far))
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "far"}, PeerName: "farpeer"}))
	check("made anew", nil, []string{"program_foreign near", "program_missing far"})
}
