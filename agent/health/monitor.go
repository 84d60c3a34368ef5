package health

import (
	"cmp"
	"container/heap"
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
	Keep   bool   // a check leaves its connection to the next one
}

func (j Job) key() Key { return Key{j.Target.Service, j.Target.Backend} }

// sameJobs compares jobs: those of a service share a check, which is compared once. What they keep
// is no difference.
func sameJobs() func(a, b Job) bool {
	known := map[[2]*config.Check]bool{}
	return func(a, b Job) bool {
		if a.Target != b.Target || a.Seed != b.Seed {
			return false
		}
		pair := [2]*config.Check{a.Check, b.Check}
		same, compared := known[pair]
		if !compared {
			same = a.Check == b.Check || a.Check.Equal(b.Check)
			known[pair] = same
		}
		return same
	}
}

// Result is how one check ended.
type Result struct {
	Key
	Err  error // nil: the backend serves
	At   time.Time
	Took time.Duration
	run  int // of the monitor's jobs
}

// Monitor runs checks: a goroutine for each that is under way, none for those that wait. Its
// methods are for one goroutine.
type Monitor struct {
	ctx       context.Context
	results   chan Result
	running   map[Key]*running
	runs      int // jobs that have begun
	ended     sync.WaitGroup
	probe     func(context.Context, Job, *Kept) error
	mostFiles int // that checks may have open

	mutex   sync.Mutex // of what follows, and of the jobs
	over    *sync.Cond // a check is
	waiting schedule   // jobs whose check is not under way
	keepers []*running // those of them that keep a connection; of the last one it was used last
	files   int        // of checks under way, and of keepers
	gap     time.Duration
	free    time.Time // when the next check may begin
	timer   *time.Timer
	wakes   time.Time // when the timer comes; the zero value: it does not
}

// NewMonitor makes a monitor without jobs. It ends with ctx.
func NewMonitor(ctx context.Context) *Monitor {
	return newMonitor(ctx, func(ctx context.Context, j Job, keep *Kept) error {
		return Probe(ctx, j.Check, j.Target, keep)
	})
}

// NewMonitorOf makes a monitor whose jobs run another probe, which returns nil if nothing speaks
// against the backend.
func NewMonitorOf(ctx context.Context, probe func(context.Context, Job) error) *Monitor {
	return newMonitor(ctx, func(ctx context.Context, j Job, _ *Kept) error { return probe(ctx, j) })
}

func newMonitor(ctx context.Context, probe func(context.Context, Job, *Kept) error) *Monitor {
	m := &Monitor{ctx: ctx, results: make(chan Result), running: map[Key]*running{},
		probe: probe, mostFiles: fileLimit() / 2}
	m.timer = time.AfterFunc(time.Hour, m.wake)
	m.timer.Stop()
	m.over = sync.NewCond(&m.mutex)
	context.AfterFunc(ctx, func() {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.closeKept(len(m.keepers))
	})
	return m
}

// Results is where the monitor tells how checks ended. No backend is checked again before its
// result has been received.
func (m *Monitor) Results() <-chan Result { return m.results }

// Set makes these the jobs: new ones begin, those that are not listed end, those that stay the same
// go on.
func (m *Monitor) Set(jobs []Job) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	wanted := make(map[Key]Job, len(jobs))
	for _, j := range jobs {
		wanted[j.key()] = j
	}
	same := sameJobs()
	for key, r := range m.running {
		if j, ok := wanted[key]; !ok || !same(j, r.Job) {
			m.endJob(r)
			delete(m.running, key)
		}
	}
	now, perSecond := time.Now(), 0.0
	for key, j := range wanted {
		perSecond += 1 / j.Check.Interval.Seconds()
		if r := m.running[key]; r != nil {
			if r.keeps = j.Keep; !r.keeps {
				m.forget(r)
			}
			continue
		}
		m.runs++
		r := &running{Job: j, run: m.runs, keeps: j.Keep,
			due: now.Add(Wait(j.Check.Interval, j.Check.JitterPermille, j.Seed, -1))}
		m.running[key] = r
		heap.Push(&m.waiting, r)
	}
	m.gap = time.Duration(float64(time.Second) / max(rush*perSecond, leastPace))
	m.begin()
}

// Current says whether a result is of a job that goes on, not of one that Set has just ended.
func (m *Monitor) Current(r Result) bool {
	is := m.running[r.Key]
	return is != nil && is.run == r.run
}

// Stop ends all jobs and waits for them.
func (m *Monitor) Stop() {
	m.Set(nil)
	m.ended.Wait()
}

// check makes one check, tells of it, and has the job wait for the next one.
func (m *Monitor) check(ctx context.Context, r *running, keep *Kept) {
	defer m.ended.Done()
	defer r.cancel()
	result := m.once(ctx, r.Job, keep)
	result.run = r.run
	if ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case m.results <- result:
		}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if r.ended || !r.keeps || m.ctx.Err() != nil {
		r.kept.Close()
	}
	m.files += r.kept.files() - r.files
	if r.files = r.kept.files(); r.files > 0 {
		r.seat = len(m.keepers)
		m.keepers = append(m.keepers, r)
	}
	m.over.Broadcast()
	if r.underWay = false; !r.ended { // it waits, even if the monitor ends and begins none
		r.due = result.At.Add(Wait(r.Check.Interval, r.Check.JitterPermille, r.Seed, r.checks))
		r.checks++
		heap.Push(&m.waiting, r)
	}
	m.begin()
}

func (m *Monitor) once(ctx context.Context, j Job, keep *Kept) Result {
	ctx, cancel := context.WithTimeout(ctx, j.Check.Timeout)
	defer cancel()
	begun := time.Now()
	err := m.probe(ctx, j, keep)
	return Result{Key: j.key(), Err: err, At: begun, Took: time.Since(begun)}
}
