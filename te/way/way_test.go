package way_test

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/packet/srv6"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/way"
)

func block(t interface{ Fatal(...any) }) srv6.Block {
	b, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drawNetwork makes a small network whose links differ in weight, delay, congestion and risk, and
// some of whose nodes are not for transit.
func drawNetwork(t *rapid.T) way.Network {
	nodes := rapid.IntRange(3, 7).Draw(t, "nodes")
	b := topology.NewBuilder("drawn", 0)
	for i := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint("n", i),
			NoTransit: drawTransit(t)}); err != nil {
			t.Fatal(err)
		}
	}
	n := way.Network{Block: block(t), From: "n0", Weights: map[protection.Link]float64{}}
	for u := range nodes {
		for v := range u {
			if u != v+1 && !rapid.Bool().Draw(t, "link") {
				continue
			}
			weight := rapid.Uint32Range(1, 5).Draw(t, "weight")
			risk := rapid.Uint32Range(1, 4).Draw(t, "risk")
			for _, ends := range [][2]int{{u, v}, {v, u}} {
				l := protection.Link{From: fmt.Sprint("n", ends[0]), To: fmt.Sprint("n", ends[1])}
				n.Weights[l] = float64(rapid.IntRange(0, 9).Draw(t, "congestion")) / 10
				if _, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(ends[0]),
					To: topology.Node(ends[1]), Weight: weight, SRLGs: []uint32{risk},
					Delay: rapid.Int64Range(0, 9).Draw(t, "delay")}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	n.View = b.Build().All()
	return n
}

func drawTransit(t *rapid.T) (barred bool) {
	return rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "not for transit")
}

func drawIntent(t *rapid.T, n way.Network) way.Intent {
	i := way.Intent{By: rapid.SampledFrom([]way.Metric{way.IGP, way.Delay, way.Telemetry}).Draw(t,
		"by"), Paths: rapid.IntRange(1, 2).Draw(t, "paths"), MaxSIDs: 6,
		Model: segment.ForcedAdjacency}
	if rapid.Bool().Draw(t, "avoid a link") {
		e := topology.Edge(rapid.IntRange(0, n.View.Edges()-1).Draw(t, "avoided"))
		i.Links = append(i.Links, protection.LinkOf(n.View.Graph, e))
	}
	if n.View.Nodes() > 3 && rapid.Bool().Draw(t, "avoid a node") {
		i.Nodes = append(i.Nodes, fmt.Sprint("n",
			rapid.IntRange(1, n.View.Nodes()-2).Draw(t, "node")))
	}
	if rapid.Bool().Draw(t, "avoid a risk") {
		i.Risks = append(i.Risks, 4)
	}
	return i
}

// allowed reports whether an intent and the network let paths cross an edge.
func allowed(n way.Network, i way.Intent, e topology.Edge) bool {
	if near := n.View.Node(n.View.From(e)); near.NoTransit && near.Name != n.From {
		return false
	}
	from, to := n.View.Node(n.View.From(e)).Name, n.View.Node(n.View.To(e)).Name
	for _, l := range i.Links {
		if l.From == from && l.To == to || l.From == to && l.To == from {
			return false
		}
	}
	return !slices.Contains(i.Nodes, from) && !slices.Contains(i.Nodes, to) &&
		!slices.ContainsFunc(n.View.Edge(e).SRLGs,
			func(r uint32) bool { return slices.Contains(i.Risks, r) })
}

// walk tries all simple paths from a node, and says what the cheapest one costs; -1: there is none.
func walk(n way.Network, i way.Intent, at, to topology.Node, visited []bool, cost int64) int64 {
	if at == to {
		return cost
	}
	visited[at] = true
	best := int64(-1)
	for _, e := range n.View.Out(at) {
		if visited[n.View.To(e)] || !allowed(n, i, e) {
			continue
		}
		l := protection.Link{From: n.View.Node(at).Name, To: n.View.Node(n.View.To(e)).Name}
		step := map[way.Metric]int64{way.IGP: int64(n.View.Weight(e)), way.Delay: n.View.Delay(e),
			way.Telemetry: 1 + int64(math.Floor(n.Weights[l]*10_000))}[i.By]
		if c := walk(n, i, n.View.To(e), to, visited, cost+step); c >= 0 && (best < 0 || c < best) {
			best = c
		}
	}
	visited[at] = false
	return best
}

// The first path is as cheap as any that crosses nothing that is avoided, unless it gave way to a
// second one; routers that follow its SIDs, and the server's behind them, cross its links and no
// others; two paths share no link.
func TestPathsAgainstAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		i := drawIntent(t, n)
		to := topology.Node(n.View.Nodes() - 1)
		name := n.View.Node(to).Name
		answers, err := way.NewSearch(n).Compute(i, []string{name, name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := answers[name]
		if i.By == way.IGP && len(i.Links)+len(i.Nodes)+len(i.Risks) == 0 && i.Paths == 1 {
			if len(a.Paths) != 0 {
				t.Fatalf("paths %v where routing's own way is wanted", a.Paths)
			}
			return
		}
		best := walk(n, i, 0, to, make([]bool, n.View.Nodes()), 0)
		if (best >= 0) != (len(a.Paths) > 0) {
			t.Fatalf("%d paths found, the best of all costs %d: %s", len(a.Paths), best, a.Short)
		}
		if best < 0 {
			return
		}
		if least := min(a.Least, a.Paths[0].Cost); least != best {
			t.Fatalf("the best path costs %d of %v, want %d", least, a.Paths, best)
		}
		for k, p := range a.Paths {
			followed(t, n, i, p, to)
			for _, l := range p.Links {
				if k == 1 && a.Paths[0].Crosses(l) {
					t.Fatalf("both paths cross %s", l)
				}
			}
		}
		if (a.Short == "") != (len(a.Paths) == i.Paths) {
			t.Fatalf("%d of %d paths: %q", len(a.Paths), i.Paths, a.Short)
		}
	})
}

// followed replays a path's SIDs in the network as routing has it.
func followed(t *rapid.T, n way.Network, i way.Intent, p way.Path, to topology.Node) {
	engine, err := segment.New(n.View)
	if err != nil {
		t.Fatal(err)
	}
	meaning := map[netip.Addr]segment.SID{}
	for v := range topology.Node(n.View.Nodes()) {
		sid, _ := n.Block.Carrier(srv6.CSID(v + 1))
		meaning[sid] = segment.SID{Node: v, Link: topology.NoEdge}
		for k, e := range n.View.Out(v) {
			sid, _ := n.Block.Carrier(srv6.CSID(v+1), srv6.CSID(0xe000+k))
			meaning[sid] = segment.SID{Node: v, Link: e}
		}
	}
	var list []segment.SID
	for _, sid := range p.SIDs {
		if _, known := meaning[sid]; !known {
			t.Fatalf("SID %s of %v is nobody's", sid, p.SIDs)
		}
		list = append(list, meaning[sid])
	}
	r, err := engine.Replay(0, append(list, segment.SID{Node: to, Link: topology.NoEdge}))
	if err != nil || !r.Forced {
		t.Fatalf("%v: forced %v, %v", p.SIDs, r.Forced, err)
	}
	var crossed, said []string
	for _, e := range r.Edges {
		crossed = append(crossed, protection.LinkOf(n.View.Graph, e).String())
		if !allowed(n, i, e) {
			t.Fatalf("%v crosses %s, which is to be avoided", p.SIDs, crossed[len(crossed)-1])
		}
	}
	for _, l := range p.Links {
		said = append(said, l.String())
	}
	slices.Sort(crossed)
	if slices.Sort(said); !slices.Equal(crossed, said) {
		t.Fatalf("packets cross %v, the path says %v", crossed, said)
	}
}

// diamond is a, b or c, d: the way over b is shorter in routing, that over c in delay.
func diamond(t *testing.T) way.Network {
	b := topology.NewBuilder("diamond", 0)
	for _, name := range strings.Fields("a b c d") {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []struct {
		u, v   topology.Node
		weight uint32
		delay  int64
	}{{0, 1, 1, 50}, {1, 3, 1, 50}, {0, 2, 10, 5}, {2, 3, 10, 5}} {
		for _, ends := range [][2]topology.Node{{l.u, l.v}, {l.v, l.u}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: ends[0], To: ends[1], Weight: l.weight,
				Delay: l.delay, SRLGs: []uint32{l.weight}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return way.Network{View: b.Build().All(), Block: block(t), From: "a"}
}

func TestAnswers(t *testing.T) {
	n := diamond(t)
	link := protection.Link{From: "d", To: "b"}
	for _, test := range []struct {
		intent way.Intent
		want   string
	}{
		{way.Intent{By: way.IGP}, ""},
		{way.Intent{By: way.Delay}, "c 10"},
		{way.Intent{By: way.Telemetry}, " 2"}, // routing's own way is as free as the other
		{way.Intent{By: way.IGP, Links: []protection.Link{link}}, "c 20"},
		{way.Intent{By: way.IGP, Nodes: []string{"b"}}, "c 20"},
		{way.Intent{By: way.Delay, Risks: []uint32{10}}, " 100"},
		{way.Intent{By: way.IGP, Paths: 2}, " 2, c 20"},
		{way.Intent{By: way.IGP, Paths: 2, Nodes: []string{"b"}}, "c 20; no second path that " +
			"shares no link with the first from a to d that crosses nothing of what is to be " +
			"avoided"},
		{way.Intent{By: way.IGP, Nodes: []string{"b", "c"}},
			"; no path from a to d that crosses nothing of what is to be avoided"},
	} {
		test.intent.Model, test.intent.MaxSIDs = segment.Forced, 2
		answers, err := way.NewSearch(n).Compute(test.intent, []string{"d"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, p := range answers["d"].Paths {
			parts = append(parts, fmt.Sprint(strings.Join(p.Names, " "), " ", p.Cost))
		}
		got := strings.Join(parts, ", ")
		if short := answers["d"].Short; short != "" {
			got += "; " + short
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.intent, got, test.want)
		}
	}
	for _, intent := range []way.Intent{
		{By: way.Delay, Nodes: []string{"x"}}, {By: way.Delay,
			Links: []protection.Link{{From: "a", To: "d"}}}} {
		intent.Model, intent.MaxSIDs = segment.Forced, 2
		if _, err := way.NewSearch(n).Compute(intent, []string{"d"}, nil); err == nil {
			t.Errorf("%+v: what the network does not have was avoided", intent)
		}
	}
	intent := way.Intent{By: way.Delay, Model: segment.Forced, MaxSIDs: 2}
	if _, err := way.NewSearch(n).Compute(intent, []string{"x"}, nil); err == nil {
		t.Error("a way to nowhere was found")
	}
}

// Where all paths pass nodes that are not for transit, that is said.
func TestNoTransit(t *testing.T) {
	n := diamond(t)
	changed(t, &n, func() uint32 { return 1 },
		func(v *topology.NodeSpec) { v.NoTransit = v.Name == "b" || v.Name == "c" })
	answers, err := way.NewSearch(n).Compute(way.Intent{By: way.Delay, Model: segment.Forced,
		MaxSIDs: 2}, []string{"b", "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if short := answers["b"].Short; short != "" {
		t.Errorf("a path that ends at such a node: %s", short)
	}
	if short := answers["d"].Short; short != "no path from a to d that passes no node which is "+
		"not for transit" {
		t.Errorf("no path is left: %q", short)
	}
}

// Paths by congestion stay unless others are lighter by a quarter, or a link of theirs is down.
func TestKeep(t *testing.T) {
	n := diamond(t)
	i := way.Intent{By: way.Telemetry, Model: segment.Forced, MaxSIDs: 2}
	congest := func(b, c float64) {
		n.Weights = map[protection.Link]float64{{From: "b", To: "d"}: b, {From: "c", To: "d"}: c}
	}
	var answers map[string]way.Answer
	via := func() string {
		t.Helper()
		var err error
		if answers, err = way.NewSearch(n).Compute(i, []string{"d"}, answers); err != nil {
			t.Fatal(err)
		}
		return answers["d"].Paths[0].Links[0].To
	}
	for _, test := range []struct {
		b, c float64
		want string
	}{{0.5, 0.6, "b"}, {0.5, 0.4, "b"}, {0.5, 0.37, "c"}, {0.3, 0.37, "c"}, {0.1, 0.37, "b"}} {
		if congest(test.b, test.c); via() != test.want {
			t.Errorf("b %v, c %v: over %s, want %s", test.b, test.c,
				answers["d"].Paths[0].Links[0].To, test.want)
		}
	}
	congest(0, 1)
	down, _ := protection.EdgeOf(n.View.Graph, protection.Link{From: "a", To: "b"})
	n.View = n.View.Without(down)
	if got := via(); got != "c" {
		t.Errorf("with a link down: over %s, want c", got)
	}
}

// changed is the network with other metrics, and what else is changed of its nodes.
func changed(t interface{ Fatal(...any) }, n *way.Network, weight func() uint32,
	change func(*topology.NodeSpec)) {
	b := topology.NewBuilder("changed", 0)
	for v := range topology.Node(n.View.Nodes()) {
		spec := n.View.Node(v)
		change(&spec)
		if _, err := b.AddNode(spec); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(n.View.Edges()) {
		spec := n.View.Edge(e)
		spec.Weight = weight()
		if _, err := b.AddEdge(spec); err != nil {
			t.Fatal(err)
		}
	}
	n.View = b.Build().All()
}

// Whatever became of metrics and congestion since, packets cross the links that paths say, nothing
// that is to be avoided, and no path costs more than four thirds of the best.
func TestKeptPathsCarry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNetwork(t)
		i := drawIntent(t, n)
		i.By, i.Paths = way.Telemetry, 1
		to := topology.Node(n.View.Nodes() - 1)
		name := n.View.Node(to).Name
		before, err := way.NewSearch(n).Compute(i, []string{name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		changed(t, &n, func() uint32 { return rapid.Uint32Range(1, 5).Draw(t, "metric") },
			func(v *topology.NodeSpec) { v.NoTransit = drawTransit(t) })
		for e := range topology.Edge(n.View.Edges()) {
			more := rapid.SampledFrom([]float64{0, 0.01, 0.1}).Draw(t, "more")
			n.Weights[protection.LinkOf(n.View.Graph, e)] += more
		}
		answers, err := way.NewSearch(n).Compute(i, []string{name}, before)
		if err != nil {
			t.Fatal(err)
		}
		best := walk(n, i, 0, to, make([]bool, n.View.Nodes()), 0)
		for _, p := range answers[name].Paths {
			followed(t, n, i, p, to)
			if 3*p.Cost > 4*best {
				t.Fatalf("%v costs %d, the best %d", p.SIDs, p.Cost, best)
			}
		}
	})
}

// A path whose router has another SID now is not kept.
func TestKeepsNoForeignSID(t *testing.T) {
	n := diamond(t)
	i := way.Intent{By: way.Telemetry, Model: segment.Forced, MaxSIDs: 2}
	n.Weights = map[protection.Link]float64{{From: "b", To: "d"}: 0.5}
	before, err := way.NewSearch(n).Compute(i, []string{"d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed(t, &n, func() uint32 { return 1 }, func(v *topology.NodeSpec) {
		if v.Name == "c" {
			v.SID = netip.MustParsePrefix("fcbb:bb00:77::/48")
		}
	})
	answers, err := way.NewSearch(n).Compute(i, []string{"d"}, before)
	if err != nil {
		t.Fatal(err)
	}
	old, now := before["d"].Paths[0], answers["d"].Paths[0]
	if old.Names[0] != "c" || now.Names[0] != "c" ||
		now.SIDs[0] != netip.MustParseAddr("fcbb:bb00:77::") {
		t.Errorf("before over %v %v, now over %v %v", old.Names, old.SIDs, now.Names, now.SIDs)
	}
}
