package srlb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sextant/experiment"
	"sextant/sim/hunting"
	"sextant/sim/workload"
)

// errNoLab says that a measurement needs a lab.
var errNoLab = errors.New("no lab is up")

// trial is one run of the simulator.
type trial struct {
	policy    policy
	load      float64
	name      string // of the servers
	servers   []hunting.Server
	slow      bool // every second one is
	requests  float64
	handshake time.Duration
	warmUp    time.Duration // 0: long enough for all policies
	watch     bool          // keep the loads over time
	seed      uint64        // of the requests
	turn      uint64        // another one has other candidates for the same requests
	given     []uint8       // who took which request, if that is known
}

// twelve are the servers of the paper.
func twelve() []hunting.Server { return alike(servers) }

// alike are n of the paper's servers.
func alike(n int) []hunting.Server {
	return slices.Repeat([]hunting.Server{{Cores: cores, Workers: workers, Backlog: backlog,
		Weight: 1}}, n)
}

// capacity is what all servers together can do, in cores of full speed, and which are slow.
func (t trial) capacity() (cores float64, paces []hunting.Pace) {
	for i, s := range t.servers {
		speed := 1.
		if t.slow && isSlow(i) {
			speed = slowSpeed
			paces = append(paces, hunting.Pace{Server: i, Speed: speed})
		}
		cores += speed * float64(s.Cores)
	}
	return cores, paces
}

// run simulates.
func (t trial) run(ctx context.Context) (point, error) {
	scheme, err := hunting.ParseScheme(t.policy.scheme)
	if err != nil {
		return point{}, err
	}
	capacity, paces := t.capacity()
	rate := t.load * capacity / service.Seconds()
	warmUp := cmp.Or(t.warmUp, warmUpOf(t.load))
	until := warmUp + time.Duration(t.requests/rate*float64(time.Second))
	p := point{Policy: t.policy.name, Load: t.load, Case: t.name}
	c := hunting.Config{
		Servers: t.servers, Scheme: scheme, Buckets: max(buckets, 16*len(t.servers)),
		Seed: t.seed + t.turn, Handshake: t.handshake,
		Requests: workload.NewPoisson(rate, service, t.seed), Until: until, WarmUp: warmUp,
		Progress: func(time.Duration) error { return ctx.Err() },
		Given:    t.given, Paces: paces,
	}
	if t.watch {
		c.Interval, c.Loads = instantStep, func(now time.Duration, connections []float64) {
			if now >= warmUp && now < until {
				p.Ages.add((now - warmUp).Seconds(), connections)
			}
		}
	}
	r, err := hunting.Run(c)
	if err != nil {
		return point{}, err
	}
	p.Requests, p.Failed, p.MeanMs, p.HalfWidth = r.Requests, r.Overflow, r.Pages.MeanMs,
		r.Mean.HalfWidth
	for i := 1; i <= quantileSteps; i++ {
		p.Quantiles = append(p.Quantiles, r.Pages.QuantileMs(float64(i)/quantileSteps))
	}
	return p, nil
}

// warmUpOf is long enough for an empty pool to fill: some relaxation times of M/M/1 at that load.
func warmUpOf(load float64) time.Duration {
	idle := max(1-load, 0.02)
	return min(time.Duration(20*float64(service)/(idle*idle)), 20*time.Second)
}

// simulated runs trials, some at a time, and keeps each when it is done.
func simulated(ctx context.Context, r *experiment.Recorder, what string,
	trials []trial) ([]point, error) {
	points, begun := make([]point, len(trials)), time.Now()
	err := experiment.SideBySide(ctx, r.Workers(), len(trials),
		func(ctx context.Context, i int) (err error) {
			t := trials[i]
			name := fileName(fmt.Sprintf("%s-%s-%g-%s-%d", what, t.policy.scheme, t.load, t.name,
				t.turn))
			points[i], err = experiment.Part(r, name,
				func() (point, error) { return t.run(ctx) })
			return err
		}, func(done int) {
			left := time.Duration(float64(time.Since(begun)) / float64(done) *
				float64(len(trials)-done))
			r.Progress("simulator: %s, %d of %d runs, about %s left", what, done, len(trials),
				left.Round(time.Second))
		})
	return points, err
}
