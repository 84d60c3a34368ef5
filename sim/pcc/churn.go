package pcc

import (
	"errors"
	"fmt"
	"time"

	"sextant/lb/pool"
)

// Churn describes flows through a pool that changes all the time, as in section VI-C of the
// VRF-Shadowing paper.
type Churn struct {
	Spec    pool.Spec
	Servers int
	// between changes: a server drawn at random leaves, or comes back if it has left
	Flap  time.Duration
	MinUp int // how many servers are up at least, 1 or more: with fewer, none leaves
	// of servers that left: Draining (they withdraw, and keep their connections) or Down (they lose
	// them)
	Leave pool.State
	Hold  time.Duration // how long a server that comes back is still draining, at least
	// policy Shadow: strays of nobody go round until their hop limit ends; else they end in a RST
	Circle bool
	// the part of the offers that a candidate refuses, if another one follows it
	Refuse float64
	Rate   float64 // new flows per second, Poisson
	Life   Life
	// the part of the new flows from a port whose connection the server closed lately
	Reuse float64
	Flows uint64
	Edges int           // behind a router that takes the flow's hash modulo the number of edges
	Lag   time.Duration // between a change and its arrival at an edge, at most; uniform
	// between restarts of an edge, one after the other; 0: they don't; each is away for half that
	// time
	Restart time.Duration
	// a restarted edge takes over the chains of another one; else it knows the servers only
	Peer bool
	Seed uint64

	matching matching // of sockets in TIME-WAIT
}

func (c *Churn) check() error {
	switch {
	case c.Servers < 1 || c.Servers > 65535:
		return fmt.Errorf("%d servers; choose 1 to 65535", c.Servers)
	case c.MinUp < 1 || c.MinUp > c.Servers:
		return fmt.Errorf("at least %d of %d servers up; choose 1 to %d", c.MinUp, c.Servers,
			c.Servers)
	case c.Edges < 1 || c.Edges > 64:
		return fmt.Errorf("%d edges; choose 1 to 64", c.Edges)
	case c.Leave != pool.Draining && c.Leave != pool.Down:
		return fmt.Errorf("servers leave as %v; choose draining or down", c.Leave)
	case c.Flap <= 0 || c.Lag < 0 || c.Restart < 0 || c.Hold < 0:
		return errors.New("flap interval, lag, restart interval or hold time is negative, or the " +
			"flap interval is 0")
	case !(c.Rate > 0):
		return fmt.Errorf("%v new flows per second; choose more than 0", c.Rate)
	case !(c.Refuse >= 0 && c.Refuse <= 1):
		return fmt.Errorf("%v of the offers refused; choose 0 to 1", c.Refuse)
	case !(c.Reuse >= 0 && c.Reuse <= 1):
		return fmt.Errorf("%v of the flows from used ports; choose 0 to 1", c.Reuse)
	case c.Restart > 0 && c.Edges < 2:
		return errors.New("the only edge restarts; choose two edges or more")
	case c.Life.median <= 0:
		return errors.New("flows without a life; parse one")
	}
	return nil
}

// Result is what became of the flows of a Churn. Times are sums over flows, in proportion to
// packets if all flows send as often.
type Result struct {
	Flows uint64 `json:"flows"`
	// ended by a RST although the server was alive and had the connection
	Cut      uint64 `json:"cut"`
	Died     uint64 `json:"died"`     // ended by the death of the server
	Reused   uint64 `json:"reused"`   // came from a port that another server had in TIME-WAIT
	Hung     uint64 `json:"hung"`     // sent packets that such a server took
	Unopened uint64 `json:"unopened"` // the SYN found nobody, or went to a server that was down
	// opened at a server that was leaving: the edge did not know yet, or the chain was full
	Late     uint64 `json:"late"`
	Changes  uint64 `json:"changes"`  // of the pool
	Restarts uint64 `json:"restarts"` // of edges
	// Hops[n] is the time in which packets visited n hosts before the one that has the connection
	// took them; Hops[0] is the time in which they were lost.
	Hops [pool.MaxChain + 1]time.Duration `json:"hopsNs"`
	// MaxResetHops is the most hosts that a packet of a connection that nobody had any more visited
	// before the RST.
	MaxResetHops int `json:"maxResetHops"`
}

// Redirected is the part of the packets that visited more than one host.
func (r *Result) Redirected() float64 {
	var all, redirected time.Duration
	for hops, d := range r.Hops {
		all += d
		if hops > 1 {
			redirected += d
		}
	}
	if all == 0 {
		return 0
	}
	return float64(redirected) / float64(all)
}

// Run plays all flows to their end. The result depends on the Churn alone. Progress is called now
// and then with the number of flows so far; its error ends the run.
//
// A flow is looked at whenever the chain of its bucket changes at its edge, and whenever it moves
// to another edge. In between its packets have the same fate, so this is exact for flows that send
// all the time.
func Run(c Churn, progress func(flows uint64) error) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, fmt.Errorf("churn: %w", err)
	}
	s, err := newSimulation(c)
	if err != nil {
		return Result{}, fmt.Errorf("churn: %w", err)
	}
	for s.result.Flows < c.Flows || s.now < s.last+c.Life.max {
		e := s.agenda.next()
		s.arrivals(e.at)
		s.now = e.at
		if err := e.do(); err != nil {
			return Result{}, fmt.Errorf("churn: %w", err)
		}
		if err := progress(s.result.Flows); err != nil {
			return Result{}, err
		}
	}
	s.finish()
	return s.result, nil
}
