package datapath

import (
	"testing"

	"sextant/datapath/packettest"
)

// TestHostCountsResets: RSTs that leave for clients of its services, with and without ACK, and
// nothing else.
func TestHostCountsResets(t *testing.T) {
	w := newWorld(t)
	h, _ := tableHost(t, w)
	wire := packettest.FromClient()
	for _, packet := range []packettest.Packet{
		packettest.Web4("").Reply("R"), packettest.Web4("").Reply("RA"),
		packettest.Web6("").Reply("RA"),
		packettest.Web4("").To(packettest.VIP4, 8080).Reply("R"), packettest.Web4("").Reply("A"),
		packettest.Web4("").Reply("SA"),
	} {
		frame := wire.Frame(t, packet.Bytes(t))
		w.run(t, packet.Src.String(), func(t *testing.T) {
			_, after, err := h.programs["host_leave"].Test(frame)
			must(t, err)
			packettest.WantFrame(t, after, frame)
		})
	}
	var resets, established uint64
	for index := range uint32(16) {
		signals, err := h.Signals(index)
		must(t, err)
		resets, established = resets+signals.Resets, established+signals.Established
	}
	if resets != 3 || established != 0 {
		t.Errorf("%d resets and %d connections, want 3 and none", resets, established)
	}
}
