package protection_test

import (
	"fmt"
	"testing"

	"sextant/packet/srv6"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/test/cputime"
)

// A head-end's protections of 10,000 nodes, two paths each, in a network that lacks the link that
// most of them crossed: computed anew, each by an engine of its own, and by one for all.
func BenchmarkFailure(b *testing.B) {
	g, err := dataset.Open("large/isp10000")
	if err != nil {
		b.Fatal(err)
	}
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		b.Fatal(err)
	}
	n := protection.Network{View: g.All(), Block: block}
	if n.Engine, err = segment.New(n.View); err != nil {
		b.Fatal(err)
	}
	var intents []protection.Intent
	crossing := map[protection.Link]int{}
	var most protection.Link
	for i := range topology.Node(1000) {
		in := intent(2, 0)
		in.From, in.To = g.Node(97).Name, g.Node(9*i+5).Name
		intents = append(intents, in)
		plan, err := n.Compute(in, protection.Question{})
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range plan.Paths {
			for _, l := range p.Links {
				if crossing[l]++; crossing[l] > crossing[most] {
					most = l
				}
			}
		}
	}
	e, _ := protection.EdgeOf(g, most)
	after := g.All().Without(e, g.Reverse(e))
	for _, count := range []int{128, 1000} {
		for _, shared := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/shared %v", count, shared), func(b *testing.B) {
				begun := cputime.Used()
				for b.Loop() {
					n := protection.Network{View: after, Block: block}
					if shared {
						if n.Engine, err = segment.New(n.View); err != nil {
							b.Fatal(err)
						}
					}
					for _, in := range intents[:count] {
						if _, err := n.Compute(in, protection.Question{}); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(cputime.Since(begun).Milliseconds())/float64(b.N),
					"cpu-ms/failure")
			})
		}
	}
}
