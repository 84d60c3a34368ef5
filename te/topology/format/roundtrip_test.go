package format

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/te/topology"
)

// plainNames are names that each format can hold as they are.
var plainNames = rapid.StringMatching(`[a-z0-9][a-z0-9_-]{0,8}`)

// anyNames are any text that is not blank.
var anyNames = rapid.String().Filter(func(s string) bool { return strings.TrimSpace(s) != "" })

// drawGraph draws a multigraph with all attributes. If both, all links have both directions, with
// the same attributes.
func drawGraph(t *rapid.T, names *rapid.Generator[string], both bool) *topology.Graph {
	unit := rapid.SampledFrom([]time.Duration{0, time.Nanosecond, time.Microsecond,
		time.Millisecond, time.Second}).Draw(t, "unit")
	b := topology.NewBuilder("graph", unit)
	distinctNames := rapid.SliceOfNDistinct(names, 1, 12, rapid.ID[string]).Draw(t, "names")
	for i, name := range distinctNames {
		n := topology.NodeSpec{Name: name}
		if rapid.Bool().Draw(t, "known") {
			n.Place = topology.Point{
				Longitude: rapid.Float64Range(-180, 180).Draw(t, "x"),
				Latitude:  rapid.Float64Range(-90, 90).Draw(t, "y"),
			}
			n.Known = n.Place != topology.Point{} // which says "unknown" in REPETITA
		}
		if rapid.Bool().Draw(t, "has a locator") {
			n.SID = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfc, 0xbb, 5: byte(i)}), 48)
		}
		if _, err := b.AddNode(n); err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 30).Draw(t, "edges") {
		e := drawEdge(t, len(distinctNames))
		if e.From == e.To {
			continue
		}
		addEdge(t, b, e)
		if both {
			e.From, e.To = e.To, e.From
			addEdge(t, b, e)
		}
	}
	return b.Build()
}

func addEdge(t *rapid.T, b *topology.Builder, e topology.EdgeSpec) {
	if _, err := b.AddEdge(e); err != nil {
		t.Fatal(err)
	}
}

func drawEdge(t *rapid.T, nodes int) topology.EdgeSpec {
	e := topology.EdgeSpec{
		Name:         rapid.StringMatching(`[a-z0-9_]{1,6}`).Draw(t, "name"),
		From:         topology.Node(rapid.IntRange(0, nodes-1).Draw(t, "from")),
		To:           topology.Node(rapid.IntRange(0, nodes-1).Draw(t, "to")),
		Weight:       rapid.Uint32Min(1).Draw(t, "weight"),
		Delay:        rapid.Int64Range(0, topology.MaxDelay).Draw(t, "delay"),
		CapacityKbps: rapid.Int64Range(0, topology.MaxCapacityKbps).Draw(t, "capacity"),
	}
	if rapid.Bool().Draw(t, "has groups") {
		e.SRLGs = []uint32{3, rapid.Uint32Min(4).Draw(t, "group")}
	}
	if rapid.Bool().Draw(t, "has a SID") {
		e.SID = netip.AddrFrom16([16]byte{0xfc, 0xbb, 7: byte(e.To)})
	}
	return e
}

// What a format keeps comes back as it was, under plain names.
func TestRoundTripKeeps(t *testing.T) {
	for _, c := range codecs {
		t.Run(string(c.format), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g := drawGraph(t, plainNames, c.format == SNDlib || c.format == SNDlibXML ||
					c.format == Lab)
				again := rewrite(t, g, c.format)
				if diff := cmp.Diff(dump(kept(t, g, c)), dump(kept(t, again, c))); diff != "" {
					t.Fatalf("-before +after:\n%s", diff)
				}
			})
		})
	}
}

// What was read once is written and read without any change, whatever the names were.
func TestRoundTripSettles(t *testing.T) {
	for _, c := range codecs {
		t.Run(string(c.format), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				g := drawGraph(t, anyNames, c.format == SNDlib || c.format == SNDlibXML ||
					c.format == Lab)
				once := rewrite(t, g, c.format)
				if once.Nodes() != g.Nodes() || once.Edges() != g.Edges() {
					t.Fatalf("%d nodes and %d edges became %d and %d", g.Nodes(), g.Edges(),
						once.Nodes(), once.Edges())
				}
				if diff := cmp.Diff(dump(once), dump(rewrite(t, once, c.format))); diff != "" {
					t.Fatalf("-once +twice:\n%s", diff)
				}
			})
		})
	}
}

func rewrite(t *rapid.T, g *topology.Graph, format Format) *topology.Graph {
	text, err := Write(g, format)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(File{"graph", text}, Options{Format: format, DelayUnit: g.DelayUnit()})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return again
}

// kept is the graph with what the format has no place for left out.
func kept(t *rapid.T, g *topology.Graph, c codec) *topology.Graph {
	unit := g.DelayUnit()
	if !c.keeps.delay {
		unit = 0
	}
	b := topology.NewBuilder(g.Name(), unit)
	for v := range g.Nodes() {
		n := g.Node(topology.Node(v))
		if !c.keeps.place {
			n.Place, n.Known = topology.Point{}, false
		}
		if !c.keeps.sid {
			n.SID = netip.Prefix{}
		}
		if _, err := b.AddNode(n); err != nil {
			t.Fatal(err)
		}
	}
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		if !c.keeps.weight {
			e.Weight = 1
		}
		if !c.keeps.delay {
			e.Delay = 0
		}
		if !c.keeps.edgeName {
			e.Name = ""
		}
		if !c.keeps.srlg {
			e.SRLGs = nil
		}
		if !c.keeps.sid {
			e.SID = netip.Addr{}
		}
		if c.format == Lab && e.CapacityKbps > labKbpsMost {
			e.CapacityKbps = 0
		}
		addEdge(t, b, e)
	}
	return b.Build()
}
