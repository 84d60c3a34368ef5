package srlb

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/experiment"
	"sextant/lab/loadgen"
	"sextant/sim/hunting"
	"sextant/sim/workload"
)

// conduct runs a function as an experiment of its own, and returns the report and the error.
func conduct(t *testing.T, quick bool,
	run func(context.Context, *experiment.Recorder) error) (string, error) {
	t.Helper()
	e := experiment.Experiment{Name: "test", Run: run}
	file, err := experiment.Conduct(t.Context(), e, experiment.Options{Folder: t.TempDir(),
		Quick: quick, Workers: 2})
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// answers are responses of two servers: one each 10 ms, which take as long as said.
func answers(ms ...float64) (list []loadgen.Response) {
	for i, took := range ms {
		list = append(list, loadgen.Response{AtMs: float64(10 * i), Ms: took,
			Server: fmt.Sprintf("web%d", i%2)})
	}
	return list
}

func resultOf(responses []loadgen.Response) *loadgen.Result {
	r := &loadgen.Result{Sent: uint64(len(responses))}
	for _, a := range responses {
		if a.Failure != "" {
			r.Failed++
			continue
		}
		r.Done++
		r.Latency.MeanMs += a.Ms
	}
	r.Latency.MeanMs /= float64(max(r.Done, 1))
	return r
}

func TestMeasured(t *testing.T) {
	var times []float64
	for i := range 640 {
		times = append(times, float64(i%20)+1)
	}
	list := append(answers(times...), loadgen.Response{Ms: 9999, Failure: "reset"})
	p := measured(sr4.name, 0.5, resultOf(list), list)
	if p.Failed != 1 || p.MeanMs != 10.5 || p.quantile(0.5) != 10 || p.quantile(1) != 20 ||
		p.quantile(0.001) > 1 {
		t.Errorf("mean %g, median %g, most %g, least %g, %d failed", p.MeanMs, p.quantile(0.5),
			p.quantile(1), p.quantile(0.001), p.Failed)
	}
	if p.HalfWidth > 1e-9 { // each batch has the same mean
		t.Errorf("half width %g, want 0", p.HalfWidth)
	}
}

// Of random choice the servers are the replicates.
func TestMeasuredByServer(t *testing.T) {
	list := answers(10, 30, 10, 30, 10, 30)
	if p := measured(rr.name, 0.5, resultOf(list),
		list); math.Abs(p.HalfWidth-12.706*10) > 0.1 { // t of one degree, times the deviation
		t.Errorf("two servers of mean 10 and 30: %g ± %g", p.MeanMs, p.HalfWidth)
	}
	if p := measured(rr.name, 0.5, &loadgen.Result{}, nil); p.HalfWidth != 0 {
		t.Errorf("nobody has answered: ± %g", p.HalfWidth)
	}
}

// Two servers: one has a connection all the time, the other none until the end.
func TestLoadsOf(t *testing.T) {
	list := []loadgen.Response{{AtMs: 100, Ms: 1000, Server: "a"},
		{AtMs: 1050, Ms: 50, Server: "b"}, {AtMs: 300, Ms: 9, Failure: "reset"}}
	i := loadsOf(list)
	if len(i.Seconds) < 48 || len(i.Seconds) > 52 {
		t.Fatalf("%d instants of 20 ms in a second", len(i.Seconds))
	}
	if mean, jain := i.Mean[40], i.Jain[40]; math.Abs(mean-0.5) > 0.01 ||
		math.Abs(jain-0.5) > 0.01 {
		t.Errorf("one of two servers has a connection: mean %g, fairness %g, want 0.5 and 0.5",
			mean, jain)
	}
	if loadsOf(nil).Seconds != nil {
		t.Error("there are instants without responses")
	}
}

func TestDayResult(t *testing.T) {
	c := dayOf(true)
	var list []loadgen.Response
	for i := range 4800 {
		at := float64(i) * float64(c.Length.Milliseconds()) / 4800
		list = append(list, loadgen.Response{AtMs: at, Ms: float64(i%10 + 1)},
			loadgen.Response{AtMs: at, Ms: 1, Class: workload.Static})
	}
	d := dayResultOf(rr, c, resultOf(list), list)
	if d.Pages != 4800 || math.Abs(d.MeanMs-5.5) > 1e-9 || d.StaticMs != 1 ||
		len(d.Deciles) != dayBins {
		t.Errorf("%d pages, mean %g, static %g, %d bins", d.Pages, d.MeanMs, d.StaticMs,
			len(d.Deciles))
	}
	for _, deciles := range d.Deciles {
		if len(deciles) != 9 || deciles[4] < 5 || deciles[4] > 6 {
			t.Fatalf("deciles %v of 1 to 10", deciles)
		}
	}
}

// The report of found points has the goals in it, and charts of all figures.
func TestReport(t *testing.T) {
	f := findings{overheadMs: 0.5}
	for _, load := range []float64{0.61, watched} {
		for i, p := range all {
			found := point{Policy: p.name, Load: load, MeanMs: 46 / float64(i+1), Requests: 1000,
				HalfWidth: 1, Quantiles: make([]float64, quantileSteps)}
			f.sweep = append(f.sweep, found)
			if i < 5 || p == average {
				f.lab, f.twins = append(f.lab, found), append(f.twins, found)
			}
		}
	}
	f.twins[0].MeanMs *= 1.04
	f.twins[1].MeanMs *= 2
	for _, p := range dayPolicies {
		d := dayResult{Policy: p.name, Quantiles: make([]float64, quantileSteps),
			Deciles: make([][]float64, dayBins), Rate: make([]float64, dayBins)}
		for i := range d.Quantiles {
			d.Quantiles[i] = 480
			if p != rr {
				d.Quantiles[i] = 300
			}
		}
		f.day = append(f.day, d)
	}
	f.apachePolicies, f.apacheLoads = []policy{rr, average}, []float64{0.6, 0.85}
	f.apache = []apacheResult{
		{Policy: rr.name, Load: 0.6, Times: []float64{100, 300}},
		{Policy: average.name, Load: 0.6, Times: []float64{50, 150}, Failed: 1, Resets: 1},
		{Policy: rr.name, Load: 0.6, Times: []float64{200}},
		{Policy: rr.name, Load: 0.85, Times: []float64{900}},
		{Policy: average.name, Load: 0.85, Times: []float64{300}},
	}
	text, err := conduct(t, false,
		func(_ context.Context, r *experiment.Recorder) error { return f.report(r) })
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| lab: RR at 0.88, mean, against M/M/2 | theory: 44.8 ms | 46.0 ± 1.0 ms | agrees |",
		"| simulator: SR_4 faster than RR at 0.88, in the mean | 2.3 times | 2.00 times | not " +
			"reached |",
		"| lab: synthetic day, RR to SR_4, third quartile of pages | 0.48 s to 0.28 s: 1.71 " +
			"times | 480 ms to 300 ms: 1.60 times | at least the paper's ratio: not reached |",
		"| mean response of lab and simulator, points within 5 % | - | 11 of 12, and 0 more " +
			"within their confidence interval | as chance allows, by which one interval in " +
			"twenty misses |",
		"| 0.88 | 900.0 | 400.0 | 233.3 | 150.0 | 100.0 | 66.7 | 42.9 | 25.0 | 11.1 |",
		"| Apache, fed by its scoreboard: average faster than RR at 0.6, in the mean | - | 2.00 " +
			"times | third quartile: 4.00 times |",
		"| Apache, fed by its scoreboard: average faster than RR at 0.85, in the mean | - | 3.00 " +
			"times | third quartile: 3.00 times |",
		"| 0.6 | average | 3 | 1 | 1 | 100.00 | 0.00 | 50.00 | 50.00 | 50.00 | 50.00 | 50.00 |",
		"![fig4-fairness](fig4-fairness.svg)", "![fig8](fig8.svg)",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the report lacks %q:\n%s", line, text)
		}
	}
}

// A trial keeps what it found, and a second run takes it from there.
func TestTrialsAreKept(t *testing.T) {
	trials := []trial{
		{policy: average, load: 0.5, name: "four", servers: alike(4), requests: 2000, watch: true,
			seed: 1},
		{policy: jsq, load: 0.5, name: "four", servers: alike(4), requests: 2000, seed: 1},
	}
	_, err := conduct(t, true, func(ctx context.Context, r *experiment.Recorder) error {
		first, err := simulated(ctx, r, "test", trials)
		if err != nil {
			return err
		}
		if first[0].MeanMs < 9 || first[0].Requests < 1800 || len(first[0].Ages.Jain) == 0 ||
			first[1].Policy != jsq.name {
			t.Errorf("found %+v", first)
		}
		trials[0].servers = nil // would fail
		second, err := simulated(ctx, r, "test", trials)
		if err == nil && second[0].MeanMs != first[0].MeanMs {
			t.Errorf("%g ms, then %g", first[0].MeanMs, second[0].MeanMs)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestJoined(t *testing.T) {
	p := joined([]point{{MeanMs: 10, Requests: 5}, {MeanMs: 14, Requests: 5}})
	// t = 12.7 of one degree of freedom, deviation sqrt(8), and sqrt(1 + 1/2) for one run more.
	if p.MeanMs != 12 || math.Abs(p.HalfWidth-12.706*math.Sqrt(8)*math.Sqrt(1.5)) > 0.1 {
		t.Errorf("mean %g ± %g", p.MeanMs, p.HalfWidth)
	}
}

// All that the experiment would simulate is well-formed.
func TestSchemes(t *testing.T) {
	for _, p := range slices.Concat(all, speedPolicies) {
		scheme, err := hunting.ParseScheme(p.scheme)
		if err != nil || byName(p.name) != p {
			t.Errorf("%s: %v", p.name, err)
		}
		if scheme.Choice == hunting.Hunt && acceptSpec(scheme.Policy, cores).Policy == nil {
			t.Errorf("%s has no policy for agents", p.name)
		}
	}
	if pools := unequalServers(); len(pools) != 3 || len(pools[weighted]) != servers ||
		pools[unweighted][2].Weight != 1 {
		t.Errorf("pools %v", pools)
	}
}

func TestWhoTook(t *testing.T) {
	list := []loadgen.Response{{AtMs: 2000, Ms: 4, Server: "web12"},
		{AtMs: 500, Ms: 8, Server: "web1"}, {AtMs: 3000, Failure: "reset"}}
	if took := whoTook(list); !slices.Equal(took, []uint8{0, 11, servers}) {
		t.Errorf("took %v", took)
	}
	result, kept := after(time.Second, &loadgen.Result{}, list)
	if len(kept) != 2 || result.Sent != 2 || result.Failed != 1 || result.Latency.MeanMs != 4 {
		t.Errorf("after the warm-up %+v and %d responses", result, len(kept))
	}
}

// What is known of a run of random choice leaves nothing to chance: its twin has the same mean,
// whatever the seed of its candidates.
func TestTwinOfRandomChoice(t *testing.T) {
	const load, requests = 0.94, 20_000
	s := stream{rate: rateOf(load), warmUp: time.Second}
	trial := trial{policy: rr, load: load, servers: twelve(), requests: requests, warmUp: s.warmUp,
		seed: seed, turn: 7}
	for i := range requests + int(2*s.rate) {
		trial.given = append(trial.given, uint8(i*i%servers))
	}
	lab, err := trial.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if of4 := (point{Policy: sr4.name}); lab.twins() != 0 || of4.twins() != twinRuns {
		t.Errorf("%d and %d choices of candidates, want none of random choice", lab.twins(),
			of4.twins())
	}
	trial.turn = 0
	again, err := trial.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if twin := joined([]point{again}); twin.MeanMs != lab.MeanMs || twin.HalfWidth != 0 {
		t.Errorf("mean %g, its twin %g ± %g", lab.MeanMs, twin.MeanMs, twin.HalfWidth)
	}
}

// What is measured in real time leaves the simulator, which takes two to four minutes, enough of
// half an hour, and of three minutes if quick.
func TestLabLeavesTime(t *testing.T) {
	for quick, limit := range map[bool]time.Duration{false: 20 * time.Minute,
		true: 105 * time.Second} {
		_, err := conduct(t, quick, func(_ context.Context, r *experiment.Recorder) error {
			f := findings{}
			lasts := emulatedQueue(r, &f).left(0) + apacheQueue(r, &f).left(0)
			t.Logf("quick %v: %s", quick, lasts)
			if lasts > limit {
				t.Errorf("quick %v: %s in the lab, want %s at most", quick, lasts, limit)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
