package srlb

import (
	"context"
	"fmt"
	"time"

	"sextant/experiment"
)

// All lists the experiments.
func All() []experiment.Experiment { return []experiment.Experiment{whole, speeds} }

var whole = experiment.Experiment{
	Name: "srlb", Title: "Service hunting: response times under each acceptance policy, and how " +
		"near they come to the ideal",
	Source: "Y. Desmouceaux, P. Pfister, J. Tollet, M. Townsley, T. Clausen, SRLB: The Power of " +
		"Choices in Load Balancing with " +
		"Segment Routing, figures 2 to 8",
	Shows: "Twelve servers of two cores and 32 workers are loaded with a Poisson stream of " +
		"requests whose CPU times are exponentially " +
		"distributed (figures 2 to 5), and with a synthetic day of a wiki (figures 6 to 8), " +
		"under random choice (RR), SR_4, SR_8, " +
		"SR_16, SR_dyn and our own policy \"average\": in the lab, over the real data plane to " +
		"emulated servers, and in the " +
		"simulator, which runs the same code. Then real Apache servers whose scoreboard feeds " +
		"the policies. The simulator goes " +
		"on where the lab ends: all 24 loads, 10 to 10,000 servers, servers of unequal size, and " +
		"the distance to " +
		"join-the-shortest-queue.",
	Paper: experiment.SRLB, Needs: []string{"root", "apache2"}, Lasts: "20 min",
	Run: run,
}

// The paper's machines, with a tenth of its CPU time per request.
const (
	servers = 12
	cores   = 2
	workers = 32
	backlog = 128
	buckets = 65537
	service = 10 * time.Millisecond
)

// policy is a way of choosing servers, and how the report calls it.
type policy struct {
	name   string
	scheme string // as hunting.ParseScheme reads it
}

// The policies of the paper, and our own. Ideals know the load of all servers; nothing real does.
var (
	rr      = policy{"RR", "random"}
	sr4     = policy{"SR_4", "static=4"}
	sr8     = policy{"SR_8", "static=8"}
	sr16    = policy{"SR_16", "static=16"}
	dynamic = policy{"SR_dyn", "dynamic"}
	patient = policy{"SR_dyn, window 500", "dynamic=500"} // ten times the paper's window
	average = policy{"average", "average/3"}
	pair    = policy{"average, 2 candidates", "average"}
	jsq2    = policy{"JSQ(2)", "jsq/2"}
	jsq     = policy{"JSQ", "jsq"}

	contenders = []policy{rr, sr4, sr8, sr16, dynamic, average}
	static     = []policy{sr4, sr8, sr16}
	all        = []policy{rr, sr4, sr8, sr16, dynamic, patient, pair, average, jsq2, jsq}
)

// steps are the parts of the experiment. Those in the lab come first: what takes long and can fail.
var steps = []struct {
	name string
	run  func(context.Context, *experiment.Recorder, *findings) error
}{
	{"Poisson stream in the lab", inLab},
	{"Apache", inApache},
	{"Poisson stream in the simulator", inSimulator},
	{"a day in the simulator", simulateDay},
	{"sizes", simulateSizes},
	{"unequal servers", simulateUnequal},
}

// findings are what the parts have found.
type findings struct {
	overheadMs float64     // of a request without CPU time, in the lab
	lab        []point     // Poisson stream in the lab
	day        []dayResult // a day in the lab
	apache     []apacheResult
	noApache   bool
	// Of Apache: what was compared, and what is known of the machine.
	apachePolicies []policy
	apacheLoads    []float64
	calibration    calibration
	replays        []point // the lab's points in the simulator, with the servers of the lab
	// the same with servers that the simulator finds; of random choice, replays
	twins     []point
	sweep     []point // all loads in the simulator
	simulated []dayResult
	sizes     []point
	unequal   []point
}

func run(ctx context.Context, r *experiment.Recorder) error {
	var f findings
	for i, step := range steps {
		r.Progress("part %d of %d: %s", i+1, len(steps), step.name)
		if err := step.run(ctx, r, &f); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return f.report(r)
}
