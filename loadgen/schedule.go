package loadgen

import (
	"math/rand/v2"
	"time"
)

// Arrival is one request of a [Schedule].
type Arrival struct {
	At      time.Duration // when to send it, since the start
	Service time.Duration // CPU time to ask for
}

// Schedule is a Poisson stream of requests with exponentially distributed
// service times, determined by its seed alone. Arrivals and service times come
// from two generators, so that neither changes when the other's mean does.
type Schedule struct {
	gap      float64 // mean time between arrivals, in nanoseconds
	service  float64 // mean service time, in nanoseconds
	at       float64
	arrivals *rand.Rand
	services *rand.Rand
}

// NewSchedule returns the schedule of that many requests per second (more than
// 0) and that mean service time.
func NewSchedule(rate float64, service time.Duration, seed uint64) *Schedule {
	return &Schedule{
		gap:      float64(time.Second) / rate,
		service:  float64(service),
		arrivals: rand.New(rand.NewPCG(seed, 1)),
		services: rand.New(rand.NewPCG(seed, 2)),
	}
}

// Next returns the next request. The stream has no end.
func (s *Schedule) Next() Arrival {
	s.at += s.arrivals.ExpFloat64() * s.gap
	return Arrival{
		At:      time.Duration(s.at),
		Service: time.Duration(s.services.ExpFloat64() * s.service),
	}
}
