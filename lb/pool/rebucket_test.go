package pool_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"sextant/lb/pool"
	"sextant/packet/flow"
)

// Flows that are at a candidate of their bucket are reached by the chain of their bucket among
// more buckets, whatever the numbers of buckets are, hash by hash; and the share that is told to
// be lost among fewer is what is lost.
func TestRebucketing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, size := range [][2]int{
		{61, 61}, {61, 62}, {61, 67}, {61, 121}, {61, 1021}, {1021, 8191}, {2, 3}, {1, 5}, {67, 61},
		{1021, 61}, {5, 1},
	} {
		for _, method := range []pool.Method{pool.Rendezvous, pool.Exact} {
			spec := pool.Spec{Buckets: size[0], Seed: 1, Candidates: 2, Method: method}
			before := begin(t, spec, up(40))
			spec.Buckets = size[1]
			after, err := pool.Resume(spec, pool.Rebucket(chains(before), size[1]), up(40), 0)
			if err != nil {
				t.Fatal(err)
			}
			told := pool.Lost(chains(before), chains(after), false,
				func(id uint16) uint16 { return id })
			lost := 0
			const flows = 50_000
			for range flows {
				hash := random.Uint64()
				chain := after.Chain(int(flow.Bucket(hash, uint32(size[1]))))
				for _, id := range candidates(
					before.Chain(int(flow.Bucket(hash, uint32(size[0]))))) {
					if !contains(all(chain), id) {
						lost++
					}
				}
			}
			what := fmt.Sprintf("%v, %d to %d buckets: %d of %d are lost, %.3f is told", method,
				size[0], size[1], lost, 2*flows, told)
			share := float64(lost) / (2 * flows)
			if size[1] >= size[0] && (lost > 0 || told > 0) || share > told+0.01 ||
				share < told-0.01 {
				t.Error(what)
			}
		}
	}
}
