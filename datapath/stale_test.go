package datapath

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/config"
	"sextant/linux"
)

// TestStalePins: what this version pins is not stale, whatever its settings are; a table of another
// shape, another program, and what an agent left that was killed, are.
func TestStalePins(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.dir, "edge")
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "near", Side: External},
		{Name: "far", Side: Internal}}
	edge, err := OpenEdge(dir, config)
	must(t, err)
	defer edge.Close()
	_, err = edge.Commit()
	must(t, err)
	host, err := OpenHost(filepath.Join(w.dir, "host"), hostConfigOn(t, "nearpeer"))
	must(t, err)
	defer host.Close()
	_, err = host.Commit()
	must(t, err)
	strays, err := OpenStrays(filepath.Join(w.dir, "strays"), StraysConfig{
		Infrastructure: config.Infrastructure, Interfaces: []StrayInterface{{Name: "farpeer"}},
		VRFs: []StrayVRF{{Namespace: "/proc/thread-self/ns/net",
			SIDs: []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:c46::/48")}, Backup: "far"}},
	})
	must(t, err)
	defer strays.Close()
	_, err = strays.Commit()
	must(t, err)
	if stale := stalePins(t, w.dir); len(stale) != 0 {
		t.Errorf("just pinned, and stale: %v", stale)
	}

	checkDescribed(t, w)

	must(t, os.Remove(filepath.Join(dir, "services")))
	pinMap(t, filepath.Join(dir, "services"), &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8,
		ValueSize: 4, MaxEntries: 4})
	pinMap(t, filepath.Join(dir, "forgotten"), &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8,
		ValueSize: 4, MaxEntries: 4})
	pinMap(t, filepath.Join(dir, "sids~"), &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 8, ValueSize: 4,
		MaxEntries: 4})
	l, err := link.LoadPinnedLink(filepath.Join(dir, "link_edge_xdp_far"), nil)
	must(t, err)
	defer l.Close()
	must(t, l.Update(host.programs["host"]))
	must(t, os.Remove(filepath.Join(w.dir, "strays/stray_vrfs")))
	pinMap(t, filepath.Join(w.dir, "strays/stray_vrfs"), &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4,
		ValueSize: 4, MaxEntries: 16})
	// as on a kernel without links for TC programs
	led := filepath.Join(w.dir, "strays/link_stray_lead_tcin_farpeer")
	must(t, os.Remove(led))
	pinProgram(t, led, strays.programs["vrf_ask"])
	if p := described(t, w)["/strays/link_stray_lead_tcin_farpeer"]; p.Kind != "filter" ||
		p.Program != "vrf_ask" || p.Problem != "" {
		t.Errorf("a program in place of a link is described as %+v", p)
	}
	stale := stalePins(t, w.dir)
	for pin, want := range map[string]string{
		"strays/stray_vrfs":                   "another shape",
		"strays/link_stray_lead_tcin_farpeer": "has the tag " + tagOf(strays.programs["vrf_ask"]),
		"edge/services":                       "another shape",
		"edge/forgotten":                      "has no table forgotten",
		"edge/sids~":                          "was killed",
		"edge/link_edge_xdp_far": "has the tag " +
			tagOf(host.programs["host"]),
	} {
		if !strings.Contains(stale[pin], want) {
			t.Errorf("%s: %q, want %q", pin, stale[pin], want)
		}
	}
	if len(stale) != 6 {
		t.Errorf("stale: %v", stale)
	}
	if none := stalePins(t, filepath.Join(w.dir, "nobody")); len(none) != 0 {
		t.Errorf("pins of nobody: %v", none)
	}
}

// described is what is pinned, by its path within the node's directory.
func described(t *testing.T, w *world) map[string]Pinned {
	t.Helper()
	pins, err := DescribePins(w.dir)
	must(t, err)
	seen := map[string]Pinned{}
	for _, p := range pins {
		seen[strings.TrimPrefix(p.Path, w.dir)] = p
	}
	return seen
}

// checkDescribed looks for links and a map among what is pinned.
func checkDescribed(t *testing.T, w *world) {
	t.Helper()
	seen := described(t, w)
	for _, p := range seen {
		if p.Problem != "" {
			t.Errorf("%s: %s", p.Path, p.Problem)
		}
	}
	if l := seen["/edge/link_edge_xdp_far"]; l.Program != "edge" || l.Kind != "link" ||
		int(l.Interface) != w.far || l.Tag == "" {
		t.Errorf("the link is described as %+v", l)
	}
	if l := seen["/strays/link_stray_xdp_farpeer"]; l.Program != "stray" || l.Tag == "" {
		t.Errorf("the link of the role strays is described as %+v", l)
	}
	if m := seen["/host/busy"]; m.Kind != "map" || m.Type != "Array" ||
		m.MaxEntries != MaxHostServices || m.ValueSize != 4 {
		t.Errorf("the map is described as %+v", m)
	}
}

func hostConfigOn(t *testing.T, iface string) HostConfig {
	config := hostConfig(t)
	config.Interfaces[0].Name = iface
	root, _, err := linux.CgroupRoot()
	must(t, err)
	config.Cgroup, err = os.MkdirTemp(root, "sextant-test-")
	must(t, err)
	t.Cleanup(func() { os.Remove(config.Cgroup) })
	return config
}

func pinMap(t *testing.T, path string, spec *ebpf.MapSpec) {
	t.Helper()
	m, err := ebpf.NewMap(spec)
	must(t, err)
	defer m.Close()
	must(t, m.Pin(path))
}

func pinProgram(t *testing.T, path string, program *ebpf.Program) {
	t.Helper()
	clone, err := program.Clone()
	must(t, err)
	defer clone.Close()
	must(t, clone.Pin(path))
}

func stalePins(t *testing.T, dir string) map[string]string {
	t.Helper()
	pins, err := StalePins(dir)
	must(t, err)
	stale := map[string]string{}
	for _, p := range pins {
		name, err := filepath.Rel(dir, p.Path)
		must(t, err)
		stale[name] = p.What
	}
	return stale
}

// Each role that programs carry out has said what it loads: else stale pins of it are not found.
func TestObjectsOfRoles(t *testing.T) {
	for i := range reflect.TypeFor[config.Node]().NumField() {
		tag := reflect.TypeFor[config.Node]().Field(i).Tag
		role, byPrograms := tag.Get("key"), tag.Get("role") == "programs"
		if has := objects[role] != nil; has != byPrograms {
			t.Errorf("role %s: programs %v, and objectsOf says %v", role, byPrograms, has)
		}
	}
}
