package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/sim/hunting"
)

// capacity is how many usual cores the servers have.
func (o huntingOptions) capacity() float64 {
	sum := 0.0
	for i := range o.servers {
		sum += o.speed(i) * float64(o.cores)
	}
	return sum
}

func (o huntingOptions) speed(server int) float64 { return o.speeds[server%len(o.speeds)] }

// paces are the servers' speeds, and their stalls up to a time: a Poisson stream for each server,
// which begins again when a stall is over.
func (o huntingOptions) paces(until time.Duration) []hunting.Pace {
	random := rand.New(rand.NewPCG(o.seed, 7))
	var paces []hunting.Pace
	for i := range o.servers {
		usual := o.speed(i)
		paces = append(paces, hunting.Pace{Server: i, Speed: usual})
		for at := o.pause(random); o.stall > 0 && at < until; at += o.pause(random) {
			paces = append(paces, hunting.Pace{At: at, Server: i, Speed: usual * o.stallSpeed})
			at += o.stall
			paces = append(paces, hunting.Pace{At: at, Server: i, Speed: usual})
		}
	}
	slices.SortStableFunc(paces, func(a, b hunting.Pace) int { return cmp.Compare(a.At, b.At) })
	return paces
}

// pause is the time until a server's next stall.
func (o huntingOptions) pause(random *rand.Rand) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(o.stallEvery))
}
