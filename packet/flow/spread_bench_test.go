package flow_test

import (
	"net/netip"
	"testing"

	"sextant/packet/flow"
)

// BenchmarkSpread reports by how many standard deviations the chi-square statistic of 10^8 flows
// over the buckets of the edge's largest table is off its mean, for flows that differ in little:
// docs/explanation/hash.md.
func BenchmarkSpread(b *testing.B) {
	const buckets, flows = 65537, 100_000_000
	patterns := map[string]func(t *flow.Tuple, n uint32){
		"all ports of one address after the other": func(t *flow.Tuple, n uint32) {
			t.SrcPort += uint16(n)
			addTo(&t.Src, 4, n>>16)
		},
	}
	for _, name := range []string{sequence, against, twoWords} { // of 10^8 flows, no two are one
		patterns[name] = adversarial[name]
	}
	for name, change := range patterns {
		for _, function := range functions {
			b.Run(name+"/"+function.String(), func(b *testing.B) {
				hash := hashing(function)
				start := flow.Tuple{Src: netip.MustParseAddr("2001:db8::1"),
					Dst: netip.MustParseAddr("2001:db8:80::80"), DstPort: 443, Protocol: 6}
				for b.Loop() {
					counts := make([]float64, buckets)
					for n := range uint32(flows) {
						t := start
						change(&t, n)
						counts[flow.Bucket(hash(t), buckets)]++
					}
					b.ReportMetric(deviation(counts), "deviations")
				}
			})
		}
	}
}
