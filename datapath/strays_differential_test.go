package datapath

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/flow"
	"sextant/forward"
	"sextant/srv6"
)

// TestStraysAgreeWithModel feeds the same generated frames to the program and to its Go model, for a VRF that is the test's own namespace with
// sockets in each state, and for one that is a device.
func TestStraysAgreeWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	sockets, connections := hostSockets(t, w)
	infrastructure := []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")}
	own, asked, only4 := netip.MustParsePrefix("fcbb:bb00:c46::/48"), netip.MustParsePrefix("fcbb:bb00:c4::/48"), netip.MustParsePrefix("fcbb:bb00:c6::/48")
	program, err := OpenStrays(w.dir, StraysConfig{
		Infrastructure: infrastructure, Interfaces: []StrayInterface{{Name: "near"}},
		VRFs: []StrayVRF{{Namespace: fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), SIDs: []netip.Prefix{own}, Backup: "far"}},
	})
	must(t, err)
	t.Cleanup(program.Close)
	must(t, program.Follow())
	// A VRF device: this test is for all kernels, of which some have none.
	must(t, program.maps["stray_vrfs"].Put(uint32(1), strayVRF{Interface: uint32(w.far), Backup: uint32(w.far)}))
	must(t, program.maps["stray_sids"].Put(straySIDKeyOf(asked), straySID{VRF: 1, Families: strayIPv4 | strayIPv6}))
	must(t, program.maps["stray_sids"].Put(straySIDKeyOf(only4), straySID{VRF: 0, Families: strayIPv4}))
	model := &forward.Strays{
		Interfaces: map[uint32]struct{}{uint32(w.near): {}}, Infrastructure: infrastructure,
		SIDs: []forward.StraySID{
			{Prefix: own, IPv4: true, IPv6: true}, {Prefix: asked, IPv4: true, IPv6: true, Device: true}, {Prefix: only4, IPv4: true},
		},
		Sockets: func(_ netip.Prefix, tuple flow.Tuple) forward.Socket { return sockets[tuple] },
	}
	var sids []LocalSID
	for _, prefix := range []netip.Prefix{own, asked, only4, netip.MustParsePrefix("fcbb:bb00:1::/48")} {
		sids = append(sids, LocalSID{Prefix: prefix, Behavior: srv6.EndDT46})
	}
	config := hostConfig(t)
	config.SIDs = sids
	generator := hostGenerator(t, 7, connections, config)
	run := newRunner(program.programs["stray"], w.near)
	outcomes := map[string]int{}
	for i := range *frames {
		frame := generator.NextHost()
		if len(frame) < 14 {
			continue // the kernel's test run refuses frames without an Ethernet header
		}
		want := model.Process(uint32(w.near), frame)
		verdict, after := run.run(t, frame)
		wanted := frame
		switch {
		case want.Offer == forward.OfferStray:
			wanted = append([]byte{0, 0, 1, 0}, want.Frame...)
			outcomes["stray"]++
		case want.Taken:
			wanted = append([]byte{1, 0, 0, 0}, want.Frame...)
			outcomes["asked"]++
		case want.Flow.Src.IsValid():
			outcomes["here"]++
		}
		if verdict != xdpPass || !bytes.Equal(after, wanted) {
			t.Fatalf("frame %d, flow %v: verdict %d\n%x became\n%x, want\n%x", i, want.Flow, verdict, frame, after, wanted)
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"stray", "asked"} {
		if outcomes[outcome] < *frames/200 {
			t.Errorf("only %d of %d frames were %s: the generator misses", outcomes[outcome], *frames, outcome)
		}
	}
	traffic, err := program.Traffic(0)
	must(t, err)
	if traffic.Here == 0 || traffic.Strays != uint64(outcomes["stray"]) {
		t.Errorf("counted %+v, want %d strays and some that are here", traffic, outcomes["stray"])
	}
}
