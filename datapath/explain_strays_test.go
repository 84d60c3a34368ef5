package datapath

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// TestExplainEqualsStrays: what is explained is what the program does, and what a VRF device would
// answer; nothing that runs is changed.
func TestExplainEqualsStrays(t *testing.T) {
	w := newStrayWorld(t, 8)
	x, err := w.program.Explainer()
	must(t, err)
	defer x.Close()
	before, outcomes := contents(t, w.program.collection), map[string]int{}
	count := min(*frames, 20_000)
	for i := range count {
		frame := w.next()
		got, err := x.Run(w.near, frame)
		must(t, err)
		want, decided := w.decides(frame)
		offer := decided.Offer
		if got.Verdict != want.Verdict || got.Taken != want.Taken || !bytes.Equal(got.Frame,
			want.Frame) ||
			got.Here != (offer == model.OfferHere) || got.Stray != (offer == model.OfferStray) ||
			got.Returned != (offer == model.OfferReturned) {
			t.Fatalf("frame %d, %x\nexplained %v, here %v, stray %v, returned %v: %x\nthe model "+
				"%v, %v: %x", i, frame,
				got.Verdict, got.Here, got.Stray, got.Returned, got.Frame, want.Verdict, offer,
				want.Frame)
		}
		if offer != model.OfferNone {
			outcomes[fmt.Sprintf("%v, asked %v", offer,
				w.model.SIDs[w.device].Prefix == want.SID)]++
		}
	}
	if diff := cmp.Diff(before, contents(t, w.program.collection)); diff != "" {
		t.Errorf("explaining has changed the maps of the program that runs (-before +after):\n%s",
			diff)
	}
	t.Log(outcomes)
	for _, offer := range []model.Offer{model.OfferHere, model.OfferStray, model.OfferReturned} {
		for _, asked := range []bool{true, false} {
			if name := fmt.Sprintf("%v, asked %v", offer, asked); outcomes[name] < count/4000 {
				t.Errorf("only %d of %d frames were %s: the generator misses", outcomes[name],
					count, name)
			}
		}
	}
}

// longStray is a frame of 3,000 bytes to the SID of the device, with a packet of a connection that
// is nowhere.
func longStray(t *testing.T, ipv4 bool) []byte {
	t.Helper()
	p := packettest.Packet{Src: netip.MustParseAddr(strayClient6),
		Dst: netip.MustParseAddr(strayVIP6)}
	if ipv4 {
		p.Src, p.Dst = netip.MustParseAddr(strayClient4), netip.MustParseAddr(strayVIP4)
	}
	p.SrcPort, p.DstPort, p.Flags, p.Payload = 4711, 80, "A", make([]byte, 3000)
	outer := packettest.To(netip.MustParseAddr("fcbb:bb00:c4::"))
	return packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t, outer.Around(t, p.Bytes(t)))
}

// TestExplainLongStray: a frame that is longer than what the kernel's test mode of TC programs
// takes.
func TestExplainLongStray(t *testing.T) {
	w := newStrayWorld(t, 9)
	x, err := w.program.Explainer()
	must(t, err)
	defer x.Close()
	for _, ipv4 := range []bool{true, false} {
		frame := longStray(t, ipv4)
		got, err := x.Run(w.near, frame)
		must(t, err)
		if !got.Stray || got.Here || !got.Taken || len(got.Frame) != len(frame)-outerLength {
			t.Errorf("IPv4 %v: explained as stray %v, here %v, %d bytes of %d", ipv4, got.Stray,
				got.Here, len(got.Frame), len(frame))
		}
	}
}

// TestStraysListSIDs: those of a namespace, and how they are told.
func TestStraysListSIDs(t *testing.T) {
	w := newStrayWorld(t, 10)
	want := []StraySID{{Prefix: netip.MustParsePrefix("fcbb:bb00:c46::/48"), IPv4: true,
		IPv6: true}}
	if got := w.program.SIDs(); !slices.Equal(got, want) {
		t.Errorf("SIDs %v, want %v", got, want)
	}
}

// TestExplainStraysRefuses: a VRF device that is gone.
func TestExplainStraysRefuses(t *testing.T) {
	w := newStrayWorld(t, 11)
	const nowhere = 1 << 20
	must(t, w.program.maps["stray_vrfs"].Put(uint32(1),
		strayVRF{Interface: nowhere, Backup: uint32(w.far)}))
	x, err := w.program.Explainer()
	must(t, err)
	defer x.Close()
	if _, err := x.Run(w.near, longStray(t, true)); err == nil || !strings.Contains(err.Error(),
		"is the device still there?") {
		t.Errorf("a device that is gone: %v", err)
	}
}
