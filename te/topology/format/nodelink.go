package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"sextant/te/topology"
)

// readNodeLink reads the JSON of networkx.node_link_data, with its edges under "links" (networkx
// before 3.4) or "edges". Nodes may have "pos": [x, y] and edges "dist" in km, as in the topohub
// collection.
func readNodeLink(s *source) (*topology.Graph, error) {
	r := &nodeLinkReader{source: s, decoder: json.NewDecoder(bytes.NewReader(s.Text))}
	if err := r.document(); err != nil {
		return nil, err
	}
	for _, kind := range [][]looseEdge{r.links, r.edges} {
		for _, e := range kind {
			e.both = !r.directed
			r.graph.edges = append(r.graph.edges, e)
		}
	}
	switch {
	case r.links != nil && r.edges != nil:
		return nil, s.errorf(1, `both "links" and "edges" are there; keep one of them`)
	case r.graph.nodes == nil:
		return nil,
			s.errorf(1,
				`there are no "nodes"; write {"nodes": [{"id": ...}], "edges": [{"source": ..., "target": ...}]}`)
	}
	return s.build(r.graph)
}

type nodeLinkReader struct {
	*source
	decoder      *json.Decoder
	directed     bool
	graph        looseGraph
	links, edges []looseEdge // nil if the key is not there
}

func (r *nodeLinkReader) document() error {
	if token, err := r.decoder.Token(); err != nil || token != json.Delim('{') {
		return r.fault(errors.Join(err, errors.New("an object belongs here")))
	}
	for r.decoder.More() {
		key, err := r.decoder.Token()
		if err != nil {
			return r.fault(err)
		}
		if err := r.member(key.(string)); err != nil { // keys of objects are strings
			return err
		}
	}
	if _, err := r.decoder.Token(); err != nil {
		return r.fault(err)
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		return r.errorf(r.line(), "text after the end of the graph; keep one object in a file")
	}
	return nil
}

func (r *nodeLinkReader) member(key string) error {
	switch key {
	case "directed":
		return r.value(&r.directed)
	case "graph":
		var graph map[string]json.RawMessage
		if err := r.value(&graph); err != nil {
			return err
		}
		r.graph.name, r.graph.delayUnit = text(graph["name"]), text(graph["delayUnit"])
		return nil
	case "nodes":
		r.graph.nodes = []looseNode{}
		return r.each(func(line int, object map[string]json.RawMessage) error {
			r.graph.nodes = append(r.graph.nodes,
				looseNode{line, text(object["id"]), nodeTexts(object)})
			return nil
		})
	case "links":
		return r.edgesInto(&r.links)
	case "edges":
		return r.edgesInto(&r.edges)
	}
	var other json.RawMessage
	return r.value(&other)
}

func (r *nodeLinkReader) edgesInto(edges *[]looseEdge) error {
	*edges = []looseEdge{}
	return r.each(func(line int, object map[string]json.RawMessage) error {
		for _, end := range []string{"source", "target"} {
			if object[end] == nil {
				return r.errorf(line, "an edge has no %q; write the id of a node", end)
			}
		}
		*edges = append(*edges, looseEdge{line: line, from: text(object["source"]),
			to: text(object["target"]), texts: texts(object)})
		return nil
	})
}

// each reads a list of objects.
func (r *nodeLinkReader) each(visit func(line int, object map[string]json.RawMessage) error) error {
	if token, err := r.decoder.Token(); err != nil || token != json.Delim('[') {
		return r.fault(errors.Join(err, errors.New("a list belongs here")))
	}
	for r.decoder.More() {
		line := r.line()
		var object map[string]json.RawMessage
		if err := r.value(&object); err != nil {
			return err
		}
		if err := visit(line, object); err != nil {
			return err
		}
	}
	if _, err := r.decoder.Token(); err != nil {
		return r.fault(err)
	}
	return nil
}

func (r *nodeLinkReader) value(into any) error {
	if err := r.decoder.Decode(into); err != nil {
		return r.fault(err)
	}
	return nil
}

// line is where the next value starts.
func (r *nodeLinkReader) line() int {
	at := r.decoder.InputOffset()
	rest := r.Text[at:]
	return r.lineAt(at + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n,:"))))
}

func (r *nodeLinkReader) fault(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	line := r.lineAt(r.decoder.InputOffset())
	switch {
	case errors.As(err, &syntax):
		line = r.lineAt(syntax.Offset)
	case errors.As(err, &kind) && kind.Type.Kind() == reflect.Bool:
		err = errors.New("true or false belongs here")
	case errors.As(err, &kind):
		err = errors.New("an object belongs here")
	}
	return r.errorf(line, "not the JSON of a graph: %w; write what networkx.node_link_data gives",
		err)
}

// nodeTexts splits "pos" into coordinates.
func nodeTexts(object map[string]json.RawMessage) map[string]string {
	all := texts(object)
	var pos []json.RawMessage
	if json.Unmarshal(object["pos"], &pos) == nil && len(pos) == 2 {
		all["x"], all["y"] = text(pos[0]), text(pos[1])
	}
	return all
}

func texts(object map[string]json.RawMessage) map[string]string {
	all := map[string]string{}
	for key, value := range object {
		all[key] = text(value)
	}
	return all
}

// text is a value as text: a string without its quotes, a list of plain values separated by commas,
// nothing for null.
func text(value json.RawMessage) string {
	var word string
	var list []json.RawMessage
	switch {
	case len(value) == 0, json.Unmarshal(value, &word) == nil:
		return strings.TrimSpace(word)
	case json.Unmarshal(value, &list) == nil:
		var words []string
		for _, v := range list {
			words = append(words, string(bytes.Trim(v, `" `)))
		}
		return strings.Join(words, ",")
	}
	return string(value)
}

// nodeLinkDocument is the file as it is written. Its ids are the names of the nodes.
type nodeLinkDocument struct {
	Directed   bool           `json:"directed"`
	Multigraph bool           `json:"multigraph"`
	Graph      nodeLinkGraph  `json:"graph"`
	Nodes      []nodeLinkNode `json:"nodes"`
	Edges      []nodeLinkEdge `json:"edges"`
}

type nodeLinkGraph struct {
	Name      string `json:"name"`
	DelayUnit string `json:"delayUnit"`
}

type nodeLinkNode struct {
	ID        string   `json:"id"`
	Longitude *float64 `json:"longitude,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	SID       string   `json:"sid,omitempty"`
}

type nodeLinkEdge struct {
	Source       string   `json:"source"`
	Target       string   `json:"target"`
	Key          int      `json:"key"` // distinguishes parallel edges
	Name         string   `json:"name,omitempty"`
	Weight       uint32   `json:"weight"`
	Delay        int64    `json:"delay"`
	CapacityKbps int64    `json:"capacityKbps,omitempty"`
	SRLGs        []uint32 `json:"srlgs,omitempty"`
	SID          string   `json:"sid,omitempty"`
}

func writeNodeLink(g *topology.Graph) ([]byte, error) {
	doc := nodeLinkDocument{
		Directed: true, Multigraph: true,
		Graph: nodeLinkGraph{g.Name(), DelayUnitName(g.DelayUnit())},
		Nodes: []nodeLinkNode{}, Edges: []nodeLinkEdge{},
	}
	names := distinct(g, strings.TrimSpace)
	for v := range g.Nodes() {
		n := g.Node(topology.Node(v))
		node := nodeLinkNode{ID: names[v]}
		if n.Known {
			node.Longitude, node.Latitude = &n.Place.Longitude, &n.Place.Latitude
		}
		if n.SID.IsValid() {
			node.SID = n.SID.String()
		}
		doc.Nodes = append(doc.Nodes, node)
	}
	keys := map[[2]topology.Node]int{}
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		ends := [2]topology.Node{e.From, e.To}
		edge := nodeLinkEdge{
			Source: names[e.From], Target: names[e.To], Key: keys[ends],
			Name:   strings.TrimSpace(e.Name),
			Weight: e.Weight, Delay: e.Delay, CapacityKbps: e.CapacityKbps, SRLGs: e.SRLGs,
		}
		if e.SID.IsValid() {
			edge.SID = e.SID.String()
		}
		keys[ends]++
		doc.Edges = append(doc.Edges, edge)
	}
	out, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("make JSON: %w", err)
	}
	return append(out, '\n'), nil
}
