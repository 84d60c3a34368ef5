package packet

import "testing"

// The last segment but one is lost: the queue has no room for it, and room for the last one, which
// is short. As in Linux it is sent again a quarter of the round trip and two milliseconds after the
// acknowledgement of the last one, to the picosecond; by counting alone, after a timeout.
func TestLossByTime(t *testing.T) {
	const (
		delay = 10 * Millisecond
		full  = 1500 * 800 * Nanosecond // at 10 Mb/s; links of hosts take a tenth
		ack   = 64 * 800 * Nanosecond
	)
	n := dumbbell(t, 1, 10e6, delay, Queue{Bytes: 78 * 150})
	for _, linux := range []bool{true, false} {
		transport := DefaultTransport()
		transport.Control, transport.Linux = Reno, linux
		var done []Completed
		s := begin(t, Config{Network: n, Transport: transport,
			Done: func(c Completed) { done = append(done, c) }})
		checked(t, s)
		add(t, s, Flow{Src: 0, Dst: 1, Bytes: 9*int64(transport.Payload) + 48})
		s.Run(10 * Second)
		oneWay := func(takes Time) Time { return takes/10 + takes + takes/10 + 3*delay }
		roundTrip := 2 * oneWay(ack)
		train := full/10 + 8*full + full/10 + 3*delay // until the eighth one arrives
		told := roundTrip + train + oneWay(ack) + ack // behind the acknowledgement of the eighth
		want := told + roundTrip/4 + 2*Millisecond + oneWay(full)
		switch {
		case len(done) != 1 || s.totals.Dropped.Packets != 1:
			t.Fatalf("%d flows ended, %+v", len(done), s.totals)
		case linux && (done[0].Finish != want || s.totals.Timeouts != 0):
			t.Errorf("as in Linux: %d ps, want %d; %+v", done[0].Finish, want, s.totals)
		case !linux && (s.totals.Timeouts != 1 || done[0].Finish < transport.MinRTO):
			t.Errorf("by counting: %d ps, %+v", done[0].Finish, s.totals)
		}
	}
}

// Segments beyond a hole come each 0.12 ms: all are acknowledged by themselves, or as in Linux the
// first three, and then one acknowledgement leaves in a millisecond.
func TestAcknowledgementsBeyondHole(t *testing.T) {
	n := dumbbell(t, 1, 100e6, 10*Millisecond, Queue{Bytes: 40 * 1500})
	for _, linux := range []bool{true, false} {
		transport := DefaultTransport()
		transport.Control, transport.Linux = Reno, linux
		transport.InitialWindow, transport.QuickAcks = 300, 1000
		s := begin(t, Config{Network: n, Transport: transport})
		checked(t, s)
		add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
		s.Run(100 * Millisecond) // the first window has arrived, and none behind it
		r := &s.subflows[0].receiver
		beyond := r.total - r.next
		lasts := Time(r.total) * 120 * Microsecond
		acks := -1 - int(r.next) // the handshake's answer, and those of what is complete
		host, _ := n.Graph.Lookup("b00")
		for l := range s.links {
			if n.Graph.From(edge(l)) == host {
				acks += int(s.links[l].stats.Packets)
			}
		}
		most := 3 + int(lasts/Millisecond) + 1
		if beyond < 20 || linux && (acks > most || acks < 4) || !linux && acks != int(beyond) {
			t.Errorf("as in Linux %v: %d segments beyond the hole, in at most %v ms, %d "+
				"acknowledgements", linux, beyond, float64(lasts)/1e9, acks)
		}
	}
}

// Behind a pause a segment is acknowledged at once, as in Linux, and otherwise when the time for it
// is over.
func TestAcknowledgementAfterPause(t *testing.T) {
	n := dumbbell(t, 1, 1e9, 10*Microsecond, Queue{})
	transport := DefaultTransport()
	transport.Linux, transport.QuickAcks = true, 2
	s := begin(t, Config{Network: n, Transport: transport})
	f := &subflow{minRTT: Millisecond}
	r := &f.receiver
	for i, c := range []struct{ at, pause Time }{{at: 0}, {at: 200 * Millisecond},
		{at: 402 * Millisecond, pause: 202 * Millisecond}} {
		s.now, r.quick = c.at, 2
		s.paused(f, r)
		if again := r.quick == 0; again != (c.pause > 0) {
			t.Errorf("segment %d: acknowledged at once again %v", i, again)
		}
	}
}

// One flow has a path of 20 Mb/s and 16 ms. The second window of the flow, 20 segments, arrives as
// a train, and slow start ends when that has lasted for half of the round trip and a host's
// millisecond; Linux left it at 34 to 36 segments on such a path. Where a round begins with the
// acknowledgement before, the pause behind that hides the train, until the pipe is full.
func TestHyStartRounds(t *testing.T) {
	const (
		delay = 8 * Millisecond / 3
		full  = 1500 * 400 * Nanosecond // at 20 Mb/s
	)
	n := dumbbell(t, 1, 20e6, delay, Queue{})
	for _, linux := range []bool{true, false} {
		transport := DefaultTransport()
		transport.Control, transport.Linux = Cubic, linux
		transport.QuickAcks = 1000
		s := begin(t, Config{Network: n, Transport: transport})
		checked(t, s)
		add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
		s.Run(Microsecond)
		f := &s.subflows[0]
		for s.now < Second && f.window.slowStart() {
			s.Run(s.now + 100*Microsecond)
		}
		left := int(f.window.ssthresh)
		// The acknowledgement that is too late is looked at before it lets the window grow.
		want := 20 + int((f.minRTT+Millisecond)/2/full) + 1
		if linux && left != want || !linux && left < 40 {
			t.Errorf("as in Linux %v: slow start ended at %d segments, want %d or the pipe", linux,
				left, want)
		}
	}
}

// As long as CUBIC has met no loss, its window grows by 5 % in a round trip, as in Linux, and
// hardly at all by its curve.
func TestGrowthBeforeLoss(t *testing.T) {
	n := dumbbell(t, 1, 1e9, 10*Microsecond, Queue{})
	for _, linux := range []bool{true, false} {
		transport := DefaultTransport()
		transport.Control, transport.Linux = Cubic, linux
		s := begin(t, Config{Network: n, Transport: transport})
		add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
		s.Run(Microsecond)
		f := &s.subflows[0]
		f.srtt, f.minRTT = 10*Millisecond, 10*Millisecond
		w := &f.window
		for _, lost := range []bool{false, true} {
			if lost {
				w.loss(s, f)
			}
			w.cwnd, w.ssthresh, w.epoch = 1000, 1000, 0
			for range 1000 {
				w.grow(s, f, 1)
			}
			if grown := w.cwnd - 1000; linux && !lost && (grown < 49.9 || grown > 50.1) ||
				(!linux || lost) && grown > 1 {
				t.Errorf("as in Linux %v, after a loss %v: %.2f segments in a round trip", linux,
					lost, grown)
			}
		}
	}
}
