package serverload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sextant/config"
)

// interval is the time between two questions to a source.
const interval = 100 * time.Millisecond

// Job is a service whose load is to be asked for.
type Job struct {
	Service string
	Load    config.Load
}

// Result is an answer. With an error, Busy says nothing.
type Result struct {
	Service string
	Busy    int
	Err     error
}

// Monitor asks sources until it is stopped.
type Monitor struct {
	ctx     context.Context
	results chan Result
	running map[Job]context.CancelFunc
	sources sync.WaitGroup
}

// NewMonitor returns a monitor without jobs, which ends with ctx.
func NewMonitor(ctx context.Context) *Monitor {
	return &Monitor{ctx: ctx, results: make(chan Result), running: map[Job]context.CancelFunc{}}
}

// Results are the answers: the first, and those that differ from the one before. Of errors in a row
// there is one.
func (m *Monitor) Results() <-chan Result { return m.results }

// Set makes the jobs those that are given. One that runs already goes on, and another's answers
// come no more.
func (m *Monitor) Set(jobs []Job) {
	wanted := map[Job]bool{}
	for _, j := range jobs {
		wanted[j] = true
	}
	for j, cancel := range m.running {
		if !wanted[j] {
			cancel()
			delete(m.running, j)
		}
	}
	for _, j := range jobs {
		if m.running[j] == nil {
			ctx, cancel := context.WithCancel(m.ctx)
			m.running[j] = cancel
			m.sources.Go(func() { m.ask(ctx, j) })
		}
	}
}

// Stop ends all jobs, and waits for them.
func (m *Monitor) Stop() {
	m.Set(nil)
	m.sources.Wait()
}

// ask asks the source of a job until ctx ends.
func (m *Monitor) ask(ctx context.Context, j Job) {
	source, err := open(j.Load)
	var last Result
	for first := true; ; first = false {
		next := Result{Service: j.Service, Err: err}
		if err == nil {
			next.Busy, next.Err = within(ctx, source)
		}
		if first || next.Busy != last.Busy || (next.Err == nil) != (last.Err == nil) {
			select {
			case m.results <- next:
			case <-ctx.Done():
				return
			}
		}
		last = next
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
	}
}

// source says how busy a server is.
type source interface {
	busy(context.Context) (int, error)
}

func within(ctx context.Context, s source) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return s.busy(ctx)
}

// open returns the source that a configuration names.
func open(l config.Load) (source, error) {
	switch l.Kind {
	case config.LoadApache:
		return newApache(l.Target), nil
	case config.LoadMemory:
		return memory{l.Target}, nil
	case config.LoadPressure:
		return newPressure(l.Target), nil
	}
	return nil, fmt.Errorf("load %s is not asked for: the kernel knows it", l)
}
