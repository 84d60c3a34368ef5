package packet

import (
	"slices"

	"sextant/te/reroute"
	"sextant/te/srpolicy"
	"sextant/te/topology"
)

// groups are the paths from which the first switches of flows choose when those begin, by weights
// that the controller sends now and then.
type groups struct {
	pairs  map[[2]Node]int // by first and last switch, of groups
	groups []reroute.Group
	sent   []weights        // under way, and before them those that the switches have
	ways   []srpolicy.Meter // by link: what first switches send over it
}

// weights are those of all groups.
type weights struct {
	due    Time // when the switches have them
	groups []reroute.Group
}

// prepareGroups lets the controller send weights, if its settings say so.
func (s *Simulation) prepareGroups() {
	every := s.controller.Settings.Groups
	if every == 0 {
		return
	}
	s.findGroups()
	s.Every(Time(every)*Nanosecond, func(s *Simulation) {
		q := &s.controller.groups
		w := weights{s.now + s.controller.ControlDelay, slices.Clone(q.groups)}
		s.controller.decider.Weigh(w.groups, s.elapsed())
		q.sent = append(q.sent, w)
	})
}

// findGroups makes groups of the switches that hosts are at.
func (s *Simulation) findGroups() {
	n, q := s.network, &s.controller.groups
	*q = groups{pairs: map[[2]Node]int{}, ways: make([]srpolicy.Meter, len(s.links))}
	for _, from := range n.Hosts {
		for _, to := range n.Hosts {
			pair := [2]Node{n.entry[from], n.entry[to]}
			if _, known := q.pairs[pair]; !known && pair[0] != pair[1] {
				q.pairs[pair] = len(q.groups)
				q.groups = append(q.groups, s.controller.decider.Group(topology.Node(pair[0]),
					topology.Node(pair[1])))
			}
		}
	}
}

// begin is the route of a subflow that begins, or of its flowlet after so many turns, as its first
// switch chooses; none if it knows no weights.
func (s *Simulation) begin(c *connection, label uint64, turn uint16) int32 {
	q, n := &s.controller.groups, s.network
	for len(q.sent) > 1 && q.sent[1].due <= s.now {
		q.sent = q.sent[1:]
	}
	i, known := q.pairs[[2]Node{n.entry[c.src], n.entry[c.dst]}]
	if !known || len(q.sent) == 0 || q.sent[0].due > s.now {
		return none
	}
	paths, shares := q.sent[0].groups[i].Up()
	if len(paths) == 0 {
		return none
	}
	list := srpolicy.Choose(srpolicy.Shares(shares), mix(label+1)+uint64(turn)*groupTurn,
		func(list int) uint64 { return s.goesOut(paths[list][0]) })
	return s.routeOver(c, paths[list])
}

// goesOut is how much a first switch sends over a link, as the kernel's program measures it.
func (s *Simulation) goesOut(e topology.Edge) uint64 {
	memory := srpolicy.WayMemory(s.controller.Settings.Flowlet)
	return s.controller.groups.ways[e].Read(s.links[e].stats.Bytes, s.elapsed(), memory)
}

// groupTurn is what the kernel's program adds to the hash from one choice of a flow to the next.
const groupTurn = 0xd1342543de82ef95

// again lets the first switch choose again for a flow that paused for Settings.Flowlet, unless the
// controller gave it a path.
func (s *Simulation) again(f *subflow) {
	p := &f.path
	pause := Time(s.controller.Settings.Flowlet) * Nanosecond
	if pause == 0 || p.given || s.now-p.last <= pause {
		return
	}
	c := &s.connections[f.connection]
	if route := s.begin(c, p.label, p.turn+1); route != none {
		p.turn++
		if route != p.forward {
			p.forward = route
			c.reroutes++
			s.totals.Reroutes++
		}
	}
}

// routeOver is the route over a path between the switches of a connection.
func (s *Simulation) routeOver(c *connection, path []topology.Edge) int32 {
	links := make([]int32, len(path))
	for i, e := range path {
		links[i] = int32(e)
	}
	return s.intern(s.between(c.src, c.dst, links))
}
