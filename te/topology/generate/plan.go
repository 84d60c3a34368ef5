package generate

import (
	"fmt"
	"time"

	"sextant/te/topology"
)

// nodesMax bounds what is generated; the largest network of one routing domain that any operator is
// known to run is far smaller.
const nodesMax = 1 << 18

// Links of data centers and grids.
const (
	unitWeight  = 1
	hopMicros   = 1
	gigabitKbps = 1_000_000
	linkKbps    = 10 * gigabitKbps
)

// plan collects nodes and links, and keeps the first error.
type plan struct {
	b   *topology.Builder
	err error
}

func newPlan(name string) *plan { return &plan{b: topology.NewBuilder(name, time.Microsecond)} }

func (p *plan) node(x, y float64, name string, args ...any) topology.Node {
	v, err := p.b.AddNode(topology.NodeSpec{
		Name: fmt.Sprintf(name, args...), Place: topology.Point{Longitude: x, Latitude: y},
		Known: true,
	})
	p.keep(err)
	return v
}

// row places so many nodes side by side, centered over 0.
func (p *plan) row(count int, y, spacing float64, name string) []topology.Node {
	nodes := make([]topology.Node, count)
	for i := range nodes {
		nodes[i] = p.node(spacing*(float64(i)-float64(count-1)/2), y, name, i)
	}
	return nodes
}

// hop is a link of a data center.
func (p *plan) hop(u, v topology.Node) { p.link(u, v, unitWeight, hopMicros) }

func (p *plan) link(u, v topology.Node, weight uint32, micros int64) {
	e := topology.EdgeSpec{From: u, To: v, Weight: weight, Delay: micros, CapacityKbps: linkKbps}
	_, err := p.b.AddEdge(e)
	p.keep(err)
	e.From, e.To = e.To, e.From
	_, err = p.b.AddEdge(e)
	p.keep(err)
}

func (p *plan) keep(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *plan) build() (*topology.Graph, error) {
	if p.err != nil {
		return nil, fmt.Errorf("generate a topology: %w", p.err)
	}
	return p.b.Build(), nil
}

// between refuses an argument that is out of bounds.
func between(kind, what string, n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("generate a %s: %s is %d; choose one from %d to %d", kind, what, n, least,
			most)
	}
	return nil
}

// fits refuses a product that is too large. The factors are not negative.
func fits(kind string, factors ...int) error {
	nodes := 1
	for _, f := range factors {
		if f > nodesMax || nodes*f > nodesMax { // both are at most 2^18
			return fmt.Errorf("generate a %s: it would have more than %d nodes; choose smaller "+
				"numbers", kind, nodesMax)
		}
		nodes *= f
	}
	return nil
}

// firstError is the first of some checks that failed.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
