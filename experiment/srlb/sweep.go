package srlb

import (
	"context"
	"math"
	"slices"
	"time"

	"sextant/experiment"
	"sextant/sim/hunting"
	"sextant/sim/queueing"
)

// twinRuns is how often a point of the lab is simulated, with the same requests and each time with
// other candidates.
const twinRuns = 16

// twins plays the points of the lab: the very requests of the lab, as far as the seed determines
// them. Who is a candidate of which request, the seed does not: ports are the kernel's choice. So
// each point is played again with the servers that took the requests in the lab, where nothing is
// left to chance; this is all of random choice, whose means else differ by a tenth and more from
// one run to the next at heavy load. Other policies are played with many choices of candidates
// besides, as it is they who find the servers.
func twins(ctx context.Context, r *experiment.Recorder, what string, lab []point,
	of func(point) trial) (replayed, found []point, err error) {
	var trials []trial
	for _, p := range lab {
		again := of(p)
		again.name, again.given, again.seed = "replay", p.Took, seed
		trials = append(trials, again)
		again.name, again.given = "twin", nil
		for range p.twins() {
			again.turn++
			trials = append(trials, again)
		}
	}
	points, err := simulated(ctx, r, what, trials)
	for _, p := range lab {
		played := points[:1+p.twins()]
		points = points[len(played):]
		replayed = append(replayed, joined(played[:1]))
		found = append(found, joined(played[min(1, p.twins()):]))
	}
	return replayed, found, err
}

// like is a trial of what a policy was given in the lab, where any request takes so long besides.
func like(p policy, load float64, s stream, overheadMs float64) trial {
	return trial{policy: p, load: load, servers: twelve(), warmUp: s.warmUp,
		requests:  s.rate * s.duration.Seconds(),
		handshake: time.Duration(overheadMs * float64(time.Millisecond))}
}

// twins is with how many choices of candidates a point is played.
func (p point) twins() int {
	if p.Policy == rr.name {
		return 0
	}
	return twinRuns
}

// joined is the mean point of several runs. Its interval is that of one more run, not of the mean:
// where the lab's may lie.
func joined(runs []point) point {
	out := runs[0]
	out.HalfWidth = 0 // of one run: nothing is left to chance
	replicates := make([]queueing.Replicate, len(runs))
	for i, p := range runs {
		replicates[i] = queueing.Replicate{Count: p.Requests, Mean: p.MeanMs}
	}
	if interval, err := queueing.MeanInterval(0.95, replicates); err == nil {
		out.MeanMs, out.HalfWidth = interval.Mean,
			interval.HalfWidth*math.Sqrt(float64(len(runs)+1))
	}
	return out
}

// inSimulator plays the points of the lab, and then all loads: 24 within (0, 1), as the paper has,
// and one beyond 0.96, where policies differ most.
func inSimulator(ctx context.Context, r *experiment.Recorder, f *findings) (err error) {
	f.replays, f.twins, err = twins(ctx, r, "twins", f.lab, func(p point) trial {
		policy := byName(p.Policy)
		return like(policy, p.Load, streamOf(policy, p.Load, r.Quick()), f.overheadMs)
	})
	if err != nil {
		return err
	}
	var sweep []trial
	requests := 1_000_000.0
	if r.Quick() {
		requests = 100_000
	}
	for _, load := range sweepLoads(r.Quick()) {
		enough := requests
		if load <= lightLoad {
			enough *= lightShare
		}
		for _, p := range all {
			sweep = append(sweep, trial{policy: p, load: load, name: "twelve", servers: twelve(),
				requests: enough, seed: seed})
		}
	}
	f.sweep, err = simulated(ctx, r, "loads", sweep)
	return err
}

// At light load means scatter so little that fewer requests will do: at 0.6 the interval of random
// choice is half a percent.
const (
	lightLoad  = 0.6
	lightShare = 0.4
)

func byName(name string) policy {
	for _, p := range slices.Concat(all, speedPolicies) {
		if p.name == name {
			return p
		}
	}
	return policy{}
}

// sweepLoads are k/25 and two more.
func sweepLoads(quick bool) (loads []float64) {
	if quick {
		return []float64{0.32, 0.6, 0.88, 0.96}
	}
	for k := 1; k < 25; k++ {
		loads = append(loads, float64(k)/25)
	}
	return append(loads, 0.98)
}

// sizesWarmUp is a hundred service times: enough for all but random choice, whose response does not
// depend on the size.
const sizesWarmUp = time.Second

// simulateSizes plays pools from 10 to 10,000 servers.
func simulateSizes(ctx context.Context, r *experiment.Recorder, f *findings) (err error) {
	var trials []trial
	sizes, requests := []int{10, 100, 1000, 10_000}, 400_000.0
	if r.Quick() {
		sizes, requests = sizes[:3], 60_000
	}
	for _, n := range sizes {
		for _, p := range []policy{sr4, dynamic, pair, average, jsq2, jsq} {
			trials = append(trials, trial{policy: p, load: watched, name: sizeName(n),
				servers:  alike(n),
				requests: max(requests, 100*float64(n)), warmUp: sizesWarmUp, seed: seed})
		}
	}
	f.sizes, err = simulated(ctx, r, "sizes", trials)
	return err
}

// unequalServers are pools of twelve servers of unequal size.
func unequalServers() map[string][]hunting.Server {
	pools := map[string][]hunting.Server{}
	for i := range servers {
		size := []int{1, 2, 4}[i%3]
		server := hunting.Server{Cores: size, Workers: workers * 8, Backlog: backlog * 8,
			Weight: uint32(size)}
		pools[weighted] = append(pools[weighted], server)
		server.Weight = 1
		pools[unweighted] = append(pools[unweighted], server)
		server = hunting.Server{Cores: cores, Workers: workers, Backlog: backlog, Weight: 10}
		if i == 0 {
			server.Weight = 1
		}
		pools[starting] = append(pools[starting], server)
	}
	return pools
}

// The cases of unequal servers.
const (
	weighted   = "1, 2 and 4 cores, weights as cores"
	unweighted = "1, 2 and 4 cores, equal weights"
	starting   = "one of twelve in slow start, at a tenth of its weight"
)

// simulateUnequal plays pools of servers of unequal size.
func simulateUnequal(ctx context.Context, r *experiment.Recorder, f *findings) (err error) {
	requests := 400_000.0
	if r.Quick() {
		requests = 40_000
	}
	var trials []trial
	for _, name := range []string{weighted, unweighted, starting} {
		for _, load := range []float64{0.4, 0.61, 0.76, 0.88} {
			for _, p := range []policy{rr, sr4, dynamic, pair, average, jsq2, jsq} {
				trials = append(trials, trial{policy: p, load: load, name: name,
					servers: unequalServers()[name], requests: requests,
					seed: seed})
			}
		}
	}
	f.unequal, err = simulated(ctx, r, "unequal", trials)
	return err
}
