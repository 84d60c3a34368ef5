package topology

import (
	"testing"

	"pgregory.net/rapid"
)

// A view is the set of edges that are off, whatever was derived from it.
func TestViewIsASet(t *testing.T) {
	edges := make([]string, 130) // more than two words of bits
	for i := range edges {
		edges[i] = "ab"
	}
	g := build(t, 2, edges...)
	rapid.Check(t, func(t *rapid.T) {
		view, off := g.All(), map[Edge]bool{}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			some := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, len(edges)-1),
				func(i int) Edge { return Edge(i) }), 0, 5).Draw(t, "edges")
			before, was := view, make([]bool, len(edges))
			for e := range was {
				was[e] = before.Up(Edge(e))
			}
			view = before.Without(some...)
			for _, e := range some {
				off[e] = true
			}
			for e := range Edge(len(edges)) {
				if view.Up(e) == off[e] || before.Up(e) != was[e] {
					t.Fatalf("edge %d is up: %v, off: %v", e, view.Up(e), off[e])
				}
			}
		}
	})
}
