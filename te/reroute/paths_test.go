package reroute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"sextant/te/topology"
)

// Draws from small networks are compared with a list of all paths: the same number, and each path
// as often as any other.
func TestPathsAreDrawnEvenly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var compared, none int
	for i := range 60 {
		g := randomNetwork(t, random, 9, 10+i/3)
		from := topology.Node(random.IntN(g.Nodes()))
		to := topology.Node(random.IntN(g.Nodes()))
		if from == to {
			continue
		}
		paths := NewPaths(g.All(), Hops)
		all := allPaths(g, from, to)
		if got := paths.Count(from, to); got != float64(len(all)) {
			t.Fatalf("network %d: %v paths, enumeration finds %d", i, got, len(all))
		}
		if len(all) == 0 {
			if _, ok := paths.Draw(nil, from, to, rand.NewPCG(1, 1)); ok {
				t.Fatalf("network %d: a path between parts", i)
			}
			none++
			continue
		}
		if x, limit := chiSquare(t, paths, all, from, to); x > limit {
			t.Errorf("network %d: chi-square %.1f of %d paths, at most %.1f expected", i, x,
				len(all), limit)
		}
		compared++
	}
	if compared < 30 || none == 0 {
		t.Errorf("%d networks with paths and %d without were compared", compared, none)
	}
}

// chiSquare draws, and returns the statistic and what it exceeds with a probability of about 10^-5.
func chiSquare(t *testing.T, paths *Paths, all [][]topology.Edge, from,
	to topology.Node) (x, limit float64) {
	t.Helper()
	counts := map[string]int{}
	for _, path := range all {
		counts[fmt.Sprint(path)] = 0
	}
	random, draws := rand.NewPCG(7, 7), 400*len(all)
	for range draws {
		path, ok := paths.Draw(nil, from, to, random)
		key := fmt.Sprint(path)
		if _, listed := counts[key]; !ok || !listed {
			t.Fatalf("drew %s, which is no shortest path", key)
		}
		counts[key]++
	}
	for _, n := range counts {
		difference := float64(n) - float64(draws)/float64(len(all))
		x += difference * difference * float64(len(all)) / float64(draws)
	}
	// Wilson and Hilferty: the cube root of chi-square over k is normal.
	if k := float64(len(all) - 1); k > 0 {
		limit = k * math.Pow(1-2/(9*k)+4.3*math.Sqrt(2/(9*k)), 3)
	}
	return x, limit
}

// A link that is off is on no path, and all paths are back when it is.
func TestPathsFollowLinks(t *testing.T) {
	g := network(t, "s-a", "s-b", "s-c", "a-d", "b-d", "c-d", "d-e")
	s, e := topology.Node(0), between(t, g, "s-b")
	to, _ := g.Lookup("e")
	paths, random := NewPaths(g.All(), Hops), rand.NewPCG(1, 1)
	for _, want := range []struct {
		up    bool
		count float64
	}{{true, 3}, {false, 2}, {false, 2}, {true, 3}} {
		paths.SetUp(e, want.up)
		if got := paths.Count(s, to); got != want.count {
			t.Errorf("%v paths with the link up=%v, not %v", got, want.up, want.count)
		}
		for range 100 {
			path, ok := paths.Draw(nil, s, to, random)
			if !ok || !want.up && contains(path, e) {
				t.Fatalf("drew %s with the link up=%v", nodes(t, g, path), want.up)
			}
		}
	}
}
