package format

import (
	"bytes"
	"fmt"
	"strconv"

	"sextant/te/topology"
)

// readRepetita reads the .graph files of REPETITA: "NODES n", a header, n lines "label x y", "EDGES
// m", a header and m lines "label src dest weight bw delay". Nodes are meant by the number of their
// line, from 0.
func readRepetita(s *source) (*topology.Graph, error) {
	b := s.builder(s.graphName(), s.delayUnit)
	rest, err := s.section(s.lines(), "NODES", 3, "label x y", func(l line) error {
		place, err := point(l.words[1], l.words[2])
		if err != nil {
			return s.errorf(l.number, "%w", err)
		}
		_, err = b.node(l.number, topology.NodeSpec{Name: l.words[0], Place: place,
			Known: place != topology.Point{}})
		return err
	})
	if err != nil {
		return nil, err
	}
	rest, err = s.section(rest, "EDGES", 6, "label src dest weight bw delay",
		func(l line) error { return b.repetitaEdge(l) })
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, s.errorf(rest[0].number,
			"a line after the last edge; count it in EDGES, or remove it")
	}
	return b.Build(), nil
}

// section reads "KEYWORD n", the header that must follow, and n lines of so many words. It returns
// the lines behind.
func (s *source) section(lines []line, keyword string, words int, header string,
	each func(line) error) ([]line, error) {
	if len(lines) == 0 || lines[0].words[0] != keyword || len(lines[0].words) != 2 {
		return nil, s.errorf(s.numberOf(lines), "expected %q and a number; begin the section so",
			keyword)
	}
	count, err := whole("the number of "+keyword, lines[0].words[1], 0, 1<<31-1)
	if err != nil {
		return nil, s.errorf(lines[0].number, "%w", err)
	}
	at := lines[0].number
	lines = lines[1:]
	if len(lines) == 0 || lines[0].words[0] != "label" {
		return nil, s.errorf(at, "no header after %s; write %q on the next line", keyword, header)
	}
	lines = lines[1:]
	if int64(len(lines)) < count {
		return nil, s.errorf(at, "%s says %d, but only %d lines follow; correct the number",
			keyword, count, len(lines))
	}
	for _, l := range lines[:count] {
		if len(l.words) != words {
			return nil, s.errorf(l.number, "%d words where %d belong; write %q, names without "+
				"blanks", len(l.words), words, header)
		}
		if err := each(l); err != nil {
			return nil, err
		}
	}
	return lines[count:], nil
}

func (s *source) numberOf(lines []line) int {
	if len(lines) == 0 {
		return s.lineAt(int64(len(s.Text)))
	}
	return lines[0].number
}

func (b builder) repetitaEdge(l line) error {
	e := topology.EdgeSpec{Name: l.words[0]}
	var err error
	for i, end := range []*topology.Node{&e.From, &e.To} {
		n, wrong := whole("node", l.words[1+i], 0, 1<<31-1)
		if wrong != nil {
			return b.s.errorf(l.number, "%w; nodes are numbered by line from 0", wrong)
		}
		*end = topology.Node(n)
	}
	if e.Weight, err = parseWeight(l.words[3]); err != nil {
		return b.s.errorf(l.number, "%w", err)
	}
	if e.CapacityKbps, err = parseKbps(l.words[4]); err != nil {
		return b.s.errorf(l.number, "%w", err)
	}
	if e.Delay, err = parseDelay(l.words[5]); err != nil {
		return b.s.errorf(l.number, "%w", err)
	}
	return b.edge(l.number, e)
}

func writeRepetita(g *topology.Graph) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "NODES %d\nlabel x y\n", g.Nodes())
	names := wordNames(g)
	for v := range g.Nodes() {
		p := g.Node(topology.Node(v)).Place // 0 0 if unknown
		fmt.Fprintf(&out, "%s %s %s\n", names[v], decimal(p.Longitude), decimal(p.Latitude))
	}
	fmt.Fprintf(&out, "\nEDGES %d\nlabel src dest weight bw delay\n", g.Edges())
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		name := word(e.Name)
		if name == "" {
			name = "edge_" + strconv.Itoa(i)
		}
		fmt.Fprintf(&out, "%s %d %d %d %d %d\n", name, e.From, e.To, e.Weight, e.CapacityKbps,
			e.Delay)
	}
	return out.Bytes(), nil
}

// Demand is traffic that wants to go from one node to another.
type Demand struct {
	Name     string
	From, To topology.Node
	Kbps     int64
}

// ReadDemands reads a .demands file of REPETITA, whose nodes are those of g: "DEMANDS k", a header,
// k lines "label src dest bw".
func ReadDemands(f File, g *topology.Graph) ([]Demand, error) {
	s := newSource(f, 0)
	if err := s.isText(Repetita); err != nil {
		return nil, err
	}
	var demands []Demand
	rest, err := s.section(s.lines(), "DEMANDS", 4, "label src dest bw", func(l line) error {
		d := Demand{Name: l.words[0]}
		for i, end := range []*topology.Node{&d.From, &d.To} {
			n, err := whole("node", l.words[1+i], 0, int64(g.Nodes())-1)
			if err != nil {
				return s.errorf(l.number, "%w, the nodes of %s", err, g.Name())
			}
			*end = topology.Node(n)
		}
		var err error
		if d.Kbps, err = parseKbps(l.words[3]); err != nil {
			return s.errorf(l.number, "%w", err)
		}
		demands = append(demands, d)
		return nil
	})
	if err == nil && len(rest) > 0 {
		err = s.errorf(rest[0].number,
			"a line after the last demand; count it in DEMANDS, or remove it")
	}
	return demands, err
}
