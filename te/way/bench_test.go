package way_test

import (
	"fmt"
	"testing"

	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/te/topology/generate"
	"sextant/te/way"
	"sextant/test/cputime"
)

// Services that want a way by telemetry, when congestion has changed: what they share is made once.
func BenchmarkServices(b *testing.B) {
	g, err := generate.Grid(10, 10)
	if err != nil {
		b.Fatal(err)
	}
	n := way.Network{View: g.All(), Block: block(b), From: g.Node(0).Name}
	intent := way.Intent{By: way.Telemetry, Paths: 2, MaxSIDs: 2, Model: segment.Forced}
	to := []string{g.Node(99).Name, g.Node(55).Name}
	const services = 100
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared %v", shared), func(b *testing.B) {
			for b.Loop() {
				search := way.NewSearch(n)
				for range services {
					if !shared {
						search = way.NewSearch(n)
					}
					if _, err := search.Compute(intent, to, nil); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// An edge of 1000 servers behind as many nodes, of 10,000, when a link fails that ways to most of
// them cross: the topology is read anew, and two disjoint paths to each are to be known.
func BenchmarkFailure(b *testing.B) {
	g, err := dataset.Open("large/isp10000")
	if err != nil {
		b.Fatal(err)
	}
	n := way.Network{View: g.All(), Block: block(b), From: g.Node(97).Name}
	w := way.Wanted{Intent: way.Intent{By: way.Delay, Paths: 2, MaxSIDs: 3,
		Model: segment.ForcedAdjacency}}
	for i := range topology.Node(1000) {
		w.To = append(w.To, g.Node(9*i+5).Name)
	}
	before, err := way.NewSearch(n).Compute(w.Intent, w.To, nil)
	if err != nil {
		b.Fatal(err)
	}
	link, most := topology.NoEdge, 0
	crossing := map[string]int{}
	for _, a := range before {
		for _, p := range a.Paths {
			for _, l := range p.Links {
				crossing[l.String()]++
			}
		}
	}
	for e := range topology.Edge(g.Edges()) {
		name := g.Node(g.From(e)).Name + ">" + g.Node(g.To(e)).Name
		if crossing[name] > most {
			link, most = e, crossing[name]
		}
	}
	after := n
	after.View = rebuilt(b, g, []topology.Edge{link, g.Reverse(link)}, asItWas).All()
	d := way.NewDetours(n, []way.Wanted{w}, 32<<20)
	for left := 1500; left > 0; { // the link that most ways cross comes first
		if _, err = d.Step(); err != nil {
			b.Fatal(err)
		}
		if d.Ready() {
			left--
		}
	}
	for _, foresees := range []bool{false, true} {
		b.Run(fmt.Sprintf("foreseen %v", foresees), func(b *testing.B) {
			begun := cputime.Used()
			for b.Loop() {
				s := way.NewSearch(after)
				if foresees {
					if known, _ := s.Foresee(d); !known {
						b.Fatal("nothing is foreseen")
					}
				}
				if _, err := s.Compute(w.Intent, w.To, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cputime.Since(begun).Milliseconds())/float64(b.N),
				"cpu-ms/failure")
			b.ReportMetric(float64(most), "ways-moved")
		})
	}
}
