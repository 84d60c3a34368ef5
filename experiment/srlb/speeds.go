package srlb

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/lab"
)

var speeds = experiment.Experiment{
	Name: "srlb-speeds", Title: "Service hunting among servers of unequal speed",
	Source: "beyond the SRLB paper, whose servers are alike",
	Shows: "Twelve servers of two cores, of which every second one is half as fast, are loaded " +
		"with a Poisson stream of requests whose CPU times are exponentially distributed: under " +
		"SR_4, SR_dyn, our own policies \"average\" and \"delay\" in the lab, over the real data " +
		"plane to emulated servers; and in the simulator, under the same and what other load " +
		"balancers do.",
	Paper: experiment.SRLB, Needs: []string{"root"}, Lasts: "6 min",
	Run: runSpeeds,
}

const slowSpeed = 0.5

func isSlow(place int) bool { return place%2 == 1 }

// The policies that are compared on servers of unequal speed. Baselines need news of servers that
// no connection carries, which the lab has not.
var (
	average6 = policy{"average, 6 candidates", "average/6"}
	delay6   = policy{"delay, 6 candidates", "delay/6"}
	charon   = policy{"Charon", "charon/2"}
	prequal  = policy{"Prequal", "prequal"}

	speedPolicies = []policy{sr4, dynamic, average, average6, delay6}
	baselines     = []policy{rr, charon, prequal, jsq2, jsq}
)

// speedFindings are what the experiment has found.
type speedFindings struct {
	overheadMs     float64 // of a request without CPU time, in the lab
	lab            []point
	replays, twins []point // the lab's points in the simulator
	baselines      []point
}

func runSpeeds(ctx context.Context, r *experiment.Recorder) error {
	var f speedFindings
	r.Progress("part 1 of 2: the lab")
	if err := speedsQueue(r, &f).run(ctx); err != nil {
		return err
	}
	r.Progress("part 2 of 2: the simulator")
	if err := f.simulate(ctx, r); err != nil {
		return err
	}
	return f.report(r)
}

// speedLoads are parts of what fast and slow servers can do together.
func speedLoads(quick bool) (loads []float64, requests float64) {
	if quick {
		return []float64{0.8}, 3000
	}
	return []float64{0.5, 0.7, 0.8, 0.9}, 20_000
}

// slowDown makes every second server of examples/hunting.yaml slow.
func slowDown(spec *lab.Spec) error {
	for i, server := range serversOf(spec) {
		if isSlow(i) {
			command := &server.Processes[0].Command
			command.Args = slices.Concat(command.Args,
				[]string{"--speed", fmt.Sprint(slowSpeed)})
		}
	}
	return nil
}

// serversOf are the servers of a lab, in the order of their names' numbers.
func serversOf(spec *lab.Spec) (list []*lab.NodeSpec) {
	for i := range servers {
		name := "web" + strconv.Itoa(i+1)
		at := slices.IndexFunc(spec.Nodes, func(n lab.NodeSpec) bool { return n.Name == name })
		list = append(list, &spec.Nodes[at])
	}
	return list
}

// speedStream is the stream at a load.
func speedStream(load float64, quick bool) stream {
	_, requests := speedLoads(quick)
	capacity, _ := trial{servers: twelve(), slow: true}.capacity()
	return requestsAt(load*capacity/service.Seconds(), requests)
}

// speedsQueue is what is measured in the lab.
func speedsQueue(r *experiment.Recorder, f *speedFindings) *labQueue {
	l := &labQueue{recorder: r, setting: unlike}
	l.addOverhead(&f.overheadMs)
	loads, _ := speedLoads(r.Quick())
	for _, load := range loads {
		s := speedStream(load, r.Quick())
		for _, p := range speedPolicies {
			addPart(l, fmt.Sprintf("lab-%s-%g", p.scheme, load), s.warmUp+s.duration,
				func(ctx context.Context, a *arena) (point, error) {
					return a.point(ctx, p, load, s)
				}, func(found point) { f.lab = append(f.lab, found) })
		}
	}
	return l
}

// simulate plays the points of the lab, and what cannot be measured there.
func (f *speedFindings) simulate(ctx context.Context, r *experiment.Recorder) (err error) {
	like := func(p policy, load float64) trial {
		t := like(p, load, speedStream(load, r.Quick()), f.overheadMs)
		t.slow = true
		return t
	}
	f.replays, f.twins, err = twins(ctx, r, "twins", f.lab, func(p point) trial {
		return like(byName(p.Policy), p.Load)
	})
	if err != nil {
		return err
	}
	var trials []trial
	loads, _ := speedLoads(r.Quick())
	for _, load := range loads {
		for _, p := range baselines {
			t := like(p, load)
			t.name, t.seed = "baseline", seed
			for range twinRuns {
				t.turn++
				trials = append(trials, t)
			}
		}
	}
	points, err := simulated(ctx, r, "baselines", trials)
	for runs := range slices.Chunk(points, twinRuns) {
		f.baselines = append(f.baselines, joined(runs))
	}
	return err
}

// report writes what was found.
func (f *speedFindings) report(r *experiment.Recorder) error {
	for _, c := range []struct {
		what   string
		points []point
		others []policy
	}{
		{"lab: delay against all others", f.lab, []policy{sr4, dynamic, average, average6}},
		{"simulator: delay against Charon, Prequal and JSQ(2)",
			slices.Concat(f.twins, f.baselines), []policy{charon, prequal, jsq2}},
	} {
		w := against(c.points, delay6, c.others...)
		r.Compare(experiment.Comparison{What: c.what, Source: "-", Ours: w.String(),
			Says: "goal +0 %: " + reached(w.ratio <= 1)})
	}
	compareTwins(r, f.lab, f.twins)
	r.Table(labTable("lab", "In the lab, and the same in the simulator, times in ms", f.lab,
		f.twins, f.replays))
	r.Table(meansTable("baselines", "Mean response in ms, simulator", f.baselines,
		func(p point) string { return fmt.Sprintf("%g", p.Load) }))
	r.Note("Loads are parts of what all servers can do, 18 cores of full speed. Of random choice "+
		"(RR) slow servers overflow from 2/3 on. A request without CPU time takes %.2f ms in the "+
		"lab, which the simulator is given as well.", f.overheadMs)
	return r.Chart("speeds", f.chart())
}

// chart has the mean response by load.
func (f *speedFindings) chart() chart.Chart {
	c := chart.Chart{Title: "Mean response time by load, every second server at half the speed",
		X: "load", Y: "ms", ToX: 1, ToY: 60}
	for _, p := range speedPolicies {
		c.Series = append(c.Series, chart.Series{Name: p.name + ", lab",
			Points: byLoad(f.lab, p), Marks: true})
	}
	for _, p := range baselines {
		c.Series = append(c.Series, chart.Series{Name: p.name + ", simulator",
			Points: byLoad(f.baselines, p), Dashed: true})
	}
	return c
}
