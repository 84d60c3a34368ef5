package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Arrivals say how the rate of a stream changes around its mean.
type Arrivals struct {
	name string
	most float64 // times the mean, at most
	// how many times the mean it is at a time, in nanoseconds, which does not go back; nil: once
	at func(s *Poisson, time float64) float64
}

// Bursts take a part of the time, in which the rate is a multiple of its mean, and last so many
// mean service times, in the mean. A day has so many, too; its rate swings by a part of the mean.
const (
	burstPart  = 0.2
	burstTimes = 2
	burstLasts = 20
	dayLasts   = 1_000
	daySwings  = 0.5
)

// arrivals are all, the default first.
var arrivals = []Arrivals{
	{"poisson", 1, nil},
	{"bursty", burstTimes, (*Poisson).burst},
	{"diurnal", 1 + daySwings, func(s *Poisson, time float64) float64 {
		return 1 + daySwings*math.Sin(2*math.Pi*time/(dayLasts*s.service))
	}},
}

// burst is the rate of a Poisson process that a Markov chain of two states modulates.
func (s *Poisson) burst(time float64) float64 {
	for time >= s.changes {
		s.bursts = !s.bursts
		lasts := s.service * burstLasts
		if !s.bursts {
			lasts *= (1 - burstPart) / burstPart
		}
		s.changes += s.states.ExpFloat64() * lasts
	}
	if s.bursts {
		return burstTimes
	}
	return (1 - burstPart*burstTimes) / (1 - burstPart)
}

// ArrivalsNames are the names of all, the default first.
func ArrivalsNames() (names []string) {
	for _, a := range arrivals {
		names = append(names, a.name)
	}
	return names
}

// ParseArrivals reads a name: poisson, bursty (a fifth of the time, in bursts of 20 mean service
// times, requests come at twice the mean rate, else at 0.75 times) or diurnal (from half to one and
// a half times the mean rate, within 1,000 mean service times).
func ParseArrivals(name string) (Arrivals, error) {
	i := slices.IndexFunc(arrivals, func(a Arrivals) bool { return a.name == name })
	if i < 0 {
		return Arrivals{}, fmt.Errorf("unknown arrivals %q; use %s", name,
			strings.Join(ArrivalsNames(), ", "))
	}
	return arrivals[i], nil
}
