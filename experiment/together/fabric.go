package together

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/lb/acceptance"
	"sextant/sim/hunting"
	"sextant/sim/workload"
)

var fabric = experiment.Experiment{
	Name: "together-a", Title: "Servers and paths chosen in one decision, on a fabric with 1,000 " +
		"servers",
	Source: "-",
	Shows: "1,000 servers of two cores in 50 racks, to each of which four paths lead. Other " +
		"traffic takes 90 % of two of the paths to every second rack, and half of all paths to " +
		"every tenth; other work takes half of every fifth server. The simulator runs the code " +
		"of edge and hosts (tables, acceptance, ranks), with news of queues and loads twice a " +
		"second. Random choice, hunting alone, path control alone, and both; and what an order " +
		"of candidates adds.",
	Paper: experiment.Ours, Lasts: "3 min", Run: runFabric,
}

// The fabric.
const (
	servers, racks, pathsPerRack = 1000, 50, 4
	cores, workers               = 2, 32
	service                      = 100 * time.Millisecond
	transfer                     = 2 * time.Millisecond // on a path that is free
	news                         = 500 * time.Millisecond
)

// scheme is a way of choosing servers and paths.
type scheme struct {
	name       string
	candidates int
	policy     acceptance.Kind
	steers     bool // onto the best path
	byPath     bool // order of candidates
	byLoad     bool
}

// The schemes. The first four are compared; the others say what an order of candidates adds.
var schemes = []scheme{
	{name: "random", candidates: 1},
	{name: "hunting alone", candidates: 2, policy: acceptance.Average},
	{name: "path control alone", candidates: 1, steers: true},
	{name: "both", candidates: 2, policy: acceptance.Average, steers: true},
	{name: "both, order: [path]", candidates: 2, policy: acceptance.Average, steers: true,
		byPath: true},
	{name: "both, order: [load]", candidates: 2, policy: acceptance.Average, steers: true,
		byLoad: true},
	{name: "path control, hosts always accept, order: [load]", candidates: 2, steers: true,
		byLoad: true},
}

// network is the fabric as a scheme uses it.
func (s scheme) network() *hunting.Network {
	n := &hunting.Network{Transfer: transfer, News: news, FullQueue: 20, Steers: s.steers,
		OrdersByPath: s.byPath, OrdersByLoad: s.byLoad}
	for rack := range racks {
		free := [pathsPerRack]float64{1, 1, 1, 1}
		if rack%2 == 1 {
			free[0], free[1] = crowded, crowded
		}
		if rack%10 == 0 {
			free = [pathsPerRack]float64{narrow, narrow, narrow, narrow}
		}
		paths := []hunting.Path{}
		for _, f := range free {
			paths = append(paths, hunting.Path{Free: f})
		}
		n.Paths = append(n.Paths, paths)
	}
	for i := range servers {
		if i/racks%5 == 0 { // in each rack
			n.Others = append(n.Others, hunting.Others{Server: i,
				Rate: busy * cores / service.Seconds(), Mean: service})
		}
	}
	return n
}

// What is left of paths that other traffic fills, and what other work takes of a server.
const (
	crowded = 0.1
	narrow  = 0.5
	busy    = 0.5
)

// found is what one run found.
type found struct {
	Scheme          string
	Load            float64 // of the cores, by requests
	MeanMs, P99Ms   float64
	HalfWidth       float64
	Requests, Fails uint64
}

func (s scheme) run(ctx context.Context, load float64, requests int, seed uint64) (found, error) {
	rate := load * servers * cores / service.Seconds()
	warmUp := 60 * time.Second
	until := warmUp + time.Duration(float64(requests)/rate*float64(time.Second))
	r, err := hunting.Run(hunting.Config{
		Servers: slices.Repeat([]hunting.Server{{Cores: cores, Workers: workers, Backlog: 1 << 16,
			Weight: 1}}, servers),
		Scheme: hunting.Scheme{Candidates: s.candidates,
			Policy: acceptance.Policy{Kind: s.policy}},
		Buckets: 65537, Seed: seed, Network: s.network(),
		Requests: workload.NewPoisson(rate, service, seed), Until: until, WarmUp: warmUp,
		Progress: func(time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		return found{}, err
	}
	return found{s.name, load, r.Pages.MeanMs, r.Pages.QuantileMs(0.99), r.Mean.HalfWidth,
		r.Requests, r.Overflow}, nil
}

// loads are the shares of all cores that requests take.
var loads = []float64{0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7}

func runFabric(ctx context.Context, r *experiment.Recorder) error {
	requests := r.Requests(400_000)
	all := make([]found, len(loads)*len(schemes))
	err := experiment.SideBySide(ctx, r.Workers(), len(all),
		func(ctx context.Context, i int) (err error) {
			s, load := schemes[i%len(schemes)], loads[i/len(schemes)]
			all[i], err = experiment.Part(r, fmt.Sprintf("%s-%g", s.name, load),
				func() (found, error) { return s.run(ctx, load, requests, 1) })
			r.Progress("%s at %g", s.name, load)
			return err
		}, nil)
	if err != nil {
		return err
	}
	return reportFabric(r, all)
}

// reportFabric writes the table, the charts and what follows, of runs by load and scheme.
func reportFabric(r *experiment.Recorder, all []found) error {
	t := experiment.Table{Name: "times", Title: "Response times over the load by requests",
		Columns: []string{"load", "scheme", "mean ms", "± ms", "p99 ms", "requests", "refused"}}
	means, tails := make([]chart.Series, len(schemes)), make([]chart.Series, len(schemes))
	for i, f := range all {
		t.Add(f.Load, f.Scheme, fmt.Sprintf("%.1f", f.MeanMs), fmt.Sprintf("%.1f", f.HalfWidth),
			fmt.Sprintf("%.1f", f.P99Ms), f.Requests, f.Fails)
		k := i % len(schemes)
		means[k].Name, tails[k].Name = f.Scheme, f.Scheme
		means[k].Marks, tails[k].Marks = true, true
		means[k].Points = append(means[k].Points, chart.Point{X: f.Load, Y: f.MeanMs})
		tails[k].Points = append(tails[k].Points, chart.Point{X: f.Load, Y: f.P99Ms})
	}
	r.Table(t)
	for i := 0; i+len(schemes) <= len(all); i += len(schemes) {
		compare(r, all[i:i+len(schemes)])
	}
	r.Note("Servers have 2 cores and 32 workers, requests take 100 ms of CPU time in the mean, "+
		"and 2 ms of a free path: the 99th percentile of a request that never waits is %.0f ms.",
		idleP99.Seconds()*1000)
	r.Note("Requests go straight to the server that accepted, as with a flow cache, over the " +
		"best path of its rack by the latest news (a path gives way to one that is lighter by a " +
		"quarter).")
	for name, c := range map[string]chart.Chart{
		"means": {Title: "Mean response time", Y: "ms", ToY: 1000, Series: means},
		"tails": {Title: "99th percentile", Y: "ms", ToY: 5000, Series: tails},
	} {
		c.X = "load by requests"
		if err := r.Chart(name, c); err != nil {
			return err
		}
	}
	return nil
}

// idleP99 is the 99th percentile of the CPU time of a request.
const idleP99 = time.Duration(4.60517 * float64(service))

// compare says by how much both are below the better of the two alone, at one load.
func compare(r *experiment.Recorder, at []found) {
	hunts, steers, both := at[1], at[2], at[3]
	mean, p99 := min(hunts.MeanMs, steers.MeanMs), min(hunts.P99Ms, steers.P99Ms)
	r.Compare(experiment.Comparison{
		What:   fmt.Sprintf("load %g: both against the better of the two alone", both.Load),
		Source: "-",
		Ours: fmt.Sprintf("%+.0f %% in mean, %+.0f %% in p99", 100*(both.MeanMs/mean-1),
			100*(both.P99Ms/p99-1)),
		Says: fmt.Sprintf("mean %.0f and %.0f ms, p99 %.0f and %.0f ms", both.MeanMs, mean,
			both.P99Ms, p99),
	})
}
