package workload

import (
	"math/rand/v2"
	"time"
)

// Class tells kinds of requests apart.
type Class uint8

// The classes.
const (
	Page   Class = iota // costs CPU time
	Static              // a file: costs next to none
)

// Request is one request of a load.
type Request struct {
	At      time.Duration // when it is sent, since the start
	Service time.Duration // CPU time that it needs; of a log, whose requests need what they need, 0
	Class   Class
	Path    string // of a log; "" otherwise
}

// Stream yields requests in the order of their times.
type Stream interface {
	// Next returns the next request, false after the last.
	Next() (Request, bool)
}

// Poisson is a stream without end whose gaps have an exponential distribution, and its service
// times, too, unless Arrivals and ServiceTimes say otherwise. Both come from generators of their
// own, so that neither changes when the other's mean does.
type Poisson struct {
	Arrivals     Arrivals
	ServiceTimes ServiceTimes

	gap      float64 // mean time between requests, in nanoseconds
	service  float64 // mean service time, in nanoseconds
	at       float64
	arrivals *rand.Rand
	services *rand.Rand
	// Of bursts.
	states  *rand.Rand
	bursts  bool
	changes float64 // when a burst ends or begins
}

// NewPoisson returns the stream of that many requests per second (more than 0) and that mean
// service time.
func NewPoisson(rate float64, service time.Duration, seed uint64) *Poisson {
	return &Poisson{
		Arrivals:     arrivals[0],
		ServiceTimes: distributions[0],

		gap:      float64(time.Second) / rate,
		service:  float64(service),
		arrivals: rand.New(rand.NewPCG(seed, 1)),
		services: rand.New(rand.NewPCG(seed, 2)),
		states:   rand.New(rand.NewPCG(seed, 4)),
	}
}

// Next returns the next request; there always is one. Where the rate changes, the stream is one of
// the highest rate, thinned to that of the moment (Lewis and Shedler, 1979).
func (s *Poisson) Next() (Request, bool) {
	a := s.Arrivals
	for {
		s.at += s.arrivals.ExpFloat64() * s.gap / a.most
		if a.at == nil || s.arrivals.Float64()*a.most < a.at(s, s.at) {
			break
		}
	}
	return Request{At: time.Duration(s.at),
		Service: time.Duration(s.ServiceTimes.draw(s.services) * s.service)}, true
}
