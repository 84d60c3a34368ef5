package soak

import (
	"context"
	"time"

	"sextant/examples"
	"sextant/experiment"
	"sextant/lab"
)

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{soak, signed}
}

var soak = experiment.Experiment{
	Name: "soak", Title: "Ten million flows through an edge and four hosts, while pools change " +
		"and agents are killed",
	Source: "none: what operators ask of a load balancer before they trust it with a day",
	Shows: "Flows begin and end, with broken packets among them, at the programs of running " +
		"agents; real connections come besides. " +
		"All packets in must be packets forwarded, taken, passed, answered or dropped by a " +
		"reason, of each node and exactly. Memory " +
		"of agents and of the kernel's tables must stay, and nothing be left in the kernel of " +
		"agents that ended.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "20 min",
	Run: func(ctx context.Context, r *experiment.Recorder) error { return run(ctx, r, nil) },
}

var signed = experiment.Experiment{
	Name: "soak-signed", Title: "The same, with segment routing headers that the edge signs and " +
		"hosts verify",
	Source: "none: what operators ask of a load balancer before they trust it with a day",
	Shows: "What soak shows, when chains travel in segment routing headers with an HMAC (RFC " +
		"8754): what is not signed, or wrongly, is " +
		"dropped under a reason of its own.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "20 min",
	Run: func(ctx context.Context, r *experiment.Recorder) error { return run(ctx, r, sign) },
}

// size says how much is done.
type size struct {
	flows   uint64
	batch   uint64        // flows that are given to the programs at once
	parts   int           // after each all must add up, and an agent is ended
	changes int           // of pools, in each part
	rate    float64       // of real connections, per second
	load    time.Duration // for which they come, in each part
}

var (
	whole = size{flows: 10_000_000, batch: 5000, parts: 50, changes: 20, rate: 100,
		load: 2 * time.Second}
	quick = size{flows: 4000, batch: 1000, parts: 5, changes: 2, rate: 50,
		load: 200 * time.Millisecond}
)

// restartLoop starts its arguments again whenever they end.
const restartLoop = `while :; do "$@"; echo "ended with status $?, starting it again" >&2; sleep 0.1; done`

func run(ctx context.Context, r *experiment.Recorder, change func(*lab.Spec) error) error {
	s := whole
	if r.Quick() {
		s = quick
	}
	options := lab.Options{Agent: []string{"/bin/sh", "-c", restartLoop, "sh", "{self}", "agent",
		"-f", "{dir}/node.yaml"}}
	return experiment.InExample(ctx, "soak-run", examples.Soak, change, options,
		func(ctx context.Context, l *experiment.Arena) error {
			a := &arena{Arena: l, size: s, traffic: newTraffic(1), recorder: r}
			if err := a.soak(ctx); err != nil {
				return err
			}
			return a.report()
		})
}
