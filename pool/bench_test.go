package pool_test

import (
	"testing"

	"sextant/pool"
)

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		first(b, buckets, 2, up(1000))
	}
}

func BenchmarkNext(b *testing.B) {
	for name, backends := range map[string][]pool.Backend{
		"add one":   up(1001),
		"drain one": with(up(1000), 500, pool.Draining),
		"lose one":  with(up(1000), 500, pool.Down),
		"nothing":   up(1000),
	} {
		b.Run(name, func(b *testing.B) {
			g := first(b, buckets, 2, up(1000))
			b.ReportAllocs()
			for b.Loop() {
				next(b, g, backends)
			}
		})
	}
}
