package reroute

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/packet/flow"
	"sextant/te/topology"
	"sextant/te/topology/generate"
)

// TestSetUpFindsAllFlows plays reports, pins, links that fail and return, and time that passes, at
// random; each link that fails cuts the flows that a look at all of them finds, and no others.
func TestSetUpFindsAllFlows(t *testing.T) {
	g, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	cuts := 0
	for seed := range uint64(40) {
		s := Defaults(Sextant)
		s.Sampling, s.Ratio = 0, 0
		s.BackoffLeast, s.BackoffMost, s.Forget = 0, 0, 20*time.Millisecond
		d := decider(t, g, s, seed)
		random := rand.New(rand.NewPCG(seed, 7))
		up := slices.Repeat([]bool{true}, g.Edges())
		now := time.Duration(0)
		for range 3000 {
			now += time.Duration(random.IntN(1000)) * time.Microsecond
			e := topology.Edge(random.IntN(g.Edges()))
			switch random.IntN(10) {
			case 0:
				d.Forget(now)
			case 1:
				up[e] = !up[e]
				want := map[flow.Tuple]bool{}
				for key, f := range d.flows {
					if !up[e] && !f.Pinned && slices.Contains(f.Path, e) {
						want[key] = true
					}
				}
				got := map[flow.Tuple]bool{}
				d.SetUp(e, up[e], now, func(d Decision) { got[d.Flow] = true })
				cuts += len(got)
				if !maps.Equal(got, want) {
					t.Fatalf("link %d up %v: decided on %v, want %v", e, up[e], got, want)
				}
			case 2:
				key := tuple(random.IntN(50))
				if !d.Unpin(key) && random.IntN(4) == 0 {
					_ = d.Pin(key, []topology.Edge{e}, now) // a single link is a path
				}
			default:
				from := topology.Node(random.IntN(g.Nodes()))
				to := topology.Node(random.IntN(g.Nodes()))
				path, ok := d.paths.Draw(nil, from, to, d.random)
				if !ok || len(path) == 0 {
					continue
				}
				d.Report(&Report{Flow: tuple(random.IntN(50)), From: from, To: to,
					Path: path, Pause: true, At: now,
					Queues: []Queue{{Edge: path[0], Occupancy: random.Float64()}}})
			}
			for e, list := range d.on {
				if len(list) > 2*50+2 {
					t.Fatalf("link %d lists %d flows, and there are 50", e, len(list))
				}
			}
		}
	}
	if cuts < 1000 {
		t.Errorf("%d flows were cut in all: too few to tell", cuts)
	}
}

// A controller that begins learns of a flow by a report before the head-end says which path it has:
// that path is the flow's nevertheless. One that was given here is not replaced.
func TestAdopt(t *testing.T) {
	g := network(t, "S1-S2", "S1-S3", "S2-S4", "S3-S4")
	d := decider(t, g, Defaults(Sextant), 1)
	over2, over3 := route(t, g, "S1", "S2", "S4"), route(t, g, "S1", "S3", "S4")
	d.Report(&Report{Flow: tuple(1), From: g.From(over2[0]), To: g.To(over2[1]), Path: over2,
		Pause: true})
	if f, ok := d.Flow(tuple(1)); !ok || len(f.Path) > 0 {
		t.Fatalf("a flow without a path is known as %+v, %v", f, ok)
	}
	if !d.Adopt(tuple(1), over3, 0) {
		t.Error("the path that a head-end has is not adopted")
	}
	if f, _ := d.Flow(tuple(1)); !slices.Equal(f.Path, over3) || f.Pinned {
		t.Errorf("the flow is %+v, want %v", f, over3)
	}
	if d.Adopt(tuple(1), over2, 0) {
		t.Error("a path that the flow has here was replaced")
	}
}
