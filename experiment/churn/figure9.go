package churn

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/packet/lists"
)

var figures9To12 = experiment.Experiment{
	Name: "shadow-fig9", Title: "Downloads that fail while servers leave and return (figures 9 " +
		"to 12)",
	Source: source + ", section VI-C, figures 9 to 12",
	Shows: "64 clients download from eight servers while, at each interval, one of them at " +
		"random leaves (drains) or returns. " +
		"Counts failed downloads by policy, and the packets that servers had to send on. No " +
		"download of offer may fail.",
	Paper: experiment.VRFShadowing, Needs: []string{"root"}, Lasts: "2 h",
	Run: runFigures9To12,
}

// sweep is how much of the experiment is done.
type sweep struct {
	sizes     []int
	intervals []time.Duration
	runs      int
	duration  time.Duration
	calm      time.Duration // for the distribution of completion times, without changes
}

var (
	wholeSweep = sweep{
		sizes: []int{small, large},
		intervals: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 7 * time.Second,
			10 * time.Second},
		runs: 3, duration: 30 * time.Second, calm: 100 * time.Second,
	}
	quickSweep = sweep{
		sizes: []int{large}, intervals: []time.Duration{time.Second}, runs: 1,
		duration: 6 * time.Second, calm: 4 * time.Second,
	}
)

// figures collects what the four figures show.
type figures struct {
	sweep   sweep
	results map[cell][]outcome
	calm    map[int]outcome // by size
}

// cell is a point of figures 9, 11 and 12.
type cell struct {
	size     int
	interval time.Duration
	policy   string
}

func runFigures9To12(ctx context.Context, r *experiment.Recorder) error {
	f := figures{sweep: wholeSweep, results: map[cell][]outcome{}, calm: map[int]outcome{}}
	if r.Quick() {
		f.sweep = quickSweep
	}
	err := within(ctx, setting{name: "shadow-fig9", client: true},
		func(ctx context.Context, a *arena) error {
			return f.measure(ctx, r, a)
		})
	if err != nil {
		return err
	}
	return f.report(r)
}

func (f *figures) measure(ctx context.Context, r *experiment.Recorder, a *arena) error {
	for _, size := range f.sweep.sizes {
		o, err := experiment.Part(r, fmt.Sprintf("calm-%d", size), func() (outcome, error) {
			return a.download(ctx, offer, downloads{bytes: size, workers: parallel,
				duration: f.sweep.calm, timeout: patience,
				progress: follow(r, "%d bytes, no changes", size)})
		})
		if err != nil {
			return err
		}
		f.calm[size] = o
	}
	for _, interval := range f.sweep.intervals {
		for _, size := range f.sweep.sizes {
			for run := range f.sweep.runs {
				if err := f.all(ctx, r, a, size, interval, run); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// all measures each policy under the same changes.
func (f *figures) all(ctx context.Context, r *experiment.Recorder, a *arena, size int,
	interval time.Duration, run int) error {
	for _, p := range policies {
		name := fmt.Sprintf("%s-%d-%s-%d", p.name, size, interval, run)
		o, err := experiment.Part(r, name, func() (outcome, error) {
			return a.download(ctx, p, downloads{
				bytes: size, workers: parallel, duration: f.sweep.duration, timeout: patience,
				interval: interval, seed: uint64(run),
				stops: true,
				progress: follow(r, "%s, %d bytes, a change every %s, run %d", p.name, size,
					interval, run+1),
			})
		})
		if err != nil {
			return err
		}
		o.Ms = nil // not needed here
		at := cell{size, interval, p.name}
		f.results[at] = append(f.results[at], o)
	}
	return nil
}

// follow shows how far a load is.
func follow(r *experiment.Recorder, format string, args ...any) func(done, failed int,
	left time.Duration) {
	what := fmt.Sprintf(format, args...)
	return func(done, failed int, left time.Duration) {
		r.Progress("%s: %d done, %d failed, %.0f s left", what, done, failed, left.Seconds())
	}
}

func (f *figures) report(r *experiment.Recorder) error {
	scaleNote(r)
	r.Note("In the paper the client is the bottleneck. Here its link has %d Mbit/s, so that as "+
		"many downloads of 5 MB as there take "+
		"longer than 2 s: how long a download lasts is how many changes it meets.",
		clientRate/1_000_000)
	r.Note("A failed download ends early and a new one begins, as in the paper, so there are " +
		"more downloads where more fail. What is " +
		"under way at the end of a run does not count.")
	for _, size := range f.sweep.sizes {
		if err := f.failures(r, size); err != nil {
			return err
		}
	}
	r.Table(f.table())
	if err := r.Chart("fig12", f.redirected()); err != nil {
		return err
	}
	return r.Chart("fig10", f.completion(r))
}

// figureOf is the paper's figure of failures by file size.
var figureOf = map[int]string{small: "fig9", large: "fig11"}

// Paper's values at an interval of one second.
var published = map[cell]string{
	{small, time.Second, "ecmp"}:            "42.5 %",
	{small, time.Second, "shadow"}:          "0.4 %",
	{small, time.Second, "shadow-circling"}: "0.4 %",
	{large, time.Second, "ecmp"}:            "77 %",
	{large, time.Second, "shadow"}:          "0.7 %",
	{large, time.Second, "shadow-circling"}: "0.7 %",
}

func (f *figures) failures(r *experiment.Recorder, size int) error {
	c := chart.Chart{
		Title: fmt.Sprintf("Failed downloads, %d MB scaled to %d bytes", size*scale/1_000_000,
			size),
		X: "seconds between changes", Y: "failed, %", FromX: 0, ToX: 11, FromY: 0, ToY: 100,
	}
	for _, p := range policies {
		c.Series = append(c.Series, f.series(p.name, size,
			func(o outcome) float64 { return 100 * o.rate() }))
		at := cell{size, time.Second, p.name}
		whole, paper := sum(f.results[at]), published[at]
		paper = cmp.Or(paper, "-")
		r.Compare(experiment.Comparison{
			What: fmt.Sprintf("%s: failed downloads of %d MB, a change every second", p.name,
				size*scale/1_000_000),
			Source: paper, Ours: ofRequests(whole), Says: says(p, whole),
		})
	}
	return r.Chart(figureOf[size], c)
}

// says what an outcome means.
func says(p policy, o outcome) string {
	switch {
	case p == offer && o.Failed == 0 && o.Resets == 0:
		return "no connection broken, no reset sent"
	case p == offer:
		return "connections were broken that should not be"
	case p == circling:
		return "a connection pauses until its server is one of the last two again"
	case p == shadow, p == remembered:
		return "two changes within a download can break it"
	case p == resilient:
		return "buckets that pause for a second move, with their connections"
	default:
		return "each change breaks connections"
	}
}

// sum adds outcomes up.
func sum(list []outcome) (whole outcome) {
	for _, o := range list {
		whole.Requests += o.Requests
		whole.Failed += o.Failed
		whole.Failures = whole.Failures.Plus(o.Failures)
		whole.Losses = append(whole.Losses, o.Losses...)
		whole.Changes += o.Changes
		whole.Resets += o.Resets
		whole.GivenUp += o.GivenUp
		whole.Redirected += o.Redirected / float64(len(list))
		whole.Mbps += o.Mbps / float64(len(list))
	}
	return whole
}

// series is a value by interval, the mean over runs.
func (f *figures) series(policy string, size int, value func(outcome) float64) chart.Series {
	s := chart.Series{Name: policy, Marks: true}
	for _, interval := range f.sweep.intervals {
		mean, _ := meanAndDeviation(f.results[cell{size, interval, policy}], value)
		s.Points = append(s.Points, chart.Point{X: interval.Seconds(), Y: mean})
	}
	return s
}

func meanAndDeviation(runs []outcome, value func(outcome) float64) (mean, deviation float64) {
	values := lists.Map(runs, value)
	return moments(values)
}

func (f *figures) redirected() chart.Chart {
	c := chart.Chart{
		Title: "Packets that servers sent on", X: "seconds between changes",
		Y: "of the packets received, %", FromX: 0, ToX: 11,
	}
	for _, size := range f.sweep.sizes {
		for _, p := range []policy{shadow, circling, remembered, offer} {
			s := f.series(p.name, size, func(o outcome) float64 { return 100 * o.Redirected })
			s.Name = fmt.Sprintf("%s, %d MB", p.name, size*scale/1_000_000)
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// completion draws how long downloads take without changes.
func (f *figures) completion(r *experiment.Recorder) chart.Chart {
	c := chart.Chart{Title: "Downloads that are complete, no changes", X: "seconds",
		Y: "downloads, %", ToY: 100}
	for _, size := range f.sweep.sizes {
		seconds, late := make([]float64, len(f.calm[size].Ms)), 0
		for i, ms := range f.calm[size].Ms {
			seconds[i] = ms / 1000
			if seconds[i] > 2 {
				late++
			}
		}
		s := chart.Series{Name: fmt.Sprintf("%d MB", size*scale/1_000_000),
			Points: chart.AtMost(seconds), Step: true}
		c.Series = append(c.Series, s)
		if size == small {
			r.Compare(experiment.Comparison{
				What: "downloads of 5 MB that take longer than 2 s", Source: "8 %",
				Ours: percent(float64(late) / float64(max(1, len(seconds)))),
				Says: "the client's link is chosen for that; the paper's longest took 11.8 s",
			})
		}
	}
	return c
}

func (f *figures) table() experiment.Table {
	t := experiment.Table{
		Name: "failures", Title: "Failed downloads, and packets sent on",
		Columns: []string{"Bytes", "Seconds between changes", "Policy", "Runs", "Changes",
			"Downloads", "Failed", "Failed, %",
			"Deviation of runs, %", "How they failed", "Resets sent by servers", "Sent on, %",
			"Mbit/s"},
	}
	for _, size := range f.sweep.sizes {
		for _, interval := range f.sweep.intervals {
			for _, p := range policies {
				runs := f.results[cell{size, interval, p.name}]
				o := sum(runs)
				_, deviation := meanAndDeviation(runs,
					func(o outcome) float64 { return 100 * o.rate() })
				t.Rows = append(t.Rows, cells(size, interval.Seconds(), p.name, len(runs),
					o.Changes, o.Requests, o.Failed, 100*o.rate(),
					deviation, o.Failures, o.Resets, 100*o.Redirected, o.Mbps))
			}
		}
	}
	return t
}

// cells are those of a row, numbers with two digits behind the point.
func cells(values ...any) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		if number, ok := v.(float64); ok {
			texts[i] = fmt.Sprintf("%.2f", number)
			continue
		}
		texts[i] = fmt.Sprint(v)
	}
	return texts
}
