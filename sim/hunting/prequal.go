package hunting

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Prequal's parameters, as in its paper (Wydrowski et al., "Load is not what you should balance",
// NSDI 2024): each request sends probes to random servers, whose answers are pooled; the next
// requests choose among those.
const (
	probesPerRequest = 3
	probesMost       = 16          // in the pool, and half of the servers
	probeAge         = time.Second // after which an answer is forgotten
	poolGain         = 1           // by how much more answers are used than are removed: delta
	latenciesKept    = 9           // of a server, at each number of requests in flight
	flightsKept      = 128         // answers from which the quantile is estimated
)

// probe is what a server answered.
type probe struct {
	server  int
	sent    time.Duration
	arrives time.Duration
	flight  uint32 // requests in flight
	latency time.Duration
	uses    int // left
}

// prober is a balancer with its pool of answers.
type prober struct {
	pool    []probe // oldest first
	coming  []probe // answers under way
	flights []uint32
	cold    float64
	oldest  bool // whether the next one that is removed is the oldest, or the worst
}

// latencies are a server's latest response times by the number of requests in flight when they
// came.
type latencies map[uint32][]time.Duration

func (l latencies) add(flight uint32, took time.Duration) {
	kept := append(l[flight], took)
	l[flight] = kept[max(0, len(kept)-latenciesKept):]
}

// near is the median of the response times of requests that came when about as many were in
// flight.
func (l latencies) near(flight uint32) time.Duration {
	if len(l) == 0 {
		return 0
	}
	best, off := uint32(0), uint32(math.MaxUint32)
	for at := range l {
		distance := max(at, flight) - min(at, flight)
		if distance < off || distance == off && at < best {
			best, off = at, distance
		}
	}
	sorted := slices.Sorted(slices.Values(l[best]))
	return sorted[len(sorted)/2]
}

// poolMost is how many answers a balancer keeps.
func (s *simulation) poolMost() int { return min(probesMost, max(2, len(s.servers)/2)) }

// probed is the server of a request by a balancer's pool, and sends its probes.
func (s *simulation) probed(now time.Duration) int {
	p := &s.probers[s.random.IntN(len(s.probers))]
	p.receive(now, s.poolMost())
	chosen := s.random.IntN(len(s.servers))
	if len(p.pool) >= 2 {
		at := p.best()
		chosen = p.pool[at].server
		if p.pool[at].uses--; p.pool[at].uses <= 0 {
			p.pool = slices.Delete(p.pool, at, at+1)
		}
	}
	for i := range p.pool { // its own request is in flight there, too
		if p.pool[i].server == chosen {
			p.pool[i].flight++
		}
	}
	p.remove()
	for range probesPerRequest {
		i := s.random.IntN(len(s.servers))
		v := &s.servers[i]
		p.coming = append(p.coming, probe{server: i, sent: now, arrives: now + s.config.News,
			flight: v.connections, latency: v.latencies.near(v.connections),
			uses: s.uses(s.random)})
	}
	return chosen
}

// uses is how often an answer is used: as often in the mean as keeps the pool full.
func (s *simulation) uses(random *rand.Rand) int {
	full := float64(s.poolMost()) / float64(len(s.servers))
	each := max(1, (1+poolGain)/((1-full)*probesPerRequest-1))
	if full > 0.5 { // of two or three servers
		each = 1
	}
	whole := math.Floor(each)
	if random.Float64() < each-whole {
		whole++
	}
	return int(whole)
}

// receive takes the answers that have come by now, and forgets those that are too old, and the
// oldest beyond a number.
func (p *prober) receive(now time.Duration, most int) {
	for len(p.coming) > 0 && p.coming[0].arrives <= now {
		a := p.coming[0]
		p.coming = p.coming[1:]
		p.pool = append(p.pool, a)
		p.flights = append(p.flights, a.flight)
	}
	p.flights = p.flights[max(0, len(p.flights)-flightsKept):]
	p.pool = slices.DeleteFunc(p.pool, func(a probe) bool { return now-a.sent > probeAge })
	p.pool = p.pool[max(0, len(p.pool)-most):]
}

// hot is the number of requests in flight above which servers are hot.
func (p *prober) hot() uint32 {
	sorted := slices.Sorted(slices.Values(p.flights))
	return sorted[int(p.cold*float64(len(sorted)-1))]
}

// best is the place of the answer by which a request goes: of the quickest of the cold servers, or
// else of the one with the fewest requests in flight.
func (p *prober) best() int { return p.extreme(better) }

// worst is the place of the last that would be chosen.
func (p *prober) worst() int {
	return p.extreme(func(a, b probe, hot uint32) bool { return better(b, a, hot) })
}

func (p *prober) extreme(before func(a, b probe, hot uint32) bool) int {
	at, hot := 0, p.hot()
	for i := range p.pool {
		if before(p.pool[i], p.pool[at], hot) {
			at = i
		}
	}
	return at
}

func better(a, b probe, hot uint32) bool {
	aHot, bHot := a.flight > hot, b.flight > hot
	switch {
	case aHot != bHot:
		return bHot
	case aHot:
		return a.flight < b.flight
	}
	return a.latency < b.latency
}

// remove takes away an answer for each request: the oldest and the worst one in turn.
func (p *prober) remove() {
	if len(p.pool) == 0 {
		return
	}
	at := 0
	if !p.oldest {
		at = p.worst()
	}
	p.oldest = !p.oldest
	p.pool = slices.Delete(p.pool, at, at+1)
}
