package packet

import (
	"fmt"
	"math/rand/v2"

	"sextant/te/edgecoloring"
)

// Scheme is a way to choose paths.
type Scheme uint8

// Schemes by which the source chooses.
const (
	ECMP   Scheme = iota // each switch hashes the flow
	Random               // one of the shortest paths at random, for each subflow
	// the path whose busiest link has the fewest flows: CFLB's central scheduler
	Greedy
	Assigned // Paths.Assign says
	Flowlets // a random path for each burst
	// a new path after rounds that were congested (Qureshi et al., SIGCOMM 2022)
	PLB
	// paths whose acknowledgements came back unmarked are used again (Bonato et al., 2024)
	REPS
	Clove // flowlets over paths weighted by ECN (Katta et al., CoNEXT 2017)
	// hashed at first; Paths.Reroute moves flows later, as the controller of SMOOTHIE does
	Rerouted
	Colored // by edge coloring of a fat tree: flows of different hosts share no link
	// a new hash after a timeout, and for acknowledgements after a duplicate with a new hash
	// (Wetherall et al., SIGCOMM 2023)
	PRR
	// flowlets over the path whose utilization, which packets collect, is least (CLOVE-INT)
	CloveINT
	// flowlets over the path on which the host has the fewest bytes under way
	InFlight
	Hermes // a path that marks and probes tell is good, left cautiously
	// hashed at first, or by weights; a controller moves flows: Paths.Controller
	Controlled
	// of flow mode: as Rerouted, but flows look at all paths until none moves
	BestResponse
)

// Schemes by which switches choose, packet by packet.
const (
	Spray Scheme = iota + 32 // at random
	// the shortest of two random queues and the last best (Ghorbani et al., SIGCOMM 2017)
	DRILL
	LetFlow // at random for each flowlet (Vanini et al., NSDI 2017)
	CONGA   // the least congested uplink for each flowlet
	HULA    // the next hop of the least utilized path for each flowlet
	// the first switch moves a flow when a reply is late, and the last one restores the order
	ConWeave
)

// Paths says how paths are chosen.
type Paths struct {
	Scheme      Scheme
	FlowletGap  Time // pause that begins a new flowlet
	Convergence Time // from a link's change until routing has followed
	Limit       int  // paths that a source knows of each destination; 0 is 256
	Meter       Time // time constant with which the utilization of links is measured; 0: 160 µs
	Probe       Time // period of HULA's probes; 0: 200 µs
	Freeze      Time // of REPS: time without exploration after a loss; 0: 10 ms
	// Through are nodes over one of which each path leads, in two steps, as in VL2 (Greenberg et
	// al., SIGCOMM 2009): Valiant load balancing. Of schemes by which the source chooses, or by
	// which switches hash a flow. nil: paths are shortest.
	Through []Node
	// List lists the paths of a source, as links, in place of shortest ones; nil: it does not. It
	// is a pure function of its arguments.
	List func(from, to Node) [][]int32
	// Capped gives a connection no more subflows than its source knows paths, as csg-htsim does:
	// one below the same switch, and half of a switch's ports within a pod of a fat tree.
	Capped bool
	// Assign chooses the path of a subflow, for Assigned, by its number among the shortest paths,
	// which are in the order of the topology's links.
	Assign func(f Flow, subflow, paths int) int
	// Reroute decides every RerouteEvery on each subflow, for Rerouted: it is given the load of
	// each path, the work in its queues as a time, and the path in use, and returns the path to use
	// from now on. It is a pure function of its arguments.
	Reroute      func(load []Time, current int, random uint64) int
	RerouteEvery Time
	Controller   *Controller // of Controlled
	// Of ConWeave; 0: from the network's delays and queues.
	Cutoff Time // after which a reply is late
	Busy   Time // for how long a path is avoided after a mark
	Resume Time // for how long packets are held back at most
}

// pathChoice is the state of path selection.
type pathChoice struct {
	Paths
	flows    []int32 // subflows on each link, for Greedy
	tables   []pathTable
	tableOf  map[[2]Node]int32
	fabric   map[[2]Node][][]int32 // by entries of the hosts
	interned map[uint64]int32
	random   *rand.Rand
	route    []int32 // scratch
	load     []Time  // scratch
	memory   [][]int32
	flowlets [][]flowlet
	views    map[[2]Node]*view
	coloring coloring
	leaves   map[[2]Node]*leafPair // of CONGA
	goals    []goal                // of HULA
	goalOf   []int32               // by node
	cost     []float64             // scratch
	weaves   []weaveFlow           // of ConWeave: by subflow and direction
	pairs    map[[2]Node]*weavePair
	hermes   map[[2]Node]*hermesView

	hermesOrder []hermesProbed
}

// pathTable is the paths of one pair of hosts.
type pathTable struct {
	fabric [][]int32 // between the hosts' entries
	route  []int32   // first link in routes; none: not made yet
	back   []int32   // of REPS: of the way back over the same links; none
}

// pathState is what path selection knows of a subflow.
type pathState struct {
	label         uint64
	forward, back int32 // routes
	table         int32
	choice        int32 // path of the table; none
	last          Time  // when the last packet was sent
	rounds        pathRounds
	cache         pathCache
	view          *view  // of the paths to the destination's switch
	turn          uint16 // of Controlled: how often the first switch chose again
	given         bool   // of Controlled: the path is the controller's
	color         int32  // of Colored: number of the flow in the fat tree; none
}

// pathRounds counts congested rounds, for PLB.
type pathRounds struct {
	end           uint32
	acked, marked uint32
	congested     uint8
}

const defaultLimit = 256

func (s *Simulation) preparePaths(p Paths, seed uint64) error {
	if p.Limit == 0 {
		p.Limit = defaultLimit
	}
	if len(p.Through) > 0 && p.Scheme.switched() {
		return fmt.Errorf("paths: switches that choose by packet or flowlet know shortest paths " +
			"alone, not those of two steps; choose another scheme, or shortest paths")
	}
	if p.Scheme == Assigned && p.Assign == nil {
		return fmt.Errorf("paths: the scheme Assigned needs a function that assigns")
	}
	if p.Scheme == Rerouted {
		if p.Reroute == nil || p.RerouteEvery <= 0 {
			return fmt.Errorf("paths: the scheme Rerouted needs a function that reroutes, and " +
				"how often it is called")
		}
		s.Every(p.RerouteEvery, (*Simulation).rerouteAll)
	}
	if p.FlowletGap == 0 {
		p.FlowletGap = 500 * Microsecond
	}
	if p.Freeze == 0 {
		p.Freeze = defaultFreeze
	}
	s.paths = pathChoice{Paths: p, flows: make([]int32, len(s.links)), tableOf: map[[2]Node]int32{},
		fabric: map[[2]Node][][]int32{}, interned: map[uint64]int32{},
		random: rand.New(rand.NewPCG(seed, 3)), views: map[[2]Node]*view{}}
	switch p.Scheme {
	case CloveINT, CONGA, HULA:
		s.prepareMeters()
	case Colored:
		return s.prepareColoring()
	case Hermes:
		s.paths.hermes = map[[2]Node]*hermesView{}
		if s.paths.Probe == 0 {
			s.paths.Probe = hermesProbe
		}
		s.Every(s.paths.Probe, (*Simulation).hermesProbes)
	case Controlled:
		return s.prepareControl()
	}
	return s.prepareSwitches()
}

// switched tells whether switches choose.
func (p Scheme) switched() bool { return p >= Spray }

// route chooses the paths of a subflow that begins, or after routing changed.
func (s *Simulation) route(number int32, f *subflow) {
	c := &s.connections[f.connection]
	p := &f.path
	index := 0
	for c.subflows[index] != number {
		index++
	}
	p.label = mix(c.label + uint64(index))
	p.back = s.hashedRoute(c.dst, c.src, p.label+1)
	p.table, p.choice, p.forward, p.view = none, none, none, nil
	p.cache.reset()
	p.turn, p.given = 0, false
	switch {
	case s.paths.Scheme == ConWeave:
		s.weaveBegin(number)
	case s.paths.Scheme == Controlled:
		if p.forward = s.begin(c, p.label, 0); p.forward == none {
			p.forward = s.hashedRoute(c.src, c.dst, p.label)
		}
	case s.paths.Scheme == ECMP || s.paths.Scheme == PLB || s.paths.Scheme == PRR:
		p.forward = s.hashedRoute(c.src, c.dst, p.label)
	case s.paths.Scheme.switched():
	default:
		p.table = s.table(c.src, c.dst)
		n := len(s.paths.tables[p.table].fabric)
		if n == 0 {
			return
		}
		choice := 0
		switch s.paths.Scheme {
		case Colored:
			if err := s.color(number, f, c, index); err != nil {
				s.failure, s.stopped = err, true
			}
			return
		case Clove, CloveINT, InFlight:
			p.view = s.view(c, n)
			choice = int(s.viewChoice(p))
		case Hermes:
			choice = int(s.hermesFresh(s.hermesView(c, p.table)))
		case Greedy:
			choice = s.leastLoaded(p.table)
		case Assigned:
			choice = s.paths.Assign(c.flow, index, n) % n
		default:
			choice = s.paths.random.IntN(n)
		}
		s.use(c, p, int32(choice))
	}
}

// use puts a subflow onto a path of its table.
func (s *Simulation) use(c *connection, p *pathState, choice int32) {
	p.choice = choice
	p.forward = s.tableRoute(c.src, c.dst, p.table, choice)
	if s.paths.Scheme == Greedy {
		for _, l := range s.paths.tables[p.table].fabric[choice] {
			s.paths.flows[l]++
		}
	}
}

// leave tells that a subflow has ended to schemes that count those under way.
func (s *Simulation) leave(p *pathState) {
	switch {
	case s.paths.Scheme == Greedy && p.table != none && p.choice != none:
		for _, l := range s.paths.tables[p.table].fabric[p.choice] {
			s.paths.flows[l]--
		}
	case p.color != none:
		s.paths.coloring.tree.Remove(edgecoloring.Flow(p.color))
		p.color = none
	}
}

// leastLoaded is the path whose links have the fewest flows: the fewest on the busiest, then the
// fewest in all.
func (s *Simulation) leastLoaded(table int32) int {
	best, bestMost, bestSum, equal := 0, int32(1<<30), int32(0), 0
	for i, path := range s.paths.tables[table].fabric {
		most, sum := int32(0), int32(0)
		for _, l := range path {
			most = max(most, s.paths.flows[l])
			sum += s.paths.flows[l]
		}
		switch {
		case most < bestMost || most == bestMost && sum < bestSum:
			best, bestMost, bestSum, equal = i, most, sum, 1
		case most == bestMost && sum == bestSum:
			if equal++; s.paths.random.IntN(equal) == 0 {
				best = i
			}
		}
	}
	return best
}

// table is the list of paths between two hosts.
func (s *Simulation) table(src, dst Node) int32 {
	key := [2]Node{src, dst}
	if t, ok := s.paths.tableOf[key]; ok {
		return t
	}
	n := s.network
	ends := [2]Node{n.entry[src], n.entry[dst]}
	fabric, ok := s.paths.fabric[ends]
	if !ok {
		fabric = s.list(ends[0], ends[1])
		s.paths.fabric[ends] = fabric
	}
	t := int32(len(s.paths.tables))
	route := make([]int32, len(fabric))
	for i := range route {
		route[i] = none
	}
	s.paths.tables = append(s.paths.tables, pathTable{fabric: fabric, route: route})
	s.paths.tableOf[key] = t
	return t
}

// tableRoute is the route of a path of a table.
func (s *Simulation) tableRoute(src, dst Node, table, choice int32) int32 {
	t := &s.paths.tables[table]
	if t.route[choice] == none {
		t.route[choice] = s.intern(s.between(src, dst, t.fabric[choice]))
	}
	return t.route[choice]
}

// between adds the links of hosts to a path between their switches.
func (s *Simulation) between(src, dst Node, fabric []int32) []int32 {
	n, route := s.network, s.paths.route[:0]
	if n.entry[src] != src {
		route = append(route, n.out[src][0])
	}
	route = append(route, fabric...)
	if n.entry[dst] != dst {
		route = append(route, n.access(dst))
	}
	s.paths.route = route
	return route
}

// access is the link that leads to a host with one neighbour.
func (n *Network) access(host Node) int32 {
	for _, l := range n.out[n.entry[host]] {
		if n.links[l].to == host {
			return l
		}
	}
	return none
}

// hashedRoute is the route that switches choose by hashing a label; none if there is no path.
func (s *Simulation) hashedRoute(src, dst Node, label uint64) int32 {
	n, route, ok := s.network, s.paths.route[:0], true
	if n.entry[src] != src {
		route = append(route, n.out[src][0])
	}
	from := n.entry[src]
	if via := s.paths.Through; len(via) > 0 && from != n.entry[dst] {
		// The intermediate nodes of a VL2 share one address: the hash chooses among all.
		middle := via[mix(label+0x9e3779b97f4a7c15)%uint64(len(via))]
		route, ok = s.routing.walk(route, from, middle, hashed(label))
		from = middle
	}
	if ok {
		route, ok = s.routing.walk(route, from, n.entry[dst], hashed(label))
	}
	if n.entry[dst] != dst {
		route = append(route, n.access(dst))
	}
	s.paths.route = route
	if !ok {
		return none
	}
	return s.intern(route)
}

// intern stores a route, or finds it where it is stored.
func (s *Simulation) intern(route []int32) int32 {
	hash := uint64(len(route))
	for _, l := range route {
		hash = mix(hash + uint64(l) + 0x9e3779b97f4a7c15)
	}
	if at, ok := s.paths.interned[hash]; ok && s.sameRoute(at, route) {
		return at
	}
	at := int32(len(s.routes))
	s.routes = append(append(s.routes, route...), none)
	s.paths.interned[hash] = at
	return at
}

func (s *Simulation) sameRoute(at int32, route []int32) bool {
	for i, l := range route {
		if s.routes[int(at)+i] != l {
			return false
		}
	}
	return s.routes[int(at)+len(route)] == none
}

// sendForward sends a packet from the source of a subflow.
func (s *Simulation) sendForward(id int32, e *packet, f *subflow) {
	c := &s.connections[f.connection]
	if s.paths.Scheme.switched() {
		s.inject(id, e, c.src, c.dst)
		return
	}
	if s.paths.Scheme >= Flowlets {
		s.beforeSend(f, c, e)
	}
	route := f.path.forward
	if route == none {
		s.strand(id, e)
		return
	}
	s.launch(id, e, route)
	// A pause begins when the host's link has sent all.
	f.path.last = s.now + s.work(s.routes[route])
}

// sendBackward sends a packet from the destination of a subflow.
func (s *Simulation) sendBackward(id int32, e *packet, f *subflow) {
	if s.transport.FreeAcks {
		if e.kind == acknowledgement {
			s.acknowledged(id, e)
		} else {
			s.established(e.flow, s.now-e.sent)
		}
		return
	}
	if s.paths.Scheme.switched() {
		c := &s.connections[f.connection]
		s.inject(id, e, c.dst, c.src)
		return
	}
	back := f.path.back
	if s.paths.Scheme == REPS && e.via != none && f.path.table != none {
		back = s.backRoute(&s.connections[f.connection], &f.path, e.via)
	}
	if back == none {
		s.strand(id, e)
		return
	}
	s.launch(id, e, back)
}

// strand ends a packet that has no path.
func (s *Simulation) strand(id int32, e *packet) {
	s.totals.Lost.add(e.size)
	s.gone(id, e)
}

// inject gives a packet to the first switch, which chooses its way.
func (s *Simulation) inject(id int32, e *packet, from, to Node) {
	e.flags |= switchPicks
	e.route = to
	s.forward(id, e, from)
}

// reconvergeLater lets routing follow a change.
func (s *Simulation) reconvergeLater() {
	id := s.at(change, 0, s.now+s.paths.Convergence)
	s.calendar.slab[id].kind = converge
}

// reconverge computes paths anew, and gives all subflows new ones.
func (s *Simulation) reconverge() {
	if s.controller != nil {
		s.controlLinks()
	}
	for i := range s.links {
		s.routing.down[i] = s.links[i].down
	}
	s.routing.forget()
	s.paths.tables = s.paths.tables[:0]
	clear(s.paths.tableOf)
	clear(s.paths.fabric)
	clear(s.paths.flows)
	clear(s.paths.views)
	clear(s.paths.pairs)
	clear(s.paths.hermes)
	s.paths.goals, s.paths.hermesOrder = nil, nil
	for i := range s.subflows {
		f := &s.subflows[i]
		if s.controller != nil && s.intact(f.path.forward) {
			continue // the path that the controller chose
		}
		if f.state == opening || f.state == open {
			s.route(int32(i), f)
		}
	}
}
