package pcc

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"sextant/lb/pool"
)

// simulation is a Churn on its way.
type simulation struct {
	Churn
	pool    *rand.Rand // draws servers and lags: the same changes whatever the policy
	clients *rand.Rand // draws flows: the same flows
	agenda  agenda
	now     time.Duration
	last    time.Duration // when the latest flow arrived
	arrives time.Duration // when the next flow does
	servers []server      // by id
	edges   []edge
	live    []int // edges that are there
	flows   [][]flow
	past    []past // connections that their servers have in TIME-WAIT, in any order
	result  Result
}

// server is how it really is; edges learn of that later.
type server struct {
	state   pool.State
	lives   uint32 // how many times it has died
	moves   uint32 // how many times it has left or come back
	holding bool   // it is back, and takes no new connections yet
}

func newSimulation(c Churn) (*simulation, error) {
	s := &simulation{
		Churn:   c,
		pool:    rand.New(rand.NewPCG(c.Seed, 1)),
		clients: rand.New(rand.NewPCG(c.Seed, 2)),
		servers: make([]server, c.Servers+1),
		edges:   make([]edge, c.Edges),
		flows:   make([][]flow, c.Spec.Buckets),
	}
	for i := range s.edges {
		var err error
		if s.edges[i].generation, err = pool.New(c.Spec, s.backends(), 0); err != nil {
			return nil, err
		}
		s.edges[i].chains = s.edges[i].generation.AllChains()
		s.live = append(s.live, i)
	}
	s.arrives = s.gap()
	s.agenda.add(c.Flap, s.flap)
	if c.Restart > 0 {
		s.agenda.add(c.Restart, func() error { return s.kill(0) })
	}
	return s, nil
}

// gap is the time between two new flows.
func (s *simulation) gap() time.Duration {
	return time.Duration(s.clients.ExpFloat64() / s.Rate * float64(time.Second))
}

func (s *simulation) backends() []pool.Backend {
	backends := make([]pool.Backend, s.Servers)
	for i := range backends {
		backends[i] = pool.Backend{ID: uint16(i + 1), Weight: 1, State: s.servers[i+1].state}
	}
	return backends
}

// flap lets a random server leave or come back.
func (s *simulation) flap() error {
	s.agenda.add(s.now+s.Flap, s.flap)
	up := 0
	for _, server := range s.servers[1:] {
		if server.state == pool.Up {
			up++
		}
	}
	id := 1 + s.pool.IntN(s.Servers)
	switch server := &s.servers[id]; {
	case server.state == pool.Up && up <= s.MinUp:
		return nil
	case server.state == pool.Up || server.holding:
		return s.turn(id, s.Leave)
	case s.Hold > 0:
		return s.hold(id)
	}
	return s.turn(id, pool.Up)
}

// hold lets a server that comes back take new connections after the hold time, unless it leaves
// again before.
func (s *simulation) hold(id int) error {
	err := s.turn(id, pool.Draining)
	server := &s.servers[id]
	server.holding = true
	moves := server.moves
	s.agenda.add(s.now+s.Hold, func() error {
		if server.moves != moves {
			return nil
		}
		return s.turn(id, pool.Up)
	})
	return err
}

// turn changes a server, and tells all edges.
func (s *simulation) turn(id int, to pool.State) error {
	server := &s.servers[id]
	server.state = to
	server.moves++
	server.holding = false
	if to == pool.Down {
		server.lives++
	}
	s.result.Changes++
	backends := s.backends()
	for i := range s.edges {
		e := &s.edges[i]
		epoch := e.epoch
		e.informed = max(e.informed, s.now+s.lag()) // news do not overtake each other
		learn := func() error {
			if e.epoch != epoch {
				return nil // another process, which has asked for itself
			}
			return s.learn(i, backends)
		}
		if e.informed > s.now {
			s.agenda.add(e.informed, learn)
		} else if err := learn(); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) lag() time.Duration {
	if s.Lag == 0 {
		return 0
	}
	return time.Duration(s.pool.Int64N(int64(s.Lag)))
}

// reachable tells whether packets to this server arrive.
func (s *simulation) reachable(id uint16) bool { return s.servers[id].state != pool.Down }

// finish counts the flows that nothing has happened to since they ended.
func (s *simulation) finish() {
	for bucket := range s.flows {
		s.forget(bucket)
	}
}

// event is something to do at its time.
type event struct {
	at    time.Duration
	order uint64
	do    func() error
}

// agenda is a queue of events by time; those of the same time are in the order in which they were
// added.
type agenda struct {
	events []event
	added  uint64
}

func (a *agenda) add(at time.Duration, do func() error) {
	a.added++
	heap.Push(a, event{at, a.added, do})
}

// next takes the earliest event out. There always is one: the next flap.
func (a *agenda) next() event { return heap.Pop(a).(event) }

// Len, Less, Swap, Push and Pop are those of container/heap.
func (a *agenda) Len() int { return len(a.events) }

// Less puts the earliest event first.
func (a *agenda) Less(i, j int) bool {
	if a.events[i].at != a.events[j].at {
		return a.events[i].at < a.events[j].at
	}
	return a.events[i].order < a.events[j].order
}

// Swap exchanges two events.
func (a *agenda) Swap(i, j int) { a.events[i], a.events[j] = a.events[j], a.events[i] }

// Push adds an event at the end.
func (a *agenda) Push(e any) { a.events = append(a.events, e.(event)) }

// Pop removes the event at the end.
func (a *agenda) Pop() any {
	e := a.events[len(a.events)-1]
	a.events = a.events[:len(a.events)-1]
	return e
}
