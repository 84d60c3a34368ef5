package edgecoloring

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A link of a fat tree, one way: from and to are switches of two layers.
type link struct {
	layer    string
	from, to int
}

// links lists the links that a flow takes, from the topology alone: hosts are numbered through edge
// switches and pods.
func links(k, src, dst int, p Path) []link {
	half := k / 2
	srcEdge, dstEdge := src/half, dst/half
	srcPod, dstPod := src/(half*half), dst/(half*half)
	list := []link{{"host up", src, srcEdge}, {"host down", dstEdge, dst}}
	if srcEdge == dstEdge {
		return list
	}
	up, down := srcPod*half+p.Aggregation, dstPod*half+p.Aggregation
	list = append(list, link{"edge up", srcEdge, up}, link{"edge down", down, dstEdge})
	if srcPod == dstPod {
		return list
	}
	core := p.Aggregation*half + p.Core
	return append(list, link{"aggregation up", up, core}, link{"aggregation down", core, down})
}

// checkPaths wants paths that exist, and returns the greatest number of flows on a link between
// switches.
func checkPaths(t *testing.T, tree *FatTree, k int, flows map[Flow][2]int) int {
	t.Helper()
	loads := map[link]int{}
	most := 0
	for f, ends := range flows {
		p := tree.Path(f)
		half := k / 2
		sameEdge, samePod := ends[0]/half == ends[1]/half,
			ends[0]/(half*half) == ends[1]/(half*half)
		if (p.Aggregation >= 0) == sameEdge || (p.Core >= 0) == samePod || p.Aggregation >= half ||
			p.Core >= half {
			t.Fatalf("k = %d: flow from %d to %d has the path %v", k, ends[0], ends[1], p)
		}
		for _, l := range links(k, ends[0], ends[1], p)[2:] {
			loads[l]++
			most = max(most, loads[l])
		}
	}
	if got := tree.GreatestLoad(); got != most {
		t.Fatalf("GreatestLoad is %d, want %d", got, most)
	}
	return most
}

func permute(rng *rand.Rand, tree *FatTree) []Ends {
	ends := make([]Ends, tree.Hosts())
	for src, dst := range rng.Perm(tree.Hosts()) {
		ends[src] = Ends{src, dst}
	}
	return ends
}

func addPermutation(t testing.TB, tree *FatTree, rng *rand.Rand) map[Flow][2]int {
	t.Helper()
	flows := map[Flow][2]int{}
	ends := permute(rng, tree)
	added, err := tree.Add(ends...)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range added {
		flows[f] = [2]int{ends[i].Src, ends[i].Dst}
	}
	return flows
}

// G2: no link carries two flows, for any permutation.
func TestPermutations(t *testing.T) {
	for _, size := range []struct{ k, permutations int }{{2, 20}, {4, 1000}, {6, 300}, {8, 1000},
		{16, 1000}, {32, 1000}, {48, 2}} {
		rng := newRand(uint64(size.k))
		for range size.permutations {
			tree, err := NewFatTree(size.k)
			if err != nil {
				t.Fatal(err)
			}
			checkPermutation(t, tree, size.k, rng)
		}
	}
}

// checkPermutation assigns a random permutation and counts the flows of each link, with arrays for
// speed.
func checkPermutation(t *testing.T, tree *FatTree, k int, rng *rand.Rand) {
	t.Helper()
	half, hosts := k/2, tree.Hosts()
	var loads [4][]bool
	for i := range loads {
		// k*half edge switches with half links each, as many between pods and core
		loads[i] = make([]bool, hosts)
	}
	ends := permute(rng, tree)
	flows, err := tree.Add(ends...)
	if err != nil {
		t.Fatal(err)
	}
	for src := range ends {
		dst := ends[src].Dst
		p := tree.Path(flows[src])
		var used [4]int
		n := 0
		if src/half != dst/half {
			used[0], used[1], n = src/half*half+p.Aggregation, dst/half*half+p.Aggregation, 2
		}
		if srcPod, dstPod := src/(half*half), dst/(half*half); srcPod != dstPod {
			core := p.Aggregation*half + p.Core
			used[2], used[3], n = srcPod*half*half+core, dstPod*half*half+core, 4
		}
		for i, at := range used[:n] {
			if loads[i][at] {
				t.Fatalf("k = %d: link %d of kind %d carries two flows", k, at, i)
			}
			loads[i][at] = true
		}
	}
}

// Flows of a permutation leave and new ones between the same hosts arrive: the bound holds after
// each change, and who is not in Moved keeps the path.
func TestPermutationThatChanges(t *testing.T) {
	const k = 8
	rng := newRand(1)
	tree, err := NewFatTree(k)
	if err != nil {
		t.Fatal(err)
	}
	flows := addPermutation(t, tree, rng)
	for range 400 {
		was := map[Flow]Path{}
		for f := range flows {
			was[f] = tree.Path(f)
		}
		gone := sample(rng, flows, 2)
		ends := [2][2]int{flows[gone[0]], flows[gone[1]]}
		for _, f := range gone {
			tree.Remove(f)
			delete(flows, f)
			delete(was, f)
			checkUnmoved(t, tree, was)
		}
		for i := range ends { // the two exchange their destinations
			added, err := tree.Add(Ends{ends[i][0], ends[1-i][1]})
			if err != nil {
				t.Fatal(err)
			}
			f := added[0]
			flows[f] = [2]int{ends[i][0], ends[1-i][1]}
			checkUnmoved(t, tree, was)
			for f := range was {
				was[f] = tree.Path(f)
			}
			was[f] = tree.Path(f)
		}
		if most := checkPaths(t, tree, k, flows); most > 1 {
			t.Fatalf("a link carries %d flows", most)
		}
	}
}

func sample(rng *rand.Rand, flows map[Flow][2]int, n int) []Flow {
	all := make([]Flow, 0, len(flows))
	for f := range flows {
		all = append(all, f)
	}
	slices.Sort(all)
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

func checkUnmoved(t *testing.T, tree *FatTree, was map[Flow]Path) {
	t.Helper()
	for f, path := range was {
		if !slices.Contains(tree.Moved(), f) && tree.Path(f) != path {
			t.Fatalf("flow %d went from %v to %v without being moved", f, path, tree.Path(f))
		}
	}
}

// With m flows at each host, no link carries more than m.
func TestSeveralFlowsAtHosts(t *testing.T) {
	for _, m := range []int{2, 3} {
		tree, err := NewFatTree(8)
		if err != nil {
			t.Fatal(err)
		}
		rng := newRand(uint64(m))
		flows := map[Flow][2]int{}
		for range m {
			for f, ends := range addPermutation(t, tree, rng) {
				flows[f] = ends
			}
		}
		// A layer of flows between pods is spread by the coloring of its own group, so the bound of
		// each stage holds.
		if most := checkPaths(t, tree, 8, flows); most != m {
			t.Errorf("%d flows at each host: a link carries %d", m, most)
		}
	}
}

// BenchmarkPermutation assigns the 27,648 flows of k = 48 from nothing.
func BenchmarkPermutation(b *testing.B) {
	tree, err := NewFatTree(48)
	if err != nil {
		b.Fatal(err)
	}
	ends := permute(newRand(48), tree)
	for b.Loop() {
		if tree, err = NewFatTree(48); err != nil {
			b.Fatal(err)
		}
		if _, err := tree.Add(ends...); err != nil {
			b.Fatal(err)
		}
	}
}

var seed = flag.Uint64("seed", 48, "of the flows of BenchmarkChange")

// BenchmarkChange lets flows leave and arrive at k = 48, while a share of the hosts has flows. Its
// times are of arrivals.
func BenchmarkChange(b *testing.B) {
	for _, percent := range []int{50, 90, 99, 100} {
		b.Run(fmt.Sprintf("load=%d%%", percent), func(b *testing.B) { benchmarkChange(b, percent) })
	}
}

// threadTime is the processor time of the thread: what other programs take does not count.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

func benchmarkChange(b *testing.B, percent int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tree, err := NewFatTree(48)
	if err != nil {
		b.Fatal(err)
	}
	rng := newRand(*seed)
	ends := permute(rng, tree)
	ends = ends[:len(ends)*percent/100]
	flows, err := tree.Add(ends...)
	if err != nil {
		b.Fatal(err)
	}
	moved := 0
	var arrivals []time.Duration
	for b.Loop() { // two departures, two arrivals
		x, y := rng.IntN(len(flows)), rng.IntN(len(flows)-1)
		if y >= x {
			y++
		}
		tree.Remove(flows[x])
		tree.Remove(flows[y])
		ends[x].Dst, ends[y].Dst = ends[y].Dst, ends[x].Dst
		for _, i := range []int{x, y} {
			begun := threadTime(b)
			added, _ := tree.Add(ends[i])
			arrivals = append(arrivals, threadTime(b)-begun)
			flows[i] = added[0]
			moved += len(tree.Moved())
		}
	}
	slices.Sort(arrivals)
	count := len(arrivals)
	var sum time.Duration
	for _, one := range arrivals {
		sum += one
	}
	b.ReportMetric(float64(moved)/float64(count), "moved/arrival")
	b.ReportMetric(float64(sum.Nanoseconds())/float64(count), "ns/arrival")
	b.ReportMetric(float64(arrivals[count/2].Nanoseconds()), "ns/median-arrival")
	b.ReportMetric(float64(arrivals[count*99/100].Nanoseconds()), "ns/99th-arrival")
}
