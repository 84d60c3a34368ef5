package packet

import (
	"testing"

	"sextant/te/topology/generate"
)

// One plain subflow of each host fills the hosts' links, for any permutation: by Kőnig's theorem no
// link carries two flows.
func TestColoringFillsHosts(t *testing.T) {
	for _, k := range []int{2, 4, 6} {
		n := htsimNetwork(t, k)
		for seed := range uint64(3) {
			c := Config{Transport: htsimTransport(), Paths: Paths{Scheme: Colored}, Seed: seed}
			mean, least, _ := goodput(t, n, c, 1, Second/2)
			// The rest is headers, and the first round trips.
			if least < 0.995 {
				t.Errorf("k = %d, seed %d: goodput %.4f, of the worst host %.4f", k, seed, mean,
					least)
			}
		}
	}
}

// Flows that end give their paths to others: after a thousand, no link has more than flows under
// way ask for.
func TestColoringForgets(t *testing.T) {
	n := htsimNetwork(t, 4)
	s := begin(t, Config{Network: n, Transport: DefaultTransport(),
		Paths: Paths{Scheme: Colored}})
	const each = 40
	for round := range Time(each) {
		for src, dst := range permutation(len(n.Hosts), uint64(round)) {
			add(t, s, Flow{Src: src, Dst: dst, Bytes: 3000, Start: round * 50 * Millisecond})
		}
	}
	for round := range Time(each) {
		s.Run(round*50*Millisecond + Millisecond/10)
		if load := s.paths.coloring.tree.GreatestLoad(); load > 1 {
			t.Fatalf("round %d: a link has %d flows", round, load)
		}
		s.Run((round + 1) * 50 * Millisecond)
		if load := s.paths.coloring.tree.GreatestLoad(); load != 0 {
			t.Fatalf("round %d: no flow is left, but a link has %d", round, load)
		}
	}
}

// What is no fat tree is refused.
func TestColoringRefused(t *testing.T) {
	g, err := generate.SpineLeaf(2, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{Network: n, Transport: DefaultTransport(),
		Paths: Paths{Scheme: Colored}}); err == nil {
		t.Error("a leaf and spine network of 16 hosts, as many as a fat tree has, is colored")
	}
}

// The scheduler of CFLB forgets flows that ended, so that its choice is by those under way.
func TestGreedyForgets(t *testing.T) {
	n := htsimNetwork(t, 4)
	s := begin(t, Config{Network: n, Transport: DefaultTransport(), Paths: Paths{Scheme: Greedy}})
	for i := range 20 {
		add(t, s, Flow{Src: i % 8, Dst: 15 - i%8, Bytes: 20000, Start: Time(i) * Millisecond})
	}
	s.Run(2 * Second)
	for l, flows := range s.paths.flows {
		if flows != 0 {
			t.Fatalf("link %d has %d flows after all have ended", l, flows)
		}
	}
}
