package health

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"sextant/config"
)

// Key names a backend of a service.
type Key struct {
	Service string `json:"service"`
	Backend string `json:"backend"`
}

// Compare orders keys by service, then backend.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Service, o.Service), strings.Compare(k.Backend, o.Backend))
}

// Job is a backend that is checked again and again.
type Job struct {
	Check  *config.Check
	Target Target
	Seed   uint64 // of the jitter
}

func (j Job) key() Key { return Key{j.Target.Service, j.Target.Backend} }

func (j Job) equal(o Job) bool {
	return j.Target == o.Target && j.Seed == o.Seed && j.Check.Equal(o.Check)
}

// Result is how one check ended.
type Result struct {
	Key
	Err  error // nil: the backend serves
	At   time.Time
	Took time.Duration
	run  int // of the monitor's jobs
}

// Monitor runs checks, each in its own goroutine. Its methods are for one goroutine.
type Monitor struct {
	ctx     context.Context
	results chan Result
	running map[Key]runningJob
	runs    int // jobs that have begun
	ended   sync.WaitGroup
	probe   func(context.Context, Job) error
}

type runningJob struct {
	Job
	run    int
	cancel context.CancelFunc
}

// NewMonitor makes a monitor without jobs. It ends with ctx.
func NewMonitor(ctx context.Context) *Monitor {
	return NewMonitorOf(ctx, func(ctx context.Context, j Job) error {
		return Probe(ctx, j.Check,
			j.Target)
	})
}

// NewMonitorOf makes a monitor whose jobs run another probe, which returns nil if nothing speaks
// against the backend.
func NewMonitorOf(ctx context.Context, probe func(context.Context, Job) error) *Monitor {
	return &Monitor{ctx: ctx, results: make(chan Result), running: map[Key]runningJob{},
		probe: probe}
}

// Results is where the monitor tells how checks ended. No backend is checked again before its
// result has been received.
func (m *Monitor) Results() <-chan Result { return m.results }

// Set makes these the jobs: new ones begin, those that are not listed end, those that stay the same
// go on.
func (m *Monitor) Set(jobs []Job) {
	wanted := map[Key]Job{}
	for _, j := range jobs {
		wanted[j.key()] = j
	}
	for key, r := range m.running {
		if j, ok := wanted[key]; !ok || !j.equal(r.Job) {
			r.cancel()
			delete(m.running, key)
		}
	}
	for key, j := range wanted {
		if _, ok := m.running[key]; ok {
			continue
		}
		ctx, cancel := context.WithCancel(m.ctx)
		m.runs++
		run := m.runs
		m.running[key] = runningJob{j, run, cancel}
		m.ended.Go(func() { m.run(ctx, j, run) })
	}
}

// Current says whether a result is of a job that goes on, not of one that Set has just ended.
func (m *Monitor) Current(r Result) bool { return m.running[r.Key].run == r.run }

// Stop ends all jobs and waits for them.
func (m *Monitor) Stop() {
	m.Set(nil)
	m.ended.Wait()
}

// run checks one backend until ctx ends.
func (m *Monitor) run(ctx context.Context, j Job, run int) {
	timer := time.NewTimer(Wait(j.Check.Interval, j.Check.JitterPermille, j.Seed, -1))
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(Wait(j.Check.Interval, j.Check.JitterPermille, j.Seed, n))
		result := m.once(ctx, j)
		result.run = run
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case m.results <- result:
		}
	}
}

func (m *Monitor) once(ctx context.Context, j Job) Result {
	ctx, cancel := context.WithTimeout(ctx, j.Check.Timeout)
	defer cancel()
	begun := time.Now()
	err := m.probe(ctx, j)
	return Result{Key: j.key(), Err: err, At: begun, Took: time.Since(begun)}
}
