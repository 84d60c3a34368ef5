package way

import (
	"fmt"
	"slices"

	"sextant/te/segment"
	"sextant/te/topology"
)

// Wanted is an intent, and the names of the nodes to which there are to be paths.
type Wanted struct {
	Intent Intent
	To     []string
}

// Same reports whether the same is wanted.
func (w Wanted) Same(o Wanted) bool {
	return w.Intent.Key() == o.Intent.Key() && slices.Equal(w.To, o.To)
}

// Detours are the ways to nodes for the case that links fail, found while nothing is wrong: see
// [segment.Detours]. Ways by telemetry are not among them: congestion changes all the time.
type Detours struct {
	search *Search
	parts  []*detours // one for each metric
	room   int
	ready  bool // the ways in the network as it is are known
}

// detours are those by one metric.
type detours struct {
	*segment.Detours
	metric  Metric
	asked   []asked // those without an answer are to be answered yet
	known   map[asker]bool
	answers []segment.Answer
}

// asked is a policy.
type asked struct {
	asker
	query segment.Query
}

// asker is an intent, by its key, and a node.
type asker struct {
	intent string
	to     topology.Node
}

// NewDetours begins to find the ways that are wanted in a network, and what they would be without
// some of its links. It takes some room octets at most for those.
func NewDetours(n Network, wanted []Wanted, room int) *Detours {
	d := &Detours{search: NewSearch(n), room: room}
	byMetric := map[Metric]*detours{}
	for _, w := range wanted {
		s, err := d.search.search(w.Intent)
		if w.Intent.By == Telemetry || w.Intent.isRoutings() || err != nil {
			continue
		}
		p := byMetric[w.Intent.By]
		if p == nil {
			p = &detours{metric: w.Intent.By, known: map[asker]bool{}}
			byMetric[w.Intent.By], d.parts = p, append(d.parts, p)
		}
		p.ask(s, w)
	}
	return d
}

// ask adds the policies that are wanted, each once.
func (p *detours) ask(s *search, w Wanted) {
	for _, name := range w.To {
		v, ok := s.View.Lookup(name)
		by := asker{w.Intent.Key(), v}
		if ok && v != s.from && !p.known[by] {
			p.known[by] = true
			p.asked = append(p.asked, asked{by, s.query(v)})
		}
	}
}

// Key tells intents apart.
func (i Intent) Key() string { return fmt.Sprintf("%#v", i) }

// Step does a little of what is to do. It is false when all is done. Ready tells that the ways in
// the network as it is are known: from then on a search may [Search.Foresee] the Detours while they
// do more.
func (d *Detours) Step() (more bool, err error) {
	for _, p := range d.parts {
		if len(p.answers) < len(p.asked) {
			query := p.asked[len(p.answers)].query
			a, err := d.search.engines[p.metric].Disjoint(query)
			p.answers = append(p.answers, a)
			return true, err
		}
	}
	for _, p := range d.parts {
		if p.Detours == nil {
			p.Detours, err = segment.NewDetours(d.search.engines[p.metric], p.answers,
				d.room/len(d.parts))
			return true, err
		}
	}
	if !d.ready { // others may read it from then on
		d.ready = true
		return true, nil
	}
	for _, p := range d.parts {
		if more, err := p.Step(); more || err != nil {
			return more, err
		}
	}
	d.Stop()
	return false, nil
}

// Stop ends the steps: what is prepared is kept, without what finding it took. It is of the
// goroutine that makes the steps.
func (d *Detours) Stop() {
	for _, p := range d.parts {
		if p.Detours != nil {
			p.Detours.Stop()
		}
	}
	d.search.engines = nil
}

// Ready reports whether the ways in the network as it is are known.
func (d *Detours) Ready() bool { return d.ready }

// Foresee gives the search what the Detours know of its network, which may lack links of that of
// the Detours, and must be the same otherwise; else nothing is known, and all is searched. Exact
// tells that the answers are those that the search would find; otherwise they are paths that carry,
// but perhaps not the best ones, and others are to be searched by a search that foresees nothing.
func (all *Search) Foresee(d *Detours) (known, exact bool) {
	before, after := d.search.network, all.network
	if !d.ready || before.From != after.From || before.Block != after.Block {
		return false, false
	}
	numbers, down, ok := following(before.View, after.View)
	if !ok {
		return false, false
	}
	exact, all.foreseen = len(down) == 0, map[asker]segment.Answer{}
	for _, p := range d.parts {
		found, _ := p.After(down...)
		for policy, by := range p.asked {
			answer, moved := found[policy]
			if !moved {
				answer = p.answers[policy]
			}
			if len(answer.Paths) > 0 || answer.Stop != segment.NotSought {
				all.foreseen[by.asker] = renumbered(answer, numbers)
			}
		}
	}
	return true, exact
}

// following compares a network with a later one that differs in nothing but links that are down:
// numbers are those that its edges have then, and down are the ones that are not there. It is false
// if more differs.
func following(before, after topology.View) (numbers, down []topology.Edge, ok bool) {
	if before.Nodes() != after.Nodes() || before.DelayUnit() != after.DelayUnit() {
		return nil, nil, false
	}
	for v := range topology.Node(before.Nodes()) {
		if before.Node(v) != after.Node(v) {
			return nil, nil, false
		}
	}
	next := topology.Edge(0)
	for e := range topology.Edge(before.Edges()) {
		number := topology.NoEdge
		if int(next) < after.Edges() && sameEdge(before.Edge(e), after.Edge(next)) {
			number = next
			next++
		}
		up := number != topology.NoEdge && after.Up(number)
		if up && !before.Up(e) {
			return nil, nil, false
		}
		if before.Up(e) && !up {
			down = append(down, e)
		}
		numbers = append(numbers, number)
	}
	return numbers, down, int(next) == after.Edges()
}

func sameEdge(a, b topology.EdgeSpec) bool {
	return a.Name == b.Name && a.From == b.From && a.To == b.To && a.Weight == b.Weight &&
		a.Delay == b.Delay && a.CapacityKbps == b.CapacityKbps && a.SID == b.SID &&
		slices.Equal(a.SRLGs, b.SRLGs)
}

// renumbered is an answer with the numbers that edges have in another graph.
func renumbered(a segment.Answer, numbers []topology.Edge) segment.Answer {
	a.Paths = slices.Clone(a.Paths)
	for i := range a.Paths {
		p := &a.Paths[i]
		p.Edges, p.SIDs = slices.Clone(p.Edges), slices.Clone(p.SIDs)
		for k, e := range p.Edges {
			p.Edges[k] = numbers[e]
		}
		for k := range p.SIDs {
			if s := &p.SIDs[k]; s.Link != topology.NoEdge {
				s.Link = numbers[s.Link]
			}
		}
	}
	return a
}
