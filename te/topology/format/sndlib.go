package format

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sextant/te/topology"
)

// The parts of a link's line in SNDlib's native format, in words with the parentheses set apart:
// ID ( SOURCE TARGET ) PREINSTALLED COST ROUTING_COST SETUP_COST ( MODULE COST ... )
const (
	sndlibPreinstalled = 5
	sndlibModule       = 10
)

const sndlibHead = "?SNDlib native format; type: network; version: 1.0"

// readSNDlib reads the native text format of SNDlib (sndlib.zib.de). Links have both directions. A
// link's capacity is what is installed, or else its smallest module; the numbers are Mbit/s, as in
// the networks that state a unit. Weights are 1, and delays follow from coordinates that are
// degrees, at 5 microseconds per km.
func readSNDlib(s *source) (*topology.Graph, error) {
	r := &sndlibReader{source: s, builder: s.builder(s.graphName(), time.Microsecond)}
	lines, err := r.content()
	if err != nil {
		return nil, err
	}
	links, err := r.sections(lines)
	if err != nil {
		return nil, err
	}
	return r.finish(links)
}

// sndlibLink is a link before it is known whether the coordinates are degrees.
type sndlibLink struct {
	line             int
	id, source, dest string
	kbps             int64
}

type sndlibReader struct {
	*source
	builder builder
	places  []topology.NodeSpec
}

var setApart = strings.NewReplacer("(", " ( ", ")", " ) ")

// content sets parentheses apart, leaves comments out, and checks the first line.
func (r *sndlibReader) content() ([]line, error) {
	var all []line
	number := 0
	for text := range strings.Lines(string(r.Text)) {
		number++
		text, _, _ = strings.Cut(text, "#")
		text = setApart.Replace(text)
		if words := strings.Fields(text); len(words) > 0 {
			all = append(all, line{number, words})
		}
	}
	if len(all) == 0 || !strings.HasPrefix(strings.Join(all[0].words, " "),
		"?SNDlib native format; type: network") {
		return nil, r.errorf(1, "the file does not begin with %q; give a network of SNDlib's "+
			"native format", sndlibHead)
	}
	return all[1:], nil
}

// sections reads NODES and LINKS, and skips what else there is: META, DEMANDS, ADMISSIBLE_PATHS.
func (r *sndlibReader) sections(lines []line) (links []sndlibLink, err error) {
	section, depth := "", 0
	for _, l := range lines {
		switch {
		case depth == 0 && len(l.words) >= 2 && l.words[1] == "(":
			section = l.words[0]
			depth = parentheses(l.words)
			continue
		case depth == 0:
			return nil, r.errorf(l.number, "%q is outside of all sections; begin one with "+
				"\"NODES (\" or \"LINKS (\"", l.words[0])
		}
		depth += parentheses(l.words)
		if depth < 0 {
			return nil, r.errorf(l.number, `too many ")"; remove one`)
		}
		if depth == 0 {
			continue
		}
		switch section {
		case "NODES":
			err = r.node(l)
		case "LINKS":
			var link sndlibLink
			link, err = r.link(l)
			links = append(links, link)
		}
		if err != nil {
			return nil, err
		}
	}
	if depth > 0 {
		return nil, r.errorf(r.lineAt(int64(len(r.Text))),
			`section %s has no end; write ")" on a line of its own`, section)
	}
	return links, nil
}

func parentheses(words []string) int {
	depth := 0
	for _, w := range words {
		switch w {
		case "(":
			depth++
		case ")":
			depth--
		}
	}
	return depth
}

// node reads "ID" or "ID ( X Y )".
func (r *sndlibReader) node(l line) error {
	n := topology.NodeSpec{Name: l.words[0]}
	if len(l.words) > 1 {
		if len(l.words) != 5 || l.words[1] != "(" || l.words[4] != ")" {
			return r.errorf(l.number, `can't read node %q; write "ID ( X Y )"`, n.Name)
		}
		var err error
		if n.Place, err = point(l.words[2], l.words[3]); err != nil {
			return r.errorf(l.number, "%w", err)
		}
		n.Known = true
	}
	r.places = append(r.places, n)
	_, err := r.builder.node(l.number, n)
	return err
}

func (r *sndlibReader) link(l line) (sndlibLink, error) {
	if len(l.words) < sndlibPreinstalled || l.words[1] != "(" || l.words[4] != ")" {
		return sndlibLink{}, r.errorf(l.number,
			`can't read link %q; write "ID ( SOURCE TARGET ) INSTALLED COST COST COST ( MODULE COST )"`, l.words[0])
	}
	link := sndlibLink{line: l.number, id: l.words[0], source: l.words[2], dest: l.words[3]}
	for _, at := range []int{sndlibPreinstalled, sndlibModule} {
		if at >= len(l.words) || l.words[at] == ")" || link.kbps > 0 {
			break
		}
		var err error
		if link.kbps, err = sndlibCapacity(l.words[at]); err != nil {
			return link, r.errorf(l.number, "%w", err)
		}
	}
	return link, nil
}

// sndlibCapacity reads Mbit/s.
func sndlibCapacity(text string) (int64, error) {
	if text == "UNLIMITED" {
		return 0, nil
	}
	return kbpsFrom(text, 1e6)
}

// finish adds the links, with delays if all coordinates are degrees.
func (r *sndlibReader) finish(links []sndlibLink) (*topology.Graph, error) {
	return finishSNDlib(r.builder, r.places, links)
}

func finishSNDlib(b builder, nodes []topology.NodeSpec,
	links []sndlibLink) (*topology.Graph, error) {
	geographic := len(nodes) > 0
	for _, n := range nodes {
		geographic = geographic && n.Known && onEarth(n.Place)
	}
	for _, link := range links {
		e := topology.EdgeSpec{Name: link.id, Weight: 1, CapacityKbps: link.kbps}
		for _, end := range []struct {
			name string
			node *topology.Node
		}{{link.source, &e.From}, {link.dest, &e.To}} {
			v, ok := b.Lookup(end.name)
			if !ok {
				return nil, b.s.errorf(link.line, "there is no node %q; list it among the nodes",
					end.name)
			}
			*end.node = v
		}
		if geographic {
			e.Delay = fibreDelay(greatCircle(nodes[e.From].Place, nodes[e.To].Place))
		}
		if err := b.link(link.line, e, true); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

// writeSNDlib writes a network without demands.
func writeSNDlib(g *topology.Graph) ([]byte, error) {
	links, err := bothWays(g)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	names := distinct(g, sndlibWord)
	fmt.Fprintf(&out, "%s\n# network %s\n\nNODES (\n", sndlibHead, word(g.Name()))
	for v := range g.Nodes() {
		fmt.Fprintf(&out, "  %s", names[v])
		if n := g.Node(topology.Node(v)); n.Known {
			fmt.Fprintf(&out, " ( %s %s )", decimal(n.Place.Longitude), decimal(n.Place.Latitude))
		}
		out.WriteByte('\n')
	}
	out.WriteString(")\n\nLINKS (\n")
	for i, e := range links {
		fmt.Fprintf(&out, "  %s ( %s %s ) %s 0.00 0.00 0.00 ( )\n", sndlibID(e.Name, i),
			names[e.From], names[e.To], mbps(e))
	}
	out.WriteString(")\n\nDEMANDS (\n)\n\nADMISSIBLE_PATHS (\n)\n")
	return out.Bytes(), nil
}

// bothWays lists links, for formats whose links have both directions.
func bothWays(g *topology.Graph) ([]topology.EdgeSpec, error) {
	var links []topology.EdgeSpec
	for e, r := range g.Links() {
		spec := g.Edge(e)
		if r == topology.NoEdge {
			return nil, fmt.Errorf("the link from %s to %s has one direction only, which the "+
				"format can't say; choose another format",
				g.Node(spec.From).Name, g.Node(spec.To).Name)
		}
		links = append(links, spec)
	}
	return links, nil
}

func mbps(e topology.EdgeSpec) string { return decimal(float64(e.CapacityKbps) / 1000) }

func sndlibID(name string, i int) string {
	if name = sndlibWord(name); name == "" {
		return "L" + strconv.Itoa(i+1)
	}
	return name
}

// sndlibWord leaves no character that the native format gives a meaning.
func sndlibWord(name string) string {
	return strings.NewReplacer("(", "_", ")", "_", "#", "_").Replace(word(name))
}
