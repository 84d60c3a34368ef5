package srlb

import (
	"context"
	"time"

	"sextant/experiment"
	"sextant/lab/loadgen"
	"sextant/sim/hunting"
	"sextant/sim/workload"
)

// dayPolicies are those of figures 6 to 8, and ours.
var dayPolicies = []policy{rr, sr4, average}

// Of the synthetic day: a page takes a fifth of the CPU time that the paper's took or less, so that
// two cores carry the lab.
const (
	pageService   = 20 * time.Millisecond
	staticService = time.Millisecond
	filesPerPage  = 1
	dayPeak       = 0.95 // load at the busiest hour: RR just stands it, as in the paper
	dayBins       = 48   // half hours
)

// dayOf is the load of the day; the command line of the lab says the same.
func dayOf(quick bool) workload.DayConfig {
	length := 72 * time.Second
	if quick {
		length = 8 * time.Second
	}
	perPage := pageService + filesPerPage*staticService
	return workload.DayConfig{
		Length: length, Peak: dayPeak * servers * cores / perPage.Seconds(), Service: pageService,
		Static: staticService,
		Files:  filesPerPage, Seed: seed,
	}
}

// dayResult is what one policy made of the day.
type dayResult struct {
	Policy    string
	Pages     uint64
	Failed    uint64
	MeanMs    float64
	Quantiles []float64   // of pages
	StaticMs  float64     // mean of static files
	Deciles   [][]float64 // of pages, by bin: deciles 1 to 9 in ms; empty where there were too few
	Rate      []float64   // pages per second of the compressed day, by bin
}

// day plays the day in the lab.
func (a *arena) day(ctx context.Context, p policy, quick bool) (dayResult, error) {
	if err := a.use(ctx, p); err != nil {
		return dayResult{}, err
	}
	c := dayOf(quick)
	result, responses, err := a.load(ctx, stream{rate: c.Peak, service: c.Service,
		duration: c.Length, day: true})
	if err != nil {
		return dayResult{}, err
	}
	return dayResultOf(p, c, result, responses), nil
}

func dayResultOf(p policy, c workload.DayConfig, result *loadgen.Result,
	responses []loadgen.Response) dayResult {
	d := dayResult{Policy: p.name, Failed: result.Failed}
	bins := make([][]float64, dayBins)
	var times []float64
	for _, r := range ofClass(responses, workload.Page) {
		if r.Failure != "" {
			continue
		}
		at := time.Duration(r.AtMs * float64(time.Millisecond))
		bin := min(int(c.Hour(at)/24*dayBins), dayBins-1)
		bins[bin] = append(bins[bin], r.Ms)
		times = append(times, r.Ms)
	}
	d.Pages, d.MeanMs, d.Quantiles = uint64(len(times)), mean(times), quantiles(times)
	files := 0
	for _, r := range ofClass(responses, workload.Static) {
		if r.Failure == "" {
			d.StaticMs += r.Ms
			files++
		}
	}
	d.StaticMs /= float64(max(files, 1))
	for _, bin := range bins {
		q := quantiles(bin)
		var deciles []float64
		for i := 1; i < 10 && len(bin) >= 10; i++ {
			deciles = append(deciles, q[i*quantileSteps/10-1])
		}
		d.Deciles = append(d.Deciles, deciles)
		d.Rate = append(d.Rate, float64(len(bin))*dayBins/c.Length.Seconds())
	}
	return d
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// simulateDay plays the day in the simulator, compressed less than in the lab.
func simulateDay(ctx context.Context, r *experiment.Recorder, f *findings) error {
	for _, p := range []policy{rr, sr4, dynamic, average, jsq2} {
		d, err := experiment.Part(r, fileName("day-"+p.scheme), func() (dayResult, error) {
			return simulatedDay(ctx, p, dayOf(r.Quick()))
		})
		if err != nil {
			return err
		}
		f.simulated = append(f.simulated, d)
	}
	return nil
}

// dayStretch is how much longer the simulated day is than the lab's.
const dayStretch = 8

func simulatedDay(ctx context.Context, p policy, c workload.DayConfig) (dayResult, error) {
	scheme, err := hunting.ParseScheme(p.scheme)
	if err != nil {
		return dayResult{}, err
	}
	c.Length *= dayStretch
	result, err := hunting.Run(hunting.Config{
		Servers: twelve(), Scheme: scheme, Buckets: buckets, Seed: seed,
		Requests: workload.NewDay(c),
		Progress: func(time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		return dayResult{}, err
	}
	d := dayResult{Policy: p.name, Pages: result.Pages.Count, Failed: result.Overflow,
		MeanMs:   result.Pages.MeanMs,
		StaticMs: result.Static.MeanMs}
	for i := 1; i <= quantileSteps; i++ {
		d.Quantiles = append(d.Quantiles, result.Pages.QuantileMs(float64(i)/quantileSteps))
	}
	return d, nil
}

// quantile returns a response time of pages that a share of them does not exceed.
func (d dayResult) quantile(share float64) float64 {
	return point{Quantiles: d.Quantiles}.quantile(share)
}
