package way

import (
	"fmt"
	"slices"

	"sextant/packet/srv6"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
	"sextant/te/topology"
)

// Metric is what is to be least.
type Metric string

// The metrics.
const (
	IGP       Metric = "igp"       // the weight of links in routing
	Delay     Metric = "delay"     // their delay
	Telemetry Metric = "telemetry" // their congestion, as a controller knows it
)

// Intent is what is wanted of the way to a server.
type Intent struct {
	By Metric
	// what paths must not cross: links, in either direction, nodes, and shared-risk groups
	Links   []protection.Link
	Nodes   []string
	Risks   []uint32
	Paths   int           // wanted: 1, or 2 that share no link
	MaxSIDs int           // of a path, the server's left out
	Model   segment.Model // Forced, or ForcedAdjacency: others do not hold packets to a path
}

// isRoutings reports whether routing's own way is all that is wanted.
func (i Intent) isRoutings() bool {
	return i.By == IGP && len(i.Links)+len(i.Nodes)+len(i.Risks) == 0 && i.Paths <= 1
}

// Network is what paths are computed on.
type Network struct {
	View  topology.View // of the topology, without the links that are down
	Block srv6.Block    // of the SIDs that the topology does not state itself
	From  string        // the edge's node
	// congestion of links, 0 or more, that a controller told of; others count as free
	Weights map[protection.Link]float64
}

// Path is a way to a server.
type Path struct {
	protection.Path
	Cost int64 // what was to be least, in the metric's unit: see [Network.CostOf]
}

// Answer is what was found for one node.
type Answer struct {
	Paths []Path // none: routing's own way
	Least int64  // cost of the best path without a bound on its SIDs, or on what else it crosses
	Own   int64  // cost of routing's own way, of the worst branch
	Short string // why there are fewer paths than wanted; "" if there are not
	Needs int    // SIDs that the next path would take; 0: no number would do, or none is missing
}

// Search finds paths on a network for any number of intents, which share what a metric takes. It
// and the network must not change meanwhile; it is for one goroutine.
type Search struct {
	network  Network
	engines  map[Metric]*segment.Engine
	foreseen map[asker]segment.Answer // that need not be searched
}

// NewSearch prepares to find paths on a network.
func NewSearch(n Network) *Search {
	return &Search{network: n, engines: map[Metric]*segment.Engine{}}
}

// Compute finds the paths to the servers behind some nodes. By telemetry, those of an earlier
// answer to the same intent stay where others are hardly better. It fails if the intent contradicts
// the network; that a node has fewer paths than wanted is said in its answer.
func (all *Search) Compute(i Intent, to []string, before map[string]Answer) (map[string]Answer,
	error) {
	answers, n := map[string]Answer{}, all.network
	s, err := all.search(i)
	if i.isRoutings() {
		for _, name := range to {
			answers[name] = Answer{}
			if v, ok := n.View.Lookup(name); ok && err == nil {
				own := s.own(v)
				answers[name] = Answer{Own: own, Least: own}
			}
		}
		return answers, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range to {
		if _, known := answers[name]; known {
			continue
		}
		if answers[name], err = s.to(name, before[name]); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// CostOf is the cost of crossing a link: its IGP weight, its delay in the topology's unit, or its
// congestion in parts of 10,000 and one more for the hop.
func (n Network) CostOf(by Metric, e topology.Edge) int64 {
	switch by {
	case Delay:
		return n.View.Delay(e)
	case Telemetry:
		weight := n.Weights[protection.LinkOf(n.View.Graph, e)]
		return 1 + int64(min(max(weight, 0), mostWeight)*weightUnit)
	}
	return int64(n.View.Weight(e))
}

const (
	weightUnit = 10_000
	mostWeight = 1_000 // beyond it links are alike: paths have to add up
)

// search finds paths of one intent.
type search struct {
	Network
	intent Intent
	engine *segment.Engine
	from   topology.Node
	avoid  []topology.Edge // what the intent names
	never  []topology.Edge // and those that the network bars
	plan   sidlist.Plan
	key    string                   // of the intent
	known  map[asker]segment.Answer // that need not be searched
}

func (all *Search) search(i Intent) (*search, error) {
	n := all.network
	s := &search{Network: n, intent: i, plan: sidlist.Plan{Graph: n.View.Graph, Block: n.Block}}
	var ok bool
	if s.from, ok = n.View.Lookup(n.From); !ok {
		return nil, noNode(n.View, n.From)
	}
	if err := s.avoids(); err != nil {
		return nil, err
	}
	s.never = slices.Concat(s.avoid, n.View.Barred(s.from))
	var err error
	s.engine, err = all.engine(i.By)
	s.known, s.key = all.foreseen, i.Key()
	return s, err
}

// engine is the one whose delays are what links cost by a metric.
func (all *Search) engine(by Metric) (*segment.Engine, error) {
	if known := all.engines[by]; known != nil {
		return known, nil
	}
	n := all.network
	costs := n.View
	costs.Graph = n.View.Graph.WithDelays(func(e topology.Edge) int64 { return n.CostOf(by, e) })
	made, err := segment.New(costs)
	if err == nil {
		all.engines[by] = made
	}
	return made, err
}

func noNode(v topology.View, name string) error {
	return fmt.Errorf("topology %s has no node %q", v.Name(), name)
}

// avoids lists the edges that no path may cross.
func (s *search) avoids() error {
	for _, l := range s.intent.Links {
		found := false
		for _, direction := range []protection.Link{l, l.Reverse()} {
			if e, ok := protection.EdgeOf(s.View.Graph, direction); ok {
				s.avoid, found = append(s.avoid, e), true
			}
		}
		if !found {
			return fmt.Errorf("topology %s has no link %s to avoid", s.View.Name(), l)
		}
	}
	for _, name := range s.intent.Nodes {
		v, ok := s.View.Lookup(name)
		if !ok {
			return fmt.Errorf("%w to avoid", noNode(s.View, name))
		}
		s.avoid = append(append(s.avoid, s.View.In(v)...), s.View.Out(v)...)
	}
	for e := range topology.Edge(s.View.Edges()) {
		if slices.ContainsFunc(s.View.Edge(e).SRLGs,
			func(r uint32) bool { return slices.Contains(s.intent.Risks, r) }) {
			s.avoid = append(s.avoid, e)
			if back := s.View.Reverse(e); back != topology.NoEdge {
				s.avoid = append(s.avoid, back)
			}
		}
	}
	return nil
}

// to finds the paths to a node, or keeps those that it had before.
func (s *search) to(name string, before Answer) (a Answer, err error) {
	v, ok := s.View.Lookup(name)
	if !ok {
		return a, noNode(s.View, name)
	}
	if v == s.from {
		return a, nil // the server is where the edge is
	}
	found, known := s.known[asker{s.key, v}]
	if !known {
		if found, err = s.engine.Disjoint(s.query(v)); err != nil {
			return a, err
		}
	}
	return s.answer(name, before, found)
}

// query asks for the paths to a node.
func (s *search) query(to topology.Node) segment.Query {
	return segment.Query{From: s.from, To: to, Model: s.intent.Model, Avoid: s.never,
		MaxSIDs: s.intent.MaxSIDs + 1, Paths: max(1, s.intent.Paths)}
}

// answer names what was found, or keeps what was there before.
func (s *search) answer(name string, before Answer, found segment.Answer) (a Answer, err error) {
	v := found.Query.To
	a.Least = found.Least
	a.Own = s.own(v)
	for _, f := range found.Paths {
		p, err := s.path(f)
		if err != nil {
			return a, err
		}
		a.Paths = append(a.Paths, p)
	}
	if len(a.Paths) < found.Query.Paths {
		a.Short, a.Needs = s.short(name, found), max(0, found.Needs-1)
	}
	return s.keep(before, a, v), nil
}

// keep returns the paths that carry now where those that were found are lighter by less than a
// quarter: congestion changes all the time, and flows that follow it would be moved for nothing.
// Other metrics change with the topology alone.
func (s *search) keep(now, found Answer, to topology.Node) Answer {
	if s.intent.By != Telemetry || len(now.Paths) == 0 || len(now.Paths) < len(found.Paths) {
		return found
	}
	kept := found
	kept.Paths, kept.Short, kept.Needs = slices.Clone(now.Paths), now.Short, now.Needs
	var before, after int64
	for k := range kept.Paths {
		p := &kept.Paths[k]
		if !s.carries(p.Path, to) {
			return found
		}
		p.Cost = s.cost(*p)
		before += p.Cost
	}
	for _, p := range found.Paths {
		after += p.Cost
	}
	if len(kept.Paths) == len(found.Paths) && 4*after < 3*before {
		return found
	}
	return kept
}

// carries reports whether a path's SIDs, and that of the node behind them, lead where it says, over
// nothing that is to be avoided, and through no node that is not for transit.
func (s *search) carries(p protection.Path, to topology.Node) bool {
	n := protection.Network{View: s.View, Block: s.Block}
	barred := func(l protection.Link) bool {
		v, _ := s.View.Lookup(l.From)
		return v != s.from && s.View.Node(v).NoTransit
	}
	return n.Fault(s.engine, s.From, p, segment.SID{Node: to, Link: topology.NoEdge}) == "" &&
		!slices.ContainsFunc(p.Links, barred) && !slices.ContainsFunc(s.avoid,
		func(e topology.Edge) bool { return p.Crosses(protection.LinkOf(s.View.Graph, e)) })
}

// cost is what a path that carries costs now.
func (s *search) cost(p Path) (cost int64) {
	for _, l := range p.Links {
		if e, ok := protection.EdgeOf(s.View.Graph, l); ok {
			cost += s.CostOf(s.intent.By, e)
		}
	}
	return cost
}

// own is the cost of routing's own way to a node; 0 if there is none.
func (s *search) own(v topology.Node) int64 {
	if v == s.from {
		return 0
	}
	own, err := s.engine.Replay(s.from, []segment.SID{{Node: v, Link: topology.NoEdge}})
	if err != nil {
		return 0
	}
	return own.Latency
}

// path names what was found. The last SID, of the node that the server is behind, is left to the
// server's.
func (s *search) path(f segment.Path) (p Path, err error) {
	f.SIDs = slices.Clone(f.SIDs)
	if last := len(f.SIDs) - 1; f.SIDs[last].Link == topology.NoEdge {
		f.SIDs = f.SIDs[:last]
	}
	list, err := s.plan.List(f)
	if err != nil {
		return p, err
	}
	p.SIDs, p.Names, p.Cost = list.SIDs, list.Names, f.Latency
	for _, e := range f.Edges {
		p.Links = append(p.Links, protection.LinkOf(s.View.Graph, e))
		p.Delay += s.View.Delay(e)
	}
	return p, nil
}

// short says why there are no more paths.
func (s *search) short(name string, a segment.Answer) string {
	what := "no path"
	if len(a.Paths) > 0 {
		what = "no second path that shares no link with the first"
	}
	text := fmt.Sprintf("%s from %s to %s", what, s.From, name)
	switch {
	case a.Stop == segment.ListTooLong && a.Needs > 1:
		return fmt.Sprintf("%s with %d SIDs: the quickest takes %d", text, s.intent.MaxSIDs,
			a.Needs-1)
	case a.Stop == segment.ListTooLong:
		return fmt.Sprintf("%s with %d SIDs: it crosses a link that no SID selects", text,
			s.intent.MaxSIDs)
	case len(s.avoid) > 0:
		return text + " that crosses nothing of what is to be avoided"
	case len(s.never) > 0:
		return text + " that passes no node which is not for transit"
	}
	return text
}
