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
			f.prr.acknowledged(f, 1, true)
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

// HyStart ends slow start before a queue overflows; Reno does not. At 1 Gb/s it sees
// acknowledgements that follow each other for half a round trip, at 5 Mb/s, where they come too
// rarely for that, longer round trips.
func TestHyStart(t *testing.T) {
	for _, c := range []struct {
		rate    int64
		delay   Time
		packets int
		lasts   Time
	}{{1e9, 200 * Microsecond, 100, 20 * Millisecond}, {5e6, 5 * Millisecond, 80, Second / 2}} {
		for control, drops := range map[Control]bool{Cubic: false, Reno: true} {
			transport := DefaultTransport()
			transport.Control = control
			n := dumbbell(t, 1, c.rate, c.delay, Queue{Bytes: c.packets * 1500})
			s := begin(t, Config{Network: n, Transport: transport, Seed: 1})
			add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
			s.Run(c.lasts)
			if got := s.totals.Dropped.Packets > 0; got != drops {
				t.Errorf("%d bit/s, control %d: %d drops in slow start", c.rate, control,
					s.totals.Dropped.Packets)
			}
		}
	}
}

// An acknowledgement is not delayed until the sender's timer expires, as in Linux: a flow whose
// last segment is acknowledged alone has no timeout.
func TestDelayedAckBeforeTimeout(t *testing.T) {
	transport := DefaultTransport()
	transport.MinRTO, transport.QuickAcks = 10*Millisecond, 0
	n := dumbbell(t, 1, 1e9, 10*Microsecond, Queue{})
	s := begin(t, Config{Network: n, Transport: transport, Seed: 1})
	add(t, s, Flow{Src: 0, Dst: 1, Bytes: 5 * int64(transport.Payload)})
	s.Run(Second)
	if s.totals.Timeouts > 0 || len(s.freeConn) != 1 {
		t.Errorf("%d timeouts, %d connections ended, want 0 and 1", s.totals.Timeouts,
			len(s.freeConn))
	}
}
