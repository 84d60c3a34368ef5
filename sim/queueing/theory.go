package queueing

import (
	"fmt"
	"time"
)

// ErlangC returns the probability that an arriving request finds all servers
// of an M/M/c queue busy (Erlang's second formula, "C formula"). offered is
// the offered load in erlangs, arrival rate times mean service time, and must
// be at least 0 and below the number of servers: beyond, the queue grows
// without end.
func ErlangC(servers int, offered float64) (float64, error) {
	if servers < 1 {
		return 0, fmt.Errorf("queueing: %d servers: at least 1 is needed", servers)
	}
	c := float64(servers)
	if !(offered >= 0 && offered < c) {
		return 0, fmt.Errorf("queueing: offered load %g erlangs on %d servers has no steady "+
			"state; it must be from 0 to below %d",
			offered, servers, servers)
	}
	if offered == 0 {
		return 0, nil
	}
	// Erlang's B formula by its recursion on the inverse, which neither
	// overflows nor cancels, then C from B.
	inverseB := 1.0
	for k := 1.0; k <= c; k++ {
		inverseB = 1 + inverseB*k/offered
	}
	utilization := offered / c
	return 1 / (inverseB*(1-utilization) + utilization), nil
}

// MeanResponse returns the mean time from arrival to departure in a steady
// M/M/c queue: cores servers, mean service time service, and utilization
// (rho, arrival rate * service / cores) from 0 to below 1.
// With one core that is s/(1-rho), with two s/(1-rho^2).
//
// The same value holds for a [Machine] of as many cores that shares them
// equally, however many workers it has: with exponential demands its number of
// requests is the same birth-death process, and Little's law does the rest.
// With more workers than requests it holds for any distribution of demands
// (insensitivity of processor sharing; Kelly, Reversibility and Stochastic
// Networks, section 3.3).
func MeanResponse(cores int, utilization float64, service time.Duration) (time.Duration, error) {
	if service < 0 {
		return 0, fmt.Errorf("queueing: mean service time %v is negative", service)
	}
	if !(utilization >= 0 && utilization < 1) {
		return 0, fmt.Errorf("queueing: utilization %g has no steady state; it must be from 0 to "+
			"below 1", utilization)
	}
	wait, err := ErlangC(cores, utilization*float64(cores))
	if err != nil {
		return 0, err
	}
	factor := 1 + wait/(float64(cores)*(1-utilization))
	return time.Duration(float64(service) * factor), nil
}
