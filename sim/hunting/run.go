package hunting

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/lb/acceptance"
	"sextant/lb/pool"
	"sextant/sim/queueing"
	"sextant/sim/workload"
)

// job is a request that a server works on.
type job struct {
	at       time.Duration // when it was sent
	class    workload.Class
	measured bool
	balancer int    // that sent it
	flight   uint32 // requests at its server when it came
}

// server is a machine with what its host has learnt.
type server struct {
	machine     *queueing.Machine[job]
	policy      acceptance.Policy
	state       acceptance.State
	connections uint32
	limit       uint32 // connections beyond which new ones are refused
	cores       uint32
	latencies   latencies // nil: nobody asks
}

// opening is a connection whose handshake is under way.
type opening struct {
	job    job
	demand time.Duration
	server int
	at     time.Duration // when the handshake is over
}

// simulation is a run under way.
type simulation struct {
	config     Config
	servers    []server
	ends       *tournament // of the first job of each server
	generation *pool.Generation
	random     *rand.Rand
	weights    []pool.Backend
	changes    []Change
	paces      []Pace
	openings   []opening  // by time
	crowd      *crowd     // LeastOfAll
	listeners  []listener // LeastReported
	probers    []prober   // ByProbes
	network    *network   // nil: none
	given      []uint8    // what is left of Config.Given
	nextLoads  time.Duration
	loads      []float64
	result     *recorder
}

// Run simulates what the config describes.
func Run(c Config) (*Result, error) {
	s, err := newSimulation(c)
	if err != nil {
		return nil, err
	}
	if err := s.play(); err != nil {
		return nil, err
	}
	return s.result.result(), nil
}

func newSimulation(c Config) (*simulation, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &simulation{
		config: c, servers: make([]server, len(c.Servers)), ends: newTournament(len(c.Servers)),
		random: rand.New(rand.NewPCG(c.Seed, 3)), changes: c.Changes, paces: c.Paces,
		given: c.Given, loads: make([]float64, len(c.Servers)), result: newRecorder(),
	}
	for i, spec := range c.Servers {
		machine, err := queueing.NewMachine[job](spec.Cores, spec.Workers)
		if err != nil {
			return nil, fmt.Errorf("hunting: server %d: %w", i+1, err)
		}
		policy := c.Policy
		policy.Workers, policy.Cores = uint32(spec.Workers), uint32(spec.Cores)
		s.servers[i] = server{machine: machine, policy: policy, state: policy.Initial(),
			limit: uint32(spec.Workers + spec.Backlog), cores: uint32(spec.Cores)}
		s.weights = append(s.weights, pool.Backend{ID: uint16(i + 1), Weight: spec.Weight})
	}
	switch balancers := max(1, c.Balancers); c.Choice {
	case LeastOfAll:
		s.crowd = newCrowd(s.servers)
		return s, nil
	case ByProbes:
		s.probers = slices.Repeat([]prober{{cold: c.Cold}}, balancers)
		for i := range s.servers {
			s.servers[i].latencies = latencies{}
		}
		return s, nil
	case LeastReported:
		s.listeners = make([]listener, balancers)
		for i := range s.listeners {
			s.listeners[i].known = make([]uint32, len(s.servers))
		}
	}
	// The exact table gives every server its share, as the theory of random choice assumes.
	spec := pool.Spec{Buckets: c.Buckets, Seed: c.Seed, Method: pool.Exact,
		Candidates: c.Candidates}
	var err error
	if s.network, err = newNetwork(c.Network, len(c.Servers), c.Seed); err != nil {
		return nil, err
	}
	s.generation, err = pool.New(spec, s.weights, 0)
	return s, err
}

// progressEvery is after how many requests Progress is called.
const progressEvery = 1 << 14

// play lets all requests come, and all jobs end.
func (s *simulation) play() error {
	for n := 1; ; n++ {
		r, ok := s.config.Requests.Next()
		if !ok || s.config.Until > 0 && r.At >= s.config.Until {
			break
		}
		if err := s.advance(r.At); err != nil {
			return err
		}
		s.arrive(r)
		if n%progressEvery == 0 && s.config.Progress != nil {
			if err := s.config.Progress(r.At); err != nil {
				return err
			}
		}
	}
	if s.network != nil {
		s.network.over = true
	}
	if err := s.advance(never); err != nil {
		return err
	}
	for i := range s.servers {
		if n := s.servers[i].connections; n > 0 {
			return fmt.Errorf("hunting: %d requests at server %d do not end within 292 years", n,
				i+1)
		}
	}
	return nil
}

// advance plays what happens up to a time.
func (s *simulation) advance(to time.Duration) error {
	for len(s.changes) > 0 && s.changes[0].At <= to && to != never {
		if err := s.change(s.changes[0]); err != nil {
			return err
		}
		s.changes = s.changes[1:]
	}
	for len(s.paces) > 0 && s.paces[0].At <= to {
		p := s.paces[0]
		s.paces = s.paces[1:]
		s.run(p.At)
		s.finish(p.Server, p.At)
		s.servers[p.Server].machine.SetSpeed(p.Speed)
		s.schedule(p.Server)
	}
	s.run(to)
	return nil
}

// run plays what happens up to a time, while all weights and paces stay.
func (s *simulation) run(to time.Duration) {
	for {
		i, at := s.ends.first()
		opens := len(s.openings) > 0 && s.openings[0].at <= at
		if opens {
			at = s.openings[0].at
		}
		crossing, happens := s.event()
		if crossing < at {
			at, opens = crossing, false
		} else {
			happens = nil
		}
		if at > to || at == never {
			break
		}
		s.show(at)
		if happens != nil {
			happens()
			continue
		}
		if opens {
			o := s.openings[0]
			s.openings = s.openings[1:]
			s.serve(o.server, o.job, o.demand, at)
			continue
		}
		s.finish(i, at)
	}
	if to != never {
		s.show(to)
	}
}

func (s *simulation) change(c Change) error {
	s.weights[c.Server].Weight = c.Weight
	if s.generation == nil {
		return nil
	}
	next, err := s.generation.Next(s.weights, c.At)
	s.generation = next
	return err
}

// show tells the loads at all intervals before a time.
func (s *simulation) show(at time.Duration) {
	for s.config.Loads != nil && s.nextLoads <= at {
		for i := range s.servers {
			s.loads[i] = float64(s.servers[i].connections)
		}
		s.config.Loads(s.nextLoads, s.loads)
		s.nextLoads += s.config.Interval
	}
}

// arrive gives a request to a server.
func (s *simulation) arrive(r workload.Request) {
	j := job{at: r.At, class: r.Class, measured: r.At >= s.config.WarmUp}
	i := s.next(&j)
	if s.network != nil {
		s.cross(j, r.Service, i, r.At)
		return
	}
	if s.config.Handshake == 0 {
		s.serve(i, j, r.Service, r.At)
		return
	}
	s.openings = append(s.openings, opening{j, r.Service, i, r.At + s.config.Handshake})
}

// serve lets a server begin with a request, or refuse it if its queue is full.
func (s *simulation) serve(i int, j job, demand, at time.Duration) {
	v := &s.servers[i]
	if v.connections >= v.limit {
		s.result.overflow(j)
		return
	}
	s.finish(i, at)
	j.flight = v.connections
	v.machine.Add(j, demand)
	s.count(i, 1, at)
	s.tell(i, j, at)
	s.schedule(i)
}

// finish ends the jobs of a server that are done at a time.
func (s *simulation) finish(i int, at time.Duration) {
	done := s.servers[i].machine.Advance(at)
	if len(done) == 0 {
		return
	}
	for _, f := range done {
		s.count(i, -1, f.At)
		s.result.done(f.Job, f.At)
		s.tell(i, f.Job, f.At)
		if v := &s.servers[i]; v.latencies != nil {
			v.latencies.add(f.Job.flight, f.At-f.Job.at)
		}
	}
	s.schedule(i)
}

func (s *simulation) count(i, change int, at time.Duration) {
	v := &s.servers[i]
	v.state = v.policy.Moved(v.state, v.connections, change < 0, at)
	v.connections = uint32(int(v.connections) + change)
	if s.crowd != nil {
		s.crowd.move(i, v.connections)
	}
}

func (s *simulation) schedule(i int) {
	at, busy := s.servers[i].machine.Next()
	if !busy {
		at = never
	}
	s.ends.set(i, at)
}
