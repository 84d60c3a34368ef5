package segment_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/te/segment"
	"sextant/te/topology"
)

// change draws changes of weight, links going down and coming up.
func change(g *topology.Graph, rnd *rand.Rand) []segment.Change {
	var changes []segment.Change
	for range 1 + rnd.IntN(3) {
		c := segment.Change{Edge: topology.Edge(rnd.IntN(g.Edges()))}
		if rnd.IntN(2) == 0 {
			c.Weight = 1 + rnd.Uint32N(4)
		}
		changes = append(changes, c)
	}
	return changes
}

// TestChangesAreApplied asks one engine the same things before and after changes, and compares its
// answers with brute force and with those of an engine that never knew another state.
func TestChangesAreApplied(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rnd := seeded(r)
		g := multigraph(r, rnd)
		e := engine(t, g.All())
		weights := make([]uint32, g.Edges())
		for edge := range weights {
			weights[edge] = g.Weight(topology.Edge(edge))
		}
		var changes []segment.Change
		for range 3 {
			for range 4 {
				if _, err := e.Disjoint(query(g, rnd)); err != nil {
					r.Fatal(err)
				}
			}
			batch := change(g, rnd)
			if _, err := e.Apply(batch...); err != nil {
				r.Fatal(err)
			}
			changes = append(changes, batch...)
			for _, c := range batch {
				weights[c.Edge] = c.Weight
			}
			b := newBrute(g.All())
			b.on = func(edge topology.Edge) bool { return weights[edge] > 0 }
			b.weigh = func(edge topology.Edge) int64 { return int64(weights[edge]) }
			q := query(g, rnd)
			checkAnswer(r, e, b, q)
			fresh := engine(t, g.All())
			if _, err := fresh.Apply(changes...); err != nil {
				r.Fatal(err)
			}
			had, _ := e.Disjoint(q)
			want, _ := fresh.Disjoint(q)
			if diff := gocmp.Diff(want, had); diff != "" {
				r.Fatalf("%v after %v (-fresh +mended):\n%s", q, changes, diff)
			}
		}
	})
}

// TestAffectedPoliciesAreFound watches policies of all models, and compares the policies said to be
// affected with those whose replays differ.
func TestAffectedPoliciesAreFound(t *testing.T) {
	affected, all := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		rnd := seeded(r)
		g := multigraph(r, rnd)
		e := engine(t, g.All())
		var w segment.Watch
		var answers []segment.Answer
		for i := range 12 {
			a, err := e.Disjoint(query(g, rnd))
			if err != nil {
				r.Fatal(err)
			}
			if err := w.Add(i, e, a); err != nil {
				r.Fatal(err)
			}
			answers = append(answers, a)
		}
		w.Remove(11)
		before := replays(e, answers)
		changes := change(g, rnd)
		update, err := e.Apply(changes...)
		if err != nil {
			r.Fatal(err)
		}
		found := w.Affected(update)
		after := replays(e, answers)
		for i := range answers {
			differs := gocmp.Diff(before[i], after[i]) != ""
			if listed := slices.Contains(found, i); differs && !listed && i != 11 || listed &&
				i == 11 {
				r.Fatalf("after %v policy %d: listed %v; %v, then %v", changes, i, listed,
					before[i], after[i])
			}
		}
		affected, all = affected+len(found), all+len(answers)
	})
	if affected == 0 || affected > all/2 {
		t.Errorf("%d of %d policies were affected: the test shows little", affected, all)
	}
}

// replays lists for each answer what its lists do, or the error.
func replays(e *segment.Engine, answers []segment.Answer) [][]segment.Replay {
	all := make([][]segment.Replay, len(answers))
	for i, a := range answers {
		for _, p := range a.Paths {
			r, err := e.Replay(a.Query.From, p.SIDs)
			if err != nil {
				r.Latency = -1
			}
			all[i] = append(all[i], r)
		}
	}
	return all
}

func TestFailureAndRepair(t *testing.T) {
	g := open(t, "paper-table3/AS3967")
	e, fresh := engine(t, g.All()), engine(t, g.All())
	q := segment.Query{From: 3, To: 40, Disjoint: segment.NodeDisjoint}
	first, err := e.Disjoint(q)
	if err != nil || len(first.Paths) < 2 {
		t.Fatalf("%d paths, %v", len(first.Paths), err)
	}
	link := e.LinkDown(first.Paths[0].Edges[0])
	node := e.NodeDown(g.To(first.Paths[0].Edges[1]))
	for name, failure := range map[string][]segment.Change{"link": link, "node": node} {
		if _, err := e.Apply(failure...); err != nil {
			t.Fatal(err)
		}
		var down []topology.Edge
		for _, c := range failure {
			down = append(down, c.Edge)
		}
		if _, err := e.Verify(q.From, first.Paths[0]); err == nil {
			v, _ := e.Verify(q.From, first.Paths[0])
			if len(v.Missing) == 0 {
				t.Errorf("%s down: the path crosses it and still verifies: %+v", name, v)
			}
		}
		spare, ok := first.Avoiding(down...)
		if v, err := e.Verify(q.From, spare); !ok || err != nil || !v.Forced {
			t.Errorf("%s down: the spare path is %+v, %v, %v", name, spare, ok, err)
		}
		got, _ := e.Disjoint(q)
		broken := engine(t, g.All().Without(down...))
		want, _ := broken.Disjoint(q)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s down (-fresh +mended):\n%s", name, diff)
		}
		if _, err := e.Apply(e.Restored(failure)...); err != nil {
			t.Fatal(err)
		}
		again, _ := e.Disjoint(q)
		want, _ = fresh.Disjoint(q)
		if diff := gocmp.Diff(want, again); diff != "" {
			t.Errorf("%s up again (-fresh +mended):\n%s", name, diff)
		}
	}
}
