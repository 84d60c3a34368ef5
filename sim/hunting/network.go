package hunting

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sextant/lb/pool"
	"sextant/sim/queueing"
)

// Network is what lies between the edge and the servers. Each server is in a group, which several
// paths lead to; a request crosses one of them before its server works on it. Requests go straight
// to the server that accepted, as with a flow cache.
type Network struct {
	Paths    [][]Path      // by group; servers are dealt to groups in turn
	Transfer time.Duration // that a request takes on a free path in the mean
	// between two looks of the edge at queues of paths and loads of servers
	News time.Duration
	// of transfers in a path's queue, which then counts as full
	FullQueue int
	Steers    bool // requests take the group's best path by the latest news; else a random one
	// candidates are in order by the latest news
	OrdersByPath, OrdersByLoad bool
	// work besides requests, as connections that no policy and no edge has a say in
	Others []Others
}

// Path is a way to a group.
type Path struct {
	Free float64 // share of the capacity that other traffic leaves, above 0 to 1
}

// Others is other work of a server.
type Others struct {
	Server int
	Rate   float64       // of jobs per second
	Mean   time.Duration // CPU time of a job
}

// transfer is a request on a path.
type transfer struct {
	job    job
	demand time.Duration
	server int
}

// way is a path with what is on it.
type way struct {
	machine *queueing.Machine[transfer]
	queue   int
	free    float64
}

// network is the state of a Network.
type network struct {
	Network
	ways   []way
	first  []int       // way of each group
	best   []int       // way of each group, by the latest news
	ends   *tournament // of the first transfer of each way
	ranks  []uint8     // of servers
	random *rand.Rand
	next   time.Duration // of the news
	others time.Duration // when the next of the others' jobs comes
	rate   float64       // of all others
	over   bool          // no request comes any more: others' work and news end, too
}

func (n *Network) check(servers int) error {
	switch {
	case n == nil:
		return nil
	case len(n.Paths) == 0 || n.News <= 0 || n.FullQueue < 1 || n.Transfer < 0:
		return errors.New("hunting: a network has groups with paths, an interval of news, and a " +
			"length of full queues")
	}
	for g, paths := range n.Paths {
		for _, p := range paths {
			if !(p.Free > 0 && p.Free <= 1) {
				return fmt.Errorf("hunting: group %d has a path of which %g is free; choose above "+
					"0 to 1", g, p.Free)
			}
		}
		if len(paths) == 0 {
			return fmt.Errorf("hunting: group %d has no path", g)
		}
	}
	for _, o := range n.Others {
		if o.Server < 0 || o.Server >= servers || o.Rate <= 0 {
			return fmt.Errorf("hunting: other work of rate %g at server %d of %d", o.Rate, o.Server,
				servers)
		}
	}
	return nil
}

func newNetwork(n *Network, servers int, seed uint64) (*network, error) {
	if n == nil {
		return nil, nil
	}
	s := &network{Network: *n, ranks: make([]uint8, servers),
		random: rand.New(rand.NewPCG(seed, 5)), others: never}
	for _, paths := range n.Paths {
		s.first = append(s.first, len(s.ways))
		s.best = append(s.best, len(s.ways))
		for _, p := range paths {
			m, err := queueing.NewMachine[transfer](1, 1) // a link: one after the other
			if err != nil {
				return nil, err
			}
			s.ways = append(s.ways, way{machine: m, free: p.Free})
		}
	}
	for _, o := range n.Others {
		s.rate += o.Rate
	}
	if s.rate > 0 {
		s.others = s.pause()
	}
	s.ends = newTournament(len(s.ways))
	return s, nil
}

// pause is the time until the next of the others' jobs.
func (n *network) pause() time.Duration {
	return time.Duration(n.random.ExpFloat64() / n.rate * float64(time.Second))
}

func (n *network) group(server int) int { return server % len(n.Paths) }

// way is the one that a request takes to a server.
func (n *network) way(server int) int {
	g := n.group(server)
	if n.Steers {
		return n.best[g]
	}
	return n.first[g] + n.random.IntN(len(n.Paths[g]))
}

// cost is the congestion of a way, as the edge weighs it: one link, and the share of its queue.
// What other traffic has in it is as much as a queue of its load has in the mean (M/M/1).
func (n *network) cost(w int) float64 {
	const unit = 10_000
	v := &n.ways[w]
	queue := float64(v.queue) + (1-v.free)/v.free
	return 1 + unit*min(queue/float64(n.FullQueue), 1)
}

// learn is what the edge does with news: a way gives way to one that is lighter by a quarter, and
// servers get their ranks.
func (s *simulation) learn() {
	n := s.network
	mean := 0.0
	for i := range s.servers {
		mean += s.servers[i].load() / float64(len(s.servers))
	}
	costs, least := make([]float64, len(n.Paths)), 0.0
	for g, paths := range n.Paths {
		least := n.best[g]
		for w := n.first[g]; w < n.first[g]+len(paths); w++ {
			if n.cost(w) < n.cost(least) {
				least = w
			}
			costs[g] += n.cost(w) / float64(len(paths))
		}
		if 4*n.cost(least) < 3*n.cost(n.best[g]) {
			n.best[g] = least
		}
		if n.Steers {
			costs[g] = n.cost(n.best[g])
		}
	}
	for g := range costs {
		if g == 0 || costs[g] < least {
			least = costs[g]
		}
	}
	for i := range s.servers {
		var w pool.Weight
		if n.OrdersByPath {
			w.Path, w.LeastPath, w.EmptyPath = costs[n.group(i)], least, emptyPath
		}
		if n.OrdersByLoad {
			w.Load, w.MeanLoad = s.servers[i].load(), mean
		}
		n.ranks[i] = w.Rank(n.ranks[i])
	}
}

const emptyPath = 2_000 // as the edge's

// load is what a host tells: connections per core, half a connection added.
func (v *server) load() float64 { return (float64(v.connections) + 0.5) / float64(v.cores) }

// order puts candidates into the order of their ranks.
func (n *network) order(candidates []uint16) {
	for i := 1; i < len(candidates); i++ {
		for k := i; k > 0 && n.ranks[candidates[k]-1] < n.ranks[candidates[k-1]-1]; k-- {
			candidates[k], candidates[k-1] = candidates[k-1], candidates[k]
		}
	}
}

// cross sends a request that a server has accepted over a path.
func (s *simulation) cross(j job, demand time.Duration, server int, at time.Duration) {
	n, v := s.network, &s.servers[server]
	if v.connections >= v.limit {
		s.result.overflow(j)
		return
	}
	s.count(server, 1, at)
	w := n.way(server)
	s.arrived(w, at)
	long := n.random.ExpFloat64() * float64(n.Transfer) / n.ways[w].free
	n.ways[w].machine.Add(transfer{j, demand, server}, time.Duration(long))
	n.ways[w].queue++
	n.schedule(w)
}

// arrived gives servers the requests that a way has carried up to a time.
func (s *simulation) arrived(w int, at time.Duration) {
	n := s.network
	done := n.ways[w].machine.Advance(at)
	if len(done) == 0 {
		return
	}
	n.ways[w].queue -= len(done)
	for _, f := range done {
		s.finish(f.Job.server, f.At)
		s.servers[f.Job.server].machine.Add(f.Job.job, f.Job.demand)
		s.schedule(f.Job.server)
	}
	n.schedule(w)
}

func (n *network) schedule(w int) {
	at, busy := n.ways[w].machine.Next()
	if !busy {
		at = never
	}
	n.ends.set(w, at)
}

// event is the next thing that happens in the network, and when.
func (s *simulation) event() (at time.Duration, happens func()) {
	n := s.network
	if n == nil {
		return never, nil
	}
	w, at := n.ends.first()
	happens = func() { s.arrived(w, at) }
	if n.over {
		return at, happens
	}
	if n.others <= at {
		at = n.others
		happens = func() { s.other(at) }
	}
	if n.next <= at {
		at = n.next
		happens = func() { s.learn(); n.next += n.News }
	}
	return at, happens
}

// other has one of the others' jobs come.
func (s *simulation) other(at time.Duration) {
	n := s.network
	n.others = at + n.pause()
	share := n.random.Float64() * n.rate
	for _, o := range n.Others {
		if share -= o.Rate; share < 0 {
			v := &s.servers[o.Server]
			if v.connections < v.limit {
				s.finish(o.Server, at)
				v.machine.Add(job{at: at},
					time.Duration(n.random.ExpFloat64()*float64(o.Mean)))
				s.count(o.Server, 1, at)
				s.schedule(o.Server)
			}
			return
		}
	}
}
