package srlb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sextant/experiment"
	"sextant/lab/loadgen"
)

// labLoads are the loads at which the lab measures, and how many requests: response times scatter
// less at light load.
func labLoads(quick bool) map[float64]int {
	if quick {
		return map[float64]int{0.61: 2000, 0.88: 3000}
	}
	return map[float64]int{0.2: 5000, 0.4: 8000, 0.61: 20000, 0.76: 20000, 0.88: 20000, 0.94: 40000}
}

// ordered are the loads from light to heavy.
var ordered = []float64{0.2, 0.4, 0.61, 0.76, 0.88, 0.94}

// randomFactor is how many more requests random choice gets: its response times scatter most.
const randomFactor = 3

// watched is the load of figures 3 and 4.
const watched = 0.88

// rateOf is that of a load.
func rateOf(load float64) float64 { return load * servers * cores / service.Seconds() }

// streamOf is the lab's stream for a policy at a load.
func streamOf(p policy, load float64, quick bool) stream {
	requests := float64(labLoads(quick)[load])
	if p == rr && load > 0.7 && !quick {
		requests *= randomFactor
	}
	return requestsAt(rateOf(load), requests)
}

// requestsAt is a stream of about so many requests.
func requestsAt(rate, requests float64) stream {
	duration := time.Duration(requests / rate * float64(time.Second)).Round(time.Millisecond)
	return stream{rate: rate, service: service, warmUp: time.Second, duration: duration}
}

// labWork is a measurement in the lab with how long it takes.
type labWork struct {
	name  string
	lasts time.Duration
	run   func(context.Context, *arena) error
}

// inLab measures the Poisson stream and the day. One lab serves both; it is only built if something
// is left to be measured.
func inLab(ctx context.Context, r *experiment.Recorder, f *findings) error {
	return emulatedQueue(r, f).run(ctx)
}

// emulatedQueue is what is measured on emulated servers.
func emulatedQueue(r *experiment.Recorder, f *findings) *labQueue {
	l := &labQueue{recorder: r, setting: emulated}
	l.addOverhead(&f.overheadMs)
	for _, load := range ordered {
		if labLoads(r.Quick())[load] == 0 {
			continue
		}
		for _, p := range contenders {
			s := streamOf(p, load, r.Quick())
			addPart(l, fmt.Sprintf("lab-%s-%g", p.scheme, load), s.warmUp+s.duration,
				func(ctx context.Context, a *arena) (point, error) {
					return a.point(ctx, p, load, s)
				}, func(found point) { f.lab = append(f.lab, found) })
		}
	}
	for _, p := range dayPolicies {
		c := dayOf(r.Quick())
		addPart(l, "lab-day-"+p.scheme, c.Length,
			func(ctx context.Context, a *arena) (dayResult, error) {
				return a.day(ctx, p, r.Quick())
			}, func(found dayResult) { f.day = append(f.day, found) })
	}
	return l
}

// point loads the servers under a policy.
func (a *arena) point(ctx context.Context, p policy, load float64, s stream) (point, error) {
	if err := a.use(ctx, p); err != nil {
		return point{}, err
	}
	warmUp := s.warmUp
	// who took what is of interest from the first request on
	s.duration, s.warmUp = s.warmUp+s.duration, 0
	result, responses, err := a.load(ctx, s)
	if err != nil {
		return point{}, err
	}
	took := whoTook(responses)
	result, responses = after(warmUp, result, responses)
	found := measured(p.name, load, result, responses)
	found.Took = took
	if load == watched {
		found.Ages = loadsOf(responses)
	}
	return found, nil
}

// whoTook is the place of the server that took each request, in the order of their times.
func whoTook(responses []loadgen.Response) (took []uint8) {
	slices.SortFunc(responses, func(a, b loadgen.Response) int {
		return cmp.Compare(a.AtMs,
			b.AtMs)
	})
	for _, r := range responses {
		place := uint8(servers) // nobody's
		if n, err := strconv.Atoi(strings.TrimPrefix(r.Server, "web")); err == nil && n >= 1 &&
			n <= servers {
			place = uint8(n - 1)
		}
		took = append(took, place)
	}
	return took
}

// after leaves out what was sent before the warm-up was over.
func after(warmUp time.Duration, all *loadgen.Result,
	responses []loadgen.Response) (*loadgen.Result, []loadgen.Response) {
	kept := slices.DeleteFunc(slices.Clone(responses),
		func(r loadgen.Response) bool { return r.AtMs < float64(warmUp.Milliseconds()) })
	result := &loadgen.Result{Sent: uint64(len(kept)), Lateness: all.Lateness}
	var times []float64
	for _, r := range kept {
		if r.Failure == "" {
			times = append(times, r.Ms)
		}
	}
	result.Done, result.Latency.MeanMs = uint64(len(times)), mean(times)
	result.Failed = result.Sent - result.Done
	return result, kept
}

// labQueue is what there is to be measured in the lab.
type labQueue struct {
	recorder *experiment.Recorder
	setting  setting
	work     []labWork
}

// addPart adds a measurement that is kept when it is done.
func addPart[T any](l *labQueue, name string, lasts time.Duration,
	measure func(context.Context, *arena) (T, error), found func(T)) {
	l.work = append(l.work, labWork{name, lasts, func(ctx context.Context, a *arena) error {
		value, err := experiment.Part(l.recorder, fileName(name), func() (T, error) {
			if a == nil {
				var none T
				return none, errNoLab
			}
			return measure(ctx, a)
		})
		if err == nil {
			found(value)
		}
		return err
	}})
}

// addOverhead measures how many ms a request takes that needs no CPU time.
func (l *labQueue) addOverhead(ms *float64) {
	addPart(l, "overhead", 5*time.Second,
		func(ctx context.Context, a *arena) (float64, error) { return a.overhead(ctx) },
		func(found float64) { *ms = found })
}

// run does the work, with a lab as soon as one is needed.
func (l *labQueue) run(ctx context.Context) error {
	for len(l.work) > 0 {
		err := l.work[0].run(ctx, nil)
		if err != nil {
			break
		}
		l.work = l.work[1:]
	}
	if len(l.work) == 0 {
		return nil
	}
	return within(ctx, l.setting, func(ctx context.Context, a *arena) error {
		for i, w := range l.work {
			l.recorder.Progress("lab: %s, %d of %d, about %s left", w.name, i+1, len(l.work),
				l.left(i))
			if err := w.run(ctx, a); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		return nil
	})
}

// pause is about how long a measurement takes besides what it lasts.
const pause = 700 * time.Millisecond

func (l *labQueue) left(from int) time.Duration {
	var sum time.Duration
	for _, w := range l.work[from:] {
		sum += w.lasts + pause
	}
	return sum.Round(time.Second)
}

// fileName is the name of a part without what a file name must not have.
func fileName(name string) string {
	out := []rune(name)
	for i, c := range out {
		if c == '/' || c == '=' {
			out[i] = '_'
		}
	}
	return string(out)
}

// difference is that of a point of the lab to its twin, relative to that, and how far off it may be
// by chance: by who is a candidate of which request.
func difference(p, twin point) (share, chance float64) {
	return p.MeanMs/twin.MeanMs - 1, twin.HalfWidth / twin.MeanMs
}
