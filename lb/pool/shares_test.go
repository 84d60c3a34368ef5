package pool_test

import (
	"slices"
	"testing"

	"sextant/lb/pool"
)

// far are backends whose ids are as far apart as those of an edge with many services.
func far(n int) (list []pool.Backend) {
	for i := range n {
		list = append(list, pool.Backend{ID: uint16(65535 - 6000*i), Weight: 1})
	}
	return list
}

// TestSharesOfSome: buckets of backends that are not asked for count for none, whoever was asked
// for before.
func TestSharesOfSome(t *testing.T) {
	g := begin(t, rendezvous(251, 2), far(5))
	all := g.Shares([]uint16{65535, 59535, 53535, 47535, 41535})
	sum := 0
	for _, n := range all {
		sum += n
	}
	if sum != 251 {
		t.Errorf("all have %v, %d of 251 buckets", all, sum)
	}
	for _, ids := range [][]int{{4}, {0, 2}, {3, 1}, {}} {
		var asked []uint16
		var want []int
		for _, i := range ids {
			asked, want = append(asked, uint16(65535-6000*i)), append(want, all[i])
		}
		if got := g.Shares(append(asked, 7)); !slices.Equal(got, append(want, 0)) {
			t.Errorf("%v have %v, want %v and 0", asked, got, want)
		}
	}
}

// BenchmarkShares counts the buckets of a service of 10 backends.
func BenchmarkShares(b *testing.B) {
	g, err := pool.New(pool.Spec{Buckets: 6421, Candidates: 2, Depth: 4}, far(10), 0)
	if err != nil {
		b.Fatal(err)
	}
	var ids []uint16
	for _, member := range far(10) {
		ids = append(ids, member.ID)
	}
	for b.Loop() {
		g.Shares(ids)
	}
}
