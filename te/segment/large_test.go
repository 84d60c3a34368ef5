package segment_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
)

// plainDP is Algorithm 3 as it stands in the paper, over all states and without bounds, for the
// models with forced trees.
type plainDP struct {
	table *spf.Table // by IGP weight, in the state that is looked at
	avoid map[topology.Edge]bool
	nodes map[topology.Node][]topology.Node // by root: all nodes by distance
}

// least is the latency of the best path, and whether there is one.
func (p *plainDP) least(q segment.Query) (int64, bool) {
	g := p.table.Graph()
	none := int64(1) << 60
	row := func() []int64 { return slices.Repeat([]int64{none}, g.Nodes()) }
	here, best := row(), none
	here[q.From] = 0
	for k := 1; k <= q.MaxSIDs; k++ {
		next := row()
		for r, cost := range here {
			if cost == none {
				continue
			}
			lat := p.forced(topology.Node(r))
			best = min(best, cost+lat[q.To])
			for v, l := range lat {
				if l == none {
					continue
				}
				next[v] = min(next[v], cost+l)
				for _, a := range p.table.Out(topology.Node(v)) {
					if a.Cost != 0 && !p.avoid[a.Edge] && q.Model == segment.ForcedAdjacency {
						next[a.Node] = min(next[a.Node], cost+l+g.Delay(a.Edge))
					}
				}
			}
		}
		here = next
	}
	return best, best < none
}

// forced is the latency along the forced tree of a node, over edges that are not to be avoided.
func (p *plainDP) forced(root topology.Node) []int64 {
	row, none := p.table.From(root), int64(1)<<60
	if p.nodes[root] == nil {
		for v := range topology.Node(len(row.Dist)) {
			p.nodes[root] = append(p.nodes[root], v)
		}
		slices.SortFunc(p.nodes[root],
			func(a, b topology.Node) int { return cmp.Compare(row.Dist[a], row.Dist[b]) })
	}
	lat := slices.Repeat([]int64{none}, len(row.Dist))
	lat[root] = 0
	for _, v := range p.nodes[root] {
		if via := row.Via[v]; via >= 0 && !p.avoid[via] && lat[p.table.Graph().From(via)] < none {
			lat[v] = lat[p.table.Graph().From(via)] + p.table.Graph().Delay(via)
		}
	}
	return lat
}

// TestLongListsAreTheBest asks for paths that need many SIDs, as much must be avoided, in a network
// large enough for all that the search does to be quick; while links fail and come back.
func TestLongListsAreTheBest(t *testing.T) {
	g := open(t, "large/isp1000")
	rnd := rand.New(rand.NewPCG(3, 3))
	e := engine(t, g.All())
	found, missing := 0, 0
	for range 4 {
		changes := e.LinkDown(topology.Edge(rnd.IntN(g.Edges())))
		changes = append(changes, e.NodeDown(topology.Node(rnd.IntN(g.Nodes())))...)
		if _, err := e.Apply(changes...); err != nil {
			t.Fatal(err)
		}
		down := make([]topology.Edge, len(changes))
		for i, c := range changes {
			down[i] = c.Edge
		}
		view := g.All().Without(down...)
		fresh := engine(t, view)
		p := plainDP{avoid: map[topology.Edge]bool{}, nodes: map[topology.Node][]topology.Node{}}
		p.table = spf.New(view, func(e topology.Edge) uint64 { return uint64(g.Weight(e)) },
			func(topology.Edge) uint64 { return 0 })
		for i, q := range randomPairs(g, 12) {
			q.Model, q.MaxSIDs = segment.ForcedAdjacency, 2+i%3
			if i%4 == 3 {
				q.Model = segment.Forced
			}
			clear(p.avoid)
			for edge := range topology.Edge(g.Edges()) {
				if rnd.IntN(8) == 0 {
					p.avoid[edge] = true
					q.Avoid = append(q.Avoid, edge)
				}
			}
			got, err := e.Disjoint(q)
			if err != nil {
				t.Fatal(err)
			}
			want, err := fresh.Disjoint(q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("%d to %d (-fresh +mended):\n%s", q.From, q.To, diff)
			}
			least, any := p.least(q)
			if any != (len(got.Paths) > 0) || any && least != got.Least {
				t.Errorf("%s, %d SIDs, %d to %d: %d, %d paths; want %d, %v", q.Model, q.MaxSIDs,
					q.From, q.To, got.Least, len(got.Paths), least, any)
			}
			if any {
				found++
			} else {
				missing++
			}
		}
		if _, err := e.Apply(e.Restored(changes)...); err != nil {
			t.Fatal(err)
		}
	}
	if found < 10 || missing < 3 {
		t.Errorf("%d paths found, %d missing: the test shows little", found, missing)
	}
}
