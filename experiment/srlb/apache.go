package srlb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"sextant/experiment"
	"sextant/sim/queueing"
)

// Of examples/apache.yaml and its load.
const (
	apacheBurn = 8 * time.Millisecond // mean CPU time of the CGI itself
	// in which the policies take turns, so that they meet the same machine
	apacheRounds = 3
	apacheDemand = "demand of a request" // name of the part
	// requests per second of all servers, when the demand is measured
	calibrateRate = 24.
)

// apacheLoads are parts of what the servers can do while this machine has nothing else to do.
func apacheLoads(quick bool) []float64 {
	if quick {
		return []float64{0.6}
	}
	return []float64{0.6, 0.85}
}

// apacheWarmUp comes before each measurement.
const apacheWarmUp = 3 * time.Second

// calibrateWarmUp comes before the demand is measured.
const calibrateWarmUp = 2 * time.Second

// apachePolicies are compared on Apache.
var apachePolicies = []policy{rr, sr4, dynamic, average}

// apacheResult is what Apache servers made of the load under one policy.
type apacheResult struct {
	Policy string
	Load   float64
	Times  []float64 // response times in ms
	Failed uint64
	Resets uint64 // of these, connections that a full backlog refused
}

// apachePoint joins the rounds of a policy at a load.
func apachePoint(p policy, load float64, rounds []apacheResult) (point, uint64) {
	out, resets := point{Policy: p.name, Load: load}, uint64(0)
	var times []float64
	var replicates []queueing.Replicate
	for _, r := range rounds {
		if r.Policy != p.name || r.Load != load {
			continue
		}
		times = append(times, r.Times...)
		out.Failed += r.Failed
		resets += r.Resets
		replicates = append(replicates, queueing.Replicate{Count: uint64(len(r.Times)),
			Mean: mean(r.Times)})
	}
	out.Requests, out.MeanMs = uint64(len(times))+out.Failed, mean(times)
	if interval, err := queueing.MeanInterval(0.95,
		replicates); err == nil { // else there was one round
		out.HalfWidth = interval.HalfWidth
	}
	out.Quantiles = quantiles(times)
	return out, resets
}

// calibration is what is known of this machine before the load.
type calibration struct {
	Loops    int     // of the CGI in a millisecond
	DemandMs float64 // time that the mean request takes on an idle server of a tenth of a core
}

// inApache loads Apache servers, if Apache is installed.
func inApache(ctx context.Context, r *experiment.Recorder, f *findings) error {
	if _, err := exec.LookPath("apache2"); err != nil {
		f.noApache = true
		return nil
	}
	defer removeGroups()
	return apacheQueue(r, f).run(ctx)
}

// apacheQueue is what is measured on Apache.
func apacheQueue(r *experiment.Recorder, f *findings) *labQueue {
	duration, rounds, calibrated := 12*time.Second, apacheRounds, 10*time.Second
	f.apachePolicies, f.apacheLoads = apachePolicies, apacheLoads(r.Quick())
	if r.Quick() {
		duration, rounds, calibrated, f.apachePolicies = 7*time.Second, 1, 5*time.Second,
			[]policy{rr, average}
	}
	l := &labQueue{recorder: r, setting: apaches}
	addPart(l, apacheDemand, calibrateWarmUp+calibrated,
		func(ctx context.Context, a *arena) (calibration, error) {
			return a.calibrate(ctx, calibrated)
		}, func(found calibration) { f.calibration = found })
	for _, load := range f.apacheLoads {
		for round := range rounds {
			for _, p := range f.apachePolicies {
				name := fmt.Sprintf("apache-%s-%g-%d", p.scheme, load, round+1)
				addPart(l, name, apacheWarmUp+duration,
					func(ctx context.Context, a *arena) (apacheResult, error) {
						return a.apache(ctx, p, load, f.calibration, duration)
					}, func(found apacheResult) { f.apache = append(f.apache, found) })
			}
		}
	}
	return l
}

// removeGroups removes the control groups that examples/apache.yaml makes where version 1 is in
// use.
func removeGroups() {
	groups, _ := filepath.Glob("/sys/fs/cgroup/cpu/sextant-web*") // the pattern is right
	for _, group := range groups {
		_ = os.Remove(group) // one that is still in use stays, and is used again
	}
}

// burnURL is the CGI with its loops per millisecond.
func burnURL(loops int) string { return fmt.Sprintf("%sburn?loops=%d", vip, loops) }

// calibrate measures how fast the CGI burns on this machine, and what a mean request takes.
func (a *arena) calibrate(ctx context.Context, duration time.Duration) (c calibration, err error) {
	if c.Loops, err = loopsPerMillisecond(ctx); err != nil {
		return c, err
	}
	if err := a.use(ctx, rr); err != nil {
		return c, err
	}
	url := fmt.Sprintf("%s&ms=%g", burnURL(c.Loops), apacheBurn.Seconds()*1000)
	result, _, err := a.load(ctx, stream{url: url, rate: calibrateRate, warmUp: calibrateWarmUp,
		duration: duration})
	if err != nil {
		return c, err
	}
	// A server is a processor-sharing queue: its mean response is demand / (1 - rate * demand).
	response := result.Latency.MeanMs
	c.DemandMs = response / (1 + calibrateRate/servers*response/1000)
	return c, nil
}

// loopsPerMillisecond runs the loop of the CGI for a while.
func loopsPerMillisecond(ctx context.Context) (int, error) {
	const loops = 1_000_000
	cmd := exec.CommandContext(ctx, "sh", "-c",
		fmt.Sprintf("left=%d; while [ $left -gt 0 ]; do left=$((left - 1)); done", loops))
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("find out how fast a shell is: %w", err)
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return max(int(loops*time.Millisecond/max(spent, time.Millisecond)), 1), nil
}

// apache loads the servers under a policy.
func (a *arena) apache(ctx context.Context, p policy, load float64, c calibration,
	duration time.Duration) (apacheResult, error) {
	if err := a.use(ctx, p); err != nil {
		return apacheResult{}, err
	}
	rate := load * servers / c.DemandMs * 1000
	s := stream{url: burnURL(c.Loops), rate: rate, service: apacheBurn, warmUp: apacheWarmUp,
		duration: duration}
	result, responses, err := a.load(ctx, s)
	if err != nil {
		return apacheResult{}, err
	}
	found := apacheResult{Policy: p.name, Load: load, Failed: result.Failed,
		Resets: result.Failures.Reset}
	for _, r := range responses {
		if r.Failure == "" {
			found.Times = append(found.Times, r.Ms)
		}
	}
	return found, nil
}

func (f *findings) compareApache(r *experiment.Recorder) {
	if f.noApache {
		r.Note("The experiment on Apache was left out: apache2 is not installed.")
		return
	}
	for _, load := range f.apacheLoads {
		random, _ := apachePoint(rr, load, f.apache)
		for _, p := range f.apachePolicies[1:] {
			found, _ := apachePoint(p, load, f.apache)
			r.Compare(experiment.Comparison{
				What: fmt.Sprintf("Apache, fed by its scoreboard: %s faster than RR at %g, in "+
					"the mean", p.name, load),
				Source: "-",
				Ours:   fmt.Sprintf("%.2f times", random.MeanMs/found.MeanMs),
				Says: fmt.Sprintf("third quartile: %.2f times",
					random.quantile(0.75)/found.quantile(0.75)),
			})
		}
	}
	r.Note("Each Apache server has a tenth of a core, by the CPU controller of control groups; a "+
		"shell script as CGI burns %v of CPU "+
		"in the mean, and with fork, exec and Apache's own part a request takes %.0f ms on an "+
		"idle server. The load, a part of "+
		"that, is heavier when the machine is busy with other things. Policies take turns. The "+
		"agent asks each server's status page "+
		"ten times per second, which costs the server as well.",
		apacheBurn, f.calibration.DemandMs)
}

func (f *findings) apacheTable() experiment.Table {
	t := experiment.Table{
		Name: "apache", Title: "Apache mpm_prefork with a CPU-burning CGI, policies fed by its " +
			"scoreboard, times in ms",
		Columns: []string{"Load", "Policy", "Requests", "Failed", "Reset", "Mean", "±",
			"First quartile", "Median", "Third quartile",
			"P90", "P99"},
	}
	for _, load := range f.apacheLoads {
		for _, own := range f.apachePolicies {
			p, resets := apachePoint(own, load, f.apache)
			t.Add(fmt.Sprintf("%g", load), p.Policy, p.Requests, p.Failed, resets, ms(p.MeanMs),
				ms(p.HalfWidth), ms(p.quantile(0.25)), ms(p.quantile(0.5)), ms(p.quantile(0.75)),
				ms(p.quantile(0.9)), ms(p.quantile(0.99)))
		}
	}
	return t
}
