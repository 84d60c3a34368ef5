package churn

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
)

var figure8 = experiment.Experiment{
	Name: "shadow-fig8", Title: "Throughput while servers leave and return one after the other",
	Source: source + ", section VI-B, figure 8",
	Shows: "64 clients download from four servers. Two of them leave (drain), one after the " +
		"other, and return. Shows what each " +
		"server sends, and what servers send on because the connection is elsewhere. Counts " +
		"failed downloads.",
	Paper: experiment.VRFShadowing, Needs: []string{"root"}, Lasts: "12 min",
	Run: runFigure8,
}

// step changes servers at a time of figure 8.
type step struct {
	at time.Duration
	up int // servers that are up from then on
}

// timetable is the paper's with a period of 20 s: two servers leave and return.
func timetable(period time.Duration) (steps []step, end time.Duration) {
	for i, up := range []int{4, 3, 2, 3, 4} {
		steps = append(steps, step{time.Duration(i) * period, up})
	}
	return steps, 5 * period
}

// reading is what a server has done in one interval of figure 8.
type reading struct {
	Second float64   `json:"second"` // at its end
	Mbps   []float64 `json:"mbps"`   // sent, by server
	Strays float64   `json:"strays"` // packets per second that were sent on
}

// transition is a run of figure 8.
type transition struct {
	Outcome  outcome   `json:"outcome"`
	Readings []reading `json:"readings"`
}

func runFigure8(ctx context.Context, r *experiment.Recorder) error {
	period, every := 20*time.Second, time.Second
	if r.Quick() {
		period, every = 900*time.Millisecond, 200*time.Millisecond
	}
	var runs []transition
	err := within(ctx, setting{name: "shadow-fig8"}, func(ctx context.Context, a *arena) error {
		for _, p := range policies {
			run, err := experiment.Part(r, p.name,
				func() (transition, error) { return a.stepwise(ctx, r, p, period, every) })
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return reportFigure8(r, runs)
}

// stepwise loads four servers while they follow the timetable, and takes a reading at each
// interval.
func (a *arena) stepwise(ctx context.Context, r *experiment.Recorder, p policy, period,
	every time.Duration) (transition, error) {
	steps, end := timetable(period)
	m, err := a.members(ctx, p)
	if err != nil {
		return transition{}, err
	}
	if err := m.set(ctx, firstUp(steps[0].up)); err != nil {
		return transition{}, err
	}
	before, err := a.traffic(ctx)
	if err != nil {
		return transition{}, err
	}
	t, err := a.follow(ctx, m, steps, every, func(ctx context.Context) (outcome, error) {
		return a.load(ctx, p, downloads{
			bytes: large, workers: parallel, duration: end, timeout: patience,
			progress: follow(r, "%s", p.name),
		})
	})
	if err != nil {
		return t, err
	}
	after, err := a.traffic(ctx)
	passed := after.minus(before)
	t.Outcome.Policy, t.Outcome.Changes, t.Outcome.Ms = p.name, len(steps)-1, nil
	t.Outcome.Redirected, t.Outcome.Resets, t.Outcome.GivenUp = passed.share(), passed.resets,
		passed.givenUp
	return t, err
}

// firstUp has the first n servers up.
func firstUp(n int) []bool { return append(all(n), make([]bool, servers-n)...) }

// follow makes the changes and takes readings while load runs.
func (a *arena) follow(
	ctx context.Context, m members, steps []step, every time.Duration,
	load func(context.Context) (outcome, error),
) (t transition, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	loading, loaded := context.WithCancel(ctx)
	var changes, readings sync.WaitGroup
	var failure, blind error
	changes.Go(func() {
		if failure = followSteps(loading, m, steps); failure != nil {
			cancel(failure)
		}
	})
	readings.Go(func() {
		if t.Readings, blind = a.read(loading, every); blind != nil {
			cancel(blind)
		}
	})
	t.Outcome, err = load(ctx)
	loaded()
	changes.Wait()
	readings.Wait()
	return t, cmp.Or(failure, blind, err)
}

func followSteps(ctx context.Context, m members, steps []step) error {
	begun := time.Now()
	for _, s := range steps {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(begun.Add(s.at))):
		}
		if err := m.set(context.WithoutCancel(ctx), firstUp(s.up)); err != nil {
			return fmt.Errorf("change the servers: %w", err)
		}
	}
	return nil
}

// read takes a reading at each interval until ctx ends.
func (a *arena) read(ctx context.Context, every time.Duration) (readings []reading, err error) {
	begun := time.Now()
	last, lastAt, err := a.sample(ctx, begun)
	for err == nil {
		select {
		case <-ctx.Done():
			return readings, nil
		case <-time.After(every):
		}
		var now sample
		var at float64
		if now, at, err = a.sample(context.WithoutCancel(ctx), begun); err == nil {
			readings = append(readings, now.since(last, at, at-lastAt))
			last, lastAt = now, at
		}
	}
	return readings, err
}

// sample is all counters of a moment.
type sample struct {
	sent   []uint64 // bytes, by server
	strays uint64
}

func (a *arena) sample(ctx context.Context, begun time.Time) (s sample, second float64, err error) {
	for i := range servers {
		bytes, err := sentBytes(a.host(i))
		if err != nil {
			return s, 0, err
		}
		s.sent = append(s.sent, bytes)
	}
	passed, err := a.traffic(ctx)
	s.strays = passed.redirected
	return s, time.Since(begun).Seconds(), err
}

func (s sample) since(o sample, at, seconds float64) reading {
	r := reading{Second: at, Strays: float64(s.strays-o.strays) / seconds}
	for i := range s.sent {
		r.Mbps = append(r.Mbps, float64(s.sent[i]-o.sent[i])*8/1e6/seconds)
	}
	return r
}

func reportFigure8(r *experiment.Recorder, runs []transition) error {
	scaleNote(r)
	published := map[string]string{"ecmp": "9.8 % (381 of 3902)", "shadow": "0 % (0 of 3819)"}
	t := experiment.Table{
		Name: "failures", Title: "Failed downloads",
		Columns: []string{"Policy", "Downloads", "Failed", "Failed, %", "How they failed",
			"Resets sent by servers", "Packets sent on, %",
			"Mbit/s"},
	}
	for i, run := range runs {
		o, p := run.Outcome, policies[i]
		t.Rows = append(t.Rows, cells(o.Policy, o.Requests, o.Failed, 100*o.rate(), o.Failures,
			o.Resets, 100*o.Redirected, o.Mbps))
		paper := cmp.Or(published[o.Policy], "-")
		r.Compare(experiment.Comparison{What: o.Policy + ": failed downloads", Source: paper,
			Ours: ofRequests(o), Says: says(p, o)})
		if err := r.Chart("fig8-"+o.Policy, throughput(run)); err != nil {
			return err
		}
	}
	r.Table(t)
	return r.Chart("fig8-strays", strays(runs))
}

func throughput(run transition) chart.Chart {
	c := chart.Chart{Title: "What servers send, " + run.Outcome.Policy, X: "seconds", Y: "Mbit/s"}
	for i := range 4 {
		s := chart.Series{Name: server(i)}
		for _, reading := range run.Readings {
			s.Points = append(s.Points, chart.Point{X: reading.Second, Y: reading.Mbps[i]})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func strays(runs []transition) chart.Chart {
	c := chart.Chart{Title: "Packets that servers send on, because the connection is elsewhere",
		X: "seconds", Y: "packets per second"}
	for _, run := range runs {
		if run.Outcome.Redirected == 0 {
			continue
		}
		s := chart.Series{Name: run.Outcome.Policy}
		for _, reading := range run.Readings {
			s.Points = append(s.Points, chart.Point{X: reading.Second, Y: reading.Strays})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
