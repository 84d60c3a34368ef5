package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"sextant/te/topology"
)

// Bounds on foreign bytes: the YAML parser is recursive, and "count" multiplies.
const (
	labBytes  = 4 << 20
	labNested = 1000
	labNodes  = 1 << 16
)

// readLab reads nodes and links of a lab file, with replicated nodes spelled out: a node with
// "count: 3" is NAME1 to NAME3. A link's capacity is its rate. Delays are not read: they are a
// link's quality in the lab, with jitter, rather than its length.
func readLab(s *source) (*topology.Graph, error) {
	root, err := s.yaml()
	if err != nil {
		return nil, err
	}
	r := &labReader{source: s, builder: s.builder(s.graphName(), s.delayUnit),
		anchors: anchors(root), counts: map[string]int{}}
	doc := r.mapping(root)
	if name := r.text(doc["name"]); name != "" {
		r.builder = s.builder(name, s.delayUnit)
	}
	topo := r.mapping(doc["topology"])
	if topo == nil {
		return nil,
			s.errorf(1,
				`there is no "topology" with "nodes" and "links"; write one, as in examples/quickstart.yaml`)
	}
	if err := r.nodes(topo["nodes"]); err != nil {
		return nil, err
	}
	if err := r.links(topo["links"]); err != nil {
		return nil, err
	}
	return r.builder.Build(), nil
}

type labReader struct {
	*source
	builder builder
	anchors map[string]ast.Node
	counts  map[string]int // of replicated nodes
}

// yaml parses the text, and survives the texts at which the library is known to panic.
func (s *source) yaml() (root ast.Node, err error) {
	if len(s.Text) > labBytes || nested(s.Text) > labNested {
		return nil, s.errorf(1, "the file is too large or too deep; a lab file has at most %d "+
			"bytes and %d levels", labBytes, labNested)
	}
	defer func() {
		if cause := recover(); cause != nil {
			err = s.errorf(1, "the text is not YAML (%v); check indentation, brackets and quotes",
				cause)
		}
	}()
	file, err := parser.ParseBytes(s.Text, 0, parser.AllowDuplicateMapKey())
	var located yaml.Error
	switch {
	case errors.As(err, &located):
		return nil, s.errorf(located.GetToken().Position.Line,
			"not YAML: %s; check indentation, brackets and quotes", located.GetMessage())
	case err != nil:
		return nil, s.errorf(1, "not YAML: %w", err)
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		return nil, s.errorf(1, `the file is empty; describe a lab, beginning with "name: NAME"`)
	}
	return file.Docs[0].Body, nil
}

// nested bounds how deep brackets, or block lists in one line, are inside one another.
func nested(text []byte) int {
	deepest, depth := 0, 0
	for line := range bytes.Lines(text) {
		indent := len(line) - len(bytes.TrimLeft(line, " -?"))
		for _, c := range line {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			deepest = max(deepest, depth+indent)
		}
	}
	return deepest
}

type anchorCollector map[string]ast.Node

// Visit notes an anchor, and goes on to what is below.
func (c anchorCollector) Visit(n ast.Node) ast.Visitor {
	if anchor, ok := n.(*ast.AnchorNode); ok {
		c[anchor.Name.GetToken().Value] = anchor.Value
	}
	return c
}

func anchors(root ast.Node) map[string]ast.Node {
	c := anchorCollector{}
	ast.Walk(c, root)
	return c
}

// plain follows anchors and aliases to a value. Nothing is copied, so that aliases don't multiply.
func (r *labReader) plain(n ast.Node) ast.Node {
	const most = 8 // aliases of aliases; one that contains itself ends here
	for range most {
		switch node := n.(type) {
		case *ast.AnchorNode:
			n = node.Value
		case *ast.AliasNode:
			n = r.anchors[node.Value.GetToken().Value]
		case *ast.TagNode:
			n = node.Value
		default:
			return n
		}
	}
	return nil
}

// entries lists the entries of a mapping in their order; nil if it is none.
func (r *labReader) entries(n ast.Node) []*ast.MappingValueNode {
	switch node := r.plain(n).(type) {
	case *ast.MappingNode:
		return node.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}
	}
	return nil
}

// mapping gives the values of a mapping by their keys; nil if it is none.
func (r *labReader) mapping(n ast.Node) map[string]ast.Node {
	entries := r.entries(n)
	if entries == nil {
		return nil
	}
	values := map[string]ast.Node{}
	for _, e := range entries {
		values[keyOf(e)] = e.Value
	}
	return values
}

func keyOf(e *ast.MappingValueNode) string { return strings.TrimSpace(e.Key.GetToken().Value) }

func (r *labReader) text(n ast.Node) string {
	switch node := r.plain(n).(type) {
	case nil, *ast.NullNode:
		return ""
	case *ast.StringNode:
		return node.Value
	case ast.ScalarNode:
		return node.GetToken().Value
	}
	return ""
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

func (r *labReader) nodes(n ast.Node) error {
	for _, entry := range r.entries(n) {
		name, line := keyOf(entry), lineOf(entry.Key)
		count, replicated := r.mapping(entry.Value)["count"]
		if !replicated {
			if _, err := r.builder.node(line, topology.NodeSpec{Name: name}); err != nil {
				return err
			}
			continue
		}
		most := labNodes - r.builder.Nodes()
		replicas, err := whole("count", r.text(count), 1, int64(most))
		if err != nil {
			return r.errorf(lineOf(count), "%w", err)
		}
		r.counts[name] = int(replicas)
		for i := range int(replicas) {
			if _, err := r.builder.node(line,
				topology.NodeSpec{Name: name + strconv.Itoa(i+1)}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *labReader) links(n ast.Node) error {
	list, ok := r.plain(n).(*ast.SequenceNode)
	if !ok {
		return nil
	}
	for _, item := range list.Values {
		if err := r.link(item); err != nil {
			return err
		}
	}
	return nil
}

func (r *labReader) link(item ast.Node) error {
	doc, line := r.mapping(item), lineOf(item)
	endpoints, ok := r.plain(doc["endpoints"]).(*ast.SequenceNode)
	if !ok || len(endpoints.Values) != 2 {
		return r.errorf(line,
			`a link has two endpoints; write endpoints: ["client:eth0", "router:client"]`)
	}
	line = lineOf(endpoints)
	kbps, err := labRate(r.text(doc["rate"]))
	if err != nil {
		return r.errorf(lineOf(doc["rate"]), "%w", err)
	}
	weights, err := r.weights(doc)
	if err != nil {
		return err
	}
	ends := [2]string{r.text(endpoints.Values[0]), r.text(endpoints.Values[1])}
	replicas := 0
	for _, end := range ends {
		node, _, _ := strings.Cut(end, ":")
		if name, each := strings.CutSuffix(node, "{i}"); each {
			replicas = max(replicas, r.counts[name])
		}
	}
	if replicas == 0 {
		return r.addLink(line, ends, kbps, weights)
	}
	for i := range replicas {
		if err := r.addLink(line, [2]string{withIndex(ends[0], i+1), withIndex(ends[1], i+1)}, kbps,
			weights); err != nil {
			return err
		}
	}
	return nil
}

// weights are those of the two directions of a link.
func (r *labReader) weights(doc map[string]ast.Node) (weights [2]uint32, err error) {
	forward, back := r.mapping(doc["forward"])["weight"], r.mapping(doc["back"])["weight"]
	for side, own := range []ast.Node{forward, back} {
		if own == nil {
			own = doc["weight"]
		}
		weights[side] = 1
		if own == nil {
			continue
		}
		if weights[side], err = parseWeight(r.text(own)); err != nil {
			return weights, r.errorf(lineOf(own), "%w", err)
		}
	}
	return weights, nil
}

var indexWord = regexp.MustCompile(`\{i(?::(0?[0-9]{0,2}[dxX])?)?\}`)

// withIndex writes the number of a replica in place of "{i}", or of "{i:02x}" with that format.
func withIndex(text string, i int) string {
	return indexWord.ReplaceAllStringFunc(text, func(word string) string {
		format := cmp.Or(indexWord.FindStringSubmatch(word)[1], "d")
		return fmt.Sprintf("%"+format, i)
	})
}

func (r *labReader) addLink(line int, ends [2]string, kbps int64, weights [2]uint32) error {
	e := topology.EdgeSpec{Weight: weights[0], CapacityKbps: kbps}
	for i, end := range []*topology.Node{&e.From, &e.To} {
		name, _, _ := strings.Cut(ends[i], ":")
		v, ok := r.builder.Lookup(name)
		if !ok {
			return r.errorf(line, "there is no node %q; list it among the nodes", name)
		}
		*end = v
	}
	if err := r.builder.edge(line, e); err != nil {
		return err
	}
	e.From, e.To, e.Weight = e.To, e.From, weights[1]
	return r.builder.edge(line, e)
}

// labRate reads a rate as tc(8) writes it: "100mbit".
func labRate(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	for _, u := range []struct {
		name string
		bits float64
	}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}} {
		if number, ok := strings.CutSuffix(strings.ToLower(text), u.name); ok {
			return kbpsFrom(number, u.bits)
		}
	}
	return 0, fmt.Errorf("%q is no rate; write a number and one of kbit, mbit, gbit, bit", text)
}

// The most that a lab's link can be told to carry.
const labKbpsMost = 100e6

// writeLab writes a lab of routers without processes, that "sextant lab up" brings up: each has an
// address, and its routes follow the weights.
func writeLab(g *topology.Graph) ([]byte, error) {
	if _, err := bothWays(g); err != nil {
		return nil, err
	}
	if g.Nodes() > labNodes {
		return nil, fmt.Errorf("%d nodes are too many for a lab, whose addresses are numbered up "+
			"to %d", g.Nodes(), labNodes)
	}
	var out bytes.Buffer
	names := distinct(g, labName)
	fmt.Fprintf(&out, "name: %q\n\ntopology:\n  nodes:\n", labName(g.Name()))
	for v, name := range names {
		fmt.Fprintf(&out, "    %q: {addresses: [\"fd00:5e::1:%x\"]}\n", name, v)
	}
	out.WriteString("\n  links:\n")
	next := make([]int, g.Nodes())
	end := func(v topology.Node) string {
		next[v]++
		return fmt.Sprintf("%s:eth%d", names[v], next[v]-1)
	}
	for i, r := range g.Links() {
		e, back := g.Edge(i), g.Edge(r).Weight
		fmt.Fprintf(&out, "    - {endpoints: [%q, %q]", end(e.From), end(e.To))
		if e.CapacityKbps > 0 && e.CapacityKbps <= labKbpsMost {
			fmt.Fprintf(&out, ", rate: %dkbit", e.CapacityKbps)
		}
		if e.Weight != 1 {
			fmt.Fprintf(&out, ", weight: %d", e.Weight)
		}
		if back != e.Weight {
			fmt.Fprintf(&out, ", back: {weight: %d}", back)
		}
		out.WriteString("}\n")
	}
	return out.Bytes(), nil
}

// labName makes a name of lower-case letters, digits, "-" and "_" of at most 50, which leaves room
// for a number behind.
func labName(name string) string {
	const most = 50
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	name = strings.TrimLeft(name, "-_")
	if name == "" {
		return "n"
	}
	return name[:min(len(name), most)]
}
