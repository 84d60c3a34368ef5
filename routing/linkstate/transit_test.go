package linkstate_test

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sextant/routing/linkstate"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
)

// side is what a router says of a link: where it leads, what it costs, and how long it takes; 0 if
// that is not said.
type side struct{ to, metric, delay int }

// area is what isisd prints of routers R1, R2 and so on.
type area struct {
	sides      [][]side // by router, less one
	overloaded []bool
}

// newArea has links, each with a metric and a delay for both directions.
func newArea(routers int, links ...[4]int) area {
	a := area{make([][]side, routers), make([]bool, routers)}
	for _, l := range links {
		a.sides[l[0]-1] = append(a.sides[l[0]-1], side{l[1], l[2], l[3]})
		a.sides[l[1]-1] = append(a.sides[l[1]-1], side{l[0], l[2], l[3]})
	}
	return a
}

// graph is what is made of the print.
func (a area) graph(t testing.TB) *topology.Graph {
	t.Helper()
	var text strings.Builder
	text.WriteString("IS-IS Level-2 link-state database:\n")
	for i, sides := range a.sides {
		bit := 0
		if a.overloaded[i] {
			bit = 1
		}
		fmt.Fprintf(&text, "0000.0000.%04d.00-00 205 0x00000006 0x7281 1150 0/0/%d\n", i+1, bit)
		for _, s := range sides {
			fmt.Fprintf(&text, "  Extended Reachability: 0000.0000.%04d.00 (Metric: %d)\n", s.to,
				s.metric)
			if s.delay > 0 {
				fmt.Fprintf(&text, "    Normal Average Link Delay: %d (micro-sec)\n", s.delay)
			}
		}
		fmt.Fprintf(&text, "  IPv6 Reachability: fcbb:bb00:%d::/48 (Metric: 10)\n", i+1)
	}
	g, ignored, err := linkstate.ISIS("isis", linkstate.ISISDatabase{Text: []byte(text.String())},
		block(t))
	if err != nil || len(ignored) > 0 {
		t.Fatalf("%v, ignored %q:\n%s", err, ignored, text.String())
	}
	return g
}

func name(router int) string { return fmt.Sprintf("0000.0000.%04d", router) }

// paths are all ways between two routers that pass no node twice, as the numbers of the routers.
func (a area) paths(way []int, to int, yield func(way []int)) {
	last := way[len(way)-1]
	if last == to {
		yield(way)
		return
	}
	for _, s := range a.sides[last-1] {
		if !slices.Contains(way, s.to) {
			a.paths(append(slices.Clone(way), s.to), to, yield)
		}
	}
}

// passes tells whether a way leads through an overloaded router.
func (a area) passes(way []int) bool {
	return slices.ContainsFunc(way[1:len(way)-1], func(r int) bool { return a.overloaded[r-1] })
}

// shortest are the ways of least cost among those that are allowed, and that cost.
func (a area) shortest(from, to int, cost func(from, to int) int,
	allowed func(way []int) bool) (ways []string, least int) {
	least = math.MaxInt
	a.paths([]int{from}, to, func(way []int) {
		sum := 0
		for i := range way[1:] {
			sum += cost(way[i], way[i+1])
		}
		if !allowed(way) || sum > least {
			return
		}
		if sum < least {
			least, ways = sum, nil
		}
		ways = append(ways, fmt.Sprint(way))
	})
	return ways, least
}

func drawArea(t *rapid.T) area {
	routers := rapid.IntRange(3, 6).Draw(t, "routers")
	var links [][4]int
	for from := 1; from < routers; from++ {
		for to := from + 1; to <= routers; to++ {
			if rapid.IntRange(0, 2).Draw(t, "link") > 0 {
				links = append(links, [4]int{from, to,
					rapid.SampledFrom([]int{1, 2, 3, 1<<24 - 2}).Draw(t, "metric"),
					rapid.IntRange(1, 4).Draw(t, "delay")})
			}
		}
	}
	a := newArea(routers, links...)
	for i := range a.overloaded {
		a.overloaded[i] = rapid.Bool().Draw(t, "overloaded")
	}
	return a
}

// Where routers reach each other without passing one that is overloaded, weights lead over the
// ways that their metrics do, and over no others: compared with all ways that there are.
func TestOverloadConcernsTransitAlone(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := drawArea(r)
		g := a.graph(t)
		weight := func(from, to int) int {
			u, _ := g.Lookup(name(from))
			v, _ := g.Lookup(name(to))
			for _, e := range g.Out(u) {
				if g.To(e) == v {
					return int(g.Weight(e))
				}
			}
			r.Fatalf("no edge from %d to %d", from, to)
			return 0
		}
		metric := func(from, to int) int {
			i := slices.IndexFunc(a.sides[from-1], func(s side) bool { return s.to == to })
			return a.sides[from-1][i].metric
		}
		for from := range len(a.sides) {
			for to := range len(a.sides) {
				want, _ := a.shortest(from+1, to+1, metric,
					func(way []int) bool { return from != to && !a.passes(way) })
				if want == nil {
					continue
				}
				got, _ := a.shortest(from+1, to+1, weight, func([]int) bool { return true })
				if diff := cmp.Diff(want, got); diff != "" {
					r.Fatalf("%+v (-want +got):\n%s", a, diff)
				}
			}
		}
	})
}

// plan computes paths from R1 to R4 that share no node.
func plan(t *testing.T, g *topology.Graph, copies int) []protection.Path {
	t.Helper()
	n := protection.Network{View: g.All(), Block: block(t)}
	p, err := n.Compute(protection.Intent{From: name(1), To: name(4), Copies: copies,
		Disjoint: segment.NodeDisjoint, MaxSIDs: 3, Model: segment.Forced, BoundPermille: 800},
		protection.Question{})
	if err != nil {
		t.Fatal(err)
	}
	return p.Paths
}

// A head-end by which nothing is to pass, as hosts that route are, sends its own packets by its own
// metrics. Its two copies are held apart in the network as it is: the same without the bit.
func TestOverloadedHeadEnd(t *testing.T) {
	a := newArea(4, [4]int{1, 2, 10}, [4]int{2, 4, 30}, [4]int{1, 3, 30}, [4]int{3, 4, 20})
	want := plan(t, a.graph(t), 2)
	a.overloaded[0] = true
	if diff := cmp.Diff(want, plan(t, a.graph(t), 2),
		cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("without the overload bit, and with it:\n%s", diff)
	}
}

// The quickest way that passes no overloaded router is taken, by delays if links tell them, else by
// metrics; and how long it takes is what they say, also from a head-end that is overloaded itself.
func TestQuickestWayWithOverload(t *testing.T) {
	for _, delay := range []int{0, 100} {
		for _, overloaded := range [][]int{{}, {1}, {2}, {1, 2}, {2, 4}, {3}, {2, 3}} {
			a := newArea(4, [4]int{1, 2, 10, delay}, [4]int{2, 4, 10, delay},
				[4]int{1, 3, 10, 2 * delay}, [4]int{3, 4, 30, 2 * delay})
			for _, r := range overloaded {
				a.overloaded[r-1] = true
			}
			cost := func(from, to int) int {
				i := slices.IndexFunc(a.sides[from-1], func(s side) bool { return s.to == to })
				return max(a.sides[from-1][i].delay, a.sides[from-1][i].metric)
			}
			want, takes := a.shortest(1, 4, cost, func(way []int) bool { return !a.passes(way) })
			var got []string
			for _, p := range plan(t, a.graph(t), 1) {
				way := []int{1}
				for _, l := range p.Links {
					to, _ := strconv.Atoi(strings.TrimPrefix(l.To, "0000.0000."))
					way = append(way, to)
				}
				got = append(got, fmt.Sprint(way))
				if p.Delay != int64(takes) {
					t.Errorf("overloaded %v: a delay of %d, want %d", overloaded, p.Delay, takes)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("overloaded %v (-want +got):\n%s", overloaded, diff)
			}
		}
	}
}
