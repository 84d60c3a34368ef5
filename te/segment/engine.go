package segment

import (
	"fmt"
	"slices"
	"sync"

	"sextant/te/spf"
	"sextant/te/topology"
)

// A cost orders paths by latency, then hops, then SIDs: three numbers in one, latency in the upper
// bits.
const (
	sidCost     = 1
	hopShift    = 8 // up to 255 SIDs
	hopCost     = 1 << hopShift
	latencyUnit = 1 << 24 // up to 65535 hops
	latencyMax  = 1<<(64-24) - 1
)

// maxHops and maxSIDs are what fits into a cost.
const (
	maxHops = latencyUnit/hopCost - 1
	maxSIDs = hopCost - 1
)

// Engine answers queries about one network in one state. Queries may run in many goroutines at
// once; Apply must be alone.
type Engine struct {
	graph    *topology.Graph
	igp      *spf.Table // by IGP weight
	latency  *spf.Table // by delay and hops
	searches sync.Pool
	walkers  sync.Pool
	costs    []uint64                   // of each edge, whether it is up or not
	ends     []edgeEnds                 // of each edge; the graph keeps them among much else
	groups   map[uint32][]topology.Edge // the edges of each shared-risk group
}

type edgeEnds struct{ from, to topology.Node }

// New makes an engine for the edges that are on in the view. It computes nothing yet. It refuses a
// graph that is too large for its arithmetic: more than 65536 nodes, or delays of which a path
// could add up to 2^40 or more.
func New(view topology.View) (*Engine, error) {
	if view.Nodes() > maxHops+1 {
		return nil, fmt.Errorf("%s has %d nodes; a search takes at most %d", view.Name(),
			view.Nodes(), maxHops+1)
	}
	if sum := longest(view.Graph); sum > latencyMax {
		return nil, fmt.Errorf("the delays of %s could add up to %d units on one path; use a "+
			"coarser unit, so that it is at most %d",
			view.Name(), sum, uint64(latencyMax))
	}
	e := &Engine{graph: view.Graph, groups: map[uint32][]topology.Edge{}}
	for edge := range topology.Edge(view.Edges()) {
		e.ends = append(e.ends, edgeEnds{view.From(edge), view.To(edge)})
		e.costs = append(e.costs, uint64(view.Delay(edge))*latencyUnit+hopCost)
	}
	e.igp = spf.New(view, func(edge topology.Edge) uint64 { return uint64(view.Weight(edge)) },
		e.cost)
	e.latency = spf.New(view, e.cost, e.cost)
	e.walkers.New = func() any { return newWalker(view.Nodes()) }
	e.searches.New = func() any { return newSearch(e) }
	for edge := range topology.Edge(view.Edges()) {
		for _, group := range view.Edge(edge).SRLGs {
			e.groups[group] = append(e.groups[group], edge)
		}
	}
	return e, nil
}

// longest is more than any simple path can add up to: the delays of as many edges as it can have,
// the greatest.
func longest(g *topology.Graph) uint64 {
	delays := make([]int64, g.Edges())
	for e := range delays {
		delays[e] = g.Delay(topology.Edge(e))
	}
	slices.Sort(delays)
	sum := uint64(0)
	for i := range min(len(delays), g.Nodes()) {
		sum += uint64(min(delays[len(delays)-1-i], latencyMax+1))
	}
	return sum
}

// cost is what crossing an edge costs.
func (e *Engine) cost(edge topology.Edge) uint64 { return e.costs[edge] }

// Graph is the graph the engine was made for.
func (e *Engine) Graph() *topology.Graph { return e.graph }
