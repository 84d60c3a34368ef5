package packet

import "math"

// As Hermes (Zhang et al., "Resilient datacenter load balancing in the wild", SIGCOMM 2017): hosts
// sense paths by marks on acknowledgements and by probes, which all hosts of a switch share, and
// judge them good, gray or congested. A flow begins on the good path over which they send least,
// and leaves a congested path only if it has sent enough, is slow, and finds one that is notably
// better. A path on which timers expire counts as failed for a time. Probes take no bandwidth; a
// round trip is known by probes alone, so that the sender's own queue does not count.

// hermesView is what the hosts of a switch know of the paths to another.
type hermesView struct {
	paths []hermesPath
	best  int32
	hop   Time // that a packet waits in the shortest queue that marks
}

type hermesPath struct {
	marks    float64 // part of the acknowledgements that told of marks
	wait     Time    // in queues, as a probe found it
	bytes    float64 // sent, decaying
	at       Time    // of bytes
	timeouts uint8
	failed   Time // until then
}

// The settings of the paper, section 5.1.
const (
	hermesMarks       = 0.4               // above which a path is marked much
	hermesBetterMarks = 0.05              // by which another path is notably better
	hermesSent        = 600_000           // bytes from which on a flow may move
	hermesSlow        = 0.3               // of the host's link, below which a flow is slow
	hermesProbe       = 500 * Microsecond // between probes
	hermesDecay       = 200 * Microsecond // of rates
	hermesGain        = 1.0 / 16          // of what one acknowledgement tells
	hermesTimeouts    = 3                 // after which a path counts as failed
	hermesFailed      = Second / 10       // and for how long
)

// hermesView is the view of the paths of a connection.
func (s *Simulation) hermesView(c *connection, table int32) *hermesView {
	key := [2]Node{s.network.entry[c.src], s.network.entry[c.dst]}
	v := s.paths.hermes[key]
	if v == nil {
		fabric := s.paths.tables[table].fabric
		v = &hermesView{paths: make([]hermesPath, len(fabric)), hop: never / 4}
		for _, path := range fabric {
			for _, l := range path {
				k := &s.links[l]
				v.hop = min(v.hop, k.mark, s.network.links[l].limit/2)
			}
		}
		s.paths.hermes[key] = v
		s.paths.hermesOrder = append(s.paths.hermesOrder, hermesProbed{v, fabric})
	}
	return v
}

// hermesProbed is a view with its paths, in the order in which they are probed.
type hermesProbed struct {
	view   *hermesView
	fabric [][]int32
}

// hermesProbes sends one round of probes: over two random paths and the best one of last time.
func (s *Simulation) hermesProbes() {
	for _, p := range s.paths.hermesOrder {
		n := len(p.fabric)
		if n < 2 {
			continue
		}
		for _, i := range [...]int32{int32(s.paths.random.IntN(n)), int32(s.paths.random.IntN(n)),
			p.view.best} {
			wait, mark, up := Time(0), 0.0, true
			for _, l := range p.fabric[i] {
				k := &s.links[l]
				queue := s.work(l)
				wait += queue
				up = up && !k.down
				if queue > k.mark {
					mark = 1
				}
			}
			h := &p.view.paths[i]
			h.marks += (mark - h.marks) / 4
			if h.wait = wait; !up {
				h.wait = never / 4
			}
			if wait < p.view.paths[p.view.best].wait {
				p.view.best = i
			}
		}
	}
}

// quality of a path: the lower, the better.
type quality uint8

const (
	good quality = iota
	gray
	congested
	failed
)

func (v *hermesView) quality(path int32, now Time) quality {
	p := &v.paths[path]
	switch {
	case p.failed > now:
		return failed
	case p.marks < hermesMarks && p.wait < v.hop/2:
		return good
	case p.marks > hermesMarks && p.wait > v.hop*3/2:
		return congested
	}
	return gray
}

// sending is the rate at which the hosts send over a path, in bytes per decay time.
func (p *hermesPath) sending(now Time) float64 {
	return p.bytes * math.Exp(-float64(now-p.at)/float64(hermesDecay))
}

// pick is the path of the wanted quality over which least is sent, of those that suit; none.
func (v *hermesView) pick(q quality, now Time, suits func(*hermesPath) bool) int32 {
	best, least := none, math.Inf(1)
	for i := range v.paths {
		p := &v.paths[i]
		if v.quality(int32(i), now) != q || !suits(p) {
			continue
		}
		if rate := p.sending(now); rate < least {
			best, least = int32(i), rate
		}
	}
	return best
}

// hermesFresh is the path of a flow that begins, or that leaves a failed path.
func (s *Simulation) hermesFresh(v *hermesView) int32 {
	all := func(*hermesPath) bool { return true }
	for _, q := range [...]quality{good, gray} {
		if p := v.pick(q, s.now, all); p != none {
			return p
		}
	}
	choice, seen := int32(s.paths.random.IntN(len(v.paths))), 0
	for i := range v.paths {
		if v.paths[i].failed <= s.now {
			if seen++; s.paths.random.IntN(seen) == 0 {
				choice = int32(i)
			}
		}
	}
	return choice
}

// byHermes lets a source choose before a packet.
func (s *Simulation) byHermes(f *subflow, c *connection, e *packet) {
	p := &f.path
	if p.table == none || len(s.paths.tables[p.table].fabric) == 0 {
		return
	}
	v := s.hermesView(c, p.table)
	choice := p.choice
	switch v.quality(choice, s.now) {
	case failed:
		choice = s.hermesFresh(v)
	case congested:
		if s.hermesMay(f) {
			choice = v.better(choice, s.now)
		}
	}
	if choice != p.choice {
		s.use(c, p, choice)
		c.reroutes++
		s.totals.Reroutes++
	}
	h := &v.paths[choice]
	h.bytes, h.at = h.sending(s.now)+float64(e.size), s.now
	e.via = choice
}

// hermesMay tells whether a flow on a congested path may leave it: it has sent enough to gain from
// that, and is slow.
func (s *Simulation) hermesMay(f *subflow) bool {
	if f.srtt == 0 || float64(f.delivered)*float64(s.transport.Payload) < hermesSent {
		return false
	}
	c := &s.connections[f.connection]
	rate := f.window.cwnd * float64(s.transport.Payload) / f.srtt.Seconds()
	return rate < hermesSlow*s.links[s.network.out[c.src][0]].rate()
}

// better is a good or gray path that is notably better than a congested one, or that one.
func (v *hermesView) better(path int32, now Time) int32 {
	own := v.paths[path]
	suits := func(p *hermesPath) bool {
		return own.wait-p.wait > v.hop && own.marks-p.marks > hermesBetterMarks
	}
	for _, q := range [...]quality{good, gray} {
		if p := v.pick(q, now, suits); p != none {
			return p
		}
	}
	return path
}

// hermesAck takes an acknowledgement into account.
func (s *Simulation) hermesAck(f *subflow, e *packet, clean bool) {
	if e.via == none || f.path.table == none {
		return
	}
	v := s.hermesView(&s.connections[f.connection], f.path.table)
	if int(e.via) >= len(v.paths) {
		return
	}
	h, mark := &v.paths[e.via], 1.0
	if clean {
		mark = 0
	}
	h.marks += hermesGain * (mark - h.marks)
	h.timeouts = 0
}

// hermesTimeout counts timeouts of a path on which nothing is acknowledged, and moves the flow.
func (s *Simulation) hermesTimeout(f *subflow, c *connection) {
	p := &f.path
	if p.table == none || len(s.paths.tables[p.table].fabric) == 0 {
		return
	}
	v := s.hermesView(c, p.table)
	h := &v.paths[p.choice]
	if h.timeouts++; h.timeouts >= hermesTimeouts {
		h.timeouts, h.failed = 0, s.now+hermesFailed
	}
	if choice := s.hermesFresh(v); choice != p.choice {
		s.use(c, p, choice)
		c.reroutes++
		s.totals.Reroutes++
	}
}
