package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sextant/config"
	"sextant/sim/hunting"
	"sextant/sim/workload"
)

// huntingOptions are the flags of sim hunting.
type huntingOptions struct {
	servers, cores, workers, backlog int
	buckets                          int
	policies                         []string
	loads                            []float64
	requests                         uint64
	service, handshake, news         time.Duration
	arrivals, serviceTimes           string
	speeds                           []float64
	stall, stallEvery                time.Duration
	stallSpeed                       float64
	balancers                        int
	seed                             uint64
}

func (a *app) simHunting() *cobra.Command {
	var o huntingOptions
	cmd := &cobra.Command{
		Use: "hunting", Short: "Simulate service hunting, and compare response times by policy",
		Long: `Simulate service hunting, and compare response times by acceptance policy.

Requests come as a Poisson stream or as --arrivals says: bursty (a fifth of the time at twice the
mean rate, in bursts of 20 mean service times) or diurnal (from half to one and a half times the
mean rate, in a day of 1,000 mean service times). They need a time of a core that is exponentially
distributed or as --service-times says: constant, bimodal (one of 100 takes 100 times as long) or
pareto (heavy-tailed: shape 1.2, the longest 10,000 times the shortest). A server shares its cores
equally among its workers; further connections wait in its backlog. The candidates of a request
are those that the edge would choose, and servers decide as hosts do. All policies see the same
requests.

Policies: random, static=C and dynamic (SR_c and SR_dyn of the SRLB paper), average and delay
(unless a server is busier, or would take longer, than servers are in the mean), and two ideals
that know all loads: jsq/D (the least loaded of D candidates) and jsq (of all). Two others know
what servers tell their balancer: charon/D (the least loaded of D candidates by the latest packets
of each; Charon, CNSM 2021) and prequal (the best of those probed lately; Prequal, NSDI 2024).
Behind a policy, /D is the number of candidates, as in average/3.
dynamic=WINDOW:LOW-HIGH looks back over other than 50 offers, and wants other than 40 to 60 % of
them accepted.

Servers of unequal speed, of which no balancer is told, have --speeds: 1,0.5 makes every other one
half as fast. With --stall each server stands still for that long from time to time, or runs at
--stall-speed; its kernel goes on, and takes or refuses connections.

A load is the part of the cores' time that the requests need, of servers that never stall; above 1
queues fill, and the mean is without those REFUSED. FASTER compares mean response times with those
of the first policy at the same load. ± is half the 95 % confidence interval of the mean; - where
requests are too few to tell.`,
		Example: `  sextant sim hunting --load 0.61,0.88 --policy random,static=4,static=8,dynamic,average/3,jsq/2,jsq
  sextant sim hunting --speeds 1,1,1,0.5 --stall 200ms --policy random,average/6,delay/6,prequal
  sextant sim hunting --arrivals bursty --service-times pareto --policy average/6,charon/2,prequal
  sextant sim hunting --servers 10000 --policy average/3 --requests 10000000 -o json`,
		Annotations: seeAlso("sextant experiment", "sextant demo"),
		RunE: func(cmd *cobra.Command,
			_ []string) error {
			plan, err := o.check(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return a.runHunting(cmd.Context(), o, plan)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.policies, "policy", []string{"random", "static=4", "dynamic",
		"average/3", "jsq/2", "jsq"},
		"how servers are chosen")
	flags.Float64SliceVar(&o.loads, "load", []float64{0.61, 0.88}, "loads, above 0")
	flags.IntVar(&o.servers, "servers", 12, "servers of the pool")
	flags.IntVar(&o.cores, "cores", 2, "cores of a server")
	flags.IntVar(&o.workers, "workers", 32, "connections that a server works on at once")
	flags.IntVar(&o.backlog, "backlog", 128, "connections that wait beyond those; more are refused")
	flags.IntVar(&o.buckets, "buckets", config.FormerBuckets, "buckets of the service; jsq and "+
		"prequal have none")
	flags.Uint64Var(&o.requests, "requests", 1_000_000,
		"requests of each run; a tenth more come before and are not measured")
	flags.DurationVar(&o.service, "service", 10*time.Millisecond,
		"mean time of a core that a request needs")
	flags.StringVar(&o.arrivals, "arrivals", workload.ArrivalsNames()[0],
		"how their rate changes around its mean")
	flags.StringVar(&o.serviceTimes, "service-times", workload.ServiceTimesNames()[0],
		"distribution of these times")
	flags.Float64SliceVar(&o.speeds, "speeds", []float64{1},
		"how fast servers are, in turn; 1 is usual")
	flags.DurationVar(&o.stall, "stall", 0, "how long a server stalls; 0: none does")
	flags.DurationVar(&o.stallEvery, "stall-every", 10*time.Second,
		"mean time from a stall of a server to its next one")
	flags.Float64Var(&o.stallSpeed, "stall-speed", 0,
		"how fast a server is while it stalls, beside its speed of other times")
	flags.IntVar(&o.balancers, "balancers", 1, "balancers, each with news of its own; for charon "+
		"and prequal")
	flags.DurationVar(&o.news, "news", time.Millisecond, "from what a server tells until its "+
		"balancer knows, for the same")
	flags.DurationVar(&o.handshake, "handshake",
		0, "time from the choice of a server until the connection counts there")
	flags.Uint64Var(&o.seed, "seed", 1, "of all that is random")
	complete(cmd, "policy", "random", "static=4", "dynamic", "average/3", "delay/3", "jsq/2", "jsq",
		"charon/2", "prequal")
	complete(cmd, "arrivals", workload.ArrivalsNames()...)
	complete(cmd, "service-times", workload.ServiceTimesNames()...)
	return cmd
}

// huntingItem is the result of one policy at one load.
type huntingItem struct {
	Policy   string  `json:"policy"`
	Load     float64 `json:"load"`
	Requests uint64  `json:"requests"`
	Overflow uint64  `json:"overflow"` // refused, because a server's queue was full
	MeanMs   float64 `json:"meanMs"`
	// of the confidence interval at 0.95; left out where requests are too few to tell
	MeanHalfWidthMs *float64 `json:"meanHalfWidthMs,omitempty"`
	P50Ms           float64  `json:"p50Ms"`
	P75Ms           float64  `json:"p75Ms"`
	P90Ms           float64  `json:"p90Ms"`
	P99Ms           float64  `json:"p99Ms"`
	// mean of the first policy at this load by that of this one; 0 where a mean has no requests
	Faster float64 `json:"faster"`
	// share of the requests that the first, second, ... candidate took; of policies alone
	Places  []float64 `json:"places"`
	Seconds float64   `json:"seconds"`
}

// huntingReport is what sim hunting answers.
type huntingReport struct {
	Servers   int           `json:"servers"`
	Cores     int           `json:"cores"`
	ServiceMs float64       `json:"serviceMs"`
	Items     []huntingItem `json:"items"`
}

func (a *app) runHunting(ctx context.Context, o huntingOptions, plan huntingPlan) error {
	report := huntingReport{Servers: o.servers, Cores: o.cores,
		ServiceMs: o.service.Seconds() * 1000}
	if a.progress {
		defer a.progressLine("")
	}
	if text := o.tooShort(); text != "" && !a.quiet {
		a.say("%s", text)
	}
	for _, load := range o.loads {
		first := 0.0
		for i := range o.policies {
			item, err := a.hunt(ctx, o, plan, load, i)
			if err != nil && len(report.Items) > 0 {
				return errors.Join(a.show(report.view()), err)
			}
			if err != nil {
				return err
			}
			if i == 0 {
				first = item.MeanMs
			}
			if item.MeanMs > 0 {
				item.Faster = first / item.MeanMs
			}
			report.Items = append(report.Items, item)
		}
	}
	return a.show(report.view())
}

// hunt simulates a policy, by its number, at one load.
func (a *app) hunt(ctx context.Context, o huntingOptions, plan huntingPlan, load float64,
	number int) (huntingItem, error) {
	policy := o.policies[number]
	item := huntingItem{Policy: policy, Load: load}
	until := time.Duration(o.lasts(load))
	requests := workload.NewPoisson(o.rate(load), o.service, o.seed)
	requests.Arrivals, requests.ServiceTimes = plan.arrivals, plan.times
	c := o.config(plan.schemes[number])
	c.Requests, c.Until, c.WarmUp, c.Paces = requests, until, until/11, o.paces(until)
	c.Progress = func(now time.Duration) error {
		if a.progress {
			a.progressLine(fmt.Sprintf("policy %s, load %g: %.0f %% of the requests", policy, load,
				100*now.Seconds()/until.Seconds()))
		}
		return ctx.Err()
	}
	begun := time.Now()
	r, err := hunting.Run(c)
	if err != nil {
		return item, fmt.Errorf("policy %s, load %g: %w", policy, load, err)
	}
	item.fill(r)
	item.Seconds = time.Since(begun).Seconds()
	return item, nil
}

// config is what runs of a scheme at all loads have in common.
func (o huntingOptions) config(scheme hunting.Scheme) hunting.Config {
	return hunting.Config{
		Servers: slices.Repeat([]hunting.Server{{Cores: o.cores, Workers: o.workers,
			Backlog: o.backlog, Weight: 1}}, o.servers),
		Scheme: scheme, Buckets: o.buckets, Seed: o.seed,
		Handshake: o.handshake, News: o.news, Balancers: o.balancers,
	}
}

func (i *huntingItem) fill(r *hunting.Result) {
	i.Requests, i.Overflow = r.Requests, r.Overflow
	i.MeanMs = r.Pages.MeanMs
	if r.Batches > 1 {
		i.MeanHalfWidthMs = &r.Mean.HalfWidth
	}
	i.P50Ms, i.P75Ms = r.Pages.QuantileMs(0.5), r.Pages.QuantileMs(0.75)
	i.P90Ms, i.P99Ms = r.Pages.QuantileMs(0.9), r.Pages.QuantileMs(0.99)
	i.Places = r.Shares()
}

func (r huntingReport) view() view {
	t := table{
		columns: []string{"LOAD", "POLICY", "REQUESTS", "REFUSED", "MEAN", "±", "P50", "P90", "P99",
			"FASTER"},
		wide: []string{"TAKEN BY 1ST/2ND/...", "SECONDS"},
	}
	v := listView(r.Items, t, func(i huntingItem) (string, []any) {
		ms := func(x float64) string { return fmt.Sprintf("%.2f ms", x) }
		halfWidth, faster := "-", "-"
		if i.MeanHalfWidthMs != nil {
			halfWidth = fmt.Sprintf("%.2f", *i.MeanHalfWidthMs)
		}
		if i.Requests == i.Overflow { // nothing took a time
			ms = func(float64) string { return "-" }
		}
		if i.Faster > 0 {
			faster = fmt.Sprintf("%.2f times", i.Faster)
		}
		return fmt.Sprintf("%g/%s", i.Load, i.Policy), []any{i.Load, i.Policy, i.Requests,
			i.Overflow, ms(i.MeanMs), halfWidth, ms(i.P50Ms), ms(i.P90Ms), ms(i.P99Ms), faster,
			placesText(i.Places),
			fmt.Sprintf("%.1f", i.Seconds)}
	})
	v.value = r
	return v
}

// placesText writes the shares of the candidates.
func placesText(shares []float64) string {
	text := ""
	for i, s := range shares {
		if i > 0 {
			text += "/"
		}
		text += fmt.Sprintf("%.0f%%", 100*s)
	}
	return orDash(text)
}
