package pcc

import (
	"fmt"
	"slices"

	"sextant/lb/pool"
)

// The small world of the checker: a few hosts, one or two edges, one flow.
const (
	hostsMax   = 4
	changesMax = 4
	edgesMax   = 2
	nobody     = -1
)

// setup is a row of the table in docs/explanation/pcc.md, which says what the values mean.
type setup struct {
	name       string
	policy     pool.Policy
	method     pool.Method
	candidates int
	depth      int
	hosts      int
	away       int // hosts out of service at a time, at most
	changes    int
	edges      int
	order      string // in which edges learn of changes: any, shared
	restart    string // of an edge, once: never, empty, own, peer
	comeback   string // of hosts that were down: any, known, announced, held
	moves      string // of the flow to another edge: any, settled
	holds      bool
	cache      bool // edges have a flow cache, in which anything may stand
	orders     bool // of candidates: each packet meets any, whatever others met
	sites      bool // hosts are in two sites by turns
	reuses     int  // of the flow's ports after the server has closed, at most
	matching   matching
}

// world is a state of the small world. It is compared with ==.
type world struct {
	hosts    [hostsMax]pool.State // as they are
	log      [changesMax]change   // that some edge has not seen, oldest first
	logged   uint8
	changes  uint8
	restarts uint8
	edges    [edgesMax]view
	flow     phase
	owner    uint8 // host that accepted
	through  int8  // edge of the latest packet
	packet   path  // in flight, empty if none
	stray    bool  // it is on its way back to an edge
	reuses   uint8
	timeWait [hostsMax]bool // of a connection before or, while it closes, of this one
	halfOpen [hostsMax]bool // the host has answered a SYN: it has a request, or gave a cookie
}

type change struct {
	host uint8
	to   pool.State
}

// view is what an edge knows.
type view struct {
	up         bool
	generation int32
	hosts      [hostsMax]pool.State
	seen       [changesMax]bool // of the log
	// If hosts are held when they return:
	held [hostsMax]bool // it was down, and gets no new connections yet
	// of the log: what others did not know when this edge started; until then it gets no packets
	awaits [changesMax]bool
}

// serves tells whether packets come to the edge.
func (v *view) serves() bool { return v.up && v.awaits == [changesMax]bool{} }

// use is what an edge uses the hosts as, given what it heard of them: who returned is draining,
// unless nobody else is up.
func (c *checker) use(v *view) [hostsMax]pool.State {
	used, up := v.hosts, false
	for h := range c.hosts {
		up = up || v.hosts[h] == pool.Up && !v.held[h]
	}
	for h := range c.hosts {
		if v.held[h] && up && v.hosts[h] == pool.Up {
			used[h] = pool.Draining
		}
		v.held[h] = v.held[h] && up
	}
	return used
}

type phase uint8

const (
	unopened phase = iota
	opened         // the SYN is in flight
	established
	closing // the server is in FIN-WAIT-2 or TIME-WAIT, the client sends on, or its FIN
	over    // it ended, or its host died
)

// checker explores a set-up for the flows of one bucket.
type checker struct {
	setup
	bucket      int
	generations []*pool.Generation
	following   map[making]int32
	known       map[string]int32
}

// making is what a generation is made of.
type making struct {
	how   origin
	from  int32
	hosts [hostsMax]pool.State
}

type origin uint8

const (
	anew origin = iota
	onward
	resumed
)

func newChecker(s setup, bucket int) *checker {
	return &checker{setup: s, bucket: bucket, following: map[making]int32{},
		known: map[string]int32{}}
}

// buckets is how many are explored. In a ranking, the order of hosts in one bucket is as good as in
// another. Other tables treat buckets differently; these numbers are multiples of all numbers of
// hosts.
func (s *setup) buckets() int {
	switch {
	case s.method == pool.Rendezvous:
		return 1
	case s.hosts < 4:
		return 6
	}
	return 12
}

func (s *setup) spec() pool.Spec {
	return pool.Spec{Buckets: s.buckets(), Seed: 7, Policy: s.policy, Method: s.method,
		Candidates: s.candidates, Depth: s.depth}
}

func (s *setup) backends(hosts [hostsMax]pool.State) []pool.Backend {
	backends := make([]pool.Backend, s.hosts)
	for i := range backends {
		backends[i] = pool.Backend{ID: uint16(i + 1), Weight: 1, State: hosts[i]}
		if s.sites {
			backends[i].Site = uint16(i % 2)
		}
	}
	return backends
}

// generation makes a generation, or finds the one that was made so before. Those with the same
// chains, for the same reasons, for the same hosts are one, since all that follows from them is the
// same; only exact tables with several candidates hold more than the chains show.
func (c *checker) generation(how origin, from int32, hosts [hostsMax]pool.State) int32 {
	key := making{how, from, hosts}
	n, ok := c.following[key]
	if !ok {
		n = c.intern(c.make(key), hosts)
		c.following[key] = n
	}
	return n
}

func (c *checker) make(m making) *pool.Generation {
	var g *pool.Generation
	var err error
	switch m.how {
	case anew:
		g, err = pool.New(c.spec(), c.backends(m.hosts), 0)
	case onward:
		g, err = c.generations[m.from].Next(c.backends(m.hosts), 0)
	case resumed:
		g, err = pool.Resume(c.spec(), c.generations[m.from].AllChains(), c.backends(m.hosts), 0)
	}
	if err != nil {
		panic(err) // a mistake in the table's row
	}
	return g
}

func (c *checker) intern(g *pool.Generation, hosts [hostsMax]pool.State) int32 {
	key := fmt.Sprint(g.AllChains(), g.Places(c.bucket), hosts)
	if c.method == pool.Exact && c.candidates > 1 {
		key = fmt.Sprint(len(c.generations))
	}
	n, ok := c.known[key]
	if !ok {
		n = int32(len(c.generations))
		c.generations = append(c.generations, g)
		c.known[key] = n
	}
	return n
}

func (c *checker) chain(v *view) pool.Chain { return c.generations[v.generation].Chain(c.bucket) }

// begin is the world at the beginning: all is up, and nobody has a past.
func (c *checker) begin() world {
	w := world{through: nobody}
	first := c.generation(anew, 0, w.hosts)
	for i := range c.edges {
		w.edges[i] = view{up: true, generation: first}
	}
	return w
}

// forget removes what all edges have seen from the log.
func (c *checker) forget(w *world) {
	for i := 0; i < int(w.logged); {
		if slices.ContainsFunc(w.edges[:c.edges], func(v view) bool { return v.up && !v.seen[i] }) {
			i++
			continue
		}
		last := int(w.logged) - 1
		copy(w.log[i:], w.log[i+1:])
		w.log[last] = change{}
		for e := range w.edges {
			copy(w.edges[e].seen[i:], w.edges[e].seen[i+1:])
			w.edges[e].seen[last] = false
			copy(w.edges[e].awaits[i:], w.edges[e].awaits[i+1:])
			w.edges[e].awaits[last] = false
		}
		w.logged--
	}
}

// settled tells whether all edges know all.
func (w *world) settled() bool { return w.logged == 0 }

// step is something that happens.
type step struct {
	what       action
	edge, host int8
	to         pool.State
}

type action uint8

const (
	hostChanges action = iota
	edgeLearns
	holdEnds
	edgeDies
	edgeStarts
	synSent
	synAccepted
	synPassed
	dataSent
	dataArrives
	strayArrives
	packetLost
	flowEnds
	synAckLost
	synAckArrives
	synAnsweredOld
	serverCloses
	finArrives
	dataSwallowed
)

func (s step) String() string {
	switch s.what {
	case hostChanges:
		return fmt.Sprintf("host %d goes %v", s.host+1, s.to)
	case edgeLearns:
		return fmt.Sprintf("edge %d learns that host %d is %v", s.edge+1, s.host+1, s.to)
	case holdEnds:
		return fmt.Sprintf("edge %d holds host %d no longer", s.edge+1, s.host+1)
	case edgeDies:
		return fmt.Sprintf("edge %d dies", s.edge+1)
	case edgeStarts:
		return fmt.Sprintf("edge %d starts", s.edge+1)
	case synSent:
		return fmt.Sprintf("SYN through edge %d", s.edge+1)
	case synAccepted:
		return fmt.Sprintf("host %d accepts the connection", s.host+1)
	case synPassed:
		return fmt.Sprintf("host %d refuses, and passes the SYN on", s.host+1)
	case dataSent:
		return fmt.Sprintf("data through edge %d", s.edge+1)
	case dataArrives:
		return fmt.Sprintf("data arrives at host %d", s.host+1)
	case strayArrives:
		return fmt.Sprintf("the stray arrives at edge %d", s.edge+1)
	case packetLost:
		return "the packet is lost: its host is down"
	case synAckLost:
		return fmt.Sprintf("host %d accepts the connection, and its SYN-ACK is lost", s.host+1)
	case synAckArrives:
		return fmt.Sprintf("the SYN-ACK of host %d arrives", s.host+1)
	case synAnsweredOld:
		return fmt.Sprintf("host %d answers for a connection before", s.host+1)
	case serverCloses:
		return fmt.Sprintf("host %d closes the connection", s.host+1)
	case finArrives:
		return fmt.Sprintf("the FIN arrives at host %d; the client uses the port again", s.host+1)
	case dataSwallowed:
		return fmt.Sprintf("data arrives at host %d, which has a socket of the connection before",
			s.host+1)
	}
	return "the flow ends"
}
