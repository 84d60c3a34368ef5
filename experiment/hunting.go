package experiment

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/examples"
	"sextant/lab"
	"sextant/lab/loadgen"
	"sextant/sim/queueing"
)

// The load of the demonstration: twelve servers of two cores, as in the SRLB paper, loaded to 0.88
// of what they can do.
const (
	servers     = 12
	cores       = 2
	utilization = 0.88
	service     = 10 * time.Millisecond // mean CPU time of a request
	level       = 0.99                  // of the confidence interval
	seed        = 1
)

// The names of the policies.
const (
	random  = "random"
	hunting = "hunting"
)

// HuntingOptions say how long the comparison takes and who is told about it.
type HuntingOptions struct {
	WarmUp  time.Duration     // before each measurement
	Random  time.Duration     // measured with random choice, whose mean scatters most
	Hunting time.Duration     // measured with each number of candidates
	Say     func(text string) // what happens; nil: nobody listens
	// a line that replaces the one before, "" removes it; nil: nobody looks
	Progress func(line string)
	Events   func(lab.Event) // of the lab; nil: nobody listens
}

// Hunting is the outcome: random choice and service hunting under the same stream of requests.
type Hunting struct {
	Utilization float64 `json:"utilization"`
	ServiceMs   float64 `json:"serviceMs"`
	// mean response of random choice, M/M/2 per server
	TheoryMs   float64           `json:"theoryMs"`
	RandomMs   queueing.Interval `json:"randomMs"`   // measured, over servers
	Confidence float64           `json:"confidence"` // level of the interval
	Agrees     bool              `json:"agrees"`     // theory lies within the interval
	Policies   []PolicyResult    `json:"policies"`   // random choice first
}

// PolicyResult is what one policy made of the load.
type PolicyResult struct {
	Policy     string `json:"policy"` // random or hunting
	Candidates int    `json:"candidates"`
	// mean response of random choice by that of this policy
	Improvement float64 `json:"improvement"`
	// share of connections that the first candidate passed on
	SecondChoice float64         `json:"secondChoice"`
	Load         *loadgen.Result `json:"load"`
}

// RunHunting builds the lab, loads it with one candidate per connection (random choice) and then
// with two and three (service hunting), and takes it down again, whatever happens. If ctx ends
// before, the error wraps its cause.
func RunHunting(ctx context.Context, o HuntingOptions) (*Hunting, error) {
	var h *Hunting
	err := InExample(ctx, "demo", examples.Hunting, nil, lab.Options{Events: o.Events},
		func(ctx context.Context, a *Arena) (err error) {
			run := &huntingRun{lab: a, options: o}
			h, err = run.compare(ctx)
			return err
		})
	return h, err
}

// huntingRun is a comparison under way.
type huntingRun struct {
	lab     *Arena
	options HuntingOptions
}

// phase is a part of the comparison.
type phase struct {
	policy     string
	candidates int
	measure    time.Duration
}

func (r *huntingRun) compare(ctx context.Context) (*Hunting, error) {
	var results []PolicyResult
	for _, p := range []phase{
		{random, 1, r.options.Random},
		{hunting, 2, r.options.Hunting},
		{hunting, 3, r.options.Hunting},
	} {
		result, err := r.measure(ctx, p)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return judge(results)
}

// judge compares the policies with random choice, the first of them, and that with what queueing
// theory says of it.
func judge(results []PolicyResult) (*Hunting, error) {
	theory, err := queueing.MeanResponse(cores, utilization, service)
	if err != nil {
		return nil, err
	}
	first := results[0].Load
	replicates := make([]queueing.Replicate, len(first.Servers))
	for i, s := range first.Servers {
		replicates[i] = queueing.Replicate{Count: s.Count, Mean: s.MeanMs}
	}
	interval, err := queueing.MeanInterval(level, replicates)
	if err != nil {
		return nil, err
	}
	for i := range results {
		results[i].Improvement = first.Latency.MeanMs / results[i].Load.Latency.MeanMs
	}
	theoryMs := milliseconds(theory)
	return &Hunting{
		Utilization: utilization, ServiceMs: milliseconds(service), TheoryMs: theoryMs,
		RandomMs: interval, Confidence: level, Agrees: interval.Contains(theoryMs),
		Policies: results,
	}, nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// measure loads the servers with a number of candidates per connection.
func (r *huntingRun) measure(ctx context.Context, p phase) (PolicyResult, error) {
	result := PolicyResult{Policy: p.policy, Candidates: p.candidates}
	if err := r.setCandidates(ctx, p.candidates); err != nil {
		return result, err
	}
	r.say("%s: %d candidate(s) per connection, %s", p.policy, p.candidates,
		r.options.WarmUp+p.measure)
	before, err := r.decisions(ctx)
	if err != nil {
		return result, err
	}
	stop := r.watch(ctx, p)
	result.Load, err = r.load(ctx, p.measure)
	stop()
	if err != nil {
		return result, err
	}
	after, err := r.decisions(ctx)
	if err != nil {
		return result, err
	}
	result.SecondChoice = after.minus(before).secondChoice(p.candidates)
	return result, nil
}

func (r *huntingRun) say(format string, args ...any) {
	if r.options.Say != nil {
		r.options.Say(fmt.Sprintf(format, args...))
	}
}

func (r *huntingRun) setCandidates(ctx context.Context, candidates int) error {
	edge := r.lab.Agents["edge1"]
	_, err := edge.PutService(ctx, api.Update, "web", api.Edge,
		api.ServiceSpec{ContinuitySpec: api.ContinuitySpec{Candidates: &candidates}})
	return err
}

// load runs the generator on the client node.
func (r *huntingRun) load(ctx context.Context, measure time.Duration) (*loadgen.Result, error) {
	rate := utilization * servers * cores / service.Seconds()
	return Load(ctx, r.lab.Lab, "client", nil, "http://[2001:db8:80::80]/",
		"--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--service", service.String(), "--seed",
		strconv.Itoa(seed),
		"--warm-up", r.options.WarmUp.String(), "--duration", measure.String(), "--sources",
		"2001:db8:c::/112")
}

// decisions are what the servers did with new connections.
type decisions struct{ accepted, refused, forced uint64 }

func (d decisions) minus(o decisions) decisions {
	return decisions{d.accepted - o.accepted, d.refused - o.refused, d.forced - o.forced}
}

// secondChoice is the share of connections that the first of two or three candidates passed on. Of
// three, the second passed on those that the third was forced to take.
func (d decisions) secondChoice(candidates int) float64 {
	connections := d.accepted + d.forced
	if candidates < 2 || connections == 0 {
		return 0
	}
	return (float64(d.refused) - float64(candidates-2)*float64(d.forced)) / float64(connections)
}

func (r *huntingRun) decisions(ctx context.Context) (sum decisions, err error) {
	services, err := r.hosts(ctx)
	for _, s := range services {
		sum.accepted += s.Accepted
		sum.refused += s.Refused
		sum.forced += s.Forced
	}
	return sum, err
}

// hosts asks all servers.
func (r *huntingRun) hosts(ctx context.Context) ([]*api.HostService, error) {
	var all []*api.HostService
	for i := range servers {
		services, err := r.lab.Agents["web"+strconv.Itoa(i+1)].Services(ctx, "web", api.Host)
		if err != nil {
			return nil, err
		}
		for _, s := range services {
			if s.VIP.Is6() && s.Protocol == config.TCP {
				all = append(all, s.Host)
			}
		}
	}
	return all, nil
}
