package packet

import (
	"math"
	"testing"
)

// Packets that arrive late after a move of their flow are no loss: the window is restored (RFC 3522
// and 4015), so that a Reno flow keeps its rate that moves 200 times in a second between paths that
// differ by 60 µs. Nothing is dropped.
func TestLateIsNoLoss(t *testing.T) {
	n := slowSpine(t, 1, 1)
	transport := DefaultTransport()
	transport.Control, transport.MaxWindow = Reno, 60
	s := begin(t, Config{Network: n, Transport: transport, Seed: 1,
		Paths: Paths{Scheme: Rerouted, RerouteEvery: 5 * Millisecond,
			Reroute: func(_ []Time, current int, _ uint64) int { return 1 - current }}})
	spine, _ := n.Graph.Lookup("spine0")
	for l := range s.links {
		if n.Graph.From(edge(l)) == spine {
			s.links[l].delay += 60 * Microsecond
		}
	}
	h := add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
	s.Run(Second)
	part := float64(s.Delivered(h)) * 8 / 1e9
	if s.totals.Dropped.Packets > 0 || s.totals.Undone == 0 || s.totals.Timeouts > 0 || part < 0.9 {
		t.Errorf("goodput %.2f of the link; %+v", part, s.totals)
	}
}

// A loss that is one stays one: where packets cannot overtake, nothing is undone but what a timer
// began that was too short.
func TestLossIsNotUndone(t *testing.T) {
	n := dumbbell(t, 4, 100e6, 500*Microsecond, Queue{Bytes: 30 * 1500, Random: 10 * 1500})
	for _, control := range []Control{Reno, Cubic, LIA} {
		transport := DefaultTransport()
		transport.Control = control
		s := begin(t, Config{Network: n, Transport: transport, Seed: 1})
		for i := range 4 {
			add(t, s, Flow{Src: i, Dst: 4 + i, Bytes: Endless, Subflows: 2})
		}
		s.Run(20 * Second)
		if s.totals.Undone > s.totals.Timeouts || s.totals.Dropped.Packets < 100 ||
			s.totals.Retransmissions < 9*s.totals.Dropped.Packets/10 {
			t.Errorf("control %d: %+v", control, s.totals)
		}
	}
}

// RFC 6937: with one loss in a window, a recovery sends ssthresh segments while the window arrives,
// evenly, also where ssthresh is no half of the window.
func TestProportionalRateReduction(t *testing.T) {
	for _, c := range []struct{ window, ssthresh int32 }{{20, 10}, {100, 50}, {100, 70}, {7, 3}} {
		f := &subflow{flight: c.window - 1} // one is lost, and sent again at once
		f.window.ssthresh = float64(c.ssthresh)
		f.prr = prr{on: true, window: float64(c.window), delivered: 1}
		f.flight, f.prr.sent = f.flight-1+1, 1 // the acknowledgement that told, and the resent one
		sent := int32(1)
		for acked := int32(2); acked < c.window; acked++ {
			f.flight--
			f.prr.acknowledged(f, 1)
			for f.flight < f.window.allowed() {
				f.flight++
				f.prr.sent++
				sent++
			}
			even := float64(acked*c.ssthresh) / float64(c.window)
			if math.Abs(float64(sent)-even) > 1.01 {
				t.Fatalf("window %d, ssthresh %d: %d were sent after %d, want %.1f", c.window,
					c.ssthresh, sent, acked, even)
			}
		}
		if f.flight != c.ssthresh && f.flight != c.ssthresh+1 {
			t.Errorf("window %d: %d are under way in the end, want %d", c.window, f.flight,
				c.ssthresh)
		}
	}
}

// HyStart ends slow start before a queue of one round trip overflows; Reno does not.
func TestHyStart(t *testing.T) {
	for control, drops := range map[Control]bool{Cubic: false, Reno: true} {
		transport := DefaultTransport()
		transport.Control = control
		n := dumbbell(t, 1, 1e9, 200*Microsecond, Queue{Bytes: 100 * 1500})
		s := begin(t, Config{Network: n, Transport: transport, Seed: 1})
		add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
		s.Run(20 * Millisecond)
		if got := s.totals.Dropped.Packets > 0; got != drops {
			t.Errorf("control %d: %d drops in slow start", control, s.totals.Dropped.Packets)
		}
	}
}
