package proof_test

import (
	"fmt"
	"testing"

	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

// TestSecondPathsAreFound asks for all pairs of two of the paper's networks, with all models, and
// proves of each pair for which the engine finds one path that there are no two. So the shares it
// finds are right, whatever the order of ties; they are not below those that an independent
// implementation found, which takes paths one after the other. Of model ecmp it misses some.
func TestSecondPathsAreFound(t *testing.T) {
	networks := []string{"AS3967", "AS1755"}
	for _, test := range []struct {
		model  segment.Model
		sids   int
		others []float64
		missed int // at most, of 4422 pairs: the search of path disjoint finds these, too
	}{
		{segment.Paper, 3, []float64{.965, .882}, 0},
		{segment.Forced, 3, []float64{.918, .822}, 0},
		{segment.Forced, 4, []float64{.930, .879}, 0},
		{segment.ForcedAdjacency, 3, []float64{.963, .872}, 0},
		{segment.ForcedAdjacency, 4, []float64{.965, .883}, 0},
		{segment.ECMP, 3, []float64{.918, .784}, 5},
		{segment.ECMP, 4, []float64{.919, .802}, 2},
	} {
		for i, name := range networks {
			t.Run(fmt.Sprintf("%s/%d/%s", test.model, test.sids, name), func(t *testing.T) {
				g, err := dataset.Open("paper-table3/" + name)
				if err != nil {
					t.Fatal(err)
				}
				s := seconds(t, g, segment.Query{Model: test.model, MaxSIDs: test.sids,
					Disjoint: segment.EdgeDisjoint})
				share := float64(s.two) / float64(s.pairs)
				t.Logf("two or more %.4f, of these rearranged %d; missed %d, not proven %d", share,
					s.rearranged, s.missed, s.open)
				if s.missed > test.missed || s.open > 0 || share < test.others[i]-.0005 {
					t.Errorf("share of pairs with two paths %.4f, not below %.3f wanted; %d "+
						"missed, %d not proven", share, test.others[i], s.missed, s.open)
				}
			})
		}
	}
}

// tally counts pairs: those with two paths, those for which the proof finds two and the engine does
// not, and those where it can't tell.
type tally struct{ pairs, two, rearranged, missed, open int }

func seconds(t *testing.T, g *topology.Graph, q segment.Query) (s tally) {
	e, err := segment.New(g.All())
	if err != nil {
		t.Fatal(err)
	}
	var sources []topology.Node
	for v := range topology.Node(g.Nodes()) {
		sources = append(sources, v)
	}
	p := proof.New(g.All(), q, proof.Effort{})
	err = e.Sources(q, sources, 1, func(_ topology.Node, answers []segment.Answer) error {
		for _, a := range answers {
			s.pairs++
			if a.Rearranged {
				s.rearranged++
			}
			if len(a.Paths) >= 2 {
				s.two++
				continue
			}
			c := p.Count(a.Query.From, a.Query.To)
			if len(c.Paths) >= 2 {
				s.missed++
			} else if c.Bound >= 2 {
				s.open++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
