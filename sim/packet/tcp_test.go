package packet

import (
	"math"
	"testing"
)

// A transfer of one segment over an empty path takes exactly a handshake and a one-way trip: each
// hop costs its transmission and propagation time.
func TestOneSegmentExact(t *testing.T) {
	n := dumbbell(t, 1, 1e9, 5*Microsecond, Queue{})
	transport := DefaultTransport()
	var done []Completed
	s := begin(t, Config{Network: n, Transport: transport,
		Done: func(c Completed) { done = append(done, c) }})
	checked(t, s)
	const bytes = 1000
	add(t, s, Flow{Src: 0, Dst: 1, Bytes: bytes, Start: 7})
	s.Run(Second)
	perByte := func(size Time) Time { return size * 800 * 2 * 1 } // two fast links at 10 Gb/s
	slow := func(size Time) Time { return size * 8000 }
	oneWay := func(size Time) Time { return perByte(size) + slow(size) + 15*Microsecond }
	want := 7 + 2*oneWay(Time(transport.AckSize)) + oneWay(bytes+Time(transport.Header))
	if len(done) != 1 || done[0].Finish != want {
		t.Errorf("done %+v, want at %d", done, want)
	}
}

// The mean of a window that grows by one segment per round trip from half of its largest value to
// that value, W = P + B segments, where P fill the pipe and B the queue. While it is below P the
// link is idle for a part of the round trip.
func sawtooth(pipe, queue float64) float64 {
	top := pipe + queue
	sent, rounds := 0.0, 0.0
	for w := top / 2; w < top; w++ {
		sent += w
		rounds += max(w, pipe)
	}
	return sent / rounds
}

// One Reno flow over one bottleneck: the throughput is that of the sawtooth, for queues from a
// tenth of the pipe to all of it.
func TestOneFlowThroughput(t *testing.T) {
	const pipe = 100.0 // segments
	for _, part := range []float64{0.1, 0.25, 0.5, 1} {
		transport := DefaultTransport()
		transport.DelayedAck = 0
		segment := float64(transport.Payload + transport.Header)
		rtt := Time(pipe * segment * 8 / 100e6 * float64(Second))
		n := dumbbell(t, 1, 100e6, rtt/6, Queue{Bytes: int(part*pipe*segment) + 1500})
		s := begin(t, Config{Network: n, Transport: transport, Seed: 1})
		h := add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
		s.Run(30 * Second)
		before := s.Delivered(h)
		s.Run(150 * Second)
		got := float64(s.Delivered(h)-before) / 120 * 8 / 100e6 * segment / float64(
			transport.Payload)
		want := sawtooth(pipe, part*pipe)
		if math.Abs(got-want) > 0.03 {
			t.Errorf("queue of %g of the pipe: throughput %.3f, want %.3f", part, got, want)
		}
	}
}

// Flows of one kind share a bottleneck fairly, and fill it.
func TestFairShares(t *testing.T) {
	for _, c := range []struct {
		name    string
		control Control
		ecn     bool
	}{{"reno", Reno, false}, {"cubic", Cubic, false}, {"dctcp", DCTCP, true}, {"lia", LIA, false},
		{"olia", OLIA, false}} {
		const flows = 8
		// Some drops at random, since windows move in step otherwise (Floyd and Jacobson, "Traffic
		// phase effects in packet-switched gateways", 1991).
		n := dumbbell(t, flows, 200e6, 200*Microsecond, Queue{Bytes: 100 * 1500,
			Random: map[bool]int{false: 10 * 1500}[c.ecn],
			Mark:   map[bool]int{true: 20 * 1500}[c.ecn]})
		transport := DefaultTransport()
		transport.Control, transport.ECN = c.control, c.ecn
		s := begin(t, Config{Network: n, Transport: transport, Seed: 4})
		var handles []int
		for i := range flows {
			handles = append(handles, add(t, s, Flow{Src: i, Dst: flows + i, Bytes: Endless,
				Start: Time(i) * 13 * Millisecond}))
		}
		s.Run(5 * Second)
		var before [flows]int64
		for i, h := range handles {
			before[i] = s.Delivered(h)
		}
		s.Run(65 * Second)
		sum, squares := 0.0, 0.0
		for i, h := range handles {
			rate := float64(s.Delivered(h)-before[i]) * 8 / 60
			sum += rate
			squares += rate * rate
		}
		full := sum / 200e6 * 1500 / 1448
		if jain := sum * sum / squares / flows; jain < 0.95 || full < 0.97 || full > 1.0001 {
			t.Errorf("%s: Jain's index is %.3f, and the link %.3f full", c.name, jain, full)
		}
		if c.ecn && s.Link(0).Drops > 200 {
			t.Errorf("%s: %d drops despite ECN", c.name, s.Link(0).Drops)
		}
	}
}

// RFC 6356's first goal over a shared bottleneck: a connection of several subflows takes what one
// TCP flow takes.
func TestCoupledTakesOneShare(t *testing.T) {
	for _, control := range []Control{LIA, OLIA} {
		for _, subflows := range []int{2, 4} {
			n := dumbbell(t, 8, 100e6, 500*Microsecond, Queue{Bytes: 60 * 1500, Random: 20 * 1500})
			transport := DefaultTransport()
			transport.Control = control // with one subflow LIA and OLIA are Reno
			s := begin(t, Config{Network: n, Transport: transport, Seed: 2})
			var multi, single []int
			for i := range 4 {
				multi = append(multi, add(t, s, Flow{Src: i, Dst: 8 + i, Bytes: Endless,
					Subflows: subflows}))
				single = append(single, add(t, s, Flow{Src: 4 + i, Dst: 12 + i, Bytes: Endless}))
			}
			s.Run(120 * Second)
			sum := func(handles []int) (total float64) {
				for _, h := range handles {
					total += float64(s.Delivered(h))
				}
				return total
			}
			if ratio := sum(multi) / sum(single); ratio < 0.75 || ratio > 1.35 {
				t.Errorf("control %d, %d subflows: a connection gets %.2f times what TCP gets",
					control, subflows, ratio)
			}
		}
	}
}
