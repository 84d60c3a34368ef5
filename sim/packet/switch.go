package packet

import (
	"fmt"

	"sextant/te/topology"
)

// flowlet is what a switch remembers of a flow.
type flowlet struct {
	last Time
	link int32
}

// flowletSlots is the size of each switch's table.
const flowletSlots = 1 << 12

// prepareSwitches allocates the state of switches that choose.
func (s *Simulation) prepareSwitches() error {
	nodes := len(s.network.out)
	switch s.paths.Scheme {
	case DRILL:
		s.paths.memory = make([][]int32, nodes)
	case LetFlow:
		s.paths.flowlets = make([][]flowlet, nodes)
	case HULA:
		s.paths.flowlets = make([][]flowlet, nodes)
		if s.paths.Probe == 0 {
			s.paths.Probe = defaultProbe
		}
		s.Every(s.paths.Probe, (*Simulation).hulaRound)
	case ConWeave:
		s.prepareWeave()
	case CONGA:
		s.paths.flowlets = make([][]flowlet, nodes)
		s.paths.leaves = map[[2]Node]*leafPair{}
		s.uplink = make([]uint8, len(s.links))
		for v, out := range s.network.out {
			if len(out) >= noUplink {
				return fmt.Errorf("paths: node %s has %d links; CONGA's header numbers at most %d",
					s.network.Graph.Node(topology.Node(v)).Name, len(out), noUplink-1)
			}
			for i, l := range out {
				s.uplink[l] = uint8(i)
			}
		}
	}
	return nil
}

// forward sends a packet on from a node, over the next hop that the node chooses.
func (s *Simulation) forward(id int32, e *packet, v Node) {
	to := e.route
	if v == to {
		s.deliver(id, e)
		return
	}
	n := s.network
	goal := n.entry[to]
	if v == goal {
		if s.paths.Scheme == CONGA {
			s.congaArrived(e, v)
		}
		if s.paths.Scheme == ConWeave && s.weaveArrived(id, e) {
			return
		}
		s.relay(id, e, n.access(to))
		return
	}
	if n.entry[v] != v {
		s.relay(id, e, n.out[v][0])
		return
	}
	candidates := s.routing.next(v, goal)
	if len(candidates) == 0 {
		s.strand(id, e)
		return
	}
	link := candidates[0]
	if len(candidates) > 1 || s.paths.Scheme == ConWeave {
		link = s.pick(e, v, candidates)
	}
	if s.paths.Scheme == CONGA {
		if src, _ := s.ends(e); n.entry[src] == v {
			s.congaTag(e, v, link)
		}
	}
	s.relay(id, e, link)
}

// pick chooses one of several next hops. One whose link is down is chosen only if the choice does
// not look at links.
func (s *Simulation) pick(e *packet, v Node, candidates []int32) int32 {
	switch s.paths.Scheme {
	case DRILL:
		return s.drill(e, v, candidates)
	case LetFlow:
		return s.letFlow(e, v, candidates)
	case CONGA:
		return s.conga(e, v, candidates)
	case HULA:
		return s.hula(e, v, candidates)
	case ConWeave:
		return s.conweave(e, v, candidates)
	}
	l := candidates[s.paths.random.IntN(len(candidates))]
	if s.links[l].down {
		l = s.alive(candidates)
	}
	return l
}

// alive picks at random among links that are up; if none is, any.
func (s *Simulation) alive(candidates []int32) int32 {
	chosen, seen := candidates[0], 0
	for _, l := range candidates {
		if !s.links[l].down {
			if seen++; s.paths.random.IntN(seen) == 0 {
				chosen = l
			}
		}
	}
	return chosen
}

// drill is DRILL(2, 1): of two random queues and the best of last time, the shortest.
func (s *Simulation) drill(e *packet, v Node, candidates []int32) int32 {
	if s.paths.memory[v] == nil {
		s.paths.memory[v] = make([]int32, len(s.network.out))
		for i := range s.paths.memory[v] {
			s.paths.memory[v][i] = none
		}
	}
	remembered := &s.paths.memory[v][s.network.entry[e.route]]
	best, shortest := none, never
	consider := func(l int32) {
		k := &s.links[l]
		if queue := s.work(l); !k.down && queue < shortest {
			best, shortest = l, queue
		}
	}
	if *remembered != none {
		consider(*remembered)
	}
	consider(candidates[s.paths.random.IntN(len(candidates))])
	consider(candidates[s.paths.random.IntN(len(candidates))])
	if best == none {
		best = s.alive(candidates)
	}
	*remembered = best
	return best
}

// letFlow is a new random link after each pause of a flow.
func (s *Simulation) letFlow(e *packet, v Node, candidates []int32) int32 {
	f := s.flowlet(e, v)
	if s.now-f.last > s.paths.FlowletGap || !contains(candidates, f.link) || s.links[f.link].down {
		f.link = s.alive(candidates)
	}
	f.last = s.now
	return f.link
}

// flowlet is the entry of a packet's flow in the table of a switch; flows that collide share it.
func (s *Simulation) flowlet(e *packet, v Node) *flowlet {
	if s.paths.flowlets[v] == nil {
		s.paths.flowlets[v] = make([]flowlet, flowletSlots)
		for i := range s.paths.flowlets[v] {
			s.paths.flowlets[v][i] = flowlet{-never / 2, none}
		}
	}
	hash := mix(uint64(e.flow)<<33 + uint64(e.route)<<1 + uint64(v)*0x9e3779b97f4a7c15)
	return &s.paths.flowlets[v][hash%flowletSlots]
}

func contains(links []int32, l int32) bool {
	for _, x := range links {
		if x == l {
			return true
		}
	}
	return false
}
