package srlb

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
	"sextant/lab/loadgen"
	"sextant/lb/acceptance"
	"sextant/sim/hunting"
)

// Of examples/hunting.yaml.
const (
	vip         = "http://[2001:db8:80::80]/"
	clientRange = "2001:db8:c::/112"
)

// arena is a lab while it is up: that of examples/hunting.yaml or of examples/apache.yaml.
type arena struct {
	*experiment.Arena
	cores int // of a server
}

// setting is a lab, how many cores its servers have, and what differs from the example.
type setting struct {
	name   string
	text   []byte
	cores  int
	change func(*lab.Spec) error
}

var (
	emulated = setting{"srlb", examples.Hunting, cores, nil}
	unlike   = setting{"srlb-speeds", examples.Hunting, cores, slowDown}
	apaches  = setting{"srlb-apache", examples.Apache, 1, nil}
)

// within builds the lab of a setting and calls body, as experiment.InLab does.
func within(ctx context.Context, s setting, body func(context.Context, *arena) error) error {
	return experiment.InExample(ctx, s.name, s.text, s.change, lab.Options{},
		func(ctx context.Context, a *experiment.Arena) error {
			return body(ctx, &arena{Arena: a, cores: s.cores})
		})
}

// use gives the edge and all servers a policy.
func (a *arena) use(ctx context.Context, p policy) error {
	scheme, err := hunting.ParseScheme(p.scheme)
	if err != nil {
		return err
	}
	edge := api.ServiceSpec{ContinuitySpec: api.ContinuitySpec{Candidates: &scheme.Candidates}}
	if err := a.put(ctx, "edge1", api.Edge, edge); err != nil {
		return err
	}
	for i := range servers {
		spec := api.ServiceSpec{Accept: acceptSpec(scheme.Policy, a.cores)}
		if err := a.put(ctx, "web"+strconv.Itoa(i+1), api.Host, spec); err != nil {
			return err
		}
	}
	return nil
}

func (a *arena) put(ctx context.Context, node string, role api.Role, spec api.ServiceSpec) error {
	agent := a.Agents[node].BreakingConnections() // there are none between two measurements
	if _, err := agent.PutService(ctx, api.Update, "web", role, spec); err != nil {
		return fmt.Errorf("set the policy of %s: %w", node, err)
	}
	return nil
}

// acceptSpec is a policy as the agents read it.
func acceptSpec(p acceptance.Policy, cores int) *api.AcceptSpec {
	name := config.Policy(p.Kind.String())
	spec := &api.AcceptSpec{Policy: &name}
	number := func(n int) *int { return &n }
	switch p.Kind {
	case acceptance.Static:
		spec.Threshold = number(int(p.Threshold))
	case acceptance.Dynamic:
		spec.Workers = number(workers)
	case acceptance.Average, acceptance.Delay:
		spec.Cores = number(cores)
	}
	return spec
}

// stream is a load of the lab.
type stream struct {
	url      string  // the emulated servers' if ""
	rate     float64 // per second
	service  time.Duration
	warmUp   time.Duration
	duration time.Duration
	day      bool
}

func (s stream) arguments() []string {
	arguments := []string{cmp.Or(s.url, vip), "--rate", strconv.FormatFloat(s.rate, 'f', -1, 64),
		"--service", s.service.String(),
		"--seed", strconv.Itoa(seed), "--warm-up", s.warmUp.String(), "--duration",
		s.duration.String(), "--sources", clientRange}
	if s.day {
		arguments = append(arguments, "--day")
	}
	return arguments
}

// seed is of all loads: every policy meets the same requests.
const seed = 1

// load sends a stream and collects the responses.
func (a *arena) load(ctx context.Context, s stream) (*loadgen.Result, []loadgen.Response, error) {
	var responses []loadgen.Response
	result, err := experiment.Load(ctx, a.Lab, "client",
		func(r loadgen.Response) { responses = append(responses, r) }, s.arguments()...)
	return result, responses, err
}

// overhead is the mean response time in ms of a request that needs no CPU time, on an idle lab.
func (a *arena) overhead(ctx context.Context) (float64, error) {
	result, err := experiment.Load(ctx, a.Lab, "client", nil, vip+"?ms=0", "--rate", "200",
		"--warm-up", "1s", "--duration", "4s",
		"--sources", clientRange)
	if err != nil {
		return 0, err
	}
	return result.Latency.MeanMs, nil
}
