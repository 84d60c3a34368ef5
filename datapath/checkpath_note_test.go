package datapath

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
)

// TestCheckPathTellsNothing sends health checks of all labels from many ports to a host that learns
// from the notes of other hosts: it hears of none. Its load is the same all the time, so the mean
// that it knows is always this load, to the bit, unless a note moves it.
func TestCheckPathTellsNothing(t *testing.T) {
	w := newWorld(t)
	h, host := tableHost(t, w)
	policy := acceptance.Policy{Kind: acceptance.Average, Cores: 1}
	for i, vip := range checkVIPs {
		index := uint32(i + 1)
		must(t, h.SetService(ServiceKey{VIP: vip, Port: 80, Protocol: 6}, index, policy))
		setBusy(t, h, index, 0)
	}
	program, err := NewCheckPaths(checkMarks)
	must(t, err)
	t.Cleanup(program.Close)
	must(t, program.Set(1, packettest.EdgeAddr, packettest.OfferSID))
	routeChecks(t, program)
	wire := openWire(t)
	sockets := [...]int{rawSocket(t, unix.AF_INET6), rawSocket(t, unix.AF_INET)}
	clients := [...]netip.Addr{packettest.Client6, packettest.Client4}
	_, want := policy.Decide(policy.Initial(), acceptance.Offer{})
	for i := range 1 << 13 {
		family := i % 2
		packet := packettest.Packet{Src: clients[family], Dst: checkVIPs[family],
			SrcPort: uint16(i), DstPort: 80, Flags: "S", FlowLabel: uint32(i) * 127}
		must(t, sendMarked(t, sockets[family], 1, checkVIPs[family], packet.Bytes(t)))
		frame := wire.encapsulated(t)
		if verdict, _ := host.run(t, frame); verdict != xdpPass {
			t.Fatalf("the host does not take the check %x: verdict %d", frame, verdict)
		}
		state, err := h.AcceptState(uint32(family + 1))
		must(t, err)
		if state.Levels[0] != want.Levels[0] {
			t.Fatalf("after check %d of %v, label %#x, the host takes %d for the mean, its load "+
				"is %d", i, packet.Dst, packet.FlowLabel, state.Levels[0], want.Levels[0])
		}
	}
}
