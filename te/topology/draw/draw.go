package draw

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"sort"
	"unicode/utf8"

	"sextant/te/topology"
)

// Path is a set of edges to be drawn over the network, with an entry in the legend. Paths that
// share a link run side by side on it.
type Path struct {
	Label string
	Edges []topology.Edge
	Nodes []topology.Node // marked in the path's colour, for instance where its segments end
}

// Options say what to draw besides the network.
type Options struct {
	Title string // above the network; the graph's name if empty
	Paths []Path
	// EdgeLabel is written beside each link, in the direction of its edge with the lower number.
	// Optional; without it, or where it is empty, a link has no label.
	EdgeLabel func(topology.Edge) string
	// ByHops lays the network out by hops even if the graph knows places.
	ByHops bool
}

// SVG draws a network. Names are written where there is room, those of nodes on paths first; all
// names are in the tooltips. Colours follow the reader's light or dark setting.
func SVG(g *topology.Graph, o Options) []byte {
	s := styleOf(g.Nodes())
	at := places(g, o.ByHops)
	fit(at, s)
	c := &canvas{g: g, o: o, style: s, at: at}
	c.curve()
	c.onPath = c.nodesOfPaths()
	c.group("links", c.links)
	c.group("paths", c.paths)
	c.group("nodes", c.nodes)
	c.group("labels", c.labels)
	c.legend()
	return c.document()
}

// canvas is a drawing while it is made. Links and labels widen its corners.
type canvas struct {
	g     *topology.Graph
	o     Options
	style style
	at    []vec
	// of each edge: how far its middle is off the straight line, to the left of its direction
	bends     []float64
	onPath    map[topology.Node]int // the first path that a node is on
	low, high vec
	body      bytes.Buffer
	taken     grid
}

func (c *canvas) group(class string, draw func()) {
	fmt.Fprintf(&c.body, "<g class=%q>\n", class)
	draw()
	c.body.WriteString("</g>\n")
}

func (c *canvas) see(points ...vec) {
	for _, p := range points {
		c.low = vec{min(c.low.x, p.x), min(c.low.y, p.y)}
		c.high = vec{max(c.high.x, p.x), max(c.high.y, p.y)}
	}
}

// curve bends parallel links apart.
func (c *canvas) curve() {
	c.bends = make([]float64, c.g.Edges())
	parallel := map[[2]topology.Node][]topology.Edge{}
	var order [][2]topology.Node
	for e := range c.g.Links() {
		u, v := c.g.From(e), c.g.To(e)
		key := [2]topology.Node{min(u, v), max(u, v)}
		if parallel[key] == nil {
			order = append(order, key)
		}
		parallel[key] = append(parallel[key], e)
	}
	for _, key := range order {
		edges := parallel[key]
		length := c.at[key[0]].minus(c.at[key[1]]).length()
		step := min(c.style.apart, 0.5*length/float64(len(edges)))
		for i, e := range edges {
			bend := step * (float64(i) - float64(len(edges)-1)/2)
			if c.g.From(e) > c.g.To(e) {
				bend = -bend // the same side of the line, seen from the other end
			}
			c.bends[e] = bend
			if r := c.g.Reverse(e); r != topology.NoEdge {
				c.bends[r] = -bend
			}
		}
	}
}

// course is the way of an edge across the drawing: a curve with one control point (a quadratic
// Bézier curve).
type course struct {
	from, control, to vec
	straight          bool
}

// courseOf is the course of an edge, shifted to the left of its direction by so much.
func (c *canvas) courseOf(e topology.Edge, shift float64) course {
	from, to := c.at[c.g.From(e)], c.at[c.g.To(e)]
	left := to.minus(from).across().direction(vec{}).times(-1) // y grows downwards
	// Straight, and all of it beside the link.
	if c.bends[e] == 0 {
		from, to = from.plus(left.times(shift)), to.plus(left.times(shift))
		return course{from, between(from, to, 0.5), to, true}
	}
	return course{from, between(from, to, 0.5).plus(left.times(2 * (c.bends[e] + shift))), to,
		false}
}

// at is the point after a share of the course, from 0 to 1.
func (k course) at(share float64) vec {
	return between(between(k.from, k.control, share), between(k.control, k.to, share), share)
}

// ahead is the direction there.
func (k course) ahead(share float64) vec {
	return between(k.control, k.to, share).minus(between(k.from, k.control, share)).direction(vec{1,
		0})
}

// String is the course as SVG writes it.
func (k course) String() string {
	if k.straight {
		return fmt.Sprintf("M%s L%s", number(k.from), number(k.to))
	}
	return fmt.Sprintf("M%s Q%s %s", number(k.from), number(k.control), number(k.to))
}

// arrow draws a triangle of a size on a course, after a share of it.
func (c *canvas) arrow(k course, share, size float64, class string) {
	ahead := k.ahead(share)
	tip, side := k.at(share).plus(ahead.times(size/2)), ahead.across().times(size/2)
	back := tip.minus(ahead.times(size))
	fmt.Fprintf(&c.body, "<polygon%s points=\"%s %s %s\"/>\n", class, number(tip),
		number(back.plus(side)), number(back.minus(side)))
}

func number(p vec) string { return fmt.Sprintf("%.1f,%.1f", p.x, p.y) }

// Where arrows are on their course: that of a link of one direction leaves the middle to the link's
// label.
const (
	pathArrow = 0.5
	wayArrow  = 0.7
)

func (c *canvas) links() {
	for e, r := range c.g.Links() {
		k := c.courseOf(e, 0)
		c.see(k.at(0.5))
		fmt.Fprintf(&c.body, "<path d=\"%s\"><title>%s</title></path>\n", k,
			text(c.linkTitle(e, r)))
		if r == topology.NoEdge {
			c.arrow(k, wayArrow, 1.6*c.style.radius, ` class="way"`)
		}
	}
}

// linkTitle is what a link's tooltip says.
func (c *canvas) linkTitle(e, r topology.Edge) string {
	say := func(e topology.Edge) string {
		spec := c.g.Edge(e)
		return fmt.Sprintf("%s → %s: weight %d, delay %d", c.g.Node(spec.From).Name,
			c.g.Node(spec.To).Name, spec.Weight, spec.Delay)
	}
	if r == topology.NoEdge {
		return say(e)
	}
	return say(e) + "\n" + say(r)
}

// paths draws each path beside the others that are on the same link.
func (c *canvas) paths() {
	lanes := map[topology.Edge][]int{} // of a link, named by its lower edge: the paths on it
	for i, p := range c.o.Paths {
		for _, e := range p.Edges {
			l := c.link(e)
			if !slices.Contains(lanes[l], i) {
				lanes[l] = append(lanes[l], i)
			}
		}
	}
	for i, p := range c.o.Paths {
		fmt.Fprintf(&c.body, "<g class=\"p%d\">\n", i%colours)
		for _, e := range p.Edges {
			l := c.link(e)
			lane := float64(slices.Index(lanes[l], i)) - float64(len(lanes[l])-1)/2
			shift := lane * (c.style.path + 1)
			if l != e {
				shift = -shift
			}
			k := c.courseOf(e, shift)
			fmt.Fprintf(&c.body, "<path d=\"%s\"><title>%s</title></path>\n", k, text(p.Label))
			// Arrows show the direction where there is room.
			if size := 2.2 * c.style.path; k.to.minus(k.from).length() > 3*size+2*c.style.radius {
				c.arrow(k, pathArrow, size, "")
			}
		}
		c.body.WriteString("</g>\n")
	}
}

func (c *canvas) link(e topology.Edge) topology.Edge {
	if r := c.g.Reverse(e); r != topology.NoEdge {
		return min(e, r)
	}
	return e
}

func (c *canvas) nodesOfPaths() map[topology.Node]int {
	on := map[topology.Node]int{}
	mark := func(v topology.Node, path int) {
		if _, ok := on[v]; !ok {
			on[v] = path
		}
	}
	for i, p := range c.o.Paths {
		for _, e := range p.Edges {
			mark(c.g.From(e), i)
			mark(c.g.To(e), i)
		}
		for _, v := range p.Nodes {
			mark(v, i)
		}
	}
	return on
}

func (c *canvas) nodes() {
	c.taken = grid{size: 8 * c.style.font, cells: map[[2]int][]box{}}
	marked := map[topology.Node]int{}
	for i, p := range c.o.Paths {
		for _, v := range p.Nodes {
			marked[v] = i
		}
	}
	for v, p := range c.at {
		class, radius := "", c.style.radius
		if _, ok := c.onPath[topology.Node(v)]; ok {
			radius *= 1.3
		}
		if path, ok := marked[topology.Node(v)]; ok {
			class, radius = fmt.Sprintf(" class=\"p%d\"", path%colours), c.style.radius*1.7
		}
		fmt.Fprintf(&c.body, "<circle cx=\"%.1f\" cy=\"%.1f\" "+
			"r=\"%.1f\"%s><title>%s</title></circle>\n", p.x, p.y, radius, class,
			text(c.g.Node(topology.Node(v)).Name))
		corner := vec{radius, radius}
		c.see(p.minus(corner), p.plus(corner))
		c.taken.add(box{p.minus(corner), p.plus(corner)})
	}
}

// labels writes names where nothing is in the way: of nodes on paths first and in any case, then of
// those with many links.
func (c *canvas) labels() {
	order := make([]topology.Node, c.g.Nodes())
	for v := range order {
		order[v] = topology.Node(v)
	}
	rank := func(v topology.Node) int {
		if _, ok := c.onPath[v]; ok {
			return math.MaxInt
		}
		return len(c.g.Out(v)) + len(c.g.In(v))
	}
	sort.SliceStable(order, func(i, j int) bool { return rank(order[i]) > rank(order[j]) })
	for _, v := range order {
		c.nameOf(v)
	}
	if c.o.EdgeLabel == nil {
		return
	}
	for e := range c.g.Links() {
		if label := c.o.EdgeLabel(e); label != "" {
			c.write(label, spot{c.courseOf(e, 0).at(0.5), anchorMiddle}, "edge", false)
		}
	}
}

// spot is where a text goes: its left end, middle or right end at a place.
type spot struct {
	at     vec
	anchor float64 // share of the text that is left of the place
}

const (
	anchorStart  = 0.0
	anchorMiddle = 0.5
	anchorEnd    = 1.0
)

// How far from a node on a path its name may be, in gaps; what is not beside it gets a leader.
var leaders = []float64{1, 3, 5, 8, 12}

// nameOf writes the name of a node where there is room and the fewest of its links run: beside it,
// the right side first, or, for a node on a path, further away.
func (c *canvas) nameOf(v topology.Node) {
	name := c.g.Node(v).Name
	if _, on := c.onPath[v]; !on {
		if s, free := c.freeSpot(v, name, c.style.radius+3); free {
			c.write(name, s, "", true)
		}
		return
	}
	gap := 1.7*c.style.radius + 3
	for _, far := range leaders {
		s, free := c.freeSpot(v, name+"mm", far*gap) // bold letters are wider
		if !free {
			continue
		}
		if far > 1 {
			fmt.Fprintf(&c.body, "<path class=\"leader\" d=\"M%s L%s\"/>\n", number(c.at[v]),
				number(s.at))
		}
		c.write(name, s, "on", true)
		return
	}
	c.write(name, spot{c.at[v].plus(vec{gap, 0}), anchorStart}, "on", true)
}

// freeSpot finds a spot for a text around a node.
func (c *canvas) freeSpot(v topology.Node, label string, gap float64) (best spot, free bool) {
	fewest := math.MaxInt
	for _, s := range c.spots(gap) {
		s.at = s.at.plus(c.at[v])
		b := c.boxOf(label, s)
		if crossed := c.crossed(v, b); crossed < fewest && c.taken.free(b) {
			best, fewest, free = s, crossed, true
		}
	}
	return best, free
}

// spots are the places around a node.
func (c *canvas) spots(gap float64) []spot {
	up, diagonal := gap+c.style.font/2, 0.7*gap
	return []spot{
		{vec{gap, 0}, anchorStart}, {vec{-gap, 0}, anchorEnd}, {vec{0, -up}, anchorMiddle},
		{vec{0, up}, anchorMiddle},
		{vec{diagonal, -0.8 * up}, anchorStart}, {vec{diagonal, 0.8 * up}, anchorStart},
		{vec{-diagonal, -0.8 * up}, anchorEnd}, {vec{-diagonal, 0.8 * up}, anchorEnd},
	}
}

// crossed counts the links of a node that run through a box.
func (c *canvas) crossed(v topology.Node, b box) int {
	count := 0
	for _, e := range c.g.Out(v) {
		if b.cutBy(c.at[v], c.at[c.g.To(e)]) {
			count++
		}
	}
	return count
}

// textWidth is about what a text takes.
func (c *canvas) textWidth(label string) float64 {
	const share = 0.58 // of a character, in sizes of the font
	return share * c.style.font * float64(utf8.RuneCountInString(label))
}

func (c *canvas) boxOf(label string, s spot) box {
	width, half := c.textWidth(label), vec{0, c.style.font * 0.55}
	left := s.at.minus(vec{width * s.anchor, 0})
	return box{left.minus(half), left.plus(vec{width, 0}).plus(half)}
}

// write writes a text, if there is room or if it must.
func (c *canvas) write(label string, s spot, class string, must bool) {
	b := c.boxOf(label, s)
	if !must && !c.taken.free(b) {
		return
	}
	c.taken.add(b)
	c.see(b.low, b.high)
	attributes := map[float64]string{anchorMiddle: ` text-anchor="middle"`,
		anchorEnd: ` text-anchor="end"`}[s.anchor]
	if class != "" {
		attributes += fmt.Sprintf(" class=%q", class)
	}
	fmt.Fprintf(&c.body, "<text x=\"%.1f\" y=\"%.1f\"%s>%s</text>\n", s.at.x,
		s.at.y+c.style.font*0.35, attributes, text(label))
}

func text(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // a buffer takes all
	return out.String()
}
