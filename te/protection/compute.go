package protection

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/segment/sidlist"
	"sextant/te/topology"
)

// Network is what paths are computed on.
type Network struct {
	View  topology.View // of the topology, without the links that are down
	Block srv6.Block    // of the SIDs that the topology does not state itself
	// Engine is one of View, with what it knows from earlier questions; nil: each computation makes
	// one of its own.
	Engine *segment.Engine
}

// Plan is the paths of a protection.
type Plan struct {
	Paths     []Path // disjoint, the first Copies of which are to carry
	Proof     string // what is proven of them; "" if that was not asked for
	Short     string // why there are fewer than were asked for; "" if there are not
	Overloads []Overload
}

// Refusal is why a plan can't begin: nil if it has a path for each copy.
func (p Plan) Refusal(i Intent) error {
	if len(p.Paths) >= i.Copies {
		return nil
	}
	return fmt.Errorf("%d copies from %s to %s: %s", i.Copies, i.From, i.To, p.Short)
}

// Question is what Compute is asked besides the intent.
type Question struct {
	Avoid []Link // not to be crossed in either direction, although the IGP does
	Loads Loads  // of the other protections
	Prove bool   // how good the paths are; without it an answer takes microseconds
}

// Compute finds disjoint paths. It fails if the intent contradicts the network; that there are
// fewer paths than wanted is no failure, but said in the plan.
func (n Network) Compute(i Intent, q Question) (Plan, error) {
	if err := i.Check(); err != nil {
		return Plan{}, err
	}
	query, err := n.query(i, q)
	if err != nil {
		return Plan{}, err
	}
	full := q.Loads.tooFull(n.View.Graph, i)
	s, err := newSearch(n, i, query, full)
	if err != nil {
		return Plan{}, err
	}
	paths, err := s.find(q.Prove)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Proof: s.said}
	if plan.Paths, err = n.paths(paths); err != nil {
		return Plan{}, err
	}
	if len(paths) < i.Paths() {
		s.why(&plan, query, q.Loads)
	}
	return plan, nil
}

// query translates the intent.
func (n Network) query(i Intent, q Question) (segment.Query, error) {
	query := segment.Query{Model: i.Model, Disjoint: i.Disjoint, MaxSIDs: i.MaxSIDs,
		Paths: i.Paths()}
	for _, end := range []struct {
		node *topology.Node
		name string
	}{{&query.From, i.From}, {&query.To, i.To}} {
		node, ok := n.View.Lookup(end.name)
		if !ok {
			return query, fmt.Errorf("topology %s has no node %q", n.View.Name(), end.name)
		}
		*end.node = node
	}
	query.Avoid = n.View.Barred(query.From)
	for _, l := range q.Avoid {
		for _, direction := range []Link{l, l.Reverse()} {
			if e, ok := EdgeOf(n.View.Graph, direction); ok {
				query.Avoid = append(query.Avoid, e)
			}
		}
	}
	return query, nil
}

// provable is the size of a network, in nodes times edges, up to which a proof takes seconds at
// most.
const provable = 20_000_000

// search looks for the paths of an intent.
type search struct {
	Network
	engine *segment.Engine
	query  segment.Query
	intent Intent
	said   string
}

func newSearch(n Network, i Intent, q segment.Query, full []topology.Edge) (*search, error) {
	engine := n.Engine
	if engine == nil {
		var err error
		if engine, err = segment.New(n.View); err != nil {
			return nil, err
		}
	}
	q.Avoid = append(slices.Clone(q.Avoid), full...)
	return &search{Network: n, engine: engine, query: q, intent: i}, nil
}

// find takes the quickest paths, one after the other; for two copies and with a proof the best pair
// first; and if that is not enough, whatever the prover finds.
func (s *search) find(prove bool) ([]segment.Path, error) {
	if s.View.Nodes()*s.View.Edges() > provable {
		prove = false
	}
	answer, err := s.engine.Disjoint(s.query)
	if err != nil {
		return nil, err
	}
	paths := answer.Paths
	if !prove && len(paths) >= s.intent.Paths() {
		return paths, nil
	}
	if s.View.Nodes()*s.View.Edges() > provable {
		s.said = fmt.Sprintf("%d disjoint paths, found one after the other; the network is too "+
			"large for a proof", len(paths))
		return paths, nil
	}
	p := proof.New(s.View, s.query, proof.Effort{Seed: 1})
	if s.intent.Copies == 2 && prove {
		if paths, err = s.pairFirst(p, paths); err != nil {
			return nil, err
		}
	}
	count := p.Count(s.query.From, s.query.To)
	if len(count.Paths) > len(paths) {
		paths = count.Paths[:min(len(count.Paths), s.intent.Paths())]
	}
	s.sayCount(count)
	return s.canonical(paths), nil
}

// pairFirst begins with the pair of least total delay, and looks for spares beside it; unless that
// makes fewer paths.
func (s *search) pairFirst(p *proof.Prover, found []segment.Path) ([]segment.Path, error) {
	pair := p.Pair(s.query.From, s.query.To, proof.LeastTotal)
	if pair.Paths == nil {
		return found, nil
	}
	paths := slices.Clone(pair.Paths)
	if s.intent.Spares > 0 {
		q := s.query
		q.Paths = s.intent.Spares
		q.Avoid = slices.Clone(q.Avoid)
		for _, path := range pair.Paths {
			q.Avoid = append(q.Avoid, s.shared(path)...)
		}
		answer, err := s.engine.Disjoint(q)
		if err != nil {
			return nil, err
		}
		paths = append(paths, answer.Paths...)
	}
	if len(paths) < len(found) {
		return found, nil
	}
	s.sayPair(pair)
	return paths, nil
}

// shared are the edges that no path disjoint from this one crosses.
func (s *search) shared(p segment.Path) []topology.Edge {
	var edges []topology.Edge
	add := func(e topology.Edge) {
		if e != topology.NoEdge {
			edges = append(edges, e)
		}
	}
	groups := map[uint32]bool{}
	for _, e := range p.Edges {
		add(e)
		if s.query.Disjoint != segment.EdgeDisjoint {
			add(s.View.Reverse(e))
		}
		if v := s.View.From(e); s.query.Disjoint == segment.NodeDisjoint && v != s.query.From {
			edges = append(edges, s.View.In(v)...)
		}
		for _, r := range s.risks(e) {
			groups[r] = s.query.Disjoint == segment.SRLGDisjoint
		}
	}
	for e := range topology.Edge(s.View.Edges()) {
		if slices.ContainsFunc(s.risks(e), func(r uint32) bool { return groups[r] }) {
			add(e)
		}
	}
	return edges
}

// risks are the shared-risk groups of a link: those of either direction.
func (n Network) risks(e topology.Edge) []uint32 {
	risks := n.View.Edge(e).SRLGs
	if back := n.View.Reverse(e); back != topology.NoEdge {
		risks = append(slices.Clone(risks), n.View.Edge(back).SRLGs...)
	}
	return risks
}

// canonical gives paths the lists that the engine has for them: node SIDs where they do.
func (s *search) canonical(paths []segment.Path) []segment.Path {
	for i, p := range paths {
		if list, err := s.engine.Segment(p.Edges, s.query.Model); err == nil &&
			len(list) <= len(p.SIDs) {
			paths[i].SIDs = list
		}
	}
	return paths
}

// paths names what was found.
func (n Network) paths(found []segment.Path) ([]Path, error) {
	plan := sidlist.Plan{Graph: n.View.Graph, Block: n.Block}
	var paths []Path
	for _, f := range found {
		list, err := plan.List(f)
		if err != nil {
			return nil, err
		}
		p := Path{SIDs: list.SIDs, Names: list.Names, Delay: f.Latency}
		for _, e := range f.Edges {
			p.Links = append(p.Links, LinkOf(n.View.Graph, e))
			p.Risks = append(p.Risks, n.risks(e)...)
		}
		slices.Sort(p.Risks)
		p.Risks = slices.Compact(p.Risks)
		paths = append(paths, p)
	}
	return paths, nil
}

// Fault says why a list, with what packets visit behind it, does not take its path from a node in
// the network as it is: a link that is down or gone, or shortest paths that lead elsewhere; "" if
// it does. The engine must be of the network.
func (n Network) Fault(e *segment.Engine, node string, p Path, behind ...segment.SID) string {
	path := segment.Path{}
	for _, l := range p.Links {
		edge, ok := EdgeOf(n.View.Graph, l)
		if !ok || !n.View.Up(edge) {
			return "link " + l.String() + " is down"
		}
		path.Edges = append(path.Edges, edge)
	}
	list, err := n.sids(p)
	if err != nil {
		return err.Error()
	}
	path.SIDs, path.Forced = append(list, behind...), true
	from, ok := n.View.Lookup(node)
	if !ok {
		return "node " + node + " is gone"
	}
	verdict, err := e.Verify(from, path)
	switch {
	case err != nil:
		return err.Error()
	case len(verdict.Left) > 0 || len(verdict.Missing) > 0 || !verdict.Forced:
		return "shortest paths changed"
	}
	return ""
}

// sids reads the names of a list.
func (n Network) sids(p Path) ([]segment.SID, error) {
	plan := sidlist.Plan{Graph: n.View.Graph, Block: n.Block}
	var list []segment.SID
	for _, address := range p.SIDs {
		sid, ok := n.sidOf(plan, p, address)
		if !ok {
			return nil, fmt.Errorf("SID %s is gone", address)
		}
		list = append(list, sid)
	}
	return list, nil
}

// sidOf finds what an address stands for, among the nodes and links of a path.
func (n Network) sidOf(plan sidlist.Plan, p Path, address netip.Addr) (segment.SID, bool) {
	for _, l := range p.Links {
		e, _ := EdgeOf(n.View.Graph, l)
		if a, err := plan.Link(e); err == nil && a == address {
			return segment.SID{Node: n.View.From(e), Link: e}, true
		}
		for _, v := range []topology.Node{n.View.From(e), n.View.To(e)} {
			if a, err := plan.Node(v); err == nil && a == address {
				return segment.SID{Node: v, Link: topology.NoEdge}, true
			}
		}
	}
	return segment.SID{}, false
}
