package packet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"sextant/te/topology/generate"
)

// The setting of the MPTCP paper's figure on fat trees (Raiciu et al., SIGCOMM 2011, figure 2) as
// csg-htsim has it: links of 100 Mb/s and 1 µs, 100 packets of 1500 bytes in a queue, whose last
// three are dropped at random; acknowledgements take no link.
func htsimNetwork(t testing.TB, k int) *Network {
	t.Helper()
	g, err := generate.FatTree(k)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 100e6, Delay: Microsecond,
		Queue: Queue{Bytes: 100 * 1500, Random: 3 * 1500}, HostQueue: &Queue{Bytes: 1000 * 1500}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func htsimTransport() Transport {
	return Transport{Control: LIA, Payload: 1500, AckSize: 40, InitialWindow: 10,
		InitialSSThresh: 100, MaxWindow: 1 << 16,
		Reordering: 3, InitialRTO: 3 * Second, MinRTO: 250 * Millisecond, FreeAcks: true}
}

// permutation gives each of n hosts another as its destination, each once.
func permutation(n int, seed uint64) []int {
	r := rand.New(rand.NewPCG(seed, 77))
	for {
		p := r.Perm(n)
		for i := range p {
			if p[i] == i {
				p = nil
				break
			}
		}
		if p != nil {
			return p
		}
	}
}

// goodput runs endless flows along a permutation, and returns the mean and the least goodput as a
// part of the hosts' rate.
func goodput(t testing.TB, n *Network, c Config, subflows int,
	lasts Time) (mean, least float64, s *Simulation) {
	t.Helper()
	c.Network = n
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	handles := make([]int, len(n.Hosts))
	for i, to := range permutation(len(n.Hosts), c.Seed) {
		handles[i], err = s.Add(Flow{Src: i, Dst: to, Bytes: Endless, Subflows: subflows})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Run(lasts)
	least = math.Inf(1)
	for _, h := range handles {
		part := float64(s.Delivered(h)) / (lasts.Seconds() * 100e6 / 8)
		mean += part / float64(len(handles))
		least = min(least, part)
	}
	return mean, least, s
}

// htsimRows are what csg-htsim gives for the same setting (its COUPLED_INC is LIA), in percent, as
// means over seeds. Permutations and paths are drawn by other generators, so that single runs
// differ.
var htsimRows = []struct {
	name     string
	scheme   Scheme
	subflows int
	percent  float64
}{
	{"random", Random, 1, 50.9}, {"random", Random, 2, 67.8}, {"random", Random, 4, 83.0},
	{"random", Random, 8, 91.2},
	{"greedy", Greedy, 1, 84.7}, {"greedy", Greedy, 2, 93.9}, {"greedy", Greedy, 4, 99.7},
	{"coloring", Colored, 1, 100.0},
}

// A second and one seed are enough for a few points; BenchmarkAgainstHtsim has all of it.
func TestAgainstHtsim(t *testing.T) {
	n := htsimNetwork(t, 8)
	for _, i := range []int{0, 3, 5} {
		row := htsimRows[i]
		c := Config{Transport: htsimTransport(), Paths: Paths{Scheme: row.scheme, Capped: true},
			Seed: 1}
		mean, _, _ := goodput(t, n, c, row.subflows, Second)
		if math.Abs(100*mean-row.percent) > 5 {
			t.Errorf("%s, %d subflows: goodput %.1f %%, want %.1f ± 5", row.name, row.subflows,
				100*mean, row.percent)
		}
	}
}

// BenchmarkAgainstHtsim reports the goodput of each row: 3 seeds of 4 s, as csg-htsim was run.
func BenchmarkAgainstHtsim(b *testing.B) {
	n := htsimNetwork(b, 8)
	for _, row := range htsimRows {
		b.Run(fmt.Sprintf("%s-%d", row.name, row.subflows), func(b *testing.B) {
			for b.Loop() {
				const seeds = 3
				sum, worst := 0.0, 1.0
				for seed := range uint64(seeds) {
					c := Config{Transport: htsimTransport(),
						Paths: Paths{Scheme: row.scheme, Capped: true},
						Seed:  seed + 1}
					mean, least, _ := goodput(b, n, c, row.subflows, 4*Second)
					sum, worst = sum+100*mean/seeds, min(worst, least)
				}
				b.ReportMetric(sum, "%")
				b.ReportMetric(100*worst, "%worst")
				b.ReportMetric(row.percent, "%htsim")
			}
		})
	}
}

// BenchmarkMPTCP8 is the row with the most events, a run for each seed.
func BenchmarkMPTCP8(b *testing.B) {
	n := htsimNetwork(b, 8)
	for seed := range uint64(10) {
		b.Run(fmt.Sprint(seed+1), func(b *testing.B) {
			var hops uint64
			for b.Loop() {
				mean, _, s := goodput(b, n, Config{Transport: htsimTransport(),
					Paths: Paths{Scheme: Random, Capped: true}, Seed: seed + 1}, 8, 4*Second)
				hops += uint64(s.Totals().Hops)
				b.ReportMetric(mean*100, "%")
			}
			b.ReportMetric(float64(hops)/b.Elapsed().Seconds()/1e6, "Mhops/s")
		})
	}
}
