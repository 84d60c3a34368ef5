package segment_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/test/cputime"
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

// allPairs finds all disjoint paths of all ordered pairs, rows included, and returns how many there
// are.
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

// paperQuery is the paper's question, and its method.
var paperQuery = segment.Query{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: 3,
	Greedy: true}

// G1 and G2: all ordered pairs, all edge-disjoint paths, K = 3, the paper's model.
func BenchmarkG1AllPairs(b *testing.B) {
	for _, as := range []string{"AS1239", "AS1755", "AS3257", "AS3967"} {
		g := open(b, "paper-table3/"+as)
		for _, workers := range []int{1, 2} {
			if workers > runtime.GOMAXPROCS(0) {
				continue
			}
			b.Run(as+map[int]string{1: "/one core", 2: "/two cores"}[workers], func(b *testing.B) {
				b.ReportAllocs()
				paths, begun := 0, cputime.Used()
				for b.Loop() {
					paths = allPairs(b, g, paperQuery, workers)
				}
				pairs := float64(g.Nodes() * (g.Nodes() - 1))
				b.ReportMetric(float64(cputime.Since(begun).Microseconds())/float64(b.N)/pairs,
					"cpu-us/pair")
				b.ReportMetric(float64(cputime.Since(begun).Milliseconds())/float64(b.N),
					"cpu-ms/op")
				b.ReportMetric(float64(paths), "paths")
			})
		}
	}
}

// G2: one ingress to all targets, rows included.
func BenchmarkG2OneIngress(b *testing.B) {
	g := open(b, "paper-table3/AS1239")
	e := engine(b, g.All())
	begun, done := cputime.Used(), 0
	for b.Loop() {
		ingress := topology.Node(done % g.Nodes())
		if err := e.Sources(paperQuery, []topology.Node{ingress}, 1,
			func(topology.Node, []segment.Answer) error { return nil }); err != nil {
			b.Fatal(err)
		}
		done++
	}
	b.ReportMetric(float64(cputime.Since(begun).Microseconds())/1000/float64(done),
		"cpu-ms/ingress")
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

// G6, first half: 100 ingress rows at 10,000 nodes, kept up to date through failures of random
// links and their repair.
func BenchmarkG6IngressRows(b *testing.B) {
	g := open(b, "large/isp10000")
	table := spf.New(g.All(), func(e topology.Edge) uint64 { return uint64(g.Weight(e)) },
		func(e topology.Edge) uint64 { return uint64(g.Delay(e)) })
	for i := range 100 {
		table.From(topology.Node(97 * i))
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	var times durations
	for b.Loop() {
		link := topology.Edge(rnd.IntN(g.Edges()))
		back := g.Reverse(link)
		begun := cputime.Used()
		table.Apply(spf.Change{Edge: link}, spf.Change{Edge: back})
		times = append(times, cputime.Since(begun))
		begun = cputime.Used()
		table.Apply(spf.Change{Edge: link, Cost: uint64(g.Weight(link))},
			spf.Change{Edge: back, Cost: uint64(g.Weight(back))})
		times = append(times, cputime.Since(begun))
	}
	times.report(b, "/change")
}

type durations []time.Duration

func (d durations) report(b *testing.B, per string) {
	slices.Sort(d)
	sum := time.Duration(0)
	for _, t := range d {
		sum += t
	}
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(len(d)), "cpu-ms-mean"+per)
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds())/1000, "cpu-ms-p99"+per)
}

// G6, second half: what a link failure costs an engine that holds 1000 policies from 100 ingress
// nodes, all rows of theirs included: mending, finding the affected, and computing those anew.
func BenchmarkG6Failure(b *testing.B) {
	g := open(b, "large/isp10000")
	e := engine(b, g.All())
	queries := randomPairs(g, 1000)
	for i := range queries {
		if queries[i].From = topology.Node(97 * (i % 100)); queries[i].From == queries[i].To {
			queries[i].To++
		}
	}
	answers, err := e.Batch(queries, runtime.GOMAXPROCS(0))
	if err != nil {
		b.Fatal(err)
	}
	var watch segment.Watch
	for i, a := range answers {
		if err := watch.Add(i, e, a); err != nil {
			b.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	var mend, recompute durations
	affected := 0
	for b.Loop() {
		failure := e.LinkDown(topology.Edge(rnd.IntN(g.Edges())))
		begun := cputime.Used()
		update, err := e.Apply(failure...)
		if err != nil {
			b.Fatal(err)
		}
		hit := watch.Affected(update)
		mend = append(mend, cputime.Since(begun))
		again := make([]segment.Query, len(hit))
		for i, p := range hit {
			again[i] = queries[p]
		}
		begun = cputime.Used()
		if _, err := e.Batch(again, runtime.GOMAXPROCS(0)); err != nil {
			b.Fatal(err)
		}
		recompute = append(recompute, cputime.Since(begun))
		affected += len(hit)
		if _, err := e.Apply(e.Restored(failure)...); err != nil {
			b.Fatal(err)
		}
	}
	mend.report(b, "/failure")
	recompute.report(b, "/recompute")
	b.ReportMetric(float64(affected)/float64(len(mend)), "policies/failure")
	b.ReportMetric(heapMiB(), "MiB")
	runtime.KeepAlive(e)
}

// thousandCrossing are the answers to 2000 policies of 100 ingress nodes; 1000 cross one link.
func thousandCrossing(b *testing.B) (g *topology.Graph, e *segment.Engine, link topology.Edge,
	answers []segment.Answer) {
	g = open(b, "large/isp10000")
	e = engine(b, g.All())
	link, queries := crossing(g, 1000)
	answers, err := e.Batch(append(queries, randomPairs(g, 1000)...), runtime.GOMAXPROCS(0))
	if err != nil {
		b.Fatal(err)
	}
	return g, e, link, answers
}

// G6, third: a link fails that 1000 policies of 100 ingress nodes cross. Finding them among 2000,
// and computing all of them anew.
func BenchmarkG6ThousandAffected(b *testing.B) {
	_, e, link, answers := thousandCrossing(b)
	var watch segment.Watch
	for i, a := range answers {
		if err := watch.Add(i, e, a); err != nil {
			b.Fatal(err)
		}
	}
	failure := e.LinkDown(link)
	var mend, recompute durations
	affected, wall := 0, time.Duration(0)
	for b.Loop() {
		begun := cputime.Used()
		update, err := e.Apply(failure...)
		if err != nil {
			b.Fatal(err)
		}
		hit := watch.Affected(update)
		mend = append(mend, cputime.Since(begun))
		again := make([]segment.Query, len(hit))
		for i, p := range hit {
			again[i] = answers[p].Query
		}
		begun, affected = cputime.Used(), len(hit)
		start := time.Now()
		if _, err := e.Batch(again, runtime.GOMAXPROCS(0)); err != nil {
			b.Fatal(err)
		}
		recompute, wall = append(recompute, cputime.Since(begun)), wall+time.Since(start)
		if _, err := e.Apply(e.Restored(failure)...); err != nil {
			b.Fatal(err)
		}
	}
	mend.report(b, "/failure")
	recompute.report(b, "/recompute")
	b.ReportMetric(float64(wall.Milliseconds())/float64(len(mend)), "ms/recompute")
	b.ReportMetric(float64(affected), "policies")
	b.ReportMetric(heapMiB(), "MiB")
	runtime.KeepAlive(e)
}

// G6, fourth: the same failure, of which the engine has found out before it what its policies take.
// Preparing is one failure here, of those that cross paths.
func BenchmarkG6Prepared(b *testing.B) {
	g, e, link, answers := thousandCrossing(b)
	d, err := segment.NewDetours(e, answers, 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	before, begun, steps := heapMiB(), cputime.Used(), 0
	for down := []topology.Edge{link, g.Reverse(link)}; ; steps++ {
		if _, known := d.After(down...); known {
			break
		}
		if more, err := d.Step(); err != nil || !more {
			b.Fatal("the failure is not prepared", err)
		}
	}
	prepare, held := cputime.Since(begun), heapMiB()-before
	var taken durations
	found := 0
	for b.Loop() {
		begun := cputime.Used()
		answers, _ := d.After(link, g.Reverse(link))
		taken, found = append(taken, cputime.Since(begun)), len(answers)
	}
	taken.report(b, "/failure")
	b.ReportMetric(float64(found), "policies")
	b.ReportMetric(prepare.Seconds(), "cpu-s/preparing")
	b.ReportMetric(held, "MiB/preparing")
	runtime.KeepAlive(e)
}

// crossing picks the edge that the quickest ways from 100 ingress nodes cross most often, and so
// many policies that do, from these.
func crossing(g *topology.Graph, count int) (topology.Edge, []segment.Query) {
	delay := func(e topology.Edge) uint64 { return uint64(g.Delay(e))<<16 + 1 }
	table := spf.New(g.All(), delay, delay)
	by := map[topology.Edge][]segment.Query{}
	most := topology.Edge(0)
	for i := range 100 {
		from := topology.Node(97 * i)
		via := table.From(from).Layer(spf.Least).Via
		for to := topology.Node(i % 7); int(to) < g.Nodes(); to += 7 {
			for v := to; v != from && via[v] != topology.NoEdge; v = g.From(via[v]) {
				if e := via[v]; v != to && g.From(e) != from {
					by[e] = append(by[e], pair(from, to))
					if len(by[e]) > len(by[most]) || len(by[e]) == len(by[most]) && e < most {
						most = e
					}
				}
			}
		}
	}
	queries := by[most]
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(queries),
		func(i, j int) { queries[i], queries[j] = queries[j], queries[i] })
	return most, queries[:min(count, len(queries))]
}

// G7: one policy in a network of 10,000 nodes of which nothing is known yet.
func BenchmarkG7Cold(b *testing.B) {
	g := open(b, "large/isp10000")
	queries := randomPairs(g, 100)
	before, done, two := heapMiB(), 0, 0
	var times durations
	var e *segment.Engine
	for b.Loop() {
		begun := cputime.Used()
		e = engine(b, g.All())
		a, err := e.Disjoint(queries[done%len(queries)])
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, cputime.Since(begun))
		done++
		if len(a.Paths) == 2 {
			two++
		}
	}
	times.report(b, "/policy")
	b.ReportMetric(float64(two)/float64(done), "with-two-paths")
	b.ReportMetric(heapMiB()-before, "MiB")
	runtime.KeepAlive(e)
}

// G8: 10,000 random policies in a backbone of 3815 nodes, rows included, on all cores.
func BenchmarkG8World(b *testing.B) {
	g := open(b, "backbone/world")
	queries := randomPairs(g, 10000)
	begun, two := cputime.Used(), 0
	for b.Loop() {
		e := engine(b, g.All())
		answers, err := e.Batch(queries, runtime.GOMAXPROCS(0))
		if err != nil {
			b.Fatal(err)
		}
		two = 0
		for _, a := range answers {
			if len(a.Paths) == 2 {
				two++
			}
		}
		b.ReportMetric(heapMiB(), "MiB")
		runtime.KeepAlive(e)
	}
	b.ReportMetric(cputime.Since(begun).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(two), "with-two-paths")
}

// randomPairs are policies between nodes drawn from a fixed seed.
func randomPairs(g *topology.Graph, count int) []segment.Query {
	rnd := rand.New(rand.NewPCG(1, 1))
	queries := make([]segment.Query, count)
	for i := range queries {
		from := rnd.IntN(g.Nodes())
		queries[i] = pair(topology.Node(from),
			topology.Node((from+1+rnd.IntN(g.Nodes()-1))%g.Nodes()))
	}
	return queries
}

// grid is a square of nodes with unit weights: C(2n-2, n-1) shortest paths between its corners.
func grid(t testing.TB, side int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("grid", time.Microsecond)
	for v := range side * side {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprintf("%d-%d", v/side,
			v%side)}); err != nil {
			t.Fatal(err)
		}
	}
	link := func(u, v int) {
		for _, ends := range [][2]int{{u, v}, {v, u}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(ends[0]),
				To: topology.Node(ends[1]), Weight: 1, Delay: 1}); err != nil {
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
func BenchmarkG10Grid(b *testing.B) {
	g := grid(b, 20)
	for _, model := range []segment.Model{segment.ForcedAdjacency, segment.ECMP} {
		b.Run(string(model), func(b *testing.B) {
			b.ReportAllocs()
			begun, done, paths := cputime.Used(), 0, 0
			for b.Loop() {
				q := pair(0, topology.Node(g.Nodes()-1))
				q.Model = model
				a, err := engine(b, g.All()).Disjoint(q)
				if err != nil {
					b.Fatal(err)
				}
				paths, done = len(a.Paths), done+1
			}
			b.ReportMetric(float64(cputime.Since(begun).Microseconds())/1000/float64(done),
				"cpu-ms/policy")
			b.ReportMetric(float64(paths), "paths")
		})
	}
}
