package health

import (
	"container/heap"
	"context"
	"time"

	"golang.org/x/sys/unix"

	"sextant/config"
)

// running is a job and when it is next due.
type running struct {
	Job
	run      int
	checks   int // that were made
	due      time.Time
	place    int                // in the schedule, unless its check is under way
	underWay bool               // its check is
	cancel   context.CancelFunc // of the check under way
	ended    bool
	keeps    bool // connections from one check to the next
	kept     Kept // belongs to the check under way, if there is one
	seat     int  // among the keepers, if it waits and keeps something
	files    int  // that it counts for
}

// schedule is a heap of the jobs that wait; the first one is due first.
type schedule []*running

// Len is that of [heap.Interface], as the others are.
func (s schedule) Len() int { return len(s) }

// Less orders by time.
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }

// Swap keeps the places.
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push adds a *running.
func (s *schedule) Push(x any) {
	r, _ := x.(*running)
	r.place = len(*s)
	*s = append(*s, r)
}

// Pop takes the last one.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	r := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return r
}

// Checks do not begin all at once, though all may be due, as at the start: they would wait for one
// another, some beyond their time limit. They begin at most as often as they come on average, and
// a quarter more, or so often in a second, and so stay apart afterwards.
const (
	rush      = 1.25
	leastPace = 2000
	// tick is for how long due checks are gathered; in two of them as many begin as the pace lets.
	tick = time.Millisecond
)

// A check takes so many files at most. A half of those that the process may have open is for the
// checks, the rest for all else. Kept connections make room for checks that are due: what waits for
// a file of a check under way is late, and no failure.
const (
	filesOfSocket = 1
	filesOfExec   = 8 // pipes, the process, and both ends of how it begins
)

func filesOf(c *config.Check) int {
	if c.Kind == config.CheckExec {
		return filesOfExec
	}
	return filesOfSocket
}

// fileLimit is how many files this process may have open.
func fileLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024 // the least that systems give
	}
	return int(min(limit.Cur, 1<<20))
}

func (m *Monitor) wake() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.wakes = time.Time{}
	m.begin()
}

// begin starts the checks that are due, and has the timer come when the next one may be.
func (m *Monitor) begin() {
	now := time.Now()
	for len(m.waiting) > 0 && m.ctx.Err() == nil {
		r := m.waiting[0]
		at := r.due
		if m.free.After(at) {
			at = m.free
		}
		if at.After(now) {
			if at = later(at, now.Add(tick)); m.wakes.IsZero() || at.Before(m.wakes) {
				m.wakes = at
				m.timer.Reset(at.Sub(now))
			}
			return
		}
		files := filesOf(r.Check) - r.files
		if !m.makeRoom(files) {
			return // a check that ends begins the next one
		}
		if r.files > 0 {
			m.unseat(r)
		}
		heap.Pop(&m.waiting)
		m.free = later(m.free, now.Add(-2*tick)).Add(m.gap)
		m.files += files
		r.files += files
		ctx, cancel := context.WithCancel(m.ctx)
		r.underWay, r.cancel = true, cancel
		m.ended.Add(1)
		var keep *Kept
		if r.keeps {
			keep = &r.kept
		}
		go m.check(ctx, r, keep)
	}
}

// endJob has a job do nothing more.
func (m *Monitor) endJob(r *running) {
	if r.ended = true; r.underWay {
		r.cancel()
		return
	}
	m.forget(r)
	heap.Remove(&m.waiting, r.place)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
