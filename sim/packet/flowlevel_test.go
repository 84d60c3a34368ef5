package packet

import (
	"math"
	"math/rand/v2"
	"testing"

	"sextant/te/topology/generate"
	"sextant/test/cputime"
)

// Two flows share a link: the shorter ends when it has had half of the rate, the longer goes on
// alone.
func TestFlowLevelExact(t *testing.T) {
	n := dumbbell(t, 2, 8e6, 0, Queue{}) // a million bytes per second
	var ends []float64
	x, err := NewFlowLevel(Config{Network: n, Transport: DefaultTransport(), Seed: 1,
		Done: func(c Completed) { ends = append(ends, c.Finish.Seconds()) }})
	if err != nil {
		t.Fatal(err)
	}
	flows := []Flow{{Src: 0, Dst: 2, Bytes: 3e6}, {Src: 1, Dst: 3, Bytes: 1e6, Start: Second}}
	// Alone for 1 s, then each half: the second ends after 2 s more, the first has 1e6 bytes left
	// then.
	want := []float64{3, 4}
	next := func() (Flow, bool) {
		if len(flows) == 0 {
			return Flow{}, false
		}
		f := flows[0]
		flows = flows[1:]
		return f, true
	}
	if err := x.Run(next, 10*Second); err != nil {
		t.Fatal(err)
	}
	if len(ends) != 2 || math.Abs(ends[0]-want[0]) > 1e-9 || math.Abs(ends[1]-want[1]) > 1e-9 ||
		len(x.ends) != 0 {
		t.Errorf("flows end at %v s, want %v; %d are left", ends, want, len(x.ends))
	}
}

// Processor sharing: at one bottleneck the mean time of Poisson flows is size/rate/(1-load),
// whatever the distribution of sizes (Kleinrock, Queueing Systems 2, section 4.4).
func TestFlowLevelProcessorSharing(t *testing.T) {
	const load, rate = 0.7, 1e9 / 8
	for _, name := range []string{"fixed", "web-search"} {
		sizes := FixedSize(100_000)
		if name != "fixed" {
			var err error
			if sizes, err = NamedSizes(name); err != nil {
				t.Fatal(err)
			}
		}
		sum, count := 0.0, 0.0
		for seed := range uint64(6) {
			n := dumbbell(t, 8, 1e9, 0, Queue{})
			x, err := NewFlowLevel(Config{Network: n, Transport: DefaultTransport(), Seed: seed,
				Done: func(c Completed) {
					sum += (c.Finish - c.Flow.Start).Seconds()
					count++
				}})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, 2))
			p := &Poisson{Gap: sizes.Mean() / (load * rate), Sizes: sizes,
				Until: Time(30000 * sizes.Mean() / rate * float64(Second)),
				Pair:  func(r *rand.Rand) (int, int) { return r.IntN(8), 8 + r.IntN(8) }}
			if err := x.Run(func() (Flow, bool) { return p.Next(r) }, p.Until); err != nil {
				t.Fatal(err)
			}
		}
		want := sizes.Mean() / rate / (1 - load)
		if got := sum / count; math.Abs(got/want-1) > 0.06 {
			t.Errorf("%s: mean time %g ms, want %g", name, got*1e3, want*1e3)
		}
	}
}

func BenchmarkFlowLevel(b *testing.B) {
	g, err := generate.SpineLeaf(8, 8, 16)
	if err != nil {
		b.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 10e9})
	if err != nil {
		b.Fatal(err)
	}
	sizes, err := NamedSizes("web-search")
	if err != nil {
		b.Fatal(err)
	}
	flows, before := 0, cputime.Used()
	for b.Loop() {
		x, err := NewFlowLevel(Config{Network: n, Transport: DefaultTransport(), Seed: 1,
			Paths: Paths{Scheme: Rerouted, RerouteEvery: 10 * Millisecond}})
		if err != nil {
			b.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		p := &Poisson{Hosts: 128, Gap: sizes.Mean() / (0.4 * 128 * 10e9 / 8), Sizes: sizes,
			Until: 2 * Second}
		err = x.Run(func() (Flow, bool) {
			flows++
			return p.Next(r)
		}, p.Until)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(flows)/cputime.Since(before).Seconds(), "flows/cpu-s")
}
