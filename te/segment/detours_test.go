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

// policies answers random queries.
func policies(t interface{ Fatal(...any) }, e *segment.Engine, g *topology.Graph, rnd *rand.Rand,
	count int) (answers []segment.Answer) {
	for range count {
		a, err := e.Disjoint(query(g, rnd))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	return answers
}

// prepare makes detours, and all that they prepare.
func prepare(t interface{ Fatal(...any) }, e *segment.Engine, answers []segment.Answer,
	room int) *segment.Detours {
	d, err := segment.NewDetours(e, answers, room)
	for more := err == nil; more; {
		more, err = d.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// failed is an engine that never knew another state than that after changes and with edges down.
func failed(t *rapid.T, tb testing.TB, g *topology.Graph, changes []segment.Change,
	down []topology.Edge) *segment.Engine {
	e := engine(tb, g.All())
	for _, edge := range down {
		changes = append(slices.Clip(changes), segment.Change{Edge: edge})
	}
	if _, err := e.Apply(changes...); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestDetoursAreThoseComputedAnew changes weights, takes links down and up, prepares, and compares
// what is prepared for each link with the answers of an engine that never knew another state; then
// lets any links fail together, also risks that they share.
func TestDetoursAreThoseComputedAnew(t *testing.T) {
	exactly, roughly := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		rnd := seeded(r)
		g := multigraph(r, rnd)
		changes := append(change(g, rnd), change(g, rnd)...)
		e := failed(r, t, g, changes, nil)
		answers := policies(r, e, g, rnd, 8)
		d := prepare(r, e, answers, 1<<20)
		for edge, back := range g.Links() {
			down := []topology.Edge{edge}
			if back != topology.NoEdge {
				down = append(down, back)
			}
			fresh := failed(r, t, g, changes, down)
			found, exact := d.After(down...)
			if exact {
				exactly += len(found)
			}
			checkDetours(r, fresh, answers, found, exact)
		}
		for range 6 {
			var down []topology.Edge
			for range 2 + rnd.IntN(2) {
				edge := topology.Edge(rnd.IntN(g.Edges()))
				down = append(down, edge)
				if back := g.Reverse(edge); back != topology.NoEdge && rnd.IntN(4) > 0 {
					down = append(down, back)
				}
			}
			found, exact := d.After(down...)
			if !exact {
				roughly += len(found)
			}
			checkDetours(r, failed(r, t, g, changes, down), answers, found, exact)
		}
		if found, exact := d.After(); len(found) > 0 || !exact {
			r.Fatalf("nothing is down, and %v is another answer", found)
		}
	})
	if exactly == 0 || roughly == 0 {
		t.Errorf("%d exact answers, %d others: the test shows little", exactly, roughly)
	}
}

// checkDetours compares what is to be taken after a failure with what an engine finds in the
// network as it is then.
func checkDetours(t *rapid.T, fresh *segment.Engine, answers []segment.Answer,
	found map[int]segment.Answer, exact bool) {
	for i, a := range answers {
		want, err := fresh.Disjoint(a.Query)
		if err != nil {
			t.Fatal(err)
		}
		got, moved := found[i]
		if !moved {
			got = a
		} else if exact {
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("policy %d (-anew +prepared):\n%s", i, diff)
			}
		}
		for _, p := range got.Paths {
			v, err := fresh.Verify(a.Query.From, p)
			if err != nil || len(v.Missing) > 0 || p.Forced && (len(v.Left) > 0 || !v.Forced) {
				t.Fatalf("policy %d: path %v is not taken: %+v, %v", i, p, v, err)
			}
			if p.Latency < want.Least {
				t.Fatalf("policy %d: latency %d, the least is %d", i, p.Latency, want.Least)
			}
		}
	}
}

// Where there is no room for all, what was prepared is right, and the engine is where it was.
func TestDetoursKeepToTheirRoom(t *testing.T) {
	g := open(t, "paper-table3/AS3967")
	rnd := rand.New(rand.NewPCG(1, 1))
	var whole, answers []segment.Answer
	e := engine(t, g.All())
	whole = policies(t, e, g, rnd, 60)
	prepared := 0
	for _, room := range []int{0, 50_000, 1 << 30} {
		d := prepare(t, e, whole, room)
		now := 0
		for edge, back := range g.Links() {
			found, exact := d.After(edge, back)
			if !exact || len(found) == 0 {
				continue
			}
			now++
			fresh := engine(t, g.All().Without(edge, back))
			for i, got := range found {
				want, err := fresh.Disjoint(whole[i].Query)
				if diff := gocmp.Diff(want, got); diff != "" || err != nil {
					t.Fatalf("without link %d, policy %d, %v (-anew +prepared):\n%s", edge, i, err,
						diff)
				}
			}
		}
		if room == 0 && now != 0 || room > 0 && now <= prepared {
			t.Errorf("%d failures are prepared with room for %d octets, %d before", now, room,
				prepared)
		}
		prepared = now
		answers = policies(t, e, g, rand.New(rand.NewPCG(1, 1)), 60)
		if diff := gocmp.Diff(whole, answers); diff != "" {
			t.Fatalf("after %d octets the engine answers (-before +after):\n%s", room, diff)
		}
	}
}
