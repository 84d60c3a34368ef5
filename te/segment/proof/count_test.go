package proof_test

import (
	"math/rand/v2"
	"testing"

	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
)

var kinds = []segment.Disjointness{segment.EdgeDisjoint, segment.LinkDisjoint, segment.NodeDisjoint,
	segment.SRLGDisjoint}

// What the proof emits, the engine's replay confirms: packets go where the path says and nowhere
// else, and paths do not meet.
func TestListsAreForced(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		g := randomGraph(t, r, 6+r.IntN(6), 8+r.IntN(16))
		engine, err := segment.New(g.All())
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []segment.Model{segment.Forced, segment.ForcedAdjacency,
			segment.ECMP} {
			q := segment.Query{Model: model, Disjoint: kinds[r.IntN(len(kinds))],
				MaxSIDs: 1 + r.IntN(4), To: topology.Node(1 + r.IntN(5))}
			p := proof.New(g.All(), q, proof.Effort{})
			paths := p.Count(q.From, q.To).Paths
			for _, path := range append(paths, p.Pair(q.From, q.To, proof.LeastTotal).Paths...) {
				v, err := engine.Verify(q.From, path)
				if err != nil || len(v.Left)+len(v.Missing) > 0 || v.Forced != path.Forced ||
					v.Latency != path.Latency {
					t.Fatalf("seed %d %s: path %+v, replayed %+v: %v", seed, model, path, v, err)
				}
			}
			if overlaps, err := engine.Overlaps(segment.Answer{Query: q,
				Paths: paths}); err != nil || len(overlaps) > 0 {
				t.Fatalf("seed %d %s %s: overlaps %v: %v", seed, model, q.Disjoint, overlaps, err)
			}
		}
	}
}

func TestCountEqualsBruteForce(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(t, r, 3+r.IntN(4), 3+r.IntN(6))
		sids := 1 + r.IntN(4)
		for _, model := range segment.Models() {
			kind := kinds[r.IntN(len(kinds))]
			want := newBrute(g, model, sids, kind)
			q := segment.Query{Model: model, Disjoint: kind, MaxSIDs: sids}
			if seed%4 == 0 {
				q.Avoid = []topology.Edge{topology.Edge(r.IntN(g.Edges()))}
			}
			want.avoid = q.Avoid
			p := proof.New(g.All(), q, proof.Effort{})
			for d := topology.Node(1); int(d) < g.Nodes(); d++ {
				got := p.Count(0, d)
				if most := want.solve(0, d).most; !got.Optimal() || got.Bound != most {
					t.Fatalf("seed %d %s %s K=%d to %d: %d paths, bound %d by %s; brute force "+
						"finds %d",
						seed, model, kind, sids, d, len(got.Paths), got.Bound, got.By, most)
				}
				disjoint(t, want, got.Paths, 0, d)
			}
		}
	}
}

// disjoint checks that paths are what lists can do, and share nothing.
func disjoint(t *testing.T, b *brute, paths []segment.Path, s, d topology.Node) {
	t.Helper()
	for i, p := range paths {
		if len(p.SIDs) > b.sids || p.SIDs[len(p.SIDs)-1] != (segment.SID{Node: d,
			Link: topology.NoEdge}) {
			t.Fatalf("%s: the list %v is too long for %d, or does not end at %d", b.model, p.SIDs,
				b.sids, d)
		}
		if b.model != segment.ECMP && (b.length(p.Edges) > b.sids ||
			b.delay(p.Edges) != p.Latency) {
			t.Fatalf("%s: no list of %d SIDs realises %v with delay %d", b.model, b.sids, p.Edges,
				p.Latency)
		}
		for _, q := range paths[:i] {
			if b.meet(way{edges: p.Edges}, way{edges: q.Edges}, s, d) {
				t.Fatalf("%s: %v and %v are not %s-disjoint", b.model, p.Edges, q.Edges, b.kind)
			}
		}
	}
}
