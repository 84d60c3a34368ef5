package packet

import "testing"

// A segment that the window allows alone waits, as in Linux, if others were sent just now and the
// next acknowledgement is due; two never do. At 10 Gb/s and 100 µs all of 64 KiB are sent together,
// or a third of the window.
func TestOneSegmentWaits(t *testing.T) {
	n := dumbbell(t, 1, 1e9, 10*Microsecond, Queue{})
	transport := DefaultTransport()
	transport.Linux = true
	s := begin(t, Config{Network: n, Transport: transport})
	add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
	s.Run(Microsecond)
	s.now = Second
	const rtt = 20 * Millisecond
	for _, c := range []struct {
		what string
		set  func(f *subflow)
		want int32
	}{
		{"one", func(*subflow) {}, 0},
		{"two", func(f *subflow) { f.flight-- }, 2},
		{"three", func(f *subflow) { f.flight -= 2 }, 2},
		{"others long ago", func(f *subflow) { f.lastSent -= 2 * Millisecond }, 1},
		{"no acknowledgement soon", func(f *subflow) { f.noteSent(0, s.now-rtt/2) }, 1},
		{"in a recovery", func(f *subflow) { f.recovery = true }, 1},
		{"a third of the window", func(f *subflow) { f.window.cwnd, f.flight = 3, 2 }, 1},
		{"short round trips", func(f *subflow) {
			f.srtt, f.minRTT, f.flight = 100*Microsecond, 100*Microsecond, 28
			f.noteSent(0, s.now-f.srtt)
		}, 0},
		{"of them a third", func(f *subflow) {
			f.srtt, f.minRTT, f.flight = 100*Microsecond, 100*Microsecond, 26
			f.noteSent(0, s.now-f.srtt)
		}, 14},
	} {
		f := &subflow{board: make([]segment, 64), nxt: 39, flight: 39, srtt: rtt, minRTT: rtt,
			lastSent: s.now}
		f.window.cwnd, f.window.ssthresh = 40, 20
		f.noteSent(0, s.now-rtt)
		c.set(f)
		if got := s.together(f); got != c.want {
			t.Errorf("%s: %d segments are sent, want %d", c.what, got, c.want)
		}
	}
}

// What is known of when segments were sent stays when the board grows.
func TestSendTimesStay(t *testing.T) {
	f := &subflow{board: make([]segment, 16)}
	for ; f.nxt < 16; f.nxt++ {
		f.noteSent(f.nxt, Time(f.nxt)+1)
	}
	f.grow()
	f.noteSent(16, 17)
	f.nxt++
	for seq := range f.nxt {
		if f.sentAt(seq) != Time(seq)+1 {
			t.Errorf("segment %d was sent at %d, want %d", seq, f.sentAt(seq), seq+1)
		}
	}
}

// A handshake took 16 ms, data finds a queue and takes 44 ms. As in Linux slow start goes on at 45
// ms, and ends at 50; where the handshake counts, it ends at once.
func TestHyStartWithoutHandshake(t *testing.T) {
	n := dumbbell(t, 1, 1e9, 10*Microsecond, Queue{})
	for _, linux := range []bool{true, false} {
		transport := DefaultTransport()
		transport.Control, transport.Linux = Cubic, linux
		s := begin(t, Config{Network: n, Transport: transport})
		f := &subflow{minRTT: 16 * Millisecond, srtt: 16 * Millisecond}
		f.window.reset(&transport)
		f.window.cwnd = 20
		round := func(rtt Time) bool {
			f.nxt, f.una = f.nxt+100, f.nxt+1
			for range hystartSamples + 2 {
				s.now += 2 * hystartSpacing // no train
				f.latest = rtt
				f.window.leaveSlowStart(s, f)
			}
			return f.window.hystart.found
		}
		for _, c := range []struct{ ms, ends Time }{{44, 0}, {45, 0}, {50, 1}} {
			if ended := round(c.ms * Millisecond); ended != (c.ends == 1 || !linux) {
				t.Errorf("as in Linux %v, %d ms: slow start ended %v", linux, c.ms, ended)
			}
		}
	}
}
