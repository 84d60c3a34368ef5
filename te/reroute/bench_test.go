package reroute

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"sextant/te/topology"
	"sextant/te/topology/generate"
)

// fabrics are networks of about 256 switches.
func fabrics(b *testing.B) map[string]*topology.Graph {
	b.Helper()
	leaves, err := generate.SpineLeaf(32, 224, 0)
	if err != nil {
		b.Fatal(err)
	}
	tree, err := generate.FatTree(14)
	if err != nil {
		b.Fatal(err)
	}
	return map[string]*topology.Graph{"spine-leaf-256": leaves, "fat-tree-245": tree}
}

// BenchmarkReports is a report of a packet over the whole network. Queues are noted, and in one of
// 50 reports a flow paused; or each report asks for a decision; or each is of a flow that nothing
// was heard of lately, too.
func BenchmarkReports(b *testing.B) {
	kinds := []struct {
		name  string
		flows int
		every int // how many reports ask for one decision
	}{{"folded", 500, 50}, {"decided", 500, 1}, {"new-flows", 10000, 1}}
	for name, g := range fabrics(b) {
		for _, policy := range []Policy{Smoothie, Sextant} {
			for _, kind := range kinds {
				b.Run(name+"/"+policy.String()+"/"+kind.name, func(b *testing.B) {
					d, err := NewDecider(g.All(), Defaults(policy), 1)
					if err != nil {
						b.Fatal(err)
					}
					reports := someReports(d, kind.flows)
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						r := &reports[i%len(reports)]
						r.At, r.Pause = time.Duration(i)*time.Microsecond, i%kind.every == 0
						d.Report(r)
					}
				})
			}
		}
	}
}

// someReports are reports of packets that went random ways between random leaves, each of another
// flow, with queues that ask for no decision.
func someReports(d *Decider, flows int) []Report {
	random, pcg := rand.New(rand.NewPCG(1, 1)), rand.NewPCG(2, 2)
	var leaves []topology.Node
	for v := range topology.Node(d.graph.Nodes()) {
		if name := d.graph.Node(v).Name; name[0] == 'l' || name[0] == 'e' {
			leaves = append(leaves, v)
		}
	}
	reports := make([]Report, flows)
	for i := range reports {
		r := &reports[i]
		for r.From == r.To {
			r.From, r.To = leaves[random.IntN(len(leaves))], leaves[random.IntN(len(leaves))]
		}
		r.Flow = tuple(i)
		r.Path, _ = d.paths.Draw(nil, r.From, r.To, pcg)
		for _, e := range r.Path {
			r.Queues = append(r.Queues, Queue{Edge: e, Occupancy: 0.2 * random.Float64()})
		}
	}
	return reports
}

// BenchmarkChoice is the choice of a path: two are drawn, weighed and compared with the one in use.
func BenchmarkChoice(b *testing.B) {
	for name, g := range fabrics(b) {
		b.Run(name, func(b *testing.B) {
			d, err := NewDecider(g.All(), Defaults(Smoothie), 1)
			if err != nil {
				b.Fatal(err)
			}
			reports := someReports(d, 10000)
			for i := range reports { // all destinations have been asked for
				d.Report(&reports[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				r := &reports[i%len(reports)]
				d.decide(&Decision{}, r, &Flow{}, d.random)
			}
		})
	}
}

// BenchmarkMemory says what a flow that was rerouted and a link take.
func BenchmarkMemory(b *testing.B) {
	g := fabrics(b)["spine-leaf-256"]
	for b.Loop() {
		before := heap()
		d, err := NewDecider(g.All(), Defaults(Sextant), 1)
		if err != nil {
			b.Fatal(err)
		}
		for v := range topology.Node(g.Nodes()) {
			d.paths.to(v)
		}
		links := heap()
		reports := someReports(d, 10000)
		held := heap()
		const flows = 200000
		for i := range flows {
			r := reports[i%len(reports)]
			r.Flow.SrcPort, r.Flow.DstPort, r.Pause = uint16(i), uint16(i>>16), true
			d.Report(&r)
		}
		b.ReportMetric(float64(heap()-held)/flows, "B/flow")
		b.ReportMetric(float64(links-before)/float64(g.Edges()), "B/link")
		runtime.KeepAlive(d)
		runtime.KeepAlive(reports)
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
