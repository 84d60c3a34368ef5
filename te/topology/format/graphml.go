package format

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"sextant/packet/lists"
	"sextant/te/topology"
)

// readGraphML reads GraphML with the attributes of the Internet Topology Zoo (label, Longitude,
// Latitude, LinkSpeedRaw) and those of [writeGraphML].
func readGraphML(s *source) (*topology.Graph, error) {
	r := &graphmlReader{source: s, decoder: s.xmlDecoder(), keys: map[string]graphmlKey{}}
	for {
		line, _ := r.decoder.InputPos()
		token, err := r.decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return r.end()
		case err != nil:
			return nil, s.xmlFault(err, line)
		}
		if start, ok := token.(xml.StartElement); ok {
			line, _ = r.decoder.InputPos()
			if err := r.element(start, line); err != nil {
				return nil, err
			}
		}
	}
}

type graphmlReader struct {
	*source
	decoder  *xml.Decoder
	graphs   int
	directed bool
	keys     map[string]graphmlKey // by their ids
	graph    looseGraph
}

// graphmlElement is a node or an edge.
type graphmlElement struct {
	ID       string        `xml:"id,attr"`
	Source   string        `xml:"source,attr"`
	Target   string        `xml:"target,attr"`
	Directed string        `xml:"directed,attr"`
	Data     []graphmlData `xml:"data"`
	Nested   []struct{}    `xml:"graph"`
}

type graphmlData struct {
	Key  string `xml:"key,attr"`
	Text string `xml:",chardata"`
}

type graphmlKey struct {
	ID      string  `xml:"id,attr"`
	For     string  `xml:"for,attr"`
	Name    string  `xml:"attr.name,attr"`
	Default *string `xml:"default"`
}

func (r *graphmlReader) element(start xml.StartElement, line int) error {
	switch start.Name.Local {
	case "graphml":
	case "graph":
		r.graphs++
		if r.graphs > 1 {
			return r.errorf(line, "a second graph starts here; keep one in a file")
		}
		r.directed = attribute(start, "edgedefault") == "directed"
	case "node", "edge":
		var e graphmlElement
		if err := r.decoder.DecodeElement(&e, &start); err != nil {
			return r.xmlFault(err, line)
		}
		if len(e.Nested) > 0 {
			return r.errorf(line, "node %q holds a graph of its own; flatten it", e.ID)
		}
		r.add(start.Name.Local, e, line)
	case "key":
		var key graphmlKey
		if err := r.decoder.DecodeElement(&key, &start); err != nil {
			return r.xmlFault(err, line)
		}
		r.keys[key.ID] = key
	case "data": // of the graph
		var d graphmlData
		if err := r.decoder.DecodeElement(&d, &start); err != nil {
			return r.xmlFault(err, line)
		}
		switch texts := r.texts("graph", []graphmlData{d}); {
		case texts["Network"] != "":
			r.graph.name = texts["Network"]
		case texts["delayUnit"] != "":
			r.graph.delayUnit = texts["delayUnit"]
		}
	case "desc":
		return r.skip(line)
	default:
		return r.errorf(line, "element <%s> has no meaning in a topology; write nodes and edges",
			start.Name.Local)
	}
	return nil
}

func (r *graphmlReader) skip(line int) error {
	if err := r.decoder.Skip(); err != nil {
		return r.xmlFault(err, line)
	}
	return nil
}

func (r *graphmlReader) add(kind string, e graphmlElement, line int) {
	if kind == "node" {
		r.graph.nodes = append(r.graph.nodes, looseNode{line, e.ID, r.texts(kind, e.Data)})
		return
	}
	both := !r.directed
	if e.Directed != "" {
		both = e.Directed == "false"
	}
	r.graph.edges = append(r.graph.edges, looseEdge{line, e.Source, e.Target, both,
		r.texts(kind, e.Data)})
}

// texts gives data the names that their keys were declared with, and adds what the declarations say
// of all.
func (r *graphmlReader) texts(kind string, data []graphmlData) map[string]string {
	texts := map[string]string{}
	for _, key := range r.keys {
		if key.Default != nil && key.For == kind {
			texts[key.Name] = strings.TrimSpace(*key.Default)
		}
	}
	for _, d := range data {
		name := cmp.Or(r.keys[d.Key].Name, d.Key)
		texts[name] = strings.TrimSpace(d.Text)
	}
	return texts
}

func (r *graphmlReader) end() (*topology.Graph, error) {
	if r.graphs == 0 {
		return nil, r.errorf(1, "there is no <graph>; write one inside <graphml>")
	}
	return r.build(r.graph)
}

func attribute(start xml.StartElement, name string) string {
	for _, a := range start.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// xmlDecoder reads UTF-8 and ISO-8859-1, in which SNDlib is written.
func (s *source) xmlDecoder() *xml.Decoder {
	d := xml.NewDecoder(bytes.NewReader(s.Text))
	d.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		switch strings.ToLower(label) {
		case "us-ascii", "ascii":
			return input, nil
		case "iso-8859-1", "latin1":
			text, err := io.ReadAll(input)
			if err != nil || utf8.Valid(text) { // many such files are UTF-8 in truth
				return bytes.NewReader(text), err
			}
			runes := lists.Map(text, func(c byte) rune { return rune(c) })
			return strings.NewReader(string(runes)), nil
		}
		return nil, fmt.Errorf("encoding %q is not known; convert the file to UTF-8", label)
	}
	return d
}

func (s *source) xmlFault(err error, line int) error {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return s.errorf(syntax.Line, "not XML: %s; check that each element is closed", syntax.Msg)
	}
	return s.errorf(line, "not XML: %w", err)
}

// graphmlKeys are the attributes that are written.
var graphmlKeys = []struct{ domain, name, kind string }{
	{"graph", "Network", "string"}, {"graph", "delayUnit", "string"},
	{"node", "label", "string"}, {"node", "Longitude", "double"}, {"node", "Latitude", "double"},
	{"node", "sid", "string"},
	{"edge", "name", "string"}, {"edge", "weight", "long"}, {"edge", "delay", "long"},
	{"edge", "capacityKbps", "long"},
	{"edge", "srlgs", "string"}, {"edge", "sid", "string"},
}

// writeGraphML writes each directed edge by itself.
func writeGraphML(g *topology.Graph) ([]byte, error) {
	var w graphmlWriter
	w.WriteString(xml.Header + `<graphml xmlns="http://graphml.graphdrawing.org/xmlns">` + "\n")
	for _, k := range graphmlKeys {
		fmt.Fprintf(&w, "  <key id=%q for=%q attr.name=%q attr.type=%q/>\n", k.domain+"-"+k.name,
			k.domain, k.name, k.kind)
	}
	w.WriteString("  <graph edgedefault=\"directed\">\n")
	w.data("    ", "graph-Network", xmlWord(g.Name()))
	w.data("    ", "graph-delayUnit", DelayUnitName(g.DelayUnit()))
	names := distinct(g, xmlWord)
	for v := range g.Nodes() {
		n := g.Node(topology.Node(v))
		fmt.Fprintf(&w, "    <node id=\"n%d\">\n", v)
		w.data("      ", "node-label", names[v])
		if n.Known {
			w.data("      ", "node-Longitude", decimal(n.Place.Longitude))
			w.data("      ", "node-Latitude", decimal(n.Place.Latitude))
		}
		if n.SID.IsValid() {
			w.data("      ", "node-sid", n.SID.String())
		}
		w.WriteString("    </node>\n")
	}
	for i := range g.Edges() {
		w.edge(g.Edge(topology.Edge(i)))
	}
	w.WriteString("  </graph>\n</graphml>\n")
	return w.Bytes(), nil
}

type graphmlWriter struct{ bytes.Buffer }

func (w *graphmlWriter) edge(e topology.EdgeSpec) {
	fmt.Fprintf(w, "    <edge source=\"n%d\" target=\"n%d\">\n", e.From, e.To)
	w.data("      ", "edge-name", xmlWord(e.Name))
	w.data("      ", "edge-weight", strconv.FormatUint(uint64(e.Weight), 10))
	w.data("      ", "edge-delay", strconv.FormatInt(e.Delay, 10))
	if e.CapacityKbps > 0 {
		w.data("      ", "edge-capacityKbps", strconv.FormatInt(e.CapacityKbps, 10))
	}
	w.data("      ", "edge-srlgs", joinGroups(e.SRLGs))
	if e.SID.IsValid() {
		w.data("      ", "edge-sid", e.SID.String())
	}
	w.WriteString("    </edge>\n")
}

// data writes what is not empty.
func (w *graphmlWriter) data(indent, key, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(w, "%s<data key=%q>%s</data>\n", indent, key, escapeXML(text))
}

func escapeXML(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes all
	return out.String()
}

// xmlWord replaces what XML can't hold, and blanks that a reader trims.
func xmlWord(name string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0xfffe && r <= 0xffff {
			return '_'
		}
		return r
	}, name))
}
