package packet

import "slices"

// HULA (Katta et al., SOSR 2016): probes tell each switch the next hop with the least utilized path
// to each switch that hosts are at; flowlets follow it. The probes themselves are not simulated:
// each round, all switches learn what probes would tell them.

const defaultProbe = 200 * Microsecond

// hulaRound lets one round of probes pass.
func (s *Simulation) hulaRound() {
	if len(s.paths.goals) == 0 {
		s.paths.goals = s.goals()
	}
	nodes := len(s.network.out)
	if s.paths.cost == nil {
		s.paths.cost = make([]float64, nodes)
	}
	for i := range s.paths.goals {
		s.probe(&s.paths.goals[i])
	}
}

// goal is a switch that probes come from.
type goal struct {
	at    Node
	order []Node  // the other nodes, the nearest first
	best  []int32 // next hop by node; none
}

// goals are the switches that hosts are at.
func (s *Simulation) goals() []goal {
	n := s.network
	var all []goal
	s.paths.goalOf = make([]int32, len(n.out))
	for i := range s.paths.goalOf {
		s.paths.goalOf[i] = none
	}
	for _, h := range n.Hosts {
		at := n.entry[h]
		if s.paths.goalOf[at] != none {
			continue
		}
		s.paths.goalOf[at] = int32(len(all))
		distance := s.routing.to(at)
		g := goal{at: at, best: make([]int32, len(n.out))}
		for v := range n.out {
			g.best[v] = none
			if Node(v) != at && n.relay[v] && distance[v] != unreachable {
				g.order = append(g.order, Node(v))
			}
		}
		slices.SortStableFunc(g.order,
			func(a, b Node) int { return int(distance[a] - distance[b]) })
		all = append(all, g)
	}
	return all
}

// probe sends one probe from a switch to all others. A switch keeps its next hop unless another is
// better; the first is random.
func (s *Simulation) probe(g *goal) {
	cost := s.paths.cost
	cost[g.at] = 0
	for _, v := range g.order {
		hops := s.routing.next(v, g.at)
		best, least, present := none, 0.0, g.best[v]
		first := 0
		if present == none && len(hops) > 1 {
			first = s.paths.random.IntN(len(hops))
		}
		for i := range hops {
			l := hops[(first+i)%len(hops)]
			if s.links[l].down {
				continue
			}
			path := max(s.utilization(l), cost[s.links[l].to])
			if best == none || path < least || path <= least && l == present {
				best, least = l, path
			}
		}
		g.best[v], cost[v] = best, least
		if best == none {
			cost[v] = unreachable
		}
	}
}

// hula puts each flowlet onto the best next hop.
func (s *Simulation) hula(e *packet, v Node, candidates []int32) int32 {
	f := s.flowlet(e, v)
	if s.now-f.last > s.paths.FlowletGap || !contains(candidates, f.link) || s.links[f.link].down {
		f.link = none
		if len(s.paths.goals) > 0 {
			f.link = s.paths.goals[s.paths.goalOf[s.network.entry[e.route]]].best[v]
		}
		if f.link == none || !contains(candidates, f.link) || s.links[f.link].down {
			f.link = s.alive(candidates)
		}
	}
	f.last = s.now
	return f.link
}
