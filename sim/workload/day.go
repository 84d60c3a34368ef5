package workload

import (
	"math"
	"math/rand/v2"
	"time"
)

// DayConfig describes a synthetic day of a wiki.
type DayConfig struct {
	Length  time.Duration // into which the 24 hours are compressed
	Peak    float64       // pages per second, of the compressed day, at the busiest hour
	Service time.Duration // mean CPU time of a page
	Static  time.Duration // CPU time of a static file
	Files   float64       // static files per page
	Seed    uint64
}

// Day is a synthetic day of a wiki: pages that cost CPU time, and static files that cost next to
// none. The rate swings between its least at 08:00 and its peak at 20:00 UTC, as the English
// Wikipedia's did (Urdaneta et al., "Wikipedia workload analysis for decentralized hosting", 2009;
// SRLB, figure 6). It is a Poisson stream, thinned to the rate of the moment (Lewis and Shedler,
// 1979). Pages have lognormal CPU times: most are cheap, since they are cached, and some are not.
type Day struct {
	config DayConfig
	at     float64 // nanoseconds
	random *rand.Rand
}

// The swing of the rate over the day, as shares of the peak, and when it is least.
const (
	trough     = 0.45
	troughHour = 8
	hours      = 24
)

// sigma is the deviation of the logarithm of a page's CPU time.
const sigma = 0.8

// NewDay returns the stream of a day.
func NewDay(c DayConfig) *Day {
	return &Day{config: c, random: rand.New(rand.NewPCG(c.Seed, 4))}
}

// share returns the rate at an hour of the day as a share of the peak.
func share(hour float64) float64 {
	return (1+trough)/2 - (1-trough)/2*math.Cos(2*math.Pi*(hour-troughHour)/hours)
}

// Hour returns which hour of the day it is at a time of the compressed day.
func (c DayConfig) Hour(at time.Duration) float64 {
	return hours * at.Seconds() / c.Length.Seconds()
}

// Next returns the next request, false when the day is over.
func (d *Day) Next() (Request, bool) {
	gap := float64(time.Second) / (d.config.Peak * (1 + d.config.Files))
	for {
		d.at += d.random.ExpFloat64() * gap
		at := time.Duration(d.at)
		if at >= d.config.Length {
			return Request{}, false
		}
		if d.random.Float64() < share(d.config.Hour(at)) {
			return d.request(at), true
		}
	}
}

func (d *Day) request(at time.Duration) Request {
	if d.random.Float64()*(1+d.config.Files) >= 1 {
		return Request{At: at, Service: d.config.Static, Class: Static}
	}
	demand := math.Exp(sigma*d.random.NormFloat64() - sigma*sigma/2) // of mean 1
	return Request{At: at, Service: time.Duration(demand * float64(d.config.Service))}
}
