package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/te/topology/generate"
)

// picture is what a reader of the SVG finds.
type picture struct {
	viewBox [4]float64
	nodes   map[string]vec // circles by their titles
	links   int
	lanes   map[string][]string // courses of the edges of paths, by the paths' labels
	texts   []string
}

type svgElement struct {
	XMLName  xml.Name
	Attrs    []xml.Attr   `xml:",any,attr"`
	Children []svgElement `xml:",any"`
	Text     string       `xml:",chardata"`
}

func (e svgElement) attribute(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e svgElement) number(name string) float64 {
	f, err := strconv.ParseFloat(e.attribute(name), 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

func (e svgElement) title() string {
	for _, c := range e.Children {
		if c.XMLName.Local == "title" {
			return c.Text
		}
	}
	return ""
}

// tester is what testing.T and rapid.T have in common here.
type tester interface {
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func look(t tester, svg []byte) picture {
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	for { // well-formed to the end
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	var root svgElement
	if err := xml.Unmarshal(svg, &root); err != nil {
		t.Fatal(err)
	}
	p := picture{nodes: map[string]vec{}, lanes: map[string][]string{}}
	if _, err := fmt.Sscan(root.attribute("viewBox"), &p.viewBox[0], &p.viewBox[1], &p.viewBox[2],
		&p.viewBox[3]); err != nil {
		t.Fatal(err)
	}
	for _, group := range root.Children {
		for _, e := range group.Children {
			switch class := group.attribute("class"); {
			case class == "links" && e.XMLName.Local == "path":
				p.links++
			case class == "nodes":
				p.nodes[e.title()] = vec{e.number("cx"), e.number("cy")}
			case class == "paths":
				for _, piece := range e.Children {
					if piece.XMLName.Local == "path" {
						p.lanes[piece.title()] = append(p.lanes[piece.title()],
							piece.attribute("d"))
					}
				}
			case e.XMLName.Local == "text":
				p.texts = append(p.texts, e.Text)
			}
		}
	}
	return p
}

// inside wants all nodes within the view, and no number that is none.
func (p picture) inside(t tester, svg []byte) {
	for name, at := range p.nodes {
		if !(at.x >= p.viewBox[0] && at.x <= p.viewBox[0]+p.viewBox[2] && at.y >= p.viewBox[1] &&
			at.y <= p.viewBox[1]+p.viewBox[3]) {
			t.Errorf("node %q at %v is outside of the view %v", name, at, p.viewBox)
		}
	}
	if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
		t.Errorf("the drawing has numbers that are none")
	}
}

func randomGraph(t *rapid.T) *topology.Graph {
	b := topology.NewBuilder(rapid.String().Draw(t, "name"), 0)
	nodes := rapid.IntRange(0, 8).Draw(t, "nodes")
	for v := range nodes {
		n := topology.NodeSpec{Name: fmt.Sprint(v,
			rapid.SampledFrom([]string{"", "<&>", "é", "\x01"}).Draw(t, "odd"))}
		if n.Known = rapid.Bool().Draw(t, "known"); n.Known {
			n.Place = topology.Point{Longitude: rapid.Float64Range(-180, 180).Draw(t, "x"),
				Latitude: rapid.Float64Range(-90, 90).Draw(t, "y")}
		}
		if _, err := b.AddNode(n); err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 12).Draw(t, "edges") {
		if nodes < 2 {
			break
		}
		u := rapid.IntRange(0, nodes-1).Draw(t, "from")
		v := (u + rapid.IntRange(1, nodes-1).Draw(t, "step")) % nodes
		if _, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(u), To: topology.Node(v),
			Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// Whatever the graph, the drawing is XML that shows each node and each link once, and each path
// whole.
func TestAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		o := Options{ByHops: rapid.Bool().Draw(t, "by hops"),
			EdgeLabel: func(e topology.Edge) string { return strconv.Itoa(int(e)) }}
		want := map[string]int{}
		for i := range rapid.IntRange(0, 3).Draw(t, "paths") {
			p := Path{Label: fmt.Sprint("path ", i)}
			for e := range topology.Edge(g.Edges()) {
				if rapid.Bool().Draw(t, "on it") {
					p.Edges = append(p.Edges, e)
					want[p.Label]++
				}
			}
			o.Paths = append(o.Paths, p)
		}
		svg := SVG(g, o)
		p := look(t, svg)
		p.inside(t, svg)
		links := 0
		for range g.Links() {
			links++
		}
		if len(p.nodes) != g.Nodes() || p.links != links {
			t.Fatalf("%d circles and %d lines for %d nodes and %d links", len(p.nodes), p.links,
				g.Nodes(), links)
		}
		for label, edges := range want {
			if len(p.lanes[label]) != edges || !slices.Contains(p.texts, label) {
				t.Fatalf("%s has %d lines for %d edges, or is not in the legend", label,
					len(p.lanes[label]), edges)
			}
		}
		if again := SVG(g, o); !bytes.Equal(again, svg) {
			t.Fatal("the same graph is drawn in two ways")
		}
	})
}

func open(t *testing.T, name string) *topology.Graph {
	t.Helper()
	g, err := dataset.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Nodes don't cover one another, even where several are in one town.
func TestNodesStandApart(t *testing.T) {
	for _, name := range []string{"zoo/Abilene", "zoo/GtsCe", "zoo/Aarnet", "zoo/Deltacom",
		"paper-table3/AS1239", "defo/synth100_opt_hard"} {
		g := open(t, name)
		p := look(t, SVG(g, Options{}))
		radius := styleOf(g.Nodes()).radius
		var names []string
		for n := range p.nodes {
			names = append(names, n)
		}
		slices.Sort(names)
		for i, a := range names {
			for _, b := range names[:i] {
				if d := p.nodes[a].minus(p.nodes[b]).length(); d < 2*radius {
					t.Errorf("%s: %s and %s are %.1f apart, with radius %.1f", name, a, b, d,
						radius)
				}
			}
		}
	}
}

// In small networks all nodes have their name beside them.
func TestNamesAreWritten(t *testing.T) {
	for _, name := range []string{"zoo/Abilene", "zoo/Aarnet", "paper-table3/AS3967",
		"defo/synth50_opt_hard"} {
		g := open(t, name)
		p := look(t, SVG(g, Options{}))
		written := 0
		for v := range topology.Node(g.Nodes()) {
			if slices.Contains(p.texts, g.Node(v).Name) {
				written++
			}
		}
		if written < g.Nodes()*95/100 {
			t.Errorf("%s: %d of %d names are written", name, written, g.Nodes())
		}
	}
}

// The map is a map: north is up, east is right, and distances are in proportion.
func TestMap(t *testing.T) {
	p := look(t, SVG(open(t, "zoo/Abilene"), Options{}))
	seattle, newYork, losAngeles := p.nodes["3_Seattle"], p.nodes["0_New_York"],
		p.nodes["5_Los_Angeles"]
	if !(seattle.x < newYork.x && seattle.y < newYork.y && losAngeles.y > seattle.y) {
		t.Errorf("Seattle %v, New York %v, Los Angeles %v", seattle, newYork, losAngeles)
	}
	// Great-circle distances: 3873 km and 1544 km. The projection makes distances along a parallel
	// far north too long.
	if ratio := newYork.minus(seattle).length() / losAngeles.minus(seattle).length(); math.Abs(
		ratio-3873.0/1544) > 0.3 {
		t.Errorf("New York is %.2f times as far from Seattle as Los Angeles, not about 2.51 times",
			ratio)
	}
}

// Without coordinates, a grid of 6 by 6 unfolds: its corners are as far apart as hops say, up to
// the drawing's bending.
func TestByHopsUnfolds(t *testing.T) {
	g, err := generate.Grid(6, 6)
	if err != nil {
		t.Fatal(err)
	}
	p := look(t, SVG(g, Options{ByHops: true}))
	corner := func(name string) vec { return p.nodes[name] }
	link := p.nodes["r2-2"].minus(p.nodes["r3-2"]).length()
	far := corner("r0-0").minus(corner("r5-5")).length()
	side := corner("r0-0").minus(corner("r5-0")).length()
	if !(far > 6*link && far < 12*link && side > 4*link && side < far) {
		t.Errorf("a link is %.0f, a side of the grid %.0f, its diagonal %.0f", link, side, far)
	}
}

// Parts of a network that is not connected stand beside one another.
func TestPartsStandApart(t *testing.T) {
	b := topology.NewBuilder("parts", 0)
	for i := range 12 {
		if _, err := b.AddNode(topology.NodeSpec{Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range topology.Node(12) {
		if _, err := b.AddEdge(topology.EdgeSpec{From: i, To: i/4*4 + (i+1)%4,
			Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	p := look(t, SVG(b.Build(), Options{}))
	var boxes []box
	for part := range 3 {
		var at []vec
		for i := range 4 {
			at = append(at, p.nodes[strconv.Itoa(part*4+i)])
		}
		low, high := bounds(at, []topology.Node{0, 1, 2, 3})
		boxes = append(boxes, box{low, high})
	}
	if boxes[0].overlaps(boxes[1]) || boxes[1].overlaps(boxes[2]) || boxes[0].overlaps(boxes[2]) {
		t.Errorf("parts overlap: %v", boxes)
	}
}

// Paths on the same link, in whichever direction, run side by side; parallel links are different
// lines.
func TestSharedLinksShowAllPaths(t *testing.T) {
	b := topology.NewBuilder("pair", 0)
	for i, name := range []string{"a", "b"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name, Known: true,
			Place: topology.Point{Longitude: float64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ends := range [][2]topology.Node{{0, 1}, {1, 0}, {0, 1}, {1, 0}} {
		if _, err := b.AddEdge(topology.EdgeSpec{From: ends[0], To: ends[1],
			Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	p := look(t, SVG(b.Build(), Options{Paths: []Path{
		{Label: "there", Edges: []topology.Edge{0}}, {Label: "also", Edges: []topology.Edge{0}},
		{Label: "back", Edges: []topology.Edge{1}}, {Label: "other", Edges: []topology.Edge{2}},
	}}))
	var middles []float64
	for _, label := range []string{"there", "also", "back", "other"} {
		middles = append(middles, middleOf(t, p.lanes[label][0]))
	}
	slices.Sort(middles)
	for i, y := range middles[1:] {
		if y-middles[i] < styleOf(2).path {
			t.Errorf("two paths cover each other: middles at %v", middles)
		}
	}
}

// middleOf is the height of the middle of "Mx,y Qx,y x,y".
func middleOf(t *testing.T, course string) float64 {
	t.Helper()
	var x [3]float64
	var y [3]float64
	if _, err := fmt.Sscanf(course, "M%f,%f Q%f,%f %f,%f", &x[0], &y[0], &x[1], &y[1], &x[2],
		&y[2]); err != nil {
		t.Fatalf("%s: %v", course, err)
	}
	return y[0]/4 + y[1]/2 + y[2]/4
}

func TestCutBy(t *testing.T) {
	b := box{vec{0, 0}, vec{4, 2}}
	for _, c := range []struct {
		p, q vec
		want bool
	}{
		{vec{-1, 1}, vec{5, 1}, true}, {vec{-1, 3}, vec{5, 3}, false}, {vec{1, 1}, vec{2, 1}, true},
		{vec{-1, 1}, vec{-0.5, 1}, false},
		{vec{-1, 2}, vec{1, 4}, false}, {vec{-1, 0}, vec{1, 2}, true},
		{vec{2, -5}, vec{2, 5}, true}, {vec{5, -5}, vec{5, 5}, false},
	} {
		if got := b.cutBy(c.p, c.q); got != c.want {
			t.Errorf("a line from %v to %v cuts the box: %v", c.p, c.q, got)
		}
	}
}
