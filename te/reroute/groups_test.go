package reroute

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/te/topology"
)

// A group has all shortest paths, as trying all finds them, or some of very many, each once; after
// a link has failed those that are left.
func TestGroupHasShortestPaths(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	largest := 0
	for range 300 {
		g := randomNetwork(t, random, 7, 25)
		d := decider(t, g, Defaults(Sextant), 1)
		from := topology.Node(random.IntN(g.Nodes()))
		to := topology.Node(random.IntN(g.Nodes()))
		if from == to {
			continue
		}
		want := allPaths(g, from, to)
		got := d.Group(from, to).Paths
		largest = max(largest, len(want))
		if len(want) <= GroupPaths && len(got) != len(want) || len(got) > GroupPaths {
			t.Fatalf("%d paths in the group, %d in the network", len(got), len(want))
		}
		for i, path := range got {
			same := func(p []topology.Edge) bool { return slices.Equal(p, path) }
			if !slices.ContainsFunc(want, same) || slices.ContainsFunc(got[:i], same) {
				t.Fatalf("path %s is no shortest one, or there twice", nodes(t, g, path))
			}
		}
		if len(got) > 0 {
			cut := got[0][random.IntN(len(got[0]))]
			d.SetUp(cut, false, 0, func(Decision) {})
			for _, path := range d.Group(from, to).Paths {
				if slices.Contains(path, cut) {
					t.Fatalf("path %s has a link that is down", nodes(t, g, path))
				}
			}
		}
	}
	if largest < 4 {
		t.Errorf("at most %d paths in a network", largest)
	}
}

// More paths than a group has room for: it has as many as fit, and the same ones again.
func TestGroupOfManyPaths(t *testing.T) {
	var links []string
	for i := range 3 * GroupPaths {
		links = append(links, fmt.Sprintf("a-m%d", i), fmt.Sprintf("m%d-z", i))
	}
	g := network(t, links...)
	to, _ := g.Lookup("z")
	one, other := decider(t, g, Defaults(Sextant), 1), decider(t, g, Defaults(Sextant), 2)
	a, b := one.Group(0, to), other.Group(0, to)
	if len(a.Paths) != GroupPaths || !slices.EqualFunc(a.Paths, b.Paths, slices.Equal) {
		t.Errorf("%d paths, and then %d", len(a.Paths), len(b.Paths))
	}
}

// Of four paths one is idle, one has a flow at full rate, one two flows, and one is down: their
// weights are as 1, (1/2)^8, (1/3)^8 and 0, rounded.
func TestWeightsOfGroup(t *testing.T) {
	d, paths := fourWays(t, nil)
	for i, via := range []int{1, 2, 2} {
		f := &rated{key: tuple(i), reports: 1 / d.rates.unit}
		d.rates.flows[f.key] = f
		d.rates.put(f, paths[via])
	}
	d.weights.SetUp(paths[3][1], false)
	groups := []Group{{Paths: paths}}
	d.Weigh(groups, 0)
	if want := []uint32{1 << 16, 1 << 8, 9, 0}; !slices.Equal(groups[0].Weights, want) {
		t.Errorf("weights %v, not %v", groups[0].Weights, want)
	}
	if up, weights := groups[0].Up(); len(up) != 3 || len(weights) != 3 {
		t.Errorf("%d paths are up", len(up))
	}
}

// Where telemetry tells how much of links is used, a path's weight is as that of its busiest link:
// up to a quarter is as good as nothing, and links of which it does not tell are known by their
// flows.
func TestWeightsOfGroupByUtilization(t *testing.T) {
	d, paths := fourWays(t, nil)
	f := &rated{key: tuple(1), reports: 1 / d.rates.unit} // at full rate: another one gets half
	d.rates.flows[f.key] = f
	d.rates.put(f, paths[3])
	note := func(at time.Duration, used ...float64) {
		for i, part := range used {
			d.Observe(&Report{At: at, Queues: []Queue{{Edge: paths[i][0], Used: part / 2},
				{Edge: paths[i][1], Used: part}}})
		}
	}
	weights := func(at time.Duration) []uint32 {
		groups := []Group{{Paths: paths}}
		d.Weigh(groups, at)
		return groups[0].Weights
	}
	note(0, 0.25, 0.5, 1)
	if got, want := weights(0), []uint32{1 << 16, 1 << 8, 1, 1 << 8}; !slices.Equal(got, want) {
		t.Errorf("weights %v, not %v", got, want)
	}
	// A window later 1/2.5 of what was said is left: 0.1, 0.2 and 0.4, of which the last costs
	// (0.25/0.4)^8 of 65536.
	if got := weights(10 * time.Millisecond)[:3]; !slices.Equal(got, []uint32{1 << 16, 1 << 16,
		1525}) {
		t.Errorf("a window later the weights are %v", got)
	}
	note(20*time.Millisecond, 1, 0.5, 0.25)
	d.weights.SetUp(paths[2][1], false)
	// The flow of the fourth path has ended by now.
	if got, want := weights(20*time.Millisecond), []uint32{1, 1 << 8, 0,
		1 << 16}; !slices.Equal(got, want) {
		t.Errorf("weights %v, not %v", got, want)
	}
}

// Without rates, the freer queue is better, in proportion to the link's part of the greatest
// bandwidth; by CLOVE-INT all goes to the path whose fullest queue is the least full, by LetFlow
// paths are alike.
func TestWeightsOfGroupByQueues(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		want   []uint32
	}{
		{Sextant, []uint32{1 << 16, 1 << 8, 1}},
		{CloveINT, []uint32{1 << 16, 1, 1 << 16}},
		{LetFlow, []uint32{1 << 16, 1 << 16, 1 << 16}},
	} {
		g := network(t, "a-b:1000", "b-z:1000", "a-c:1000", "c-z:1000", "a-d:100", "d-z:1000")
		s := Defaults(c.policy)
		s.Sampling, s.Groups = 0, time.Millisecond
		d := decider(t, g, s, 1)
		to, _ := g.Lookup("z")
		d.weights.Observe(between(t, g, "c-z"), 0.5, 0)
		groups := []Group{d.Group(0, to)}
		d.Weigh(groups, 0)
		slices.SortFunc(groups[0].Paths, slices.Compare)
		if !slices.Equal(groups[0].Weights, c.want) {
			t.Errorf("%v: weights %v, not %v", c.policy, groups[0].Weights, c.want)
		}
	}
}

// What a flow would get of a link is computed anew when flows join or leave it, and otherwise some
// times in a window.
func TestShareOfNextFollows(t *testing.T) {
	d, paths := fourWays(t, nil)
	r, e := d.rates, paths[0][0]
	if got := r.shareOfNext(e, 0, 0); got != 1 {
		t.Errorf("an idle link gives %v", got)
	}
	f := &rated{key: tuple(0), reports: 1 / r.unit}
	r.flows[f.key] = f
	r.put(f, paths[0])
	if got := r.shareOfNext(e, 0, 0); got != 0.5 {
		t.Errorf("beside a flow: %v", got)
	}
	f.reports /= 4
	if got := r.shareOfNext(e, 0, r.window/16); got != 0.5 {
		t.Errorf("soon after: %v", got)
	}
	if got := r.shareOfNext(e, 0, r.window/8); got < 0.7 {
		t.Errorf("a slow flow leaves more: %v", got)
	}
	r.put(f, nil)
	if got := r.shareOfNext(e, 0, r.window/8); got != 1 {
		t.Errorf("the flow left: %v", got)
	}
}

// A flow whose reports stop counts for less after the time of four of them; one that is reported
// seldom counts for longer.
func TestSilentFlowsCountForLess(t *testing.T) {
	d, _ := fourWays(t, nil)
	r := d.rates
	fast, slow := &rated{reports: 16}, &rated{reports: 2}
	at := r.window / 2
	if got := r.rate(fast, at); got > 0.1*r.unit*16 {
		t.Errorf("a fast flow that was silent for eight reports: %v", got/r.unit)
	}
	if got, want := r.rate(slow, at), r.left(slow, at)*r.unit; got != want {
		t.Errorf("a slow flow: %v, not %v", got, want)
	}
}
