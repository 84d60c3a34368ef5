package hunting

import (
	"errors"
	"fmt"
	"math"
	"time"

	"sextant/sim/workload"
)

// Choice says who decides which server gets a request.
type Choice uint8

const (
	// Hunt offers it to the candidates, who decide by Config.Policy.
	Hunt Choice = iota
	// LeastOfCandidates gives it to the candidate with the least connections per core: JSQ(d).
	LeastOfCandidates
	// LeastOfAll gives it to the server with the least connections per core: join the shortest
	// queue.
	LeastOfAll
	// LeastReported gives it to the candidate with the least connections per core by what the
	// servers' packets told its balancer: Charon.
	LeastReported
	// ByProbes gives it to the best of the servers that its balancer has probed lately: Prequal.
	ByProbes
)

// Server is a machine of the pool.
type Server struct {
	Cores   int
	Workers int    // connections that it works on at once
	Backlog int    // connections that wait beyond those; more are refused
	Weight  uint32 // share of new connections in relation to the others
}

// Change gives a server another weight, as slow start does.
type Change struct {
	At     time.Duration
	Server int
	Weight uint32
}

// Pace is how fast a server's cores run from a time on: 1 is usual, 0 stands still. Its kernel goes
// on: it takes connections, and its host refuses them as ever.
type Pace struct {
	At     time.Duration
	Server int
	Speed  float64
}

// Config describes a simulation.
type Config struct {
	Servers  []Server
	Scheme            // a policy is that of every server, with the server's own Workers and Cores
	Buckets  int      // of the pool
	Changes  []Change // by time
	Paces    []Pace   // by time
	Requests workload.Stream
	Until    time.Duration // requests after it are not sent; 0: as long as there are some
	WarmUp   time.Duration // requests before it are not measured
	// from the choice of a server until the connection counts there and its request has come
	Handshake time.Duration
	// balancers that requests come to at random, each with news of its own: of LeastReported and
	// ByProbes; 0: 1
	Balancers int
	// how old what a server tells is when it reaches its balancer, likewise
	News    time.Duration
	Seed    uint64   // of who is a candidate of which request
	Network *Network // between the edge and the servers; nil: packets take no time
	// Given are the servers that took the first requests in some other run, by their places in
	// Servers, if that run is to be played again. A place that does not exist leaves the choice to
	// the Scheme, and so do requests beyond.
	Given []uint8

	// called from time to time, if not nil; an error ends the run
	Progress func(now time.Duration) error
	Interval time.Duration                                  // of Loads
	Loads    func(now time.Duration, connections []float64) // called at every interval, if not nil
}

// MaxServers is what a pool can name, less one.
const MaxServers = 65535

const (
	maxBalancers = 10_000
	maxKnown     = 100_000_000 // numbers that all balancers keep
)

func (c Config) check() error {
	if c.Requests == nil {
		return errors.New("hunting: no requests")
	}
	return c.Check()
}

// Check finds what is wrong, whatever requests come.
func (c Config) Check() error {
	switch {
	case len(c.Servers) == 0 || len(c.Servers) > MaxServers:
		return fmt.Errorf("hunting: %d servers; choose 1 to %d", len(c.Servers), MaxServers)
	case c.Candidates > len(c.Servers):
		return fmt.Errorf("hunting: %d candidates among %d servers; choose as many at most",
			c.Candidates, len(c.Servers))
	case c.Balancers < 0 || c.Balancers > maxBalancers || c.News < 0:
		return fmt.Errorf("hunting: %d balancers with news of age %v; choose 1 to %d, and 0 or "+
			"more", c.Balancers, c.News, maxBalancers)
	case c.Choice == LeastReported && c.Balancers*len(c.Servers) > maxKnown:
		return fmt.Errorf("hunting: %d balancers know of %d servers; choose fewer", c.Balancers,
			len(c.Servers))
	case c.WarmUp < 0 || c.Handshake < 0 || c.Until < 0:
		return fmt.Errorf("hunting: warm-up %v, handshake %v and end %v must not be negative",
			c.WarmUp, c.Handshake, c.Until)
	case c.Loads != nil && c.Interval <= 0:
		return fmt.Errorf("hunting: loads at intervals of %v; choose one above 0", c.Interval)
	case c.Network != nil && (c.Handshake > 0 || c.Choice >= LeastOfAll):
		return errors.New("hunting: a network goes with candidates, and without a handshake")
	}
	for i, v := range c.Servers {
		if err := v.check(); err != nil {
			return fmt.Errorf("hunting: server %d: %w", i+1, err)
		}
	}
	for _, p := range c.Paces {
		if p.Server < 0 || p.Server >= len(c.Servers) || p.At < 0 ||
			!(p.Speed >= 0 && p.Speed <= math.MaxFloat64) {
			return fmt.Errorf("hunting: server %d of %d at speed %g from %v on; choose a server "+
				"that exists, a speed and a time from 0 on", p.Server, len(c.Servers), p.Speed,
				p.At)
		}
	}
	return c.Network.check(len(c.Servers))
}

// check finds numbers that are none, and those whose products, by which servers are compared, have
// more than 32 bits.
func (v Server) check() error {
	most := (float64(v.Workers) + float64(v.Backlog) + 1) * float64(v.Cores)
	if v.Cores < 1 || v.Workers < 1 || v.Backlog < 0 || most > math.MaxUint32 {
		return fmt.Errorf("%d cores, %d workers, a backlog of %d; choose 1, 1 and 0 or more, and "+
			"cores times connections within 32 bits", v.Cores, v.Workers, v.Backlog)
	}
	return nil
}
