package consistenthash_test

import (
	"testing"

	"sextant/lb/consistenthash"
)

const (
	benchSlots   = 65537
	benchMembers = 1000
)

func BenchmarkBuild(b *testing.B) {
	members := equalMembers(benchMembers)
	b.ReportAllocs()
	for b.Loop() {
		build(b, benchSlots, 1, members)
	}
}

func BenchmarkUpdate(b *testing.B) {
	reweighted := equalMembers(benchMembers)
	reweighted[500].Weight = 3
	for name, members := range map[string][]consistenthash.Member{
		"add one":      equalMembers(benchMembers + 1),
		"remove one":   equalMembers(benchMembers - 1),
		"reweight one": reweighted,
		"nothing":      equalMembers(benchMembers),
	} {
		b.Run(name, func(b *testing.B) {
			table := build(b, benchSlots, 1, equalMembers(benchMembers))
			b.ReportAllocs()
			for b.Loop() {
				update(b, table, members)
			}
		})
	}
}
