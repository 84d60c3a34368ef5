package datapath

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// strayWorld is a machine with a VRF that is the test's own namespace, and one that is the device
// far, with sockets in each state and frames for both. All kernels have these, of which some have
// no VRF devices; from far, the kernel finds sockets that are bound to no device.
type strayWorld struct {
	*world
	program *Strays
	model   *model.Strays
	next    func() []byte
	device  int // place of the SID of the device in the model
	// keep reminds the kernel of sockets that it is about to forget: to be called before each frame
	keep func(testing.TB)
}

func newStrayWorld(t testing.TB, seed uint64) *strayWorld {
	w := &strayWorld{world: newWorld(t), device: 1}
	routeBackends(t)
	sockets, connections, keep := hostSockets(t, w.world)
	w.keep = keep
	infrastructure := []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")}
	own, asked, only4 := netip.MustParsePrefix("fcbb:bb00:c46::/48"),
		netip.MustParsePrefix("fcbb:bb00:c4::/48"), netip.MustParsePrefix("fcbb:bb00:c6::/48")
	var err error
	w.program, err = OpenStrays(w.dir, StraysConfig{
		Infrastructure: infrastructure, Interfaces: []StrayInterface{{Name: "near"}},
		VRFs: []StrayVRF{{Namespace: fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()),
			SIDs: []netip.Prefix{own}, Backup: "far"}},
	})
	must(t, err)
	t.Cleanup(w.program.Close)
	must(t, w.program.Follow())
	must(t, w.program.maps["stray_vrfs"].Put(uint32(1),
		strayVRF{Interface: uint32(w.far), Backup: uint32(w.far), Address: [6]byte(farMAC),
			BackupAddress: [6]byte(farRouterMAC)}))
	must(t, w.program.maps["stray_sids"].Put(straySIDKeyOf(asked),
		straySID{VRF: 1, Families: strayIPv4 | strayIPv6}))
	must(t, w.program.maps["stray_sids"].Put(straySIDKeyOf(only4),
		straySID{VRF: 0, Families: strayIPv4}))
	w.model = &model.Strays{
		Interfaces: map[uint32]struct{}{uint32(w.near): {}}, Infrastructure: infrastructure,
		SIDs: []model.StraySID{
			{Prefix: own, IPv4: true, IPv6: true}, {Prefix: asked, IPv4: true, IPv6: true,
				Device: true}, {Prefix: only4, IPv4: true},
		},
		Sockets: func(_ netip.Prefix, tuple flow.Tuple) model.Socket { return sockets[tuple] },
	}
	config := hostConfig(t)
	config.SIDs = nil
	for _, prefix := range []netip.Prefix{own, asked, only4,
		netip.MustParsePrefix("fcbb:bb00:1::/48")} {
		config.SIDs = append(config.SIDs, LocalSID{Prefix: prefix, Behavior: srv6.EndDT46})
	}
	generator := hostGenerator(t, seed, connections, config)
	w.next = func() []byte {
		keep(t)
		for {
			if frame := generator.NextHost(); len(
				frame) >= minFrame { // the kernel's test run refuses others
				return frame
			}
		}
	}
	return w
}

// decides is what stray makes of a frame, and what is decided with the answer to what a device is
// asked for.
func (w *strayWorld) decides(frame []byte) (r, decided model.Result) {
	r = w.model.Process(uint32(w.near), frame)
	if !r.Taken || r.Offer == model.OfferStray {
		return r, r
	}
	w.model.SIDs[w.device].Device = false
	defer func() { w.model.SIDs[w.device].Device = true }()
	return r, w.model.Process(uint32(w.near), frame)
}

// TestStraysAgreeWithModel feeds the same generated frames to the program and to its Go model, for
// a VRF that is the test's own namespace with sockets in each state, and for one that is a device.
func TestStraysAgreeWithModel(t *testing.T) {
	w := newStrayWorld(t, 7)
	run := newRunner(w.program.programs["stray"], w.near)
	outcomes := map[string]int{}
	for i := range *frames {
		frame := w.next()
		want := w.model.Process(uint32(w.near), frame)
		verdict, after := run.run(t, frame)
		wanted := frame
		switch {
		case want.Offer == model.OfferStray:
			wanted = append([]byte{0, 0, 1, 0}, want.Frame...)
			outcomes["stray"]++
		case want.Taken:
			wanted = append([]byte{1, 0, 0, 0}, want.Frame...)
			outcomes["asked"]++
		case want.Offer == model.OfferHere:
			outcomes["here"]++
		case want.Offer == model.OfferReturned:
			outcomes["returned"]++
		}
		if verdict != xdpPass || !bytes.Equal(after, wanted) {
			t.Fatalf("frame %d, flow %v: verdict %d\n%x became\n%x, want\n%x", i, want.Flow,
				verdict, frame, after, wanted)
		}
	}
	t.Log(outcomes)
	for _, outcome := range []string{"stray", "asked", "returned"} {
		if outcomes[outcome] < *frames/2000 {
			t.Errorf("only %d of %d frames were %s: the generator misses", outcomes[outcome],
				*frames, outcome)
		}
	}
	traffic, err := w.program.Traffic(0)
	must(t, err)
	if traffic.Here == 0 || traffic.Strays != uint64(outcomes["stray"]) ||
		traffic.Returned != uint64(outcomes["returned"]) {
		t.Errorf("counted %+v, want %d strays, %d returned and some that are here", traffic,
			outcomes["stray"], outcomes["returned"])
	}
}
