package segment_test

import (
	"fmt"
	"testing"

	"sextant/te/segment"
	"sextant/te/topology"
)

// TestShareOfPairsWithTwoPaths counts, on the paper's four networks, the ordered pairs with two or
// more edge-disjoint paths. Those of an independent implementation, which takes paths one after the
// other, must be reached: it finds no pair that we miss, however ties are broken. (For forced lists
// of four SIDs on AS3967 it states .931; the proofs in segment/proof allow .9305.) No share may
// exceed what max flow over all links allows, whatever the lists; model adjacency with K = 4
// reaches that. All lists are replayed.
func TestShareOfPairsWithTwoPaths(t *testing.T) {
	networks := []string{"AS3967", "AS1755", "AS3257", "AS1239"}
	maxFlow := []float64{.9649, .8833, .9235, .9739}
	for _, test := range []struct {
		model segment.Model
		sids  int
		want  []float64
	}{
		{segment.Paper, 3, []float64{.965, .882, .923, .974}},
		{segment.Paper, 4, []float64{.965, .883, .924, .974}},
		{segment.Forced, 3, []float64{.918, .822, .861, .949}},
		{segment.Forced, 4, []float64{.930, .879, .904, .973}},
		{segment.ForcedAdjacency, 3, []float64{.963, .872, .915, .973}},
		{segment.ForcedAdjacency, 4, []float64{.9649, .8833, .9235, .9739}},
		{segment.ECMP, 3, []float64{.918, .784, .870, .942}},
		{segment.ECMP, 4, []float64{.919, .802, .895, .944}},
	} {
		for i, as := range networks {
			t.Run(fmt.Sprintf("%s/%d/%s", test.model, test.sids, as), func(t *testing.T) {
				g := open(t, "paper-table3/"+as)
				q := segment.Query{Model: test.model, MaxSIDs: test.sids,
					Disjoint: segment.EdgeDisjoint}
				c := countPairs(t, g, q)
				t.Logf("two or more %.4f, paths %d, loose %d, pairs that overlap %d", c.share(),
					c.paths, c.loose, c.overlapping)
				if c.share() < test.want[i]-.0006 || c.share() > maxFlow[i]+.00005 {
					t.Errorf("share of pairs with two paths: %.4f, want %.4f, at most %.4f",
						c.share(), test.want[i], maxFlow[i])
				}
				if test.model != segment.Paper && (c.strays > 0 || c.overlapping > 0) {
					t.Errorf("%d of %d lists stray from their path, %d pairs overlap", c.strays,
						c.paths, c.overlapping)
				}
				if (test.model == segment.Forced || test.model == segment.ForcedAdjacency) &&
					c.loose > 0 {
					t.Errorf("%d of %d lists are loose", c.loose, c.paths)
				}
			})
		}
	}
}

// counts is what the answers of all pairs come to.
type counts struct{ pairs, two, paths, loose, strays, overlapping int }

func (c counts) share() float64 { return float64(c.two) / float64(c.pairs) }

func countPairs(t *testing.T, g *topology.Graph, q segment.Query) (c counts) {
	e := engine(t, g.All())
	err := e.Sources(q, nodes(g), 2, func(from topology.Node, answers []segment.Answer) error {
		for _, a := range answers {
			c.pairs++
			c.paths += len(a.Paths)
			if len(a.Paths) >= 2 {
				c.two++
			}
			for _, p := range a.Paths {
				v, err := e.Verify(from, p)
				if err != nil {
					return err
				}
				if !v.Forced {
					c.loose++
				}
				if len(v.Left)+len(v.Missing) > 0 || v.Latency != p.Latency {
					c.strays++
				}
			}
			overlaps, err := e.Overlaps(a)
			if err != nil {
				return err
			}
			if len(overlaps) > 0 {
				c.overlapping++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
