package webserver

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"sextant/linux/hrtimer"
	"sextant/sim/queueing"
)

// processor plays a queueing.Machine in real time. A goroutine that brings a job or is
// woken by the timer moves the machine to the present and sets the timer to
// the end of the next job; the mutex makes these one after another.
type processor struct {
	start time.Time // time 0 of the machine
	timer *hrtimer.Timer

	mu      sync.Mutex
	machine *queueing.Machine[chan struct{}]
	armed   time.Duration // what the timer is set to; notArmed if nothing
	mean    time.Duration // of demands that are drawn
	random  *rand.Rand
}

const notArmed = -1

func newProcessor(c Config) (*processor, error) {
	machine, err := queueing.NewMachine[chan struct{}](c.Cores, c.Workers)
	if err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	machine.SetSpeed(c.Speed)
	timer, err := hrtimer.New()
	if err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	return &processor{
		start:   time.Now(),
		timer:   timer,
		machine: machine,
		armed:   notArmed,
		mean:    c.Service,
		random:  rand.New(rand.NewPCG(c.Seed, 0)),
	}, nil
}

// submit brings a job and returns a channel that is closed when it is served.
// A negative demand is drawn from the exponential distribution.
func (p *processor) submit(demand time.Duration) (<-chan struct{}, error) {
	done := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if demand < 0 {
		demand = min(time.Duration(p.random.ExpFloat64()*float64(p.mean)), maxDemand)
	}
	p.catchUp()
	p.machine.Add(done, demand)
	return done, p.arm()
}

// run ends the jobs whose time has come, until close is called.
func (p *processor) run() error {
	for {
		if err := p.timer.Wait(); err != nil {
			return err
		}
		if err := p.expire(); err != nil {
			return err
		}
	}
}

func (p *processor) expire() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Clocks may differ by a hair, so that the job is still to be ended: then
	// the timer must be set to the same time again.
	p.armed = notArmed
	p.catchUp()
	return p.arm()
}

func (p *processor) catchUp() {
	for _, finished := range p.machine.Advance(time.Since(p.start)) {
		close(finished.Job)
	}
}

func (p *processor) arm() error {
	next, busy := p.machine.Next()
	if !busy || next == p.armed {
		return nil
	}
	p.armed = next
	return p.timer.Set(p.start.Add(next))
}

// close ends run. Jobs in progress are never served.
func (p *processor) close() {
	p.timer.Close()
}
