package way_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/way"
)

var addresses = cmpopts.EquateComparable(netip.Addr{})

// rebuilt is a graph as it is read anew: without some edges, and with others that differ.
func rebuilt(t interface{ Fatal(...any) }, g *topology.Graph, down []topology.Edge,
	edit func(topology.Edge, *topology.EdgeSpec)) *topology.Graph {
	b := topology.NewBuilder(g.Name(), g.DelayUnit())
	for v := range topology.Node(g.Nodes()) {
		if _, err := b.AddNode(g.Node(v)); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(g.Edges()) {
		spec := g.Edge(e)
		if edit(e, &spec); !slices.Contains(down, e) {
			if _, err := b.AddEdge(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

func asItWas(topology.Edge, *topology.EdgeSpec) {}

// prepare finds the ways that are wanted, and detours.
func prepare(t *rapid.T, n way.Network, wanted ...way.Wanted) *way.Detours {
	d := way.NewDetours(n, wanted, 1<<20)
	for more, err := true, error(nil); more; {
		if more, err = d.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func compute(t *rapid.T, s *way.Search, w way.Wanted) map[string]way.Answer {
	answers, err := s.Compute(w.Intent, w.To, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// TestForeseenWays lets each link fail, as a topology that is read anew without it, and each two.
// Ways that crossed it are those that a search finds that foresees nothing; others stay, and none
// crosses what is down.
func TestForeseenWays(t *testing.T) {
	moved, doubly := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		one := way.Wanted{Intent: way.Intent{By: way.Delay, Paths: 2, MaxSIDs: 6,
			Model: segment.ForcedAdjacency}}
		for v := range topology.Node(n.View.Nodes()) {
			one.To = append(one.To, n.View.Node(v).Name)
		}
		other := way.Wanted{Intent: drawIntent(t, n), To: one.To}
		other.Intent.Links, other.Intent.By = nil, way.IGP // a link that is gone is refused
		d := prepare(t, n, one, other)
		for a, back := range n.View.Links() {
			b := topology.Edge(rapid.IntRange(0, n.View.Edges()-1).Draw(t, "another"))
			for _, down := range [][]topology.Edge{{a, back, a, back},
				{a, back, b, n.View.Reverse(b)}} {
				after := n
				after.View = rebuilt(t, n.View.Graph, down, asItWas).All()
				for _, w := range []way.Wanted{one, other} {
					moved, doubly = checkForeseen(t, d, n, after, w, down, moved, doubly)
				}
			}
		}
	})
	if moved == 0 || doubly == 0 {
		t.Errorf("%d ways moved after one failure, %d after two: the test shows little", moved,
			doubly)
	}
}

// checkForeseen compares what is foreseen for a network with what is found in it, and counts the
// ways that crossed what is down.
func checkForeseen(t *rapid.T, d *way.Detours, before, after way.Network, w way.Wanted,
	down []topology.Edge, moved, doubly int) (int, int) {
	s := way.NewSearch(after)
	if known, exact := s.Foresee(d); !known || exact {
		t.Fatalf("edges %v are down: known %v, exact %v", down, known, exact)
	}
	single := down[0] == down[2] || down[0] == down[3]
	got, fresh := compute(t, s, w), compute(t, way.NewSearch(after), w)
	was := compute(t, way.NewSearch(before), w)
	e, err := segment.New(after.View)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range w.To {
		crossed := slices.ContainsFunc(was[name].Paths, func(p way.Path) bool {
			return slices.ContainsFunc(down, func(e topology.Edge) bool {
				return p.Crosses(protection.LinkOf(before.View.Graph, e))
			})
		})
		switch {
		case crossed && single:
			moved++
			if diff := gocmp.Diff(fresh[name], got[name], addresses); diff != "" {
				t.Fatalf("to %s without %v (-searched +foreseen):\n%s", name, down, diff)
			}
		case crossed:
			doubly++
		case !slices.EqualFunc(was[name].Paths, got[name].Paths,
			func(a, b way.Path) bool { return slices.Equal(a.Links, b.Links) }):
			t.Fatalf("to %s without %v: %v, and %v before", name, down, got[name].Paths,
				was[name].Paths)
		}
		if len(fresh[name].Paths) > 0 && len(got[name].Paths) == 0 {
			t.Fatalf("to %s without %v: nothing is foreseen, %v is there", name, down, fresh[name])
		}
		for _, p := range got[name].Paths {
			v, _ := after.View.Lookup(name)
			network := protection.Network{View: after.View, Block: after.Block}
			if fault := network.Fault(e, after.From, p.Path, segment.SID{Node: v,
				Link: topology.NoEdge}); fault != "" {
				t.Fatalf("to %s without %v: %v: %s", name, down, p, fault)
			}
		}
	}
	return moved, doubly
}

// A link that came back is as before; where anything but a link that is gone differs, nothing is
// foreseen.
func TestNothingForeseenOfAnotherNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		w := way.Wanted{Intent: way.Intent{By: way.Delay, Paths: 1, MaxSIDs: 6,
			Model: segment.Forced}, To: []string{"n1", "n2"}}
		d, g := prepare(t, n, w), n.View.Graph
		e := topology.Edge(rapid.IntRange(0, g.Edges()-1).Draw(t, "edge"))
		same := n
		same.View = rebuilt(t, g, nil, asItWas).All()
		s := way.NewSearch(same)
		if known, exact := s.Foresee(d); !known || !exact {
			t.Fatalf("the same network: known %v, exact %v", known, exact)
		}
		if diff := gocmp.Diff(compute(t, way.NewSearch(n), w), compute(t, s, w),
			addresses); diff != "" {
			t.Fatalf("the same network (-searched +foreseen):\n%s", diff)
		}
		fewer := n
		fewer.View = rebuilt(t, g, []topology.Edge{e}, asItWas).All()
		before := prepare(t, fewer, w)
		if known, _ := way.NewSearch(n).Foresee(before); known {
			t.Fatal("there is a link more, and it was foreseen")
		}
		for name, edit := range map[string]func(*topology.EdgeSpec){
			"weight": func(s *topology.EdgeSpec) { s.Weight++ },
			"delay":  func(s *topology.EdgeSpec) { s.Delay++ },
			"risk":   func(s *topology.EdgeSpec) { s.SRLGs = []uint32{77} },
		} {
			other := n
			other.View = rebuilt(t, g, nil, func(at topology.Edge, s *topology.EdgeSpec) {
				if at == e {
					edit(s)
				}
			}).All()
			if known, _ := way.NewSearch(other).Foresee(d); known {
				t.Fatalf("another %s of edge %d, and it was foreseen", name, e)
			}
		}
		elsewhere := n
		elsewhere.From = "n1"
		if known, _ := way.NewSearch(elsewhere).Foresee(d); known {
			t.Fatal("the edge is at another node, and it was foreseen")
		}
	})
}

// What Foresee compares of an edge is all that there is.
func TestAllOfAnEdgeIsCompared(t *testing.T) {
	if n := reflect.TypeFor[topology.EdgeSpec]().NumField(); n != 8 {
		t.Errorf("%s has %d fields, sameEdge compares 8", fmt.Sprint(topology.EdgeSpec{}), n)
	}
}
