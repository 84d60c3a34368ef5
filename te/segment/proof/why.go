package proof

import (
	"sextant/te/maxflow"
	"sextant/te/topology"
)

// Limit is what keeps the number of disjoint paths from being greater.
type Limit string

// The limits, each tried before the next.
const (
	Disconnected Limit = "disconnected" // no path at all
	// a smallest cut of the network, whatever segment lists can do
	Links     Limit = "links"
	Risk      Limit = "risk"   // one shared-risk group
	Selection Limit = "model"  // links that no SID of the model selects
	Length    Limit = "length" // lists would have to be longer
	// longer lists were tried, up to the number in Needs, and do not help
	Combination Limit = "combination"
	Unproven    Limit = "unproven" // more may exist: the budget was spent
)

// Why is the reason why there are not more disjoint paths.
type Why struct {
	Limit Limit
	// Cut is what has to fail, at least, to separate the nodes.
	Cut maxflow.Cut
	// Bridges are the edges that every path crosses, in the order in which it does.
	Bridges []topology.Edge
	// Unselected, for the limit model, are links that one path more would need, and that no SID of
	// the model selects.
	Unselected []topology.Edge
	// Needs, for the limit length, is how many SIDs make one path more possible.
	Needs int
}

// furtherSIDs is how much longer lists are tried.
const furtherSIDs = 6

// Why explains a Count of the same prover between the same nodes.
func (p *Prover) Why(s, t topology.Node, c Count) Why {
	allowed := make([]bool, len(p.avoid))
	for e, avoid := range p.avoid {
		allowed[e] = !avoid
	}
	whole := maxflow.NewNetwork(p.view, sharing(p.kind), allowed)
	most := whole.Max(s, t, 0)
	w := Why{Cut: whole.Cut(), Bridges: whole.Bridges(s, t)}
	switch {
	case most == 0:
		w.Limit = Disconnected
	case most == len(c.Paths):
		w.Limit = Links
	case !c.Optimal():
		w.Limit = Unproven
	case c.By == ByRisk:
		w.Limit = Risk
	case c.By == ByCut:
		w.Limit = Selection
		whole.Cheapest(s, t, len(c.Paths)+1, p.selectable())
		for _, path := range whole.Paths() {
			for _, e := range path {
				if !p.canUse[e] {
					w.Unselected = append(w.Unselected, e)
				}
			}
		}
	default:
		w.Limit, w.Needs = p.needs(s, t, len(c.Paths))
	}
	return w
}

// selectable is a cost that avoids the edges that the model can't use.
func (p *Prover) selectable() []int64 {
	cost := make([]int64, len(p.canUse))
	for e, usable := range p.canUse {
		if !usable {
			cost[e] = 1
		}
	}
	return cost
}

// needs finds the length of lists with which there are more paths than count.
func (p *Prover) needs(s, t topology.Node, count int) (Limit, int) {
	for sids := p.sids + 1; sids <= p.sids+furtherSIDs; sids++ {
		if longer := p.WithMaxSIDs(sids); len(longer.Count(s, t).Paths) > count {
			return Length, sids
		}
	}
	return Combination, p.sids + furtherSIDs
}

// WithMaxSIDs returns a prover for lists of another length, for the same goroutine or another; it
// shares what was computed.
func (p *Prover) WithMaxSIDs(sids int) *Prover {
	space := *p.space
	space.sids = sids
	c := *p
	c.space = &space
	return c.Clone()
}
