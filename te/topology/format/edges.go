package format

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"sextant/te/topology"
)

// Lines of an edge list that say more than an edge begin so.
const directive = "#!"

// edgeShape is what a line of an edge list looks like.
const edgeShape = `"A -- B [WEIGHT [DELAY [CAPACITY]]]", or -> for one direction`

// readEdges reads an edge list. A line is "A B", "A -- B" (a link in both directions) or "A -> B"
// (one direction), then optionally weight, delay and capacity, and name=, srlg= and sid=. "#"
// begins a comment, except "#! delay UNIT" and "#! node NAME [X Y] [sid=PREFIX]". Nodes are
// numbered as they appear.
func readEdges(s *source) (*topology.Graph, error) {
	lines := s.lines()
	unit, err := s.unitOfEdges(lines)
	if err != nil {
		return nil, err
	}
	b := s.builder(s.graphName(), unit)
	for _, l := range lines {
		switch {
		case len(l.words) > 1 && l.words[0] == directive && l.words[1] == "node":
			err = b.nodeLine(l)
		case strings.HasPrefix(l.words[0], "#"): // a comment, or the unit
		default:
			err = b.edgeLine(l)
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

// unitOfEdges looks for "#! delay UNIT", and refuses directives that are not known.
func (s *source) unitOfEdges(lines []line) (unit time.Duration, err error) {
	unit = s.delayUnit
	for _, l := range lines {
		switch {
		case l.words[0] != directive, len(l.words) > 2 && l.words[1] == "node":
		case len(l.words) == 3 && l.words[1] == "delay":
			if unit, err = ParseDelayUnit(l.words[2]); err != nil {
				return 0, s.errorf(l.number, "%w", err)
			}
		default:
			return 0, s.errorf(l.number,
				`unknown line %q; write "#! delay UNIT" or "#! node NAME [X Y] [sid=PREFIX]"`,
				strings.Join(l.words, " "))
		}
	}
	return unit, nil
}

// nodeLine adds the node of "#! node NAME [X Y] [sid=PREFIX]".
func (b builder) nodeLine(l line) error {
	n := topology.NodeSpec{Name: l.words[2]}
	rest := l.words[3:]
	var err error
	if len(rest) >= 2 {
		if n.Place, err = point(rest[0], rest[1]); err != nil {
			return b.s.errorf(l.number, "%w", err)
		}
		n.Known, rest = true, rest[2:]
	}
	if len(rest) == 1 && strings.HasPrefix(rest[0], "sid=") {
		if n.SID, err = parseLocator(rest[0][len("sid="):]); err != nil {
			return b.s.errorf(l.number, "%w", err)
		}
		rest = nil
	}
	if len(rest) > 0 {
		return b.s.errorf(l.number, `can't read %q; write "#! node NAME [X Y] [sid=PREFIX]"`,
			rest[0])
	}
	_, err = b.node(l.number, n)
	return err
}

func (b builder) edgeLine(l line) error {
	words, both := l.words, true
	if i := slices.IndexFunc(words,
		func(w string) bool { return strings.HasPrefix(w, "#") }); i > 0 {
		words = words[:i]
	}
	if len(words) > 1 && (words[1] == "--" || words[1] == "->") {
		both = words[1] == "--"
		words = append([]string{words[0]}, words[2:]...)
	}
	if len(words) < 2 {
		return b.s.errorf(l.number, "an edge has two ends; write %s", edgeShape)
	}
	e := topology.EdgeSpec{Weight: 1}
	for i, end := range []*topology.Node{&e.From, &e.To} {
		v, err := b.nodeNamed(l.number, words[i])
		if err != nil {
			return err
		}
		*end = v
	}
	if err := edgeAttributes(&e, words[2:]); err != nil {
		return b.s.errorf(l.number, "%w", err)
	}
	return b.link(l.number, e, both)
}

// edgeAttributes reads what follows the ends of an edge: up to three numbers, then KEY=VALUE.
func edgeAttributes(e *topology.EdgeSpec, words []string) (err error) {
	numbers := []func(string) error{
		func(text string) (err error) { e.Weight, err = parseWeight(text); return err },
		func(text string) (err error) { e.Delay, err = parseDelay(text); return err },
		func(text string) (err error) { e.CapacityKbps, err = parseCapacity(text); return err },
	}
	for _, text := range words {
		key, value, named := strings.Cut(text, "=")
		switch {
		case named && key == "name":
			e.Name = value
		case named && key == "srlg":
			e.SRLGs, err = parseGroups(strings.Split(value, ","))
		case named && key == "sid":
			e.SID, err = parseSID(value)
		case named:
			err = fmt.Errorf("unknown attribute %q; there are name=, srlg= and sid=", key)
		case len(numbers) == 0:
			err = fmt.Errorf("unexpected word %q; write %s", text, edgeShape)
		default:
			err, numbers = numbers[0](text), numbers[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseCapacity reads kbit/s, or bit/s with the prefix k, M, G or T: "10G".
func parseCapacity(text string) (int64, error) {
	for i, prefix := range []string{"k", "M", "G", "T"} {
		if number, ok := strings.CutSuffix(text, prefix); ok {
			return kbpsFrom(number, math.Pow(1000, float64(i+1)))
		}
	}
	return parseKbps(text)
}

// nodeNamed finds a node, or adds it.
func (b builder) nodeNamed(line int, name string) (topology.Node, error) {
	if v, ok := b.Lookup(name); ok {
		return v, nil
	}
	return b.node(line, topology.NodeSpec{Name: name})
}

// writeEdges writes each edge as a line of its own, so that reading gives the same numbers.
func writeEdges(g *topology.Graph) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# from -> to weight delay capacity (kbit/s)\n%s delay %s\n", directive,
		DelayUnitName(g.DelayUnit()))
	names := distinct(g, edgeWord)
	for v := range names {
		n := g.Node(topology.Node(v))
		fmt.Fprintf(&out, "%s node %s", directive, names[v])
		if n.Known {
			fmt.Fprintf(&out, " %s %s", decimal(n.Place.Longitude), decimal(n.Place.Latitude))
		}
		if n.SID.IsValid() {
			fmt.Fprintf(&out, " sid=%s", n.SID)
		}
		out.WriteByte('\n')
	}
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		fmt.Fprintf(&out, "%s -> %s %d %d %d", names[e.From], names[e.To], e.Weight, e.Delay,
			e.CapacityKbps)
		if e.Name != "" {
			fmt.Fprintf(&out, " name=%s", word(e.Name))
		}
		if len(e.SRLGs) > 0 {
			fmt.Fprintf(&out, " srlg=%s", joinGroups(e.SRLGs))
		}
		if e.SID.IsValid() {
			fmt.Fprintf(&out, " sid=%s", e.SID)
		}
		out.WriteByte('\n')
	}
	return out.Bytes(), nil
}

// edgeWord keeps a name from looking like a comment.
func edgeWord(name string) string {
	name = word(name)
	if strings.HasPrefix(name, "#") {
		return "_" + name[1:]
	}
	return name
}
