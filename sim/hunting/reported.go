package hunting

import "time"

// report is how many connections a server had when it last told a balancer.
type report struct {
	server      int
	connections uint32
	arrives     time.Duration
}

// listener is a balancer that knows servers from what their packets tell.
type listener struct {
	known  []uint32 // connections by server
	coming []report
}

// tell has a server tell a job's balancer of its connections.
func (s *simulation) tell(i int, j job, now time.Duration) {
	if s.listeners == nil {
		return
	}
	l := &s.listeners[j.balancer]
	l.coming = append(l.coming, report{i, s.servers[i].connections, now + s.config.News})
}

// reported is the candidate with the fewest connections per core by the latest reports of a
// balancer, as in Charon (Rizzi et al., "Charon: Load-Aware Load-Balancing in P4", CNSM 2021).
func (s *simulation) reported(candidates []uint16, j *job) int {
	j.balancer = s.random.IntN(len(s.listeners))
	l := &s.listeners[j.balancer]
	for len(l.coming) > 0 && l.coming[0].arrives <= j.at {
		l.known[l.coming[0].server] = l.coming[0].connections
		l.coming = l.coming[1:]
	}
	best := int(candidates[0]) - 1
	for _, id := range candidates[1:] {
		i := int(id) - 1
		if (l.known[i]+1)*s.servers[best].cores < (l.known[best]+1)*s.servers[i].cores {
			best = i
		}
	}
	return best
}
