package pool_test

import (
	"strings"
	"testing"

	"sextant/lb/pool"
)

// A router's ECMP has no memory.
func TestECMP(t *testing.T) {
	for _, method := range []pool.Method{pool.Rendezvous, pool.Exact, pool.Modulo} {
		g := begin(t, pool.Spec{Buckets: 1021, Seed: seed, Policy: pool.ECMP, Method: method},
			up(4))
		for _, backends := range [][]pool.Backend{up(3), up(4), with(up(4), 2, pool.Draining)} {
			g = next(t, g, backends)
			for bucket, chain := range chains(g) {
				if chain.Length != 1 || chain.Candidates != 1 || chain.Shadow != 0 {
					t.Fatalf("%v: bucket %d has chain %+v", method, bucket, chain)
				}
			}
		}
	}
}

func TestModulo(t *testing.T) {
	spec := pool.Spec{Buckets: 12, Policy: pool.ECMP, Method: pool.Modulo}
	weighted := []pool.Backend{{ID: 8, Weight: 20}, {ID: 5, Weight: 10},
		{ID: 6, Weight: 10, State: pool.Down}}
	for bucket, chain := range chains(begin(t, spec, weighted)) {
		if want := []uint16{5, 8, 8}[bucket%3]; chain.IDs[0] != want {
			t.Errorf("bucket %d: %d, want %d", bucket, chain.IDs[0], want)
		}
	}
	uneven := []pool.Backend{{ID: 1, Weight: 1 << 31}, {ID: 2, Weight: 1}}
	g := begin(t, pool.Spec{Buckets: 10_000, Policy: pool.ECMP, Method: pool.Modulo}, uneven)
	count := map[uint16]int{}
	for _, chain := range chains(g) {
		count[chain.IDs[0]]++
	}
	if count[2] < 1 || count[2] > 10 {
		t.Errorf("a backend of hardly any weight has %d of 10000 buckets", count[2])
	}
	for _, chain := range chains(begin(t, spec, nil)) {
		if chain.Length != 0 {
			t.Errorf("without backends there is a chain %+v", chain)
		}
	}
}

// The shadow is the whole table from before the latest change, also for buckets that kept their
// owner.
func TestShadow(t *testing.T) {
	spec := pool.Spec{Buckets: 1021, Seed: seed, Policy: pool.Shadow, Method: pool.Exact}
	generations := []*pool.Generation{begin(t, spec, up(5))}
	for _, chain := range chains(generations[0]) {
		if chain.Shadow != 0 {
			t.Fatalf("the first table has the shadow %d", chain.Shadow)
		}
	}
	for _, backends := range [][]pool.Backend{with(up(5), 3, pool.Draining), up(5), up(6)} {
		before := generations[len(generations)-1]
		after := next(t, before, backends)
		for bucket := range spec.Buckets {
			if got, want := after.Chain(bucket).Shadow, before.Chain(bucket).IDs[0]; got != want {
				t.Fatalf("generation %d, bucket %d: shadow %d, want %d", len(generations), bucket,
					got, want)
			}
		}
		generations = append(generations, after)
	}
	// What moves no bucket does not touch the shadow.
	last := generations[len(generations)-1]
	same := next(t, last, append(up(6), pool.Backend{ID: 9, Weight: 1, State: pool.Maintenance}))
	for bucket := range spec.Buckets {
		if same.Chain(bucket) != last.Chain(bucket) {
			t.Fatalf("bucket %d: %+v, was %+v", bucket, same.Chain(bucket), last.Chain(bucket))
		}
	}
}

// A restarted process keeps the shadow.
func TestShadowResumes(t *testing.T) {
	spec := pool.Spec{Buckets: 101, Seed: seed, Policy: pool.Shadow}
	g := next(t, begin(t, spec, up(5)), up(4))
	resumed, err := pool.Resume(spec, chains(g), up(4), 0)
	if err != nil {
		t.Fatal(err)
	}
	for bucket := range spec.Buckets {
		if resumed.Chain(bucket) != g.Chain(bucket) {
			t.Fatalf("bucket %d: %+v, was %+v", bucket, resumed.Chain(bucket), g.Chain(bucket))
		}
	}
}

func TestSpecErrors(t *testing.T) {
	tests := map[string]struct {
		spec pool.Spec
		want string
	}{
		"offer by modulo": {pool.Spec{Buckets: 3, Candidates: 1, Method: pool.Modulo},
			"choose rendezvous or exact"},
		"shallow": {pool.Spec{Buckets: 3, Candidates: 2, Depth: 1},
			"chains of 1 backends for 2 candidates; choose 2 to 6"},
		"deep":           {pool.Spec{Buckets: 3, Candidates: 2, Depth: 7}, "choose 2 to 6"},
		"negative drain": {pool.Spec{Buckets: 3, Candidates: 2, Drain: -1}, "negative drain time"},
	}
	for name, test := range tests {
		if _, err := pool.New(test.spec, up(2), 0); err == nil || !strings.Contains(err.Error(),
			test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	if _, err := pool.Resume(rendezvous(3, 1), make([]pool.Chain, 2), nil, 0); err == nil {
		t.Error("3 buckets resumed from 2 chains")
	}
}

func TestNames(t *testing.T) {
	for _, p := range []pool.Policy{pool.Offer, pool.ECMP, pool.Shadow} {
		if got, err := pool.ParsePolicy(p.String()); err != nil || got != p {
			t.Errorf("%v is read as %v, %v", p, got, err)
		}
	}
	for _, m := range []pool.Method{pool.Rendezvous, pool.Exact, pool.Modulo} {
		if got, err := pool.ParseMethod(m.String()); err != nil || got != m {
			t.Errorf("%v is read as %v, %v", m, got, err)
		}
	}
	if _, err := pool.ParsePolicy("hope"); err == nil {
		t.Error("a policy called hope")
	}
}
