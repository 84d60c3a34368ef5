package format

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"sextant/te/topology"
)

// looseNode and looseEdge are what XML and JSON say: attributes by name, all of them optional.
type looseNode struct {
	line  int
	id    string
	texts map[string]string
}

type looseEdge struct {
	line     int
	from, to string // ids
	both     bool   // a link in both directions
	texts    map[string]string
}

// looseGraph is a graph of GraphML or node-link JSON before its attributes are understood.
type looseGraph struct {
	name      string
	delayUnit string
	nodes     []looseNode
	edges     []looseEdge
}

// build makes a graph of what was read.
//
// A node is called by its attribute "name" or "label", with its id behind if others have the same,
// or else by its id. The attributes of an edge are weight, delay, capacityKbps, LinkSpeedRaw
// (bit/s), name, srlgs and sid. Where no edge has a delay, it follows from the length of the link
// (attribute "dist" in km, or the coordinates) at 5 microseconds per km.
func (s *source) build(l looseGraph) (*topology.Graph, error) {
	unit, err := ParseDelayUnit(l.delayUnit)
	if err != nil {
		return nil, s.errorf(1, "%w", err)
	}
	unit = cmp.Or(unit, s.delayUnit)
	byLength := l.saysNoDelay()
	if byLength {
		unit = time.Microsecond
	}
	if l.name == "" {
		l.name = s.graphName()
	}
	b := s.builder(l.name, unit)
	ids, err := b.looseNodes(l.nodes)
	if err != nil {
		return nil, err
	}
	for _, from := range l.edges {
		e, err := from.spec(ids)
		if err == nil && byLength {
			e.Delay, err = from.delayByLength(l.nodes[e.From], l.nodes[e.To])
		}
		if err != nil {
			return nil, s.errorf(from.line, "%w", err)
		}
		if err := b.link(from.line, e, from.both); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

func (l looseGraph) saysNoDelay() bool {
	for _, e := range l.edges {
		if e.texts["delay"] != "" {
			return false
		}
	}
	return l.delayUnit == ""
}

func (b builder) looseNodes(nodes []looseNode) (map[string]topology.Node, error) {
	count := map[string]int{}
	for _, n := range nodes {
		count[n.name()]++
	}
	ids := map[string]topology.Node{}
	for _, n := range nodes {
		if _, taken := ids[n.id]; taken {
			return nil, b.s.errorf(n.line, "node %q exists twice; ids must differ", n.id)
		}
		spec, err := n.spec()
		if err != nil {
			return nil, b.s.errorf(n.line, "%w", err)
		}
		if count[spec.Name] > 1 {
			spec.Name += "_" + n.id
		}
		v, err := b.node(n.line, spec)
		if err != nil {
			return nil, err
		}
		ids[n.id] = v
	}
	return ids, nil
}

func (n looseNode) name() string {
	for _, key := range []string{"name", "label"} {
		if n.texts[key] != "" {
			return n.texts[key]
		}
	}
	return n.id
}

func (n looseNode) spec() (topology.NodeSpec, error) {
	spec := topology.NodeSpec{Name: n.name()}
	var err error
	if spec.Place, spec.Known, err = n.place(); err != nil {
		return spec, err
	}
	if text := n.texts["sid"]; text != "" {
		spec.SID, err = parseLocator(text)
	}
	return spec, err
}

func (n looseNode) place() (p topology.Point, known bool, err error) {
	for _, keys := range [][2]string{{"Longitude", "Latitude"}, {"longitude", "latitude"},
		{"x", "y"}} {
		if x, y := n.texts[keys[0]], n.texts[keys[1]]; x != "" && y != "" {
			p, err = point(x, y)
			return p, err == nil, err
		}
	}
	return p, false, nil
}

func (from looseEdge) spec(ids map[string]topology.Node) (e topology.EdgeSpec, err error) {
	for _, end := range []struct {
		id   string
		node *topology.Node
	}{{from.from, &e.From}, {from.to, &e.To}} {
		v, ok := ids[end.id]
		if !ok {
			return e, fmt.Errorf("there is no node %q; list it among the nodes", end.id)
		}
		*end.node = v
	}
	e.Weight, e.Name = 1, from.texts["name"]
	for _, a := range []struct {
		key  string
		read func(string) error
	}{
		{"weight", func(text string) (err error) { e.Weight, err = parseWeight(text); return err }},
		{"delay", func(text string) (err error) { e.Delay, err = parseDelay(text); return err }},
		{"LinkSpeedRaw", func(text string) (err error) {
			e.CapacityKbps, err = kbpsFrom(text, 1)
			return err
		}},
		{"capacityKbps", func(text string) (err error) {
			e.CapacityKbps, err = parseKbps(text)
			return err
		}},
		{"srlgs", func(text string) (err error) {
			e.SRLGs, err = parseGroups(strings.Split(text, ","))
			return err
		}},
		{"sid", func(text string) (err error) { e.SID, err = parseSID(text); return err }},
	} {
		if text := from.texts[a.key]; text != "" {
			if err := a.read(text); err != nil {
				return e, err
			}
		}
	}
	return e, nil
}

// delayByLength is the delay of a link in microseconds by its length, and 0 if that is not known
// either.
func (from looseEdge) delayByLength(a, b looseNode) (int64, error) {
	if text := from.texts["dist"]; text != "" {
		km, err := coordinate(text)
		if err != nil || km < 0 {
			return 0, fmt.Errorf("length %q is no number of km", text)
		}
		return fibreDelay(km), nil
	}
	p, knownA, errA := a.place()
	q, knownB, errB := b.place()
	if errA != nil || errB != nil || !knownA || !knownB || !onEarth(p) || !onEarth(q) {
		return 0, nil // the nodes' own faults were found before
	}
	return fibreDelay(greatCircle(p, q)), nil
}

const (
	earthRadiusKm     = 6371.0
	fibreMicrosPerKm  = 5.0 // light in glass, 200000 km/s
	longestDistanceKm = 1e9
)

// fibreDelay is the time in microseconds that light takes through so many km of fibre, at least 1.
func fibreDelay(km float64) int64 {
	return max(1, int64(math.Round(min(km, longestDistanceKm)*fibreMicrosPerKm)))
}

func onEarth(p topology.Point) bool {
	return math.Abs(p.Longitude) <= 180 && math.Abs(p.Latitude) <= 90
}

// greatCircle is the distance of two places on the earth in km, by the haversine formula.
func greatCircle(p, q topology.Point) float64 {
	const degree = math.Pi / 180
	half := func(a, b float64) float64 { s := math.Sin((a - b) * degree / 2); return s * s }
	h := half(p.Latitude, q.Latitude) +
		math.Cos(p.Latitude*degree)*math.Cos(q.Latitude*degree)*half(p.Longitude, q.Longitude)
	return 2 * earthRadiusKm * math.Asin(math.Sqrt(min(1, h)))
}
