package pool_test

import (
	"testing"

	"sextant/lb/pool"
)

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		first(b, buckets, 2, up(1000))
	}
}

func BenchmarkNext(b *testing.B) {
	heavier := up(1000)
	heavier[499].Weight = 2
	drained := with(up(1000), 500, pool.Draining)
	for _, method := range []pool.Method{pool.Rendezvous, pool.Exact} {
		for _, change := range []struct {
			name          string
			before, after []pool.Backend
		}{
			{"drain", up(1000), drained}, {"undrain", drained, up(1000)},
			{"down", up(1000), with(up(1000), 500, pool.Down)},
			{"back", with(up(1000), 500, pool.Down), up(1000)}, {"weight", up(1000), heavier},
			{"new", up(1000), up(1001)},
			{"nothing", up(1000), up(1000)},
		} {
			b.Run(method.String()+"/"+change.name, func(b *testing.B) {
				g := begin(b, pool.Spec{Buckets: buckets, Seed: seed, Method: method,
					Candidates: 2}, change.before)
				b.ReportAllocs()
				for b.Loop() {
					next(b, g, change.after)
				}
			})
		}
	}
}
