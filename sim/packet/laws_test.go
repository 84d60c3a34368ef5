package packet

import (
	"math"
	"math/rand/v2"
	"testing"
)

// lossy lets the windows of a connection's subflows grow as acknowledgements come, round by round,
// and lose segments at random with the probabilities given; it returns their mean windows. Queues,
// recoveries and timers are left out: this is the law of the window alone.
func lossy(t *testing.T, control Control, rtt Time, rounds int, p ...float64) []float64 {
	t.Helper()
	transport := DefaultTransport()
	transport.Control = control
	s := begin(t, Config{Network: slowSpine(t, 1, 1), Transport: transport, Seed: 1})
	s.connections = append(s.connections, connection{size: Endless})
	c := &s.connections[0]
	for range p {
		c.subflows = append(c.subflows, s.newSubflow(0))
	}
	for i := range p {
		f := &s.subflows[c.subflows[i]]
		f.state, f.srtt, f.minRTT = open, rtt, rtt
		f.window.cwnd, f.window.ssthresh = 10, 10
	}
	random, mean := rand.New(rand.NewPCG(1, 2)), make([]float64, len(p))
	next := make([]float64, len(p)) // segments until the next loss
	for i := range p {
		next[i] = random.ExpFloat64() / p[i]
	}
	for round := range rounds {
		for i, sub := range c.subflows {
			f := &s.subflows[sub]
			w := f.window.cwnd
			if round >= rounds/10 {
				mean[i] += w / float64(rounds-rounds/10)
			}
			if next[i] -= w; next[i] < 0 {
				f.window.loss(s, f)
				next[i] = random.ExpFloat64() / p[i]
				continue
			}
			for sent := 0.0; sent < w; sent++ {
				s.now += Time(float64(rtt) / w / float64(len(p)))
				f.window.grow(s, f, 1)
			}
		}
	}
	return mean
}

// The mean windows of Reno and CUBIC at a loss rate. With losses at random intervals, Reno's is
// 1.31/√p (1.22/√p for even ones), and CUBIC's about that of RFC 9438, table 1, which assumes even
// ones; the exponent is the same at every rate.
func TestResponseFunctions(t *testing.T) {
	for _, p := range []float64{1e-3, 1e-4} {
		got, want := lossy(t, Reno, 100*Millisecond, 200_000, p)[0], 1.31/math.Sqrt(p)
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("Reno at %g: %.1f segments, want %.1f", p, got, want)
		}
	}
	var factors []float64
	for p, table := range map[float64]float64{1e-4: 187, 1e-5: 1054, 1e-6: 5926} {
		got := lossy(t, Cubic, 100*Millisecond, 8000, p)[0]
		t.Logf("CUBIC at %g: %.1f segments, the RFC's table has %g", p, got, table)
		factors = append(factors, got/table)
	}
	for _, f := range factors {
		if f < 0.85 || f > 1.3 || f/factors[0] > 1.25 || f/factors[0] < 0.8 {
			t.Errorf("CUBIC has %.2f times the windows of the RFC's table", factors)
			break
		}
	}
}

// CUBIC's window after a loss is W(t) = C(t-K)³ + Wmax (RFC 9438, section 4.2).
func TestCubicCurve(t *testing.T) {
	const rtt, wMax = 100 * Millisecond, 1000.0
	transport := DefaultTransport()
	transport.Control = Cubic
	s := begin(t, Config{Network: slowSpine(t, 1, 1), Transport: transport, Seed: 1})
	f := &subflow{srtt: rtt, minRTT: rtt}
	f.window.reset(&transport)
	f.window.cwnd = wMax
	s.now = Second
	f.window.cubicReduce()
	f.window.cwnd = f.window.ssthresh
	k := math.Cbrt(wMax * (1 - cubicBeta) / cubicC)
	start := s.now
	for (s.now - start).Seconds() < 2*k {
		w := f.window.cwnd
		for range int(w) {
			s.now += Time(float64(rtt) / w)
			f.window.grow(s, f, 1)
		}
		at := (s.now - start).Seconds()
		if want := cubicC*math.Pow(at-k, 3) + wMax; math.Abs(f.window.cwnd/want-1) > 0.02 {
			t.Fatalf("after %.1f s the window is %.1f, want %.1f", at, f.window.cwnd, want)
		}
	}
}

// Where paths have the same round-trip time, LIA's windows are in proportion to 1/p, and together
// as large as that of TCP on the best path (Wischik et al., NSDI 2011, section 2.5; RFC 6356).
func TestFixedPointsOfLIA(t *testing.T) {
	const rounds = 150_000
	for _, p := range [][]float64{{1e-3, 1e-3}, {1e-3, 2e-3}, {1e-3, 4e-3}, {1e-3, 2e-3, 2e-3}} {
		tcp := lossy(t, Reno, 100*Millisecond, rounds, p[0])[0]
		windows := lossy(t, LIA, 100*Millisecond, rounds, p...)
		total := 0.0
		for i, w := range windows {
			total += w
			if ratio, want := windows[0]/w, p[i]/p[0]; math.Abs(ratio/want-1) > 0.2 {
				t.Errorf("losses %v: windows %.1f, the first is %.2f times number %d, want %.2f",
					p, windows, ratio, i, want)
			}
		}
		if math.Abs(total/tcp-1) > 0.15 {
			t.Errorf("losses %v: windows %.1f, together %.1f; TCP on the best path has %.1f", p,
				windows, total, tcp)
		}
	}
}

// DCTCP's steady state (Alizadeh et al., SIGCOMM 2010, section 3.3): α is √(2/W), the queue at most
// K+N, and its amplitude half of √(2N(C·RTT+K)).
func TestDCTCPLaw(t *testing.T) {
	const rate, mark, segment = 1e9, 40.0, 1500.0
	for _, flows := range []int{1, 2, 4} {
		n := dumbbell(t, flows, rate, 100*Microsecond, Queue{Bytes: 400 * 1500, Mark: mark * 1500})
		transport := DefaultTransport()
		transport.Control, transport.ECN, transport.DelayedAck = DCTCP, true, 0
		s := begin(t, Config{Network: n, Transport: transport, Seed: 1})
		for i := range flows {
			add(t, s, Flow{Src: i, Dst: flows + i, Bytes: Endless,
				Start: Time(i) * 77 * Microsecond})
		}
		s.Run(Second / 2)
		highest, lowest, alpha, samples := 0.0, math.Inf(1), 0.0, 0
		s.observe = func(int32) {
			queue := s.Waiting(0) / segment
			highest, lowest = max(highest, queue), min(lowest, queue)
			alpha += s.subflows[0].window.alpha
			samples++
		}
		s.Run(2 * Second)
		alpha /= float64(samples)
		// 6 links of 100 µs, and the times of a segment and its acknowledgement.
		pipe := rate / 8 / segment * (600e-6 + 14e-6)
		window := (pipe + mark) / float64(flows)
		want := math.Sqrt(2 / window)
		amplitude := math.Sqrt(2*float64(flows)*(pipe+mark)) / 2
		most := mark + float64(flows)
		t.Logf("%d flows: α is %.3f, the law has %.3f; the queue %.1f to %.1f, the law %.1f to "+
			"%.1f",
			flows, alpha, want, lowest, highest, most-amplitude, most)
		if math.Abs(alpha/want-1) > 0.12 || math.Abs(highest-most) > 1.5 ||
			math.Abs(highest-lowest-amplitude) > 0.15*amplitude {
			t.Errorf("%d flows: α is %.3f, want %.3f; queue %.1f to %.1f, want %.1f to %.1f", flows,
				alpha, want, lowest, highest, most-amplitude, most)
		}
	}
}
