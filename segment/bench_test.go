package segment_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"sextant/segment"
	"sextant/topology"
	"sextant/topology/dataset"
)

func open(t testing.TB, name string) *topology.Graph {
	t.Helper()
	g, err := dataset.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func nodes(g *topology.Graph) []topology.Node {
	all := make([]topology.Node, g.Nodes())
	for v := range all {
		all[v] = topology.Node(v)
	}
	return all
}

// allPairs finds all disjoint paths of all ordered pairs, rows included, and returns how many there are.
func allPairs(t testing.TB, g *topology.Graph, q segment.Query, workers int) (paths int) {
	e := engine(t, g.All())
	err := e.Sources(q, nodes(g), workers, func(_ topology.Node, answers []segment.Answer) error {
		for _, a := range answers {
			paths += len(a.Paths)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// cpu is the processor time of this process: the machine may have other things to do.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// G1 and G2: all ordered pairs, all edge-disjoint paths, K = 3, the paper's model.
func BenchmarkAllPairs(b *testing.B) {
	for _, as := range []string{"AS1239", "AS1755", "AS3257", "AS3967"} {
		g := open(b, "paper-table3/"+as)
		for _, workers := range []int{1, 2} {
			if workers > runtime.GOMAXPROCS(0) {
				continue
			}
			b.Run(as+map[int]string{1: "/one core", 2: "/two cores"}[workers], func(b *testing.B) {
				paths, begun := 0, cpu()
				for b.Loop() {
					paths = allPairs(b, g, segment.Query{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: 3}, workers)
				}
				pairs := float64(g.Nodes() * (g.Nodes() - 1))
				b.ReportMetric(float64((cpu()-begun).Microseconds())/float64(b.N)/pairs, "cpu-us/pair")
				b.ReportMetric(float64((cpu()-begun).Milliseconds())/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(paths), "paths")
			})
		}
	}
}

// G2: one ingress to all targets, rows included.
func BenchmarkOneIngress(b *testing.B) {
	g := open(b, "paper-table3/AS1239")
	q := segment.Query{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: 3}
	e := engine(b, g.All())
	begun, done := cpu(), 0
	for b.Loop() {
		ingress := topology.Node(done % g.Nodes())
		if err := e.Sources(q, []topology.Node{ingress}, 1, func(topology.Node, []segment.Answer) error { return nil }); err != nil {
			b.Fatal(err)
		}
		done++
	}
	b.ReportMetric(float64((cpu()-begun).Microseconds())/1000/float64(done), "cpu-ms/ingress")
}

// pair is the two disjoint paths of a 1+1 policy.
func pair(from, to topology.Node) segment.Query {
	return segment.Query{From: from, To: to, Paths: 2}
}

func heapMiB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// G6: single-link failures and repairs at 10,000 nodes, with 100 ingress nodes and 1000 policies.
func BenchmarkFailure(b *testing.B) {
	g := open(b, "large/isp10000")
	e := engine(b, g.All())
	rnd := rand.New(rand.NewPCG(1, 1))
	const ingresses, policies = 100, 1000
	answers := make([]segment.Answer, policies)
	var watch segment.Watch
	for i := range answers {
		q := pair(topology.Node(97*(i%ingresses)), topology.Node(rnd.IntN(g.Nodes())))
		if q.From == q.To {
			q.To++
		}
		var err error
		if answers[i], err = e.Disjoint(q); err != nil {
			b.Fatal(err)
		}
		if err := watch.Add(i, e, answers[i]); err != nil {
			b.Fatal(err)
		}
	}
	var times []time.Duration
	affected, recomputed := 0, time.Duration(0)
	for b.Loop() {
		a := answers[rnd.IntN(policies)]
		failure := e.LinkDown(a.Paths[0].Edges[rnd.IntN(len(a.Paths[0].Edges))])
		begun := cpu()
		update, err := e.Apply(failure...)
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, cpu()-begun)
		begun = cpu()
		for _, p := range watch.Affected(update) {
			if _, err := e.Disjoint(answers[p].Query); err != nil {
				b.Fatal(err)
			}
			affected++
		}
		recomputed += cpu() - begun
		if _, err := e.Apply(e.Restored(failure)...); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(times)
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(len(times)), "cpu-ms-mean/failure")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "cpu-ms-p99/failure")
	b.ReportMetric(float64(recomputed.Microseconds())/float64(max(1, affected)), "cpu-us/policy")
	b.ReportMetric(float64(affected)/float64(len(times)), "policies/failure")
	b.ReportMetric(heapMiB(), "MiB")
	runtime.KeepAlive(e)
}

// G7: one policy in a network of 10,000 nodes of which nothing is known yet.
func BenchmarkCold(b *testing.B) {
	g := open(b, "large/isp10000")
	rnd := rand.New(rand.NewPCG(1, 1))
	before, begun, done, two := heapMiB(), cpu(), 0, 0
	var e *segment.Engine
	for b.Loop() {
		e = engine(b, g.All())
		q := pair(topology.Node(rnd.IntN(g.Nodes())), topology.Node(rnd.IntN(g.Nodes()-1)))
		if q.From == q.To {
			q.To++
		}
		a, err := e.Disjoint(q)
		if err != nil {
			b.Fatal(err)
		}
		done++
		if len(a.Paths) == 2 {
			two++
		}
	}
	b.ReportMetric(float64((cpu()-begun).Microseconds())/1000/float64(done), "cpu-ms/policy")
	b.ReportMetric(float64(two)/float64(done), "with-two-paths")
	b.ReportMetric(heapMiB()-before, "MiB")
	runtime.KeepAlive(e)
}

// G8: 10,000 random policies in a backbone of 3815 nodes.
func BenchmarkWorld(b *testing.B) {
	g := open(b, "backbone/world")
	for b.Loop() {
		e := engine(b, g.All())
		rnd := rand.New(rand.NewPCG(1, 1))
		begun, two := cpu(), 0
		for range worldPolicies {
			q := pair(topology.Node(rnd.IntN(g.Nodes())), topology.Node(rnd.IntN(g.Nodes()-1)))
			if q.From == q.To {
				q.To++
			}
			a, err := e.Disjoint(q)
			if err != nil {
				b.Fatal(err)
			}
			if len(a.Paths) == 2 {
				two++
			}
		}
		b.ReportMetric((cpu() - begun).Seconds(), "cpu-s")
		b.ReportMetric(float64(two), "with-two-paths")
		b.ReportMetric(heapMiB(), "MiB")
		runtime.KeepAlive(e)
	}
}

// grid is a square of nodes with unit weights: C(2n-2, n-1) shortest paths between its corners.
func grid(t testing.TB, side int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("grid", time.Microsecond)
	for v := range side * side {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprintf("%d-%d", v/side, v%side)}); err != nil {
			t.Fatal(err)
		}
	}
	link := func(u, v int) {
		for _, ends := range [][2]int{{u, v}, {v, u}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(ends[0]), To: topology.Node(ends[1]), Weight: 1, Delay: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for v := range side * side {
		if v%side+1 < side {
			link(v, v+1)
		}
		if v+side < side*side {
			link(v, v+side)
		}
	}
	return b.Build()
}

// G10: corner to corner of a grid of 20 by 20, rows included.
func BenchmarkGrid(b *testing.B) {
	g := grid(b, 20)
	for _, model := range []segment.Model{segment.ForcedAdjacency, segment.ECMP} {
		b.Run(string(model), func(b *testing.B) {
			begun, done, paths := cpu(), 0, 0
			for b.Loop() {
				q := pair(0, topology.Node(g.Nodes()-1))
				q.Model = model
				a, err := engine(b, g.All()).Disjoint(q)
				if err != nil {
					b.Fatal(err)
				}
				paths, done = len(a.Paths), done+1
			}
			b.ReportMetric(float64((cpu()-begun).Microseconds())/1000/float64(done), "cpu-ms/policy")
			b.ReportMetric(float64(paths), "paths")
		})
	}
}
const worldPolicies = 2000
