package way_test

import (
	"fmt"
	"testing"

	"sextant/te/segment"
	"sextant/te/topology/generate"
	"sextant/te/way"
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
