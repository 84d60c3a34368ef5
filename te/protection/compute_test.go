package protection_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/srv6"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/srpolicy"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

// network reads links like "a-b 10" (delay and weight) or "a-b 10 1000" (capacity in kbit/s), in
// both directions.
func network(t testing.TB, links ...string) protection.Network {
	t.Helper()
	b := topology.NewBuilder("test", 0)
	for _, line := range links {
		var ends string
		var delay, capacity int64
		var risk uint32
		if n, err := fmt.Sscan(line, &ends, &delay, &capacity, &risk); n < 2 {
			t.Fatal(line, err)
		}
		from, to, _ := strings.Cut(ends, "-")
		for _, pair := range [][2]string{{from, to}, {to, from}} {
			var nodes [2]topology.Node
			for i, name := range pair {
				v, ok := b.Lookup(name)
				if !ok {
					var err error
					if v, err = b.AddNode(topology.NodeSpec{Name: name}); err != nil {
						t.Fatal(err)
					}
				}
				nodes[i] = v
			}
			spec := topology.EdgeSpec{From: nodes[0], To: nodes[1], Weight: uint32(delay),
				Delay: delay, CapacityKbps: capacity}
			if risk > 0 {
				spec.SRLGs = []uint32{risk}
			}
			if _, err := b.AddEdge(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return protection.Network{View: b.Build().All(), Block: block}
}

func intent(copies, spares int) protection.Intent {
	return protection.Intent{
		From: "a", To: "z", Copies: copies, Spares: spares, Disjoint: segment.LinkDisjoint,
		MaxSIDs: 4, Model: segment.ForcedAdjacency,
		BoundPermille: 800,
	}
}

func ways(paths []protection.Path) []string {
	texts := []string{}
	for _, p := range paths {
		var links []string
		for _, l := range p.Links {
			links = append(links, l.String())
		}
		texts = append(texts, strings.Join(links, " "))
	}
	return texts
}

// ladder has three disjoint paths from a to z, and a rung between two of them.
var ladder = []string{"a-b 1 10000", "b-z 1 10000", "a-c 2 10000", "c-z 2 10000", "a-d 3 5000",
	"d-z 3 5000", "b-c 1 10000"}

func TestCompute(t *testing.T) {
	for _, c := range []struct {
		name   string
		links  []string
		intent func(*protection.Intent)
		ask    protection.Question
		ways   []string
		proof  string
		short  string
	}{
		{
			name: "two copies and a spare", links: ladder,
			intent: func(i *protection.Intent) { i.Spares = 1 },
			ask:    protection.Question{Prove: true},
			ways:   []string{"a>b b>z", "a>c c>z", "a>d d>z"},
			proof: "the pair's total delay of 6 is optimal (suurballe); no more than 3 disjoint " +
				"paths exist (cut)",
		},
		{name: "without a proof", links: ladder, ways: []string{"a>b b>z", "a>c c>z"}},
		{
			name: "around a link", links: ladder,
			ask:  protection.Question{Avoid: []protection.Link{{From: "z", To: "b"}}},
			ways: []string{"a>c c>z", "a>d d>z"},
		},
		{
			name: "fewer spares than wanted", links: ladder,
			intent: func(i *protection.Intent) { i.Spares = 2 },
			ways:   []string{"a>b b>z", "a>c c>z", "a>d d>z"},
			proof:  "no more than 3 disjoint paths exist (cut)",
			short: "there are 3 link-disjoint paths only: the ends are parted by links a>b, a>c, " +
				"a>d",
		},
		{
			name: "a bridge", links: []string{"a-b 1", "b-c 1", "b-c 1", "c-z 1"},
			ways:  []string{"a>b b>c c>z"},
			proof: "no more than 1 disjoint paths exist (cut)",
			short: "there is 1 path only: every path crosses the bridge a>b, c>z",
		},
		{
			name: "no way", links: []string{"a-b 1", "y-z 1"}, ways: []string{},
			proof: "no more than 0 disjoint paths exist (cut)",
			short: "there is no path: no links that are up connect the ends",
		},
		{
			name: "a shared risk", links: []string{"a-b 1 0 7", "b-z 1", "a-c 1 0 7", "c-z 1"},
			intent: func(i *protection.Intent) { i.Disjoint = segment.SRLGDisjoint },
			ways:   []string{"a>b b>z"}, proof: "no more than 1 disjoint paths exist (risk)",
			short: "there is 1 path only: all paths depend on one shared-risk group",
		},
		{
			name: "a node", links: []string{"a-b 1", "a-b 2", "b-z 1", "b-z 2"},
			intent: func(i *protection.Intent) { i.Disjoint = segment.NodeDisjoint },
			ways:   []string{"a>b b>z"}, proof: "no more than 1 disjoint paths exist (cut)",
			short: "there is 1 path only: the ends are parted by node b",
		},
		{
			name: "around what is full", links: ladder,
			intent: func(i *protection.Intent) { i.RateKbps = 3000 },
			ask:    protection.Question{Loads: protection.Loads{{From: "a", To: "b"}: 5001}},
			ways:   []string{"a>c c>z", "a>d d>z"},
		},
		{
			name: "beyond the bound", links: ladder,
			intent: func(i *protection.Intent) { i.RateKbps = 4001 },
			ask:    protection.Question{Loads: protection.Loads{{From: "a", To: "b"}: 5000}},
			ways:   []string{"a>c c>z"}, proof: "no more than 1 disjoint paths exist (cut)",
			short: "there is 1 path only: link a>b would carry 9.001 Mbit/s, and 80.0 % of its " +
				"10 Mbit/s is the bound",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := intent(2, 0)
			if c.intent != nil {
				c.intent(&i)
			}
			plan, err := network(t, c.links...).Compute(i, c.ask)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.ways, ways(plan.Paths)); diff != "" {
				t.Error(diff)
			}
			if plan.Proof != c.proof || !strings.HasPrefix(plan.Short, c.short) || c.short == "" &&
				plan.Short != "" {
				t.Errorf("proof %q\nshort %q", plan.Proof, plan.Short)
			}
			if refused := plan.Refusal(i) != nil; refused != (len(c.ways) < i.Copies) {
				t.Errorf("refused: %v", plan.Refusal(i))
			}
		})
	}
}

// The pair that is best together is not the quickest path and what it leaves.
func TestThePairOfLeastTotalCarries(t *testing.T) {
	trap := network(t, "a-b 1", "b-c 1", "c-z 1", "a-c 4", "b-z 4", "a-e 8", "e-z 8")
	plan, err := trap.Compute(intent(2, 1), protection.Question{Prove: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a>b b>z", "a>c c>z", "a>e e>z"}, ways(plan.Paths)); diff != "" {
		t.Error(diff)
	}
}

func TestSegmentsEndAtTheEgress(t *testing.T) {
	plan, err := network(t, ladder...).Compute(intent(2, 0), protection.Question{})
	if err != nil {
		t.Fatal(err)
	}
	policy := protection.New(intent(2, 0), plan).Policy(protection.Installation{Name: "p",
		FirstFlow: 25, Egress: egress, Form: srpolicy.TLV})
	lists := policy.Paths[0].Lists
	if len(lists) != 2 || lists[0].Flow != 25 || lists[1].Flow != 26 {
		t.Fatalf("%+v", lists)
	}
	for _, l := range lists {
		if l.Segments[len(l.Segments)-1] != egress {
			t.Errorf("%s ends at %v", l.Name, l.Segments)
		}
	}
	if got := fmt.Sprint(lists[1].Segments); got != "[fcbb:bb00:1:e001:: fcbb:bb00:3:f::]" &&
		len(lists[1].Segments) < 2 {
		t.Errorf("the second path is not forced: %s", got)
	}
}

func TestIntentsAreChecked(t *testing.T) {
	for _, change := range []func(*protection.Intent){
		func(i *protection.Intent) { i.To = "a" },
		func(i *protection.Intent) { i.Copies = 0 },
		func(i *protection.Intent) { i.Spares = -1 },
		func(i *protection.Intent) { i.Spares = 5 },
		func(i *protection.Intent) { i.Model = segment.Paper },
		func(i *protection.Intent) { i.Disjoint = "nothing" },
		func(i *protection.Intent) { i.MaxSIDs = 8 },
		func(i *protection.Intent) { i.RateKbps = -1 },
		func(i *protection.Intent) { i.BoundPermille = 1001 },
		func(i *protection.Intent) { i.To = "nobody" },
	} {
		i := intent(2, 0)
		change(&i)
		if plan, err := network(t, ladder...).Compute(i, protection.Question{}); err == nil {
			t.Errorf("%+v: %+v", i, plan)
		}
	}
}

// On a provider's network (57 routers), between random pairs: as many disjoint paths as exist, up
// to what is wanted, each of which the network's shortest paths carry where it says; and without a
// proof no fewer.
func TestComputeOnAProvider(t *testing.T) {
	g, err := dataset.Open("paper-table3/AS3967")
	if err != nil {
		t.Fatal(err)
	}
	n := network(t)
	n.View = g.All()
	engine, err := segment.New(n.View)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 0))
	pairs, short := 0, 0
	for range 40 {
		i := intent(2, 1)
		i.From, i.To = g.Node(topology.Node(random.IntN(g.Nodes()))).Name,
			g.Node(topology.Node(random.IntN(g.Nodes()))).Name
		if i.From == i.To {
			continue
		}
		var counts [2]int
		for turn, prove := range []bool{true, false} {
			plan, err := n.Compute(i, protection.Question{Prove: prove})
			if err != nil {
				t.Fatal(err)
			}
			counts[turn] = len(plan.Paths)
			if (plan.Short == "") != (len(plan.Paths) == i.Paths()) {
				t.Errorf("%s to %s: %d paths, and is short because %q", i.From, i.To,
					len(plan.Paths), plan.Short)
			}
			for at, p := range plan.Paths {
				if fault := n.Fault(engine, i.From, p); fault != "" {
					t.Errorf("%s to %s, path %d: %s", i.From, i.To, at, fault)
				}
				for _, other := range plan.Paths[:at] {
					for _, l := range p.Links {
						if other.Crosses(l) {
							t.Errorf("%s to %s: two paths cross %s", i.From, i.To, l)
						}
					}
				}
			}
		}
		if counts[0] != counts[1] {
			t.Errorf("%s to %s: %d paths with a proof, %d without", i.From, i.To, counts[0],
				counts[1])
		}
		pairs++
		if counts[0] < 2 {
			short++
		}
	}
	if pairs < 30 || short == 0 || short == pairs {
		t.Errorf("%d pairs, %d of which have no two paths: nothing is shown", pairs, short)
	}
}
