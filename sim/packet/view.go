package packet

import "math"

// view is what a host knows of the paths to a switch; all its flows to hosts there share it.
type view struct {
	paths []pathView
	rtt   Time // last estimate of any flow
}

// pathView is what a host knows of one path.
type pathView struct {
	weight float32 // of Clove
	used   int32   // of CloveINT: last reported utilization, in 1/128
	at     Time    // of used, or of bytes
	bytes  float64 // of InFlight: sent, decaying over a round-trip time
}

// view is the source's view of the paths of a connection.
func (s *Simulation) view(c *connection, paths int) *view {
	key := [2]Node{c.src, s.network.entry[c.dst]}
	v := s.paths.views[key]
	if v == nil {
		v = &view{paths: make([]pathView, paths)}
		for i := range v.paths {
			v.paths[i].weight = 1
		}
		s.paths.views[key] = v
	}
	return v
}

// byView lets a source choose when a flowlet begins.
func (s *Simulation) byView(f *subflow, c *connection, e *packet) {
	p := &f.path
	if p.view == nil {
		return
	}
	if len(p.view.paths) > 1 && s.now-p.last > s.paths.FlowletGap {
		if choice := s.viewChoice(p); choice != p.choice {
			s.use(c, p, choice)
			c.reroutes++
			s.totals.Reroutes++
		}
	}
	switch s.paths.Scheme {
	case Clove:
		e.via = p.choice
	case CloveINT:
		e.via = p.choice << utilizationBits
	case InFlight:
		v := &p.view.paths[p.choice]
		v.bytes, v.at = v.underway(s.now, p.view.rtt)+float64(e.size), s.now
		p.view.rtt = f.srtt
		e.via = p.choice
	}
}

// viewChoice is the path that a source gives the next flowlet.
func (s *Simulation) viewChoice(p *pathState) int32 {
	v := p.view
	if s.paths.Scheme == Clove {
		return s.weighted(v)
	}
	best, least, equal := int32(0), math.Inf(1), 0
	for i := range v.paths {
		cost := float64(v.paths[i].used)
		if s.paths.Scheme == InFlight {
			cost = v.paths[i].underway(s.now, v.rtt)
		} else if s.now-v.paths[i].at > congestionAge {
			cost = 0
		}
		switch {
		case cost < least:
			best, least, equal = int32(i), cost, 1
		case cost <= least:
			if equal++; s.paths.random.IntN(equal) == 0 {
				best = int32(i)
			}
		}
	}
	return best
}

// weighted draws a path by weight.
func (s *Simulation) weighted(v *view) int32 {
	sum := float32(0)
	for i := range v.paths {
		sum += v.paths[i].weight
	}
	choice, x := 0, float32(s.paths.random.Float64())*sum
	for ; choice < len(v.paths)-1 && x >= v.paths[choice].weight; choice++ {
		x -= v.paths[choice].weight
	}
	return int32(choice)
}

// cloveCut is the part of its weight that a path loses when a mark tells that it is congested; the
// others share it.
const cloveCut = 1.0 / 3

// shun takes weight from a path.
func (v *view) shun(path int32) {
	n := len(v.paths)
	if n < 2 || int(path) >= n {
		return
	}
	cut := v.paths[path].weight * cloveCut
	for i := range v.paths {
		v.paths[i].weight += cut / float32(n-1)
	}
	v.paths[path].weight -= cut + cut/float32(n-1)
}

// learn notes the utilization of a path.
func (v *view) learn(path, used int32, now Time) {
	if int(path) < len(v.paths) {
		v.paths[path].used, v.paths[path].at = used, now
	}
}

// forgets is in how many round-trip times the bytes under way decay that nothing is heard of.
const forgets = 8

// underway is how many bytes are under way on a path: those sent and not acknowledged. Lost ones
// decay.
func (v *pathView) underway(now, rtt Time) float64 {
	if rtt == 0 {
		return v.bytes
	}
	return v.bytes * math.Exp(-float64(now-v.at)/float64(forgets*rtt))
}

// arrived takes bytes that are acknowledged off a path.
func (v *view) arrived(path int32, bytes float64, now Time) {
	if int(path) < len(v.paths) {
		p := &v.paths[path]
		p.bytes, p.at = max(p.underway(now, v.rtt)-bytes, 0), now
	}
}
