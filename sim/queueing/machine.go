package queueing

import (
	"fmt"
	"math"
	"time"
)

// Machine is a computer of C cores and W workers under egalitarian processor
// sharing, as a pure event machine. A job needs some CPU time. At most W jobs
// run at once, later ones wait in order of arrival. Each of n running jobs
// progresses at rate min(1, C/n): one job cannot use two cores, and more jobs
// than cores share them equally.
//
// Time is passed in, as a duration since an origin that the caller chooses,
// and moves in [Machine.Advance] alone. Every event costs O(log n): all
// running jobs progress at the same rate, so one number, the CPU time that
// each of them has received since the machine was last idle (the virtual time
// of fair queueing), stands for all, and a job ends when that number reaches
// its value at the start of the job plus the job's demand.
//
// J is whatever the caller wants back when a job ends. A Machine is not safe
// for concurrent use.
type Machine[J any] struct {
	cores    float64
	workers  int
	speed    float64 // CPU time that a core gives per unit of time
	now      time.Duration
	attained float64   // virtual time, in nanoseconds of CPU
	started  uint64    // jobs that have begun to run, so that ties end in order of start
	running  []task[J] // a binary heap by the end of the jobs
	waiting  []task[J] // in order of arrival, from first on
	first    int
	finished []Finished[J]
}

// Finished is a job that has received all the CPU time that it needs.
type Finished[J any] struct {
	Job J
	At  time.Duration // when, on the caller's time line
}

type task[J any] struct {
	job    J
	demand float64 // CPU time in nanoseconds
	tag    float64 // virtual time at which the job ends
	order  uint64
}

// NewMachine returns an idle machine at time 0. It needs at least one core and
// one worker.
func NewMachine[J any](cores, workers int) (*Machine[J], error) {
	if cores < 1 || workers < 1 {
		return nil, fmt.Errorf("queueing: machine of %d cores and %d workers: both must be at "+
			"least 1", cores, workers)
	}
	return &Machine[J]{cores: float64(cores), workers: workers, speed: 1}, nil
}

// SetSpeed makes the cores run at so many times their usual pace from the time
// of the last [Machine.Advance] on. At 0 (or below) the machine stands still.
func (m *Machine[J]) SetSpeed(speed float64) { m.speed = max(speed, 0) }

// Add brings a job that needs demand of CPU time, at the time of the last
// [Machine.Advance]. It runs at once if a worker is free. A job without demand
// (or with a negative one) ends as soon as it runs.
func (m *Machine[J]) Add(job J, demand time.Duration) {
	t := task[J]{job: job, demand: float64(max(demand, 0))}
	if len(m.running) < m.workers {
		m.start(t)
		return
	}
	m.waiting = append(m.waiting, t)
}

// Next returns when the next job ends if none arrives before, rounded up to
// the nanosecond, and false if the machine is idle. The longest time there is
// stands for never.
func (m *Machine[J]) Next() (time.Duration, bool) {
	if len(m.running) == 0 {
		return 0, false
	}
	if m.speed == 0 {
		return math.MaxInt64, true
	}
	wait := math.Ceil((m.running[0].tag - m.attained) / m.rate())
	if wait >= float64(math.MaxInt64-m.now) {
		return math.MaxInt64, true
	}
	return m.now + time.Duration(max(wait, 0)), true
}

// Advance moves the time to t and returns the jobs that have ended since the
// last call, in order of their ends. A t before the present time moves nothing.
// The returned slice is valid until the next call.
func (m *Machine[J]) Advance(t time.Duration) []Finished[J] {
	m.finished = m.finished[:0]
	for {
		next, ok := m.Next()
		if !ok || next > max(t, m.now) || m.speed == 0 {
			break
		}
		m.moveTo(next)
		m.finish()
	}
	m.moveTo(t)
	return m.finished
}

// rate is the CPU time that each running job receives per unit of time.
func (m *Machine[J]) rate() float64 {
	return m.speed * min(1, m.cores/float64(len(m.running)))
}

func (m *Machine[J]) moveTo(t time.Duration) {
	if t <= m.now {
		return
	}
	if len(m.running) > 0 {
		m.attained += float64(t-m.now) * m.rate()
	}
	m.now = t
}

func (m *Machine[J]) start(t task[J]) {
	if len(m.running) == 0 {
		m.attained = 0 // nobody refers to it: begin anew, so that it stays small and exact
	}
	t.tag = m.attained + t.demand
	t.order = m.started
	m.started++
	m.push(t)
}

// finish ends the first running job now and gives its worker to the first in line.
func (m *Machine[J]) finish() {
	m.finished = append(m.finished, Finished[J]{Job: m.running[0].job, At: m.now})
	m.pop()
	if m.first == len(m.waiting) {
		return
	}
	next := m.waiting[m.first]
	m.waiting[m.first] = task[J]{} // forget the job
	m.first++
	if m.first == len(m.waiting) {
		m.waiting, m.first = m.waiting[:0], 0
	}
	m.start(next)
}

// before orders jobs by the virtual time of their end, and those that end together by their start.
func (t *task[J]) before(o *task[J]) bool {
	if t.tag != o.tag {
		return t.tag < o.tag
	}
	return t.order < o.order
}

// push adds a job to the heap. Package container/heap would take three times as long, for its calls
// through an interface.
func (m *Machine[J]) push(t task[J]) {
	m.running = append(m.running, t)
	q, i := m.running, len(m.running)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(&q[parent]) {
			break
		}
		q[i] = q[parent]
		i = parent
	}
	q[i] = t
}

// pop removes the first job from the heap.
func (m *Machine[J]) pop() {
	last := len(m.running) - 1
	t := m.running[last]
	m.running[last] = task[J]{} // forget the job
	m.running = m.running[:last]
	if last == 0 {
		return
	}
	q, i := m.running, 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && q[right].before(&q[child]) {
			child = right
		}
		if !q[child].before(&t) {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = t
}
