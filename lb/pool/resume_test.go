package pool_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// seed is the one that first uses.
const seed = 11

// evolved returns a generation with a past, and its backends: the tables are not those that New
// would make.
func evolved(t *testing.T, candidates int) (*pool.Generation, []pool.Backend) {
	t.Helper()
	g := first(t, 1021, candidates, up(10))
	for _, backends := range [][]pool.Backend{with(up(10), 4, pool.Draining), up(12), up(9),
		up(11)} {
		g = next(t, g, backends)
	}
	return g, up(11)
}

// A process that starts again with what the map holds goes on as if it had never stopped.
func TestResume(t *testing.T) {
	g, backends := evolved(t, 2)
	resumed, err := pool.Resume(exact(g.Buckets(), 2), chains(g), backends, 0)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for bucket, was := range chains(g) {
		is := resumed.Chain(bucket)
		if is.IDs[0] != was.IDs[0] {
			t.Fatalf("bucket %d: first candidate changed: %+v, was %+v", bucket, is, was)
		}
		for _, id := range all(was) {
			if !contains(all(is), id) && is.Length < pool.MaxChain {
				t.Fatalf("bucket %d: backend %d is lost: %+v after %+v", bucket, id, is, was)
			}
		}
		if is != was {
			changed++
		}
	}
	// One in eleven second candidates was chosen by the spare table, and may be corrected.
	if limit := 1021 / 11; changed > limit {
		t.Errorf("%d of 1021 chains changed, want at most %d", changed, limit)
	}
}

// With one candidate nothing changes at all, and what follows is the same too: edges still agree
// when one of them has started again.
func TestResumeOneCandidate(t *testing.T) {
	g, backends := evolved(t, 1)
	resumed, err := pool.Resume(exact(g.Buckets(), 1), chains(g), backends, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(chains(g), chains(resumed)) {
		t.Error("chains changed")
	}
	for _, backends := range [][]pool.Backend{with(up(11), 2, pool.Draining), up(11), up(8)} {
		if g, resumed = next(t, g, backends), next(t, resumed, backends); !slices.Equal(chains(g),
			chains(resumed)) {
			t.Errorf("with %v, who resumed has other chains", backends)
		}
	}
}

// The pool may have changed in between: chains follow the same rules as after Next, also when
// nobody is up any more.
func TestResumeWithOtherBackends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := pool.New(exact(rapid.IntRange(1, 60).Draw(t, "buckets"), 2), drawBackends(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		asked, backends := rapid.IntRange(1, pool.MaxChain).Draw(t, "candidates"), drawBackends(t)
		resumed, err := pool.Resume(exact(g.Buckets(), asked), chains(g), backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		checkSuccession(t, g, resumed, asked, backends)
	})
}

func TestResumeRefuses(t *testing.T) {
	tests := map[string]struct {
		chain pool.Chain
		want  string
	}{
		"too long": {pool.Chain{Length: 7},
			"bucket 1: 0 candidates of 7 backends; it holds up to 6"},
		"too many candidates": {pool.Chain{IDs: [6]uint16{1}, Length: 1, Candidates: 2},
			"2 candidates of 1 backends"},
		"id 0": {pool.Chain{IDs: [6]uint16{1, 0}, Length: 2, Candidates: 2},
			"backend id 0 is 0 or there twice"},
		"id twice": {pool.Chain{IDs: [6]uint16{1, 1}, Length: 2, Candidates: 2},
			"backend id 1 is 0 or there twice"},
		"behind the end": {pool.Chain{IDs: [6]uint16{1, 2}, Length: 1, Candidates: 1},
			"behind its end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := pool.Resume(exact(2, 2), []pool.Chain{{}, test.chain}, up(2), 0)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := pool.Resume(exact(0, 2), nil, up(2), 0); err == nil ||
		!strings.Contains(err.Error(), "pool of 0 buckets") {
		t.Errorf("no chains: error %v", err)
	}
}

// Chains that are resumed have a past, which is the same in nearly all buckets, and is kept once.
func TestResumeKeepsEqualPastsOnce(t *testing.T) {
	spec := pool.Spec{Buckets: 20011, Seed: seed, Candidates: 2}
	before := chains(begin(t, spec, up(20)))
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	empty := heap()
	g, err := pool.Resume(spec, before, up(20), 0)
	if err != nil {
		t.Fatal(err)
	}
	if held := heap() - empty; held > 30*spec.Buckets {
		t.Errorf("%d bytes per bucket", held/spec.Buckets)
	}
	after := next(t, g, with(up(20), 3, pool.Draining))
	for b := range spec.Buckets {
		if g.Chain(b) != before[b] {
			t.Fatalf("bucket %d: %v, was %v before its successor was made", b, g.Chain(b),
				before[b])
		}
		for _, p := range g.Places(b)[2:] {
			if p.Role != pool.PastOwner || p.Left != 0 {
				t.Fatalf("bucket %d: %v after its successor was made", b, p)
			}
		}
	}
	runtime.KeepAlive(after)
}
