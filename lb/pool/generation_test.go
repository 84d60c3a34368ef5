package pool_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/lb/pool"
)

func TestFirstGeneration(t *testing.T) {
	g := first(t, 1021, 2, up(5))
	if g.Buckets() != 1021 {
		t.Fatalf("%d buckets, want 1021", g.Buckets())
	}
	for bucket, c := range chains(g) {
		if c.Candidates != 2 || c.Length != 2 || c.IDs[0] == c.IDs[1] {
			t.Fatalf("bucket %d: chain %+v, want 2 different candidates and no past", bucket, c)
		}
	}
}

// Who may be a candidate, and what happens when there are few of them.
func TestCandidatesByState(t *testing.T) {
	tests := map[string]struct {
		backends []pool.Backend
		want     []uint16 // candidates of every bucket, in any order
	}{
		"nobody":           {nil, nil},
		"one":              {up(1), []uint16{1}},
		"two":              {up(2), []uint16{1, 2}},
		"one of two is up": {with(up(2), 1, pool.Down), []uint16{2}},
		"draining":         {with(up(3), 2, pool.Draining), []uint16{1, 3}},
		"maintenance":      {with(up(3), 2, pool.Maintenance), []uint16{1, 3}},
		"none is up":       {with(with(up(2), 1, pool.Draining), 2, pool.Down), nil},
		"weight 0": {[]pool.Backend{{ID: 1}, {ID: 2, Weight: 1}, {ID: 3, Weight: 9}},
			[]uint16{2, 3}},
		"weights far apart": {[]pool.Backend{
			{ID: 1, Weight: 1 << 31}, {ID: 2, Weight: 1},
		}, []uint16{1, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for bucket, c := range chains(first(t, 101, 2, test.backends)) {
				got := slices.Sorted(slices.Values(candidates(c)))
				if !slices.Equal(got, test.want) || c.Length != c.Candidates {
					t.Fatalf("bucket %d: chain %+v, want candidates %v", bucket, c, test.want)
				}
			}
		})
	}
}

// A drained backend stays in the chain of every bucket where it was a candidate, first among the
// previous owners; the other candidate of that bucket stays one.
func TestDrain(t *testing.T) {
	before := first(t, 1021, 2, up(10))
	after := next(t, before, with(up(10), 4, pool.Draining))
	for bucket, was := range chains(before) {
		is := after.Chain(bucket)
		switch {
		case contains(candidates(is), 4):
			t.Fatalf("bucket %d: drained backend is a candidate: %+v", bucket, is)
		case !contains(candidates(was), 4) && is != was:
			t.Fatalf("bucket %d is not concerned, but went from %+v to %+v", bucket, was, is)
		case contains(candidates(was), 4) && !contains(past(is), 4):
			t.Fatalf("bucket %d: drained backend is not in the chain: %+v after %+v", bucket, is,
				was)
		}
	}
}

// A backend that is down or not listed is in no chain, neither as a candidate nor as a previous
// owner.
func TestGone(t *testing.T) {
	drained := next(t, first(t, 1021, 2, up(10)), with(up(10), 4, pool.Draining))
	for name, backends := range map[string][]pool.Backend{
		"down":   with(up(10), 4, pool.Down),
		"absent": slices.Delete(up(10), 3, 4),
	} {
		t.Run(name, func(t *testing.T) {
			after := next(t, drained, backends)
			for bucket, was := range chains(drained) {
				is := after.Chain(bucket)
				want := slices.DeleteFunc(slices.Clone(all(was)),
					func(id uint16) bool { return id == 4 })
				if diff := cmp.Diff(want, all(is)); diff != "" {
					t.Fatalf("bucket %d: chain without backend 4 (-want +got):\n%s", bucket, diff)
				}
			}
		})
	}
}

// A backend that fails while it is a candidate vanishes at once, and its partner takes part in the
// past if it was replaced.
func TestFailure(t *testing.T) {
	before := first(t, 1021, 2, up(10))
	after := next(t, before, with(up(10), 4, pool.Down))
	for bucket, was := range chains(before) {
		is := after.Chain(bucket)
		if contains(all(is), 4) {
			t.Fatalf("bucket %d: failed backend is in the chain: %+v", bucket, is)
		}
		for _, id := range all(was) {
			if id != 4 && !contains(all(is), id) {
				t.Fatalf("bucket %d: backend %d is lost: %+v after %+v", bucket, id, is, was)
			}
		}
	}
}

// An added backend takes its share, and who had those buckets follows it in the chain.
func TestAdd(t *testing.T) {
	before := first(t, 1021, 2, up(9))
	after := next(t, before, up(10))
	taken := 0
	for bucket, was := range chains(before) {
		is := after.Chain(bucket)
		if is.IDs[0] == 10 {
			taken++
		}
		for _, id := range all(was) {
			if !contains(all(is), id) {
				t.Fatalf("bucket %d: backend %d is lost: %+v after %+v", bucket, id, is, was)
			}
		}
		if !contains(candidates(is), 10) && is != was {
			t.Fatalf("bucket %d is not concerned, but went from %+v to %+v", bucket, was, is)
		}
	}
	if taken < 102 || taken > 103 {
		t.Errorf("added backend is first candidate of %d buckets, want 102 or 103", taken)
	}
}

// A candidate that becomes a candidate again leaves the past: no id is in a chain twice.
func TestComeBack(t *testing.T) {
	g := first(t, 1021, 2, up(10))
	for _, backends := range [][]pool.Backend{with(up(10), 4, pool.Draining), up(10),
		with(up(10), 4, pool.Maintenance), up(10)} {
		g = next(t, g, backends)
	}
	candidate := 0
	for bucket, c := range chains(g) {
		ids := slices.Sorted(slices.Values(all(c)))
		if len(slices.Compact(ids)) != int(c.Length) {
			t.Fatalf("bucket %d: id twice in %+v", bucket, c)
		}
		if c.IDs[0] == 4 {
			candidate++
		}
	}
	if candidate < 102 || candidate > 103 {
		t.Errorf("backend 4 is first candidate of %d buckets, want 102 or 103", candidate)
	}
}

// One bucket, one candidate: the past lists the owners before, newest first, as many as fit.
func TestPastIsNewestFirst(t *testing.T) {
	backends := make([]pool.Backend, 9)
	for i := range backends {
		backends[i] = pool.Backend{ID: uint16(i + 1), Weight: 1, State: pool.Draining}
	}
	g := first(t, 1, 1, backends)
	want := []pool.Chain{
		{IDs: [6]uint16{1}, Length: 1, Candidates: 1},
		{IDs: [6]uint16{2, 1}, Length: 2, Candidates: 1},
		{IDs: [6]uint16{3, 2, 1}, Length: 3, Candidates: 1},
		{IDs: [6]uint16{4, 3, 2, 1}, Length: 4, Candidates: 1},
		{IDs: [6]uint16{5, 4, 3, 2, 1}, Length: 5, Candidates: 1},
		{IDs: [6]uint16{6, 5, 4, 3, 2, 1}, Length: 6, Candidates: 1},
		{IDs: [6]uint16{7, 6, 5, 4, 3, 2}, Length: 6, Candidates: 1},
		{IDs: [6]uint16{8, 7, 6, 5, 4, 3}, Length: 6, Candidates: 1},
	}
	for i, chain := range want {
		g = next(t, g, with(backends, uint16(i+1), pool.Up))
		if got := g.Chain(0); got != chain {
			t.Errorf("after %d owners: chain %+v, want %+v", i+1, got, chain)
		}
	}
}

// Both candidates of a bucket go into its past, in their order, before older owners.
func TestAllCandidatesBecomePast(t *testing.T) {
	backends := up(4)
	g := first(t, 1, 2, with(with(backends, 3, pool.Draining), 4, pool.Draining))
	was := candidates(g.Chain(0))
	g = next(t, g, with(with(backends, 1, pool.Draining), 2, pool.Draining))
	if got := past(g.Chain(0)); !slices.Equal(got, was) {
		t.Fatalf("past is %v, want the candidates before, %v", got, was)
	}
	newer := candidates(g.Chain(0))
	g = next(t, g, append(with(with(with(with(backends, 1, pool.Draining), 2, pool.Draining), 3,
		pool.Draining), 4, pool.Draining),
		pool.Backend{ID: 5, Weight: 1}))
	if got, want := past(g.Chain(0)), slices.Concat(newer, was); !slices.Equal(got, want) {
		t.Errorf("past is %v, want %v", got, want)
	}
}

// With nobody up, packets of old connections still find those that drain.
func TestOnlyDraining(t *testing.T) {
	before := first(t, 101, 2, up(3))
	after := next(t, before, []pool.Backend{{ID: 1, State: pool.Draining},
		{ID: 2, State: pool.Maintenance}, {ID: 3, State: pool.Down}})
	for bucket, was := range chains(before) {
		want := slices.DeleteFunc(slices.Clone(all(was)), func(id uint16) bool { return id == 3 })
		is := after.Chain(bucket)
		if is.Candidates != 0 || !slices.Equal(past(is), want) {
			t.Fatalf("bucket %d: chain %+v, want no candidate and the past %v", bucket, is, want)
		}
	}
	for bucket, c := range chains(next(t, after, up(3))) {
		if c.Candidates != 2 || c.Length < 2 {
			t.Fatalf("bucket %d: chain %+v after all came back, want 2 candidates", bucket, c)
		}
	}
}

func TestNothingChanged(t *testing.T) {
	backends := with(up(5), 2, pool.Draining)
	g := first(t, 1021, 2, backends)
	slices.Reverse(backends)
	if next(t, g, backends) != g {
		t.Error("the same backends in another order made a new generation")
	}
}

// A generation never changes: packets are forwarded by it while the next one is made.
func TestGenerationsAreImmutable(t *testing.T) {
	g := first(t, 1021, 2, up(10))
	before := chains(g)
	next(t, g, with(up(5), 4, pool.Draining))
	if diff := cmp.Diff(before, chains(g)); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		buckets, candidates int
		backends            []pool.Backend
		want                string
	}{
		"no buckets":          {0, 2, up(2), "pool of 0 buckets; choose 1 to 16777216"},
		"no candidates":       {101, 0, up(2), "0 candidates per bucket; choose 1 to 6"},
		"too many candidates": {101, 7, up(2), "7 candidates per bucket; choose 1 to 6"},
		"id 0":                {101, 2, []pool.Backend{{Weight: 1}}, "id 0"},
		"id twice": {101, 2, append(up(2), pool.Backend{ID: 2, State: pool.Down}),
			"id 2 is there twice"},
		"unknown state": {101, 2, with(up(2), 2, 9), "unknown state 9"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := pool.New(exact(test.buckets, test.candidates), test.backends, 0)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := first(t, 101, 2, up(2)).Next([]pool.Backend{{ID: 0}}, 0); err == nil {
		t.Error("Next took a backend with id 0")
	}
}

func TestStates(t *testing.T) {
	for state, name := range map[pool.State]string{pool.Up: "up", pool.Draining: "draining",
		pool.Down: "down", pool.Maintenance: "maintenance"} {
		if state.String() != name {
			t.Errorf("String of state %d is %q, want %q", state, state, name)
		}
		if got, err := pool.ParseState(name); err != nil || got != state {
			t.Errorf("ParseState(%q) = %v, %v", name, got, err)
		}
	}
	if got := pool.State(9).String(); got != "State(9)" {
		t.Errorf("String of an unknown state is %q", got)
	}
	if _, err := pool.ParseState("Up"); err == nil || !strings.Contains(err.Error(), `"Up"`) {
		t.Errorf("ParseState(Up): error %v, want one that repeats it", err)
	}
}
