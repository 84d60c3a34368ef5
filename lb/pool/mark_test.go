package pool_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/lb/pool"
)

// settled is a generation some time after random changes, when no chain has a past any more.
func settled(t *testing.T, r *rand.Rand, spec pool.Spec) (*pool.Generation, []pool.Backend,
	time.Duration) {
	t.Helper()
	backends := up(1 + r.IntN(12))
	inSites(r, backends)
	g, now := begin(t, spec, backends), time.Duration(0)
	for range r.IntN(4) {
		backends = changedAtRandom(r, backends)
		now += time.Second
		var err error
		if g, err = g.Next(backends, now); err != nil {
			t.Fatal(err)
		}
	}
	for at, waits := g.NextAt(); waits; at, waits = g.NextAt() {
		now = at + time.Second
		var err error
		if g, err = g.Next(backends, now); err != nil {
			t.Fatal(err)
		}
	}
	return g, backends, now
}

// continueFirst sees that a generation goes on from chains with other names, too, if they are not
// to be kept, in any order of its candidates, and from none that can't be its own.
func continueFirst(
	t *testing.T, spec pool.Spec, g, other *pool.Generation, backends []pool.Backend,
	order pool.Order,
) bool {
	t.Helper()
	g, other = g.Ordered(order), other.Ordered(order)
	named := chains(g)
	for i := range named {
		for place, id := range named[i].IDs {
			named[i].IDs[place] = turned(id)
		}
	}
	also, err := pool.ContinueFirst(spec, named, turned, backends, order, g.Mark())
	if written := other.WriteFirst(make([]pool.Chain, spec.Buckets), turned); err != nil ||
		written != (also != nil) {
		t.Fatalf("%v, %v; its chains are not kept: %v", also, err, written)
	}
	if also == nil {
		return false
	}
	compareGenerations(t, also, other, backends)
	another := maps.Clone(order)
	for id := range another {
		another[id]++
	}
	on, _ := pool.ContinueFirst(spec, named, turned, backends, another, g.Mark())
	if on != nil && len(order) > 0 && spec.Policy == pool.Offer {
		t.Fatal("chains in another order go on")
	}
	for _, damage := range []func(c *pool.Chain){
		func(c *pool.Chain) { c.Length = pool.MaxChain + 1 },
		func(c *pool.Chain) { c.Candidates = c.Length + 1 },
		func(c *pool.Chain) { c.IDs[0] = turned(99) },
	} {
		damaged := slices.Clone(named)
		damage(&damaged[len(damaged)/2])
		if g, _ := pool.ContinueFirst(spec, damaged, turned, backends, order,
			g.Mark()); g != nil {
			t.Fatalf("chain %+v goes on", damaged[len(damaged)/2])
		}
	}
	return true
}

func changedAtRandom(r *rand.Rand, backends []pool.Backend) []pool.Backend {
	changed := slices.Clone(backends)
	b := &changed[r.IntN(len(changed))]
	switch r.IntN(4) {
	case 0:
		b.State = pool.State(r.IntN(4))
	case 1:
		b.Weight = uint32(r.IntN(4))
	case 2:
		return append(changed, pool.Backend{ID: uint16(100 + len(changed)), Weight: 1})
	case 3:
		b.State = pool.Up
	}
	return changed
}

// TestContinueIsTheSameGeneration: what another process makes of chains and mark goes on exactly as
// the generation itself, through any changes.
func TestContinueIsTheSameGeneration(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 1))
	continued, first := 0, 0
	for round := range 150 {
		spec := pool.Spec{Buckets: 61 + r.IntN(9), Seed: r.Uint64(), Candidates: 1 + r.IntN(3),
			Depth: 4, Drain: time.Duration(r.IntN(3)) * time.Minute}
		if round%5 == 0 {
			spec = pool.Spec{Buckets: 67, Seed: r.Uint64(), Policy: pool.ECMP}
		}
		g, backends, now := settled(t, r, spec)
		if g.Mark() == 0 {
			continue // for instance without a backend that is up: all buckets are watched
		}
		shuffled := slices.Clone(backends)
		r.Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		other, err := pool.Continue(spec, chains(g), shuffled, g.Mark())
		if err != nil || other == nil {
			t.Fatalf("round %d: %v, %v; want the generation", round, other, err)
		}
		continued++
		if _, fresh := g.Rule(); !fresh && g.Ordered(pool.Order{1: 2}).Mark() != 0 &&
			spec.Policy == pool.Offer {
			t.Fatalf("round %d: chains kept without their order have a mark with it", round)
		}
		for _, order := range []pool.Order{nil, {1: 2, 3: 1, 4: 1}} {
			if continueFirst(t, spec, g, other, backends, order) {
				first++
			}
		}
		if other.Mark() != g.Mark() {
			t.Fatalf("round %d: mark %x, want %x", round, other.Mark(), g.Mark())
		}
		for step := range 6 {
			if !slices.Equal(chains(g), chains(other)) {
				t.Fatalf("round %d: after %d changes the chains differ", round, step)
			}
			at, waits := g.NextAt()
			if also, does := other.NextAt(); at != also || waits != does {
				t.Fatalf("round %d: after %d changes the next one is due at %v, %v; want %v, %v",
					round, step, also, does, at, waits)
			}
			now += time.Duration(r.IntN(90)) * time.Second
			backends = changedAtRandom(r, backends)
			if g, err = g.Next(backends, now); err != nil {
				t.Fatal(err)
			}
			if other, err = other.Next(backends, now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if continued < 100 || first < 20 {
		t.Errorf("%d of 150 generations went on, want 100; %d with first chains, want 20",
			continued, first)
	}
}

// TestMarkIsOfAllThatCounts: each field of spec and backends is in the mark.
func TestMarkIsOfAllThatCounts(t *testing.T) {
	spec := pool.Spec{Buckets: 67, Seed: 5, Candidates: 2, Depth: 4, Drain: time.Minute}
	backends := up(5)
	g := begin(t, spec, backends)
	known := chains(g)
	if g.Mark() == 0 {
		t.Fatal("chains without a past have no mark")
	}
	for name, differ := range map[string]func(s *pool.Spec, b *pool.Backend){
		"seed":       func(s *pool.Spec, _ *pool.Backend) { s.Seed++ },
		"policy":     func(s *pool.Spec, _ *pool.Backend) { s.Policy = pool.ECMP },
		"method":     func(s *pool.Spec, _ *pool.Backend) { s.Method = pool.Exact },
		"candidates": func(s *pool.Spec, _ *pool.Backend) { s.Candidates++ },
		"depth":      func(s *pool.Spec, _ *pool.Backend) { s.Depth++ },
		"drain":      func(s *pool.Spec, _ *pool.Backend) { s.Drain++ },
		"id":         func(_ *pool.Spec, b *pool.Backend) { b.ID = 77 },
		"key":        func(_ *pool.Spec, b *pool.Backend) { b.Key = 77 },
		"weight":     func(_ *pool.Spec, b *pool.Backend) { b.Weight++ },
		"state":      func(_ *pool.Spec, b *pool.Backend) { b.State = pool.Draining },
		"site":       func(_ *pool.Spec, b *pool.Backend) { b.Site++ },
		"suspect":    func(_ *pool.Spec, b *pool.Backend) { b.Suspect = true },
	} {
		s, b := spec, slices.Clone(backends)
		differ(&s, &b[2])
		if other, err := pool.Continue(s, slices.Clone(known), b, g.Mark()); err != nil ||
			other != nil {
			t.Errorf("%s: another one goes on with the mark (%v)", name, err)
		}
	}
	if other, _ := pool.Continue(spec, known[1:], backends, g.Mark()); other != nil {
		t.Error("a chain less goes on with the mark")
	}
	for _, damage := range []func(c *pool.Chain){
		func(c *pool.Chain) { c.Length = pool.MaxChain + 1 },
		func(c *pool.Chain) { c.Candidates = c.Length + 1 },
		func(c *pool.Chain) { c.IDs[0] = 99 },
	} {
		damaged := slices.Clone(known)
		damage(&damaged[11])
		if other, _ := pool.Continue(spec, damaged, backends, g.Mark()); other != nil {
			t.Errorf("chain %+v goes on", damaged[11])
		}
	}
}

// TestNoMarkWithAPast: chains with previous owners, or a table that depends on the past, are not
// computed from spec and backends.
func TestNoMarkWithAPast(t *testing.T) {
	spec := pool.Spec{Buckets: 67, Seed: 5, Candidates: 2, Depth: 4, Drain: time.Minute}
	g := begin(t, spec, up(5))
	drained := next(t, g, with(up(5), 3, pool.Draining))
	resumed, err := pool.Resume(spec, chains(g), up(5), 0)
	if err != nil {
		t.Fatal(err)
	}
	suspect := up(5)
	suspect[0].Suspect = true
	for name, g := range map[string]*pool.Generation{
		"drained": drained, "resumed": resumed, "suspect": next(t, g, suspect),
		"exact":  first(t, 67, 2, up(5)),
		"shadow": begin(t, pool.Spec{Buckets: 67, Policy: pool.Shadow}, up(5)),
	} {
		if g.Mark() != 0 {
			t.Errorf("%s: it has a mark", name)
		}
	}
}
