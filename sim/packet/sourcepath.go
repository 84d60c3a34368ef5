package packet

// beforeSend lets the source choose again before a packet.
func (s *Simulation) beforeSend(f *subflow, c *connection, e *packet) {
	switch s.paths.Scheme {
	case Flowlets:
		if s.now-f.path.last > s.paths.FlowletGap {
			s.another(f, c)
		}
	case Clove, CloveINT, InFlight:
		s.byView(f, c, e)
	case Hermes:
		s.byHermes(f, c, e)
	case Controlled:
		s.controlSend(f, e)
	case PRR:
		e.via = int32(f.path.label & (1<<31 - 1))
	case REPS:
		if f.path.table != none && e.kind == data {
			s.recycled(f, c)
			e.via = f.path.choice
		}
	}
}

// rerouteAll lets the rule decide on each subflow.
func (s *Simulation) rerouteAll() {
	for i := range s.subflows {
		f := &s.subflows[i]
		if f.state != open || f.path.table == none {
			continue
		}
		t := &s.paths.tables[f.path.table]
		if len(t.fabric) < 2 {
			continue
		}
		load := s.paths.load[:0]
		for _, path := range t.fabric {
			work := Time(0)
			for _, l := range path {
				work += s.work(l)
			}
			load = append(load, work)
		}
		s.paths.load = load
		choice := int32(s.paths.Reroute(load, int(f.path.choice), s.paths.random.Uint64()))
		if choice != f.path.choice {
			c := &s.connections[f.connection]
			s.use(c, &f.path, choice)
			c.reroutes++
			s.totals.Reroutes++
		}
	}
}

// another puts a subflow onto a random path.
func (s *Simulation) another(f *subflow, c *connection) {
	p := &f.path
	if p.table == none {
		return
	}
	n := len(s.paths.tables[p.table].fabric)
	if n < 2 {
		return
	}
	if choice := int32(s.paths.random.IntN(n)); choice != p.choice {
		s.use(c, p, choice)
		c.reroutes++
		s.totals.Reroutes++
	}
}

// relabel gives a subflow another label, which switches hash to another path perhaps.
func (s *Simulation) relabel(f *subflow, c *connection) {
	f.path.label = s.paths.random.Uint64()
	if route := s.hashedRoute(c.src, c.dst, f.path.label); route != f.path.forward {
		f.path.forward = route
		c.reroutes++
		s.totals.Reroutes++
	}
}

// pathFeedback takes an acknowledgement into account.
func (s *Simulation) pathFeedback(f *subflow, e *packet, newly uint32) {
	clean := e.flags&echo == 0
	switch s.paths.Scheme {
	case PLB:
		s.plb(f, e, newly)
	case REPS:
		if e.via != none {
			f.path.cache.returned(e.via, clean)
		}
	case Clove:
		if v := f.path.view; !clean && e.via != none && v != nil {
			v.shun(e.via)
		}
	case Hermes:
		s.hermesAck(f, e, clean)
	case InFlight:
		if v := f.path.view; e.via != none && v != nil {
			v.arrived(e.via, float64(newly)*float64(s.transport.Payload+s.transport.Header), s.now)
		}
	case CloveINT:
		if v := f.path.view; e.via != none && v != nil {
			v.learn(e.via>>utilizationBits, e.via&utilizationMask, s.now)
		}
	}
}

// pathTimeout lets the source leave a path on which nothing arrives (PRR: Wetherall et al., SIGCOMM
// 2023).
func (s *Simulation) pathTimeout(f *subflow) {
	c := &s.connections[f.connection]
	switch s.paths.Scheme {
	case PLB, PRR:
		s.relabel(f, c)
	case REPS:
		if f.state != open {
			s.another(f, c)
		}
	case Hermes:
		s.hermesTimeout(f, c)
	case Flowlets, Clove, CloveINT, InFlight:
		s.another(f, c)
	}
}

// duplicated lets the receiver of PRR send acknowledgements over another path when a segment comes
// again with a new label: the old path of the acknowledgements is likely broken.
func (s *Simulation) duplicated(f *subflow) {
	c := &s.connections[f.connection]
	f.path.back = s.hashedRoute(c.dst, c.src, s.paths.random.Uint64())
}

// The defaults of Linux's tcp_plb_*.
const (
	plbRounds   = 12
	plbMarked   = 0.5
	plbIdleHalf = 3
)

// plb counts rounds in which at least half of the segments were marked, and relabels after
// plbRounds of them in a row, or, when nothing is under way, after plbIdleHalf.
func (s *Simulation) plb(f *subflow, e *packet, newly uint32) {
	r := &f.path.rounds
	r.acked += newly
	if e.flags&echo != 0 {
		r.marked += newly
	}
	if int32(f.una-r.end) < 0 {
		return
	}
	if r.acked > 0 {
		if float64(r.marked) >= plbMarked*float64(r.acked) {
			r.congested++
		} else {
			r.congested = 0
		}
	}
	r.acked, r.marked, r.end = 0, 0, f.nxt
	if r.congested >= plbRounds || r.congested >= plbIdleHalf && f.flight == 0 {
		r.congested = 0
		s.relabel(f, &s.connections[f.connection])
	}
}
