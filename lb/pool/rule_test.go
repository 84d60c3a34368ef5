package pool_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/lb/pool"
)

// ruleOf is the rule of a generation, read from its bytes.
func ruleOf(t *testing.T, g *pool.Generation) pool.Rule {
	t.Helper()
	rule, has := g.Rule()
	if !has {
		t.Fatal("chains as New made them have no rule")
	}
	read, rest, err := pool.ParseRule(rule.Append([]byte{}))
	if err != nil || len(rest) > 0 || !read.Same(rule) {
		t.Fatalf("read %v, %v, %d bytes behind", read, err, len(rest))
	}
	return read
}

// TestRuleMakesTheChains: what New made is made again from the rule, in the process that made it
// and in one that continued; what changed since has none, also when its past is over.
func TestRuleMakesTheChains(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 2))
	changes := 0
	for round := range 100 {
		spec := pool.Spec{Buckets: 61 + r.IntN(9), Seed: r.Uint64(), Candidates: 1 + r.IntN(3),
			Depth: 4, Drain: time.Duration(r.IntN(3)) * time.Minute}
		backends := up(1 + r.IntN(12))
		for range r.IntN(3) {
			backends = changedAtRandom(r, backends)
		}
		g := begin(t, spec, backends)
		if g.Mark() == 0 {
			continue // for instance without a backend that is up
		}
		again, err := ruleOf(t, g).Generation()
		if err != nil || !slices.Equal(chains(again), chains(g)) {
			t.Fatalf("round %d: %v; other chains from the rule", round, err)
		}
		if !ruleOf(t, g).Makes(spec, backends) {
			t.Fatalf("round %d: the rule is not that of spec and backends", round)
		}
		on, err := pool.Continue(spec, chains(g), backends, g.Mark())
		if err != nil || !ruleOf(t, on).Same(ruleOf(t, g)) {
			t.Fatalf("round %d: %v; another rule in another process", round, err)
		}
		s, backends, _ := settled(t, r, spec)
		if rule, has := s.Rule(); has && !rule.Makes(spec, backends) {
			t.Fatalf("round %d: a rule of other backends", round)
		} else if has {
			again, err := rule.Generation()
			if err != nil || !slices.Equal(chains(again), chains(s)) {
				t.Fatalf("round %d: %v; other chains from the rule", round, err)
			}
		} else if s.Mark() != 0 {
			changes++
			on, err := pool.Continue(spec, chains(s), backends, s.Mark())
			if err != nil {
				t.Fatal(err)
			}
			if _, has := on.Rule(); has {
				t.Fatalf("round %d: chains that changed have a rule in another process", round)
			}
		}
	}
	if changes < 10 {
		t.Errorf("%d generations changed, want 10", changes)
	}
}

// A rule whose bytes are not those of this program is refused, or makes nothing.
func TestRuleRefuses(t *testing.T) {
	rule, _ := begin(t, rendezvous(67, 2), up(3)).Rule()
	good := rule.Append(nil)
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 4
		read, rest, err := pool.ParseRule(bad)
		if err != nil || len(rest) > 0 {
			continue
		}
		if _, err := read.Generation(); err == nil ||
			!strings.Contains(err.Error(), "another release") {
			t.Errorf("byte %d differs: %v", i, err)
		}
	}
	for length := range good {
		if _, _, err := pool.ParseRule(good[:length]); err == nil {
			t.Errorf("%d bytes are a rule", length)
		}
	}
}

// Whatever comes is read or refused, and what is read is written the same.
func FuzzParseRule(f *testing.F) {
	rule, _ := begin(f, rendezvous(67, 2), up(3)).Rule()
	f.Add(rule.Append(nil))
	f.Add(rule.Append(rule.Append(nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		read, rest, err := pool.ParseRule(b)
		if err != nil {
			return
		}
		if again := append(read.Append(nil), rest...); !bytes.Equal(again, b) {
			t.Errorf("% x is read as % x", b, again)
		}
	})
}
