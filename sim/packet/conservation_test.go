package packet

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/te/topology/generate"
)

// packetSchemes are those that move packets.
var packetSchemes = []Scheme{ECMP, Random, Greedy, Flowlets, PLB, REPS, Clove, Spray, DRILL,
	LetFlow, Colored, PRR, CloveINT, InFlight, CONGA, HULA, Hermes, ConWeave, Controlled}

// Many short flows over a small fabric with small queues and links that fail: nothing is made or
// vanishes, all that is sent arrives once, and in the end nothing is left.
func TestConservation(t *testing.T) {
	g, err := generate.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9, Delay: Microsecond,
		Queue: Queue{Bytes: 12 * 1500, Mark: 4 * 1500}})
	if err != nil {
		t.Fatal(err)
	}
	controls := []Control{Reno, Cubic, DCTCP, LIA, OLIA}
	vanished := uint64(0)
	for i, scheme := range slices.Concat(packetSchemes, []Scheme{ECMP, Spray, REPS}) {
		transport := DefaultTransport()
		transport.Linux = i >= len(packetSchemes)
		transport.Control = controls[i%len(controls)]
		transport.ECN = transport.Control == DCTCP
		var sum, done int64
		s := begin(t, Config{Network: n, Transport: transport, Seed: uint64(i),
			Paths: Paths{Scheme: scheme, FlowletGap: 20 * Microsecond, Convergence: Millisecond,
				Probe: 5 * Millisecond, Cutoff: 15 * Microsecond, Resume: 40 * Microsecond,
				Controller: &Controller{Settings: prompt(), Sample: 0.2,
					Pause: 50 * Microsecond, Prompt: true, ReportDelay: 20 * Microsecond,
					ControlDelay: 50 * Microsecond}},
			Done: func(c Completed) { done += c.Flow.Bytes }})
		checked(t, s)
		r := rand.New(rand.NewPCG(uint64(i), 9))
		for range 40 {
			src := r.IntN(len(n.Hosts))
			dst := (src + 1 + r.IntN(len(n.Hosts)-1)) % len(n.Hosts)
			bytes := 1 + r.Int64N(120_000)
			sum += bytes
			add(t, s, Flow{Src: src, Dst: dst, Bytes: bytes,
				Start: Time(r.Int64N(int64(3 * Millisecond))), Subflows: 1 + r.IntN(3)})
		}
		for range 6 {
			link, at := r.IntN(g.Edges()), Time(r.Int64N(int64(3*Millisecond)))
			for _, c := range []Change{{At: at, Link: link},
				{At: at + 10*Millisecond, Link: link, Up: true}} {
				if err := s.Schedule(c); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.Run(20 * Second)
		if done != sum || s.inFlight != (Count{}) || s.totals.Dropped.Packets == 0 {
			t.Errorf("scheme %d: %d of %d bytes are done, %+v under way, totals %+v", scheme, done,
				sum, s.inFlight, s.totals)
		}
		vanished += s.totals.Lost.Packets
		if len(s.freeSub) != len(s.subflows) || len(s.freeConn) != len(s.connections) {
			t.Errorf("scheme %d: %d of %d subflows and %d of %d connections are free in the end",
				scheme, len(s.freeSub),
				len(s.subflows), len(s.freeConn), len(s.connections))
		}
	}
	if vanished == 0 {
		t.Error("no packet was lost by a link's failure")
	}
}

// The same configuration gives the same run; another seed another.
func TestDeterministic(t *testing.T) {
	n := htsimNetwork(t, 4)
	run := func(seed uint64, scheme Scheme) Totals {
		_, _, s := goodput(t, n, Config{Transport: htsimTransport(), Paths: Paths{Scheme: scheme},
			Seed: seed}, 3, Second/2)
		return s.Totals()
	}
	for _, scheme := range []Scheme{Random, Spray, LetFlow} {
		if a, b := run(1, scheme), run(1, scheme); a != b {
			t.Errorf("scheme %d: %+v and %+v with the same seed", scheme, a, b)
		}
		if a, b := run(1, scheme), run(2, scheme); a == b {
			t.Errorf("scheme %d: %+v with two seeds", scheme, a)
		}
	}
}

// Once a run has grown its slices, packets allocate nothing.
func TestNoAllocationPerPacket(t *testing.T) {
	n := htsimNetwork(t, 4)
	transport := htsimTransport()
	transport.FreeAcks = false
	s := begin(t, Config{Network: n, Transport: transport, Paths: Paths{Scheme: Random}, Seed: 1})
	for i, to := range permutation(len(n.Hosts), 1) {
		add(t, s, Flow{Src: i, Dst: to, Bytes: Endless, Subflows: 4})
	}
	s.Run(2 * Second)
	before := s.totals.Hops
	allocations := testing.AllocsPerRun(5, func() { s.Run(s.now + Second/2) })
	if hops := (s.totals.Hops - before) / 6; hops < 100_000 || allocations > 10 {
		t.Errorf("%g allocations for %d packet hops", allocations, hops)
	}
}
