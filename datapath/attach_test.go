package datapath

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/gopacket/gopacket/layers"

	"sextant/lb/pool"
)

// TestOccupiedInterface: an interface with a foreign XDP program is refused in clear words,
// whatever the mode, and the foreign program stays. What ran before is brought back from a
// snapshot.
func TestOccupiedInterface(t *testing.T) {
	w := newWorld(t)
	occupy(t, "near")
	foreign := attached(t, "near")
	config := takeoverConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "far", Side: Internal}}
	first, err := OpenEdge(w.dir, config)
	must(t, err)
	defer first.Close()
	must(t, commit(first))
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	ran := attached(t, "far")
	for _, mode := range []Mode{Auto, Native, Generic} {
		snapshot, err := TakeSnapshot(w.dir)
		must(t, err)
		config.Interfaces = []EdgeInterface{{Name: "far", Side: Internal},
			{Name: "near", Side: External, Mode: mode}}
		e, err := OpenEdge(w.dir, config)
		must(t, err)
		_, err = e.Commit()
		for _, part := range []string{"interface near", "another XDP program",
			"ip link set dev near xdp off"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("mode %s: error %q does not say %q", mode, err, part)
			}
		}
		must(t, snapshot.Restore())
		snapshot.Close()
		e.Close()
		if got := attached(t, "near"); got != foreign {
			t.Errorf("mode %s: program %d is on the occupied interface now, not %d", mode, got,
				foreign)
		}
		if got := attached(t, "far"); got != ran {
			t.Errorf("mode %s: program %d runs now, not %d", mode, got, ran)
		}
	}
}

// TestMissingInterface: the error names the interface and how to list them.
func TestMissingInterface(t *testing.T) {
	w := newWorld(t)
	config := edgeConfig(t)
	config.Interfaces = []EdgeInterface{{Name: "nowhere", Side: External}}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	if _, err = e.Commit(); err == nil || !strings.Contains(err.Error(),
		"nowhere: no such interface here; ip link") {
		t.Errorf("error %q", err)
	}
}

// TestGenericMode: without native XDP frames are forwarded all the same, and the operator is told.
func TestGenericMode(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	config := takeoverConfig(t)
	for i := range config.Interfaces {
		config.Interfaces[i].Mode = Generic
	}
	// whose driver has no XDP
	config.Interfaces = append(config.Interfaces, EdgeInterface{Name: "lo", Side: Internal})
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	must(t, fillEdge(e, 1))
	attachments, err := e.Commit()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	for _, a := range attachments {
		if a.Mode != Generic || modeOf(a.Index) != Generic {
			t.Errorf("%s is attached in %s mode", a.On, a.Mode)
		}
		if (a.Warning != "") != (a.On == "lo") {
			t.Errorf("%s: warning %q", a.On, a.Warning)
		}
	}
	c := &crossing{in: openWire(t), out: openWireOn(t, "farpeer"),
		ifindex: mustLink(t, "nearpeer").Attrs().Index, to: map[string]int{}}
	for range 4 {
		c.send(t, unchanged)
	}
	if c.to["fcbb:bb00:1::"] != 4*crossingWindow {
		t.Errorf("frames went to %v", c.to)
	}

	// Natively again: another mode is another attachment.
	e2 := servedEdge(t, w, 1)
	must(t, commit(e2))
	if attached(t, "lo") != 0 {
		t.Error("an interface that is no longer configured still has a program")
	}
}

// programsAt counts a host's programs at their hooks.
func programsAt(t testing.TB, w *world, cgroup string, tags []string) (found []string) {
	t.Helper()
	dir, err := os.Open(cgroup)
	must(t, err)
	defer dir.Close()
	for hook, query := range map[string]link.QueryOptions{
		"egress":  {Target: w.near, Attach: ebpf.AttachTCXEgress},
		"sockets": {Target: int(dir.Fd()), Attach: ebpf.AttachCGroupSockOps},
	} {
		result, err := link.QueryPrograms(query)
		must(t, err)
		for _, p := range result.Programs {
			program, err := ebpf.NewProgramFromID(p.ID)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			must(t, err)
			if slices.Contains(tags, tagOf(program)) {
				found = append(found, hook)
			}
			program.Close()
		}
	}
	if attached(t, "near") != 0 {
		found = append(found, "xdp")
	}
	slices.Sort(found)
	return found
}

// TestUnload: nothing is left of an instance, in the kernel or on the bpf file system, and
// unloading again is no error.
func TestUnload(t *testing.T) {
	w := newWorld(t)
	config := hostConfig(t)
	h, err := OpenHost(w.dir, config)
	must(t, err)
	attachments, err := h.Commit()
	must(t, err)
	var tags []string
	for _, a := range attachments {
		tags = append(tags, a.Tag)
	}
	h.Close()
	if got := programsAt(t, w, config.Cgroup, tags); !slices.Equal(slices.Compact(got),
		[]string{"egress", "sockets", "xdp"}) {
		t.Errorf("attached at %v", got)
	}
	pins, err := filepath.Glob(filepath.Join(w.dir, "*"))
	must(t, err)
	if len(pins) < len(hostState) {
		t.Errorf("pinned %v", pins)
	}
	for range 2 {
		must(t, Unload(w.dir))
		if _, err := os.Stat(w.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", w.dir, err)
		}
		// A cgroup may have the same programs of another instance; a link that ends is detached a
		// moment later.
		eventually(t, "no program on the interface", func() bool {
			got := programsAt(t, w, config.Cgroup, tags)
			return !slices.Contains(got, "xdp") && !slices.Contains(got, "egress")
		})
	}
}

// TestUnloadStopsCounting: the sockets' program is gone too.
func TestUnloadStopsCounting(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	h := busyHost(t, w)
	l := listenBy(t, hostVIPv6, false)
	_, server, peer := connectTo(t, l, hostVIPv6, clientV6)
	defer server.Close()
	defer peer.Close()
	wantBusy(t, h, "attached", 0, 1)
	must(t, Unload(w.dir))
	_, server2, peer2 := connectTo(t, l, hostVIPv6, clientV6)
	defer server2.Close()
	defer peer2.Close()
	echo(t, server2, peer2)
	wantBusy(t, h, "unloaded", 0, 1)
}

// TestPinnedChains: the next agent reads the chains that the last one left; there are none where
// nothing was pinned.
func TestPinnedChains(t *testing.T) {
	w := newWorld(t)
	if chains, err := PinnedChains(w.dir, 1); err != nil || chains != nil {
		t.Errorf("read %d chains from nowhere, %v", len(chains), err)
	}
	config := edgeConfig(t)
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	defer e.Close()
	g := testPool(t, testBuckets, 3, 0xabcd, 2, 0xff00, 4, 5)
	must(t, e.SetChains(1, g))
	must(t, e.SetService(ServiceKey{VIP: hostVIPv6, Port: 80, Protocol: 6}, 1,
		testBuckets))
	_, err = e.Commit()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	got, err := PinnedChains(w.dir, 1)
	must(t, err)
	var want []pool.Chain
	for b := range testBuckets {
		want = append(want, g.Chain(b))
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %d chains, other than the %d that were set", len(got), len(want))
	}
	if got, err := PinnedChains(w.dir, 2); err != nil || got != nil {
		t.Errorf("read %d chains of no service, %v", len(got), err)
	}
}

// TestPinnedNumbers: the next agent finds under which numbers services and SIDs are in the tables.
func TestPinnedNumbers(t *testing.T) {
	w := newWorld(t)
	if numbers, err := PinnedServices(w.dir); err != nil || len(numbers) > 0 {
		t.Errorf("read %v from nowhere, %v", numbers, err)
	}
	if sids, err := PinnedSIDs(w.dir); err != nil || len(sids) > 0 {
		t.Errorf("read %v from nowhere, %v", sids, err)
	}
	e, err := OpenEdge(w.dir, edgeConfig(t))
	must(t, err)
	defer e.Close()
	want := map[ServiceKey]uint32{
		{netip.MustParseAddr("192.0.2.1"), 0, 17}:       7,
		{netip.MustParseAddr("2001:db8::1"), 443, 6}:    1,
		{netip.MustParseAddr("::ffff:192.0.2.1"), 1, 6}: 3,
	}
	for key, n := range want {
		must(t, e.SetService(key, n, testBuckets))
	}
	first, second := netip.MustParseAddr("2001:db8::a"), netip.MustParseAddr("2001:db8::b")
	must(t, e.SetSID(0xe000, first))
	must(t, e.SetSID(1, second))
	_, err = e.Commit()
	must(t, err)
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	numbers, err := PinnedServices(w.dir)
	if err != nil || !maps.Equal(numbers, want) {
		t.Errorf("read %v, %v; want %v", numbers, err, want)
	}
	sids, err := PinnedSIDs(w.dir)
	if err != nil || !maps.Equal(sids, map[uint16]netip.Addr{0xe000: first, 1: second}) {
		t.Errorf("read %v, %v", sids, err)
	}
}

// TestForeignPin: a map of another shape under a name of ours is not taken over, and does not
// hinder.
func TestForeignPin(t *testing.T) {
	w := newWorld(t)
	must(t, os.MkdirAll(w.dir, 0o700))
	foreign, err := ebpf.NewMap(&ebpf.MapSpec{Name: "drops", Type: ebpf.Array, KeySize: 4,
		ValueSize: 4, MaxEntries: 1})
	must(t, err)
	defer foreign.Close()
	must(t, foreign.Pin(filepath.Join(w.dir, "drops")))
	e := servedEdge(t, w, 1)
	must(t, commit(e))
	t.Cleanup(func() { must(t, Unload(w.dir)) })
	run := newRunner(e.programs[External], w.near)
	frame := tcpFrame(t, tupleOf(clientV6, hostVIPv6, 1), &layers.TCP{ACK: true})
	if verdict, _ := run.run(t, frame[:20]); verdict != xdpDrop {
		t.Errorf("verdict %d", verdict)
	}
	pinned, err := ebpf.LoadPinnedMap(filepath.Join(w.dir, "drops"), nil)
	must(t, err)
	defer pinned.Close()
	if pinned.ValueSize() != 8 {
		t.Errorf("pinned is a map with values of %d bytes", pinned.ValueSize())
	}
}
