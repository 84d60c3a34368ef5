package main

import (
	"fmt"
	"slices"
	"time"

	"sextant/lb/consistenthash"
	"sextant/sim/hunting"
	"sextant/sim/workload"
)

// Bounds of sim hunting: within them no time overflows, and memory suffices.
const (
	huntingLongest = 100 * time.Hour
	huntingLoad    = 1_000.
	huntingSlowest = 0.001
	huntingFastest = 1_000.
	huntingLasts   = 1e18 // nanoseconds, of a run
	huntingWarmUp  = 20   // requests per core
	huntingStalls  = 2e6  // of all servers in a run
)

// huntingPlan is what names in the flags stand for.
type huntingPlan struct {
	schemes  []hunting.Scheme // of all policies
	times    workload.ServiceTimes
	arrivals workload.Arrivals
}

// check finds what is wrong before anything runs.
func (o huntingOptions) check(given func(flag string) bool) (p huntingPlan, err error) {
	if p.schemes, err = o.schemes(); err != nil {
		return p, err
	}
	if p.times, err = workload.ParseServiceTimes(o.serviceTimes); err != nil {
		return p, usageErrorf("--service-times: %w", err)
	}
	if p.arrivals, err = workload.ParseArrivals(o.arrivals); err != nil {
		return p, usageErrorf("--arrivals: %w", err)
	}
	if o.balancers < 1 {
		return p, usageErrorf("--balancers must be above 0")
	}
	if o.servers < 1 || o.servers > hunting.MaxServers {
		return p, usageErrorf("--servers must be 1 to %d", hunting.MaxServers)
	}
	if o.buckets < 1 || o.buckets > consistenthash.MaxSlots {
		return p, usageErrorf("--buckets must be 1 to %d", consistenthash.MaxSlots)
	}
	drawn := slices.ContainsFunc(p.schemes, func(s hunting.Scheme) bool {
		return s.Choice != hunting.LeastOfAll && s.Choice != hunting.ByProbes
	})
	if !drawn && given("buckets") {
		return p, usageErrorf("--buckets is for policies that draw candidates, of which there is " +
			"none: jsq and prequal look at servers; add one, or leave it out")
	}
	if err := o.checkDurations(); err != nil {
		return p, err
	}
	if err := o.checkSpeeds(given); err != nil {
		return p, err
	}
	told := slices.ContainsFunc(p.schemes, func(s hunting.Scheme) bool {
		return s.Choice == hunting.LeastReported || s.Choice == hunting.ByProbes
	})
	if !told && (given("balancers") || given("news")) {
		return p, usageErrorf("--balancers and --news are for policies charon and prequal, of " +
			"which there is none; add one, or leave them out")
	}
	if err := o.checkLoads(); err != nil {
		return p, err
	}
	for i, scheme := range p.schemes {
		if err := o.config(scheme).Check(); err != nil {
			return p, usageErrorf("--policy %s: %w", o.policies[i], err)
		}
	}
	return p, nil
}

func (o huntingOptions) schemes() (schemes []hunting.Scheme, err error) {
	if len(o.policies) == 0 {
		return nil, usageErrorf("--policy names none; name one or more")
	}
	for i, policy := range o.policies {
		scheme, err := hunting.ParseScheme(policy)
		if err != nil {
			return nil, usageErrorf("--policy: %w", err)
		}
		if slices.Contains(o.policies[:i], policy) {
			return nil, usageErrorf("--policy has %s twice", policy)
		}
		schemes = append(schemes, scheme)
	}
	return schemes, nil
}

func (o huntingOptions) checkDurations() error {
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{{"service", o.service, 100 * time.Microsecond}, {"handshake", o.handshake, 0},
		{"news", o.news, 0}, {"stall", o.stall, 0}, {"stall-every", o.stallEvery, 1}} {
		if d.value < d.least || d.value > huntingLongest {
			return usageErrorf("--%s must be %v to %v; times may be scaled, as their ratios count",
				d.flag, d.least, huntingLongest)
		}
	}
	return nil
}

func (o huntingOptions) checkSpeeds(given func(flag string) bool) error {
	if len(o.speeds) == 0 || slices.ContainsFunc(o.speeds, func(s float64) bool {
		return !(s >= huntingSlowest && s <= huntingFastest)
	}) {
		return usageErrorf("--speeds must be %g to %g", huntingSlowest, huntingFastest)
	}
	if len(o.speeds) > o.servers {
		return usageErrorf("--speeds has %d, of %d servers; give as many at most", len(o.speeds),
			o.servers)
	}
	if s := o.stallSpeed; s != 0 && !(s >= huntingSlowest && s <= huntingFastest) {
		return usageErrorf("--stall-speed must be 0, or %g to %g", huntingSlowest, huntingFastest)
	}
	if o.stall == 0 && (given("stall-every") || given("stall-speed")) {
		return usageErrorf("--stall-every and --stall-speed are of stalls; say with --stall how " +
			"long one lasts")
	}
	return nil
}

func (o huntingOptions) checkLoads() error {
	if len(o.loads) == 0 || o.requests < 1 || o.cores < 1 {
		return usageErrorf("--load, --requests and --cores must be above 0")
	}
	for i, load := range o.loads {
		if !(load > 0 && load <= huntingLoad) {
			return usageErrorf("--load must be above 0, and %g at most", huntingLoad)
		}
		if slices.Contains(o.loads[:i], load) {
			return usageErrorf("--load has %g twice", load)
		}
		lasts := o.lasts(load)
		if !(lasts >= 1 && lasts <= huntingLasts) {
			return usageErrorf("load %g: requests come for %g s; choose --requests, --load and "+
				"--service for 1e-09 to %g", load, lasts/1e9, huntingLasts/1e9)
		}
		stalls := lasts / float64(o.stallEvery+o.stall) * float64(o.servers)
		if o.stall > 0 && stalls > huntingStalls {
			return usageErrorf("load %g: servers stall %.3g times; choose --stall and "+
				"--stall-every for %g at most", load, stalls, float64(huntingStalls))
		}
	}
	return nil
}

// rate is how many requests come per second.
func (o huntingOptions) rate(load float64) float64 {
	return load * o.capacity() / o.service.Seconds()
}

// lasts is for how many nanoseconds requests come, also those that are not measured.
func (o huntingOptions) lasts(load float64) float64 {
	return 1.1 * float64(o.requests) / o.rate(load) * float64(time.Second)
}

// tooShort warns of a run that is over before queues have grown; "": it is long enough.
func (o huntingOptions) tooShort() string {
	cores := float64(o.servers) * float64(o.cores)
	if float64(o.requests)/10 >= huntingWarmUp*cores {
		return ""
	}
	return fmt.Sprintf("warning: servers begin idle, and are measured after %.2g requests per "+
		"core: means may be too low; --requests %.0f or more has %d", float64(o.requests)/10/cores,
		10*huntingWarmUp*cores, huntingWarmUp)
}
