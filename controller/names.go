package controller

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/flow"
	"sextant/te/reroute"
	"sextant/te/topology"
)

// names turns what the API calls things into what the topology does, and back.
type names struct {
	graph      *topology.Graph
	sizes      []int64                  // of queues, in bytes, by edge
	interfaces map[topology.Edge]uint32 // of the links for which the file says so
}

func newNames(g *topology.Graph, c *Config) (*names, error) {
	n := &names{graph: g, sizes: make([]int64, g.Edges()),
		interfaces: map[topology.Edge]uint32{}}
	for e := range n.sizes {
		n.sizes[e] = c.Queue
	}
	for i, q := range c.Links {
		links, err := n.links(q.From, q.To)
		if err != nil {
			return nil, fmt.Errorf("links[%d]: %w", i, err)
		}
		for _, e := range links {
			if q.Bytes > 0 {
				n.sizes[e] = q.Bytes
			}
		}
	}
	return n, eachLink(g, c, func(e topology.Edge, l Queue) {
		if l.Interface != 0 {
			n.interfaces[e] = l.Interface
		}
	})
}

// eachLink calls with the link that each entry of the file is about which says more of a link than
// its queue: several entries with the same ends are parallel links, in the topology's order.
func eachLink(g *topology.Graph, c *Config, tell func(e topology.Edge, l Queue)) error {
	edges, place := parallels(g), map[parallel]int{}
	for i, l := range c.Links {
		if !l.says() {
			continue
		}
		name := parallel{from: l.From, to: l.To}
		at := name
		at.place = place[name]
		place[name]++
		e, ok := edges[at]
		if !ok {
			return fmt.Errorf("links[%d]: only %d links lead from %s to %s", i, at.place, l.From,
				l.To)
		}
		tell(e, l)
	}
	return nil
}

// byInterface is before an interface, behind the name of the router that has it.
const byInterface = "%"

// split takes an interface off a router's name, as in leaf1%3; 0: none is named.
func (n *names) split(name string) (string, uint32, error) {
	router, text, named := strings.Cut(name, byInterface)
	if _, whole := n.graph.Lookup(name); whole || !named {
		return name, 0, nil
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil || number == 0 {
		return "", 0, &api.Error{Code: api.Invalid, Message: fmt.Sprintf("router %q: write its "+
			"name, or its name and the number of an interface, like leaf1%s3", name, byInterface)}
	}
	return router, uint32(number), nil
}

func (n *names) node(name string) (topology.Node, error) {
	v, ok := n.graph.Lookup(name)
	if !ok {
		return v, &api.Error{Code: api.NotFound,
			Message: fmt.Sprintf("%s has no router %q", n.graph.Name(), name)}
	}
	return v, nil
}

// links are the parallel links from one router to another; with an interface behind the first one's
// name, the link of that.
func (n *names) links(from, to string) ([]topology.Edge, error) {
	router, number, err := n.split(from)
	if err != nil {
		return nil, err
	}
	u, err := n.node(router)
	if err != nil {
		return nil, err
	}
	if to, _, err = n.split(to); err != nil {
		return nil, err
	}
	v, err := n.node(to)
	if err != nil {
		return nil, err
	}
	var links []topology.Edge
	for _, e := range n.graph.Out(u) {
		if n.graph.To(e) == v && (number == 0 || n.interfaces[e] == number) {
			links = append(links, e)
		}
	}
	if len(links) == 0 {
		return nil, &api.Error{Code: api.NotFound,
			Message: fmt.Sprintf("no link leads from %s to %s", from, to)}
	}
	return links, nil
}

// path is the links between routers in order; of parallel links the one of the interface behind the
// router's name, as in leaf1%3, else the first one.
func (n *names) path(routers []string) ([]topology.Edge, error) {
	if len(routers) < 2 {
		return nil, &api.Error{Code: api.Invalid,
			Message: "a path has two routers at least: where the flow enters, and where it leaves"}
	}
	var path []topology.Edge
	for i := range len(routers) - 1 {
		links, err := n.links(routers[i], routers[i+1])
		if err != nil {
			return nil, err
		}
		path = append(path, links[0])
	}
	return path, nil
}

func (n *names) routers(path []topology.Edge) []string {
	routers := []string{}
	for i, e := range path {
		if i == 0 {
			routers = append(routers, n.graph.Node(n.graph.From(e)).Name)
		}
		if number := n.interfaces[e]; number != 0 && hasParallels(n.graph, e) {
			routers[i] += fmt.Sprint(byInterface, number)
		}
		routers = append(routers, n.graph.Node(n.graph.To(e)).Name)
	}
	return routers
}

// report reads a report of the API.
func (n *names) report(r Report, at time.Duration) (*reroute.Report, error) {
	t, err := tupleOf(r.Flow)
	if err != nil {
		return nil, err
	}
	path, err := n.path(r.Path)
	if err != nil {
		return nil, err
	}
	out := &reroute.Report{Flow: t, From: n.graph.From(path[0]),
		To: n.graph.To(path[len(path)-1]), Path: path, Class: r.Class, Pause: r.Pause, At: at}
	for _, q := range r.Queues {
		links, err := n.links(q.From, q.To)
		if err != nil {
			return nil, err
		}
		if q.Bytes < 0 || q.Size < 0 {
			return nil, &api.Error{Code: api.Invalid, Message: fmt.Sprintf("the queue from %s to "+
				"%s has %d bytes of %d: neither can be below 0", q.From, q.To, q.Bytes, q.Size)}
		}
		size := q.Size
		if size == 0 {
			size = n.sizes[links[0]]
		}
		out.Queues = append(out.Queues, reroute.Queue{Edge: links[0],
			Occupancy: min(1, float64(q.Bytes)/float64(size))})
	}
	return out, nil
}

var protocols = map[config.Protocol]uint8{config.TCP: 6, config.UDP: 17}

func tupleOf(f api.Flow) (flow.Tuple, error) {
	number, ok := protocols[config.Protocol(strings.ToLower(string(f.Protocol)))]
	switch {
	case !ok:
		return flow.Tuple{}, &api.Error{Code: api.Invalid,
			Message: fmt.Sprintf("protocol %q: write tcp or udp", f.Protocol)}
	case !f.Source.IsValid() || !f.Destination.IsValid():
		return flow.Tuple{}, &api.Error{Code: api.Invalid,
			Message: "a flow has a source and a destination; write ADDRESS:PORT each"}
	}
	return flow.Tuple{Src: f.Source.Addr(), Dst: f.Destination.Addr(), SrcPort: f.Source.Port(),
		DstPort: f.Destination.Port(), Protocol: number}, nil
}

func flowOf(t flow.Tuple) api.Flow {
	f := api.Flow{Source: addrPort(t.Src, t.SrcPort), Destination: addrPort(t.Dst, t.DstPort)}
	for protocol, number := range protocols {
		if number == t.Protocol {
			f.Protocol = protocol
		}
	}
	return f
}

// finite is a weight for JSON, which knows no infinity.
func finite(weight float64) *float64 {
	if math.IsInf(weight, 1) {
		return nil
	}
	return &weight
}

func (n *names) candidate(c reroute.Candidate) Candidate {
	return Candidate{Path: n.routers(c.Path), Weight: finite(c.Weight.Value),
		Noise: math.Sqrt(c.Weight.Variance)}
}

// reasons say of each verdict what it means.
var reasons = map[reroute.Verdict]string{
	reroute.Untouched:  "the report says nothing that asks for another path",
	reroute.Moved:      "the path is lighter",
	reroute.BackingOff: "the flow was looked at a short time ago",
	reroute.NotLighter: "no path that was drawn is lighter by the margin",
	reroute.Exported:   "the head-end has the lightest path already",
	reroute.OnlyPath:   "there is one shortest path only",
	reroute.NoPath:     "there is no path, or each that was drawn has a link that is down",
	reroute.Pinned:     "an operator chose the flow's path",
	reroute.NoChance:   "chance was against it",
	reroute.NoPolicy:   "this policy moves no flow",
}

func (n *names) decision(d reroute.Decision, at time.Time) Decision {
	out := Decision{At: at, Flow: flowOf(d.Flow), Class: d.Class, Verdict: d.Verdict.String(),
		Reason: reasons[d.Verdict], Candidates: []Candidate{}}
	if len(d.Current.Path) > 0 {
		out.Current = new(n.candidate(d.Current))
	}
	if d.Verdict == reroute.Moved && out.Current != nil && out.Current.Weight == nil {
		out.Reason = "a link of its former path is down"
	}
	for _, c := range d.Candidates {
		out.Candidates = append(out.Candidates, n.candidate(c))
	}
	if len(d.Path) > 0 {
		out.Path = n.routers(d.Path)
	}
	return out
}
