package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/examples"
	"sextant/lab"
	"sextant/loadgen"
	"sextant/queueing"
)

// The load of the demonstration: twelve servers of two cores, as in the SRLB paper, loaded to 0.88 of what they can do.
const (
	servers     = 12
	cores       = 2
	utilization = 0.88
	service     = 10 * time.Millisecond // mean CPU time of a request
	level       = 0.99                  // of the confidence interval
	seed        = 1
)

// HuntingOptions say how long the comparison takes and who is told about it.
type HuntingOptions struct {
	WarmUp, Measure time.Duration     // per policy
	Say             func(text string) // what happens; nil: nobody listens
	Progress        func(line string) // a line that replaces the one before, "" removes it; nil: nobody looks
	Events          func(lab.Event)   // of the lab; nil: nobody listens
}

// Hunting is the outcome: random choice and service hunting under the same requests.
type Hunting struct {
	Utilization float64           `json:"utilization"`
	ServiceMs   float64           `json:"serviceMs"`
	TheoryMs    float64           `json:"theoryMs"`    // mean response of random choice, M/M/2 per server
	RandomMs    queueing.Interval `json:"randomMs"`    // measured, over servers
	Confidence  float64           `json:"confidence"`  // level of the interval
	Agrees      bool              `json:"agrees"`      // theory lies within the interval
	Improvement float64           `json:"improvement"` // mean of random by mean of hunting
	Policies    []PolicyResult    `json:"policies"`
}

// PolicyResult is what one policy made of the load.
type PolicyResult struct {
	Policy       string          `json:"policy"` // random or hunting
	Candidates   int             `json:"candidates"`
	SecondChoice float64         `json:"secondChoice"` // share of connections that the first candidate passed on
	Load         *loadgen.Result `json:"load"`
}

// RunHunting builds the lab, loads it with one candidate per connection (random choice) and then with two (service hunting), and
// takes it down again, whatever happens.
func RunHunting(ctx context.Context, o HuntingOptions) (*Hunting, error) {
	spec, err := lab.Parse("hunting.yaml", examples.Hunting)
	if err != nil {
		return nil, err
	}
	spec.Name = "demo"
	var h *Hunting
	err = lab.Run(ctx, spec, lab.Options{Events: o.Events}, func(ctx context.Context, l *lab.Lab) error {
		run := &huntingRun{lab: l, options: o}
		h, err = run.compare(ctx)
		return err
	})
	return h, err
}

// huntingRun is a comparison under way.
type huntingRun struct {
	lab     *lab.Lab
	options HuntingOptions
}

func (r *huntingRun) compare(ctx context.Context) (*Hunting, error) {
	random, err := r.measure(ctx, "random", 1)
	if err != nil {
		return nil, err
	}
	hunting, err := r.measure(ctx, "hunting", 2)
	if err != nil {
		return nil, err
	}
	return judge(random, hunting)
}

// judge compares the two, and random choice with what queueing theory says of it.
func judge(random, hunting PolicyResult) (*Hunting, error) {
	theory, err := queueing.MeanResponse(cores, utilization, service)
	if err != nil {
		return nil, err
	}
	replicates := make([]queueing.Replicate, len(random.Load.Servers))
	for i, s := range random.Load.Servers {
		replicates[i] = queueing.Replicate{Count: s.Count, Mean: s.MeanMs}
	}
	interval, err := queueing.MeanInterval(level, replicates)
	if err != nil {
		return nil, err
	}
	theoryMs := milliseconds(theory)
	return &Hunting{
		Utilization: utilization, ServiceMs: milliseconds(service), TheoryMs: theoryMs,
		RandomMs: interval, Confidence: level, Agrees: interval.Contains(theoryMs),
		Improvement: random.Load.Latency.MeanMs / hunting.Load.Latency.MeanMs,
		Policies:    []PolicyResult{random, hunting},
	}, nil
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// measure loads the servers with a number of candidates per connection.
func (r *huntingRun) measure(ctx context.Context, policy string, candidates int) (PolicyResult, error) {
	result := PolicyResult{Policy: policy, Candidates: candidates}
	if err := r.setCandidates(ctx, candidates); err != nil {
		return result, err
	}
	r.say("%s: %d candidate(s) per connection, %s", policy, candidates, r.options.WarmUp+r.options.Measure)
	before, err := r.decisions(ctx)
	if err != nil {
		return result, err
	}
	stop := r.watch(ctx, policy)
	result.Load, err = r.load(ctx)
	stop()
	if err != nil {
		return result, err
	}
	after, err := r.decisions(ctx)
	if err != nil {
		return result, err
	}
	if candidates > 1 {
		result.SecondChoice = after.minus(before).secondChoice()
	}
	return result, nil
}

func (r *huntingRun) say(format string, args ...any) {
	if r.options.Say != nil {
		r.options.Say(fmt.Sprintf(format, args...))
	}
}

func (r *huntingRun) setCandidates(ctx context.Context, candidates int) error {
	edge, err := r.client("edge1")
	if err != nil {
		return err
	}
	_, err = edge.PutService(ctx, api.Update, "web", api.Edge, api.ServiceSpec{Candidates: &candidates})
	return err
}

func (r *huntingRun) client(node string) (*api.Client, error) {
	n, err := r.lab.Node(node)
	if err != nil {
		return nil, err
	}
	return api.NewClient(n.Socket), nil
}

// load runs the generator on the client node.
func (r *huntingRun) load(ctx context.Context) (*loadgen.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	rate := utilization * servers * cores / service.Seconds()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "load", "http://[2001:db8:80::80]/", "-o", "json",
		"--rate", strconv.FormatFloat(rate, 'f', -1, 64), "--service", service.String(), "--seed", strconv.Itoa(seed),
		"--warm-up", r.options.WarmUp.String(), "--duration", r.options.Measure.String(), "--sources", "2001:db8:c::/112")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := r.lab.Exec("client", cmd); err != nil {
		return nil, fmt.Errorf("load the servers: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var result loadgen.Result
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil {
		return nil, fmt.Errorf("load the servers: read the result: %w", err)
	}
	return &result, nil
}

// decisions are what the servers did with new connections.
type decisions struct{ accepted, forced uint64 }

func (d decisions) minus(o decisions) decisions {
	return decisions{d.accepted - o.accepted, d.forced - o.forced}
}

func (d decisions) secondChoice() float64 {
	if d.accepted+d.forced == 0 {
		return 0
	}
	return float64(d.forced) / float64(d.accepted+d.forced)
}

func (r *huntingRun) decisions(ctx context.Context) (sum decisions, err error) {
	services, err := r.hosts(ctx)
	for _, s := range services {
		sum.accepted += s.Accepted
		sum.forced += s.Forced
	}
	return sum, err
}

// hosts asks all servers.
func (r *huntingRun) hosts(ctx context.Context) ([]*api.HostService, error) {
	var all []*api.HostService
	for i := range servers {
		client, err := r.client("web" + strconv.Itoa(i+1))
		if err != nil {
			return nil, err
		}
		services, err := client.Services(ctx, "web", api.Host)
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
