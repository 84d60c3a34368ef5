package protection

import (
	"fmt"
	"slices"
	"strings"

	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
)

// sayPair says what is proven of the pair that carries.
func (s *search) sayPair(p proof.Pair) {
	if p.Optimal() {
		s.said = fmt.Sprintf("the pair's total delay of %d is optimal (%s)", p.Value, p.By)
		return
	}
	s.said = fmt.Sprintf("the pair's total delay of %d is at most %d above the optimum (%s)",
		p.Value, p.Value-p.Bound, p.By)
}

// sayCount says how many disjoint paths there are.
func (s *search) sayCount(c proof.Count) {
	text := fmt.Sprintf("no more than %d disjoint paths exist (%s)", len(c.Paths), c.By)
	if !c.Optimal() {
		text = fmt.Sprintf("%d disjoint paths were found, no more than %d exist (%s)", len(c.Paths),
			c.Bound, c.By)
	}
	if s.said != "" {
		text = s.said + "; " + text
	}
	s.said = text
}

// why says why there are not as many paths as were wanted: links that are too full already, if it
// is these; else what limits the network or the model.
func (s *search) why(plan *Plan, without segment.Query, loads Loads) {
	if len(s.query.Avoid) > len(without.Avoid) {
		if answer, err := s.engine.Disjoint(without); err == nil &&
			len(answer.Paths) > len(plan.Paths) {
			for _, p := range answer.Paths {
				for _, e := range p.Edges {
					if o, over := loads.over(s.View.Graph, e, s.intent); over {
						plan.Overloads = append(plan.Overloads, o)
					}
				}
			}
			plan.Short = fmt.Sprintf("%s: %s", s.only(len(plan.Paths)),
				overloadText(plan.Overloads))
			return
		}
	}
	if nodes := s.barring(without, len(plan.Paths)); len(nodes) > 0 {
		plan.Short = fmt.Sprintf("%s: others pass nodes that are not for transit: %s",
			s.only(len(plan.Paths)), strings.Join(nodes, ", "))
		return
	}
	if s.View.Nodes()*s.View.Edges() > provable {
		plan.Short = s.only(len(plan.Paths)) + " were found"
		return
	}
	p := proof.New(s.View, without, proof.Effort{Seed: 1})
	c := p.Count(without.From, without.To)
	plan.Short = s.only(len(plan.Paths)) + ": " + s.limit(p.Why(without.From, without.To, c))
}

// barring names the nodes that are not for transit on the paths that there would be if they were;
// none if these are not more than there are.
func (s *search) barring(q segment.Query, count int) (nodes []string) {
	barred := s.View.Barred(q.From)
	q.Avoid = slices.DeleteFunc(slices.Clone(q.Avoid),
		func(e topology.Edge) bool { return slices.Contains(barred, e) })
	answer, err := s.engine.Disjoint(q)
	if err != nil || len(answer.Paths) <= count {
		return nil
	}
	for _, p := range answer.Paths {
		for _, e := range p.Edges {
			if slices.Contains(barred, e) {
				nodes = append(nodes, s.View.Node(s.View.From(e)).Name)
			}
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func (s *search) only(count int) string {
	switch count {
	case 0:
		return "there is no path"
	case 1:
		return "there is 1 path only"
	}
	return fmt.Sprintf("there are %d %s-disjoint paths only", count, s.intent.Disjoint)
}

// limit explains what keeps paths from being more.
func (s *search) limit(w proof.Why) string {
	switch w.Limit {
	case proof.Disconnected:
		return "no links that are up connect the ends"
	case proof.Links:
		if len(w.Bridges) > 0 {
			return "every path crosses the bridge " + s.names(w.Bridges)
		}
		if len(w.Cut.Nodes) > 0 {
			return "the ends are parted by " + s.cutNames(w)
		}
		return "the ends are parted by links " + s.names(w.Cut.Edges)
	case proof.Risk:
		return "all paths depend on one shared-risk group"
	case proof.Selection:
		return fmt.Sprintf("no SID of model %s selects %s; take model adjacency", s.intent.Model,
			s.names(w.Unselected))
	case proof.Length:
		return fmt.Sprintf("lists have %d SIDs at most; %d would do for one more", s.intent.MaxSIDs,
			w.Needs)
	case proof.Combination:
		return fmt.Sprintf("no lists of up to %d SIDs make more", w.Needs)
	default:
		return "more may exist, but were not found"
	}
}

func (s *search) cutNames(w proof.Why) string {
	var names []string
	for _, v := range w.Cut.Nodes {
		names = append(names, "node "+s.View.Node(v).Name)
	}
	for _, e := range w.Cut.Edges {
		names = append(names, "link "+LinkOf(s.View.Graph, e).String())
	}
	return strings.Join(names, ", ")
}

func (s *search) names(edges []topology.Edge) string {
	var names []string
	for _, e := range edges {
		names = append(names, LinkOf(s.View.Graph, e).String())
	}
	return strings.Join(names, ", ")
}
