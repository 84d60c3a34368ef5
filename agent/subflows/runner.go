package subflows

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sextant/agent/api"
	"sextant/agent/pathtrace"
	"sextant/linux"
	"sextant/packet/lists"
)

// Settings are what connections get.
type Settings struct {
	Rules []Rule
	// AfterBytes is how many bytes the other end has acknowledged before a connection gets subflows
	AfterBytes uint64
	// Controller makes a client of what gives paths; nil: no rule wants one
	Controller func() (*api.Client, error)
}

// Runner is the path manager of the connections in a network namespace.
type Runner struct {
	log   Log
	ns    *linux.Netns
	heard *linux.MPTCP

	next    atomic.Pointer[Settings]
	asked   chan chan []Connection
	release atomic.Bool // paths are given back at the end
	counted counters

	ended  chan struct{}
	closed sync.Once

	// of the goroutine that runs
	manager   *Manager
	scheduler *scheduler // nil: no rule wants one
	looked    time.Time
	whole     bool              // news was lost
	cost      time.Duration     // of a look
	problems  map[string]string // the last one of a kind
}

// Log is where a runner says what it does, and what went wrong.
type Log struct{ Note, Warn func(text string) }

// counters are read by others.
type counters struct {
	watched, managed, left, here            atomic.Int64
	opened, failed, stalled, surplus, moved atomic.Uint64
	problems                                atomic.Pointer[[]string]
}

func (c *counters) count(m *Manager) {
	of, here := m.Count()
	c.watched.Store(of[Watched])
	c.managed.Store(of[Managed])
	c.left.Store(of[Left])
	c.here.Store(here)
}

// Open subscribes to news of the connections in the caller's network namespace.
func Open(log Log, s Settings) (*Runner, error) {
	r := &Runner{log: log, asked: make(chan chan []Connection, 16), ended: make(chan struct{}),
		problems: map[string]string{}}
	if err := r.Set(s); err != nil {
		return nil, err
	}
	var err error
	if r.ns, err = linux.ThisNetns(); err != nil {
		return nil, err
	}
	if r.heard, err = linux.OpenMPTCP(); err != nil {
		r.ns.Close()
		return nil, err
	}
	return r, nil
}

// Close ends a runner that does not run.
func (r *Runner) Close() {
	r.closed.Do(func() {
		r.heard.Close()
		r.ns.Close()
	})
}

// Set makes connections get something else from now on.
func (r *Runner) Set(s Settings) error {
	if _, err := New(s.Rules, s.AfterBytes, 0); err != nil {
		return err
	}
	r.next.Store(&s)
	if r.heard != nil {
		r.heard.Wake()
	}
	return nil
}

// Release has the controller told, when the runner ends, that paths are not needed any more.
func (r *Runner) Release() { r.release.Store(true) }

// Connections returns what is known; none once the runner has ended.
func (r *Runner) Connections(ctx context.Context) ([]Connection, error) {
	answer := make(chan []Connection, 1)
	select {
	case r.asked <- answer:
		r.heard.Wake()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case list := <-answer:
		return list, nil
	case <-r.ended:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Run manages connections until ctx ends, and closes the runner.
func (r *Runner) Run(ctx context.Context) error {
	defer r.Close()
	defer close(r.ended)
	return r.ns.Do(func() error {
		defer context.AfterFunc(ctx, r.heard.Wake)()
		for ctx.Err() == nil {
			err := r.round(ctx)
			if r.say("kernel", err); err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(lookAtAll):
				}
			}
		}
		if r.scheduler != nil && r.release.Load() {
			return r.scheduler.release(context.WithoutCancel(ctx), names(r.manager.Open()))
		}
		return nil
	})
}

func names(list []Subflow) (all []string) {
	for _, s := range list {
		all = append(all, s.Name())
	}
	return all
}

// Pauses between looks at sockets. Those at bytes take a twentieth of a processor at most.
const (
	lookAtBytes = 100 * time.Millisecond
	lookAtAll   = Pause // at what could not be opened, and at what ended
	lookAtNone  = time.Minute
	costShare   = 20
)

// pause is the time until sockets are looked at.
func (r *Runner) pause() time.Duration {
	pause := lookAtAll
	switch {
	case r.whole:
		pause = 0
	case r.manager.Waiting():
		pause = min(lookAtAll, max(lookAtBytes, costShare*r.cost))
	case len(r.manager.known) == 0:
		pause = lookAtNone
	}
	return time.Until(r.looked.Add(pause))
}

func (r *Runner) round(ctx context.Context) error {
	if err := r.take(ctx); err != nil {
		return err
	}
	events, err := r.heard.Next(r.pause())
	if errors.Is(err, linux.ErrMPTCPLost) {
		r.whole = true
		r.log.Warn(err.Error() + "; connections are found by their sockets")
	} else if err != nil {
		return err
	}
	for _, e := range events {
		r.manager.Hear(e)
	}
	if r.pause() <= 0 {
		if err := r.look(); err != nil {
			return err
		}
		r.end(r.manager.Stalled(), &r.counted.stalled, "gets no answers")
		r.end(r.manager.Surplus(), &r.counted.surplus, "is wanted no more")
	}
	due, err := r.manager.Due(time.Now())
	if gone := r.manager.Gone(); r.scheduler != nil {
		due = r.schedule(ctx, due, gone)
	}
	for _, s := range due {
		r.open(s)
	}
	r.tell()
	return err
}

// take makes new settings hold. Connections are found again by their sockets.
func (r *Runner) take(ctx context.Context) (err error) {
	s := r.next.Swap(nil)
	if s == nil {
		return nil
	}
	before, by := r.manager, r.scheduler
	if r.manager, err = New(s.Rules, s.AfterBytes, pathtrace.NewSeed()); err != nil {
		return err
	}
	r.scheduler = nil
	if s.Controller != nil {
		r.scheduler = &scheduler{dial: s.Controller, routes: map[string]string{}}
		if by != nil {
			r.scheduler.routes = by.routes
		}
	}
	if err := r.look(); err != nil || before == nil || by == nil {
		return err
	}
	still := names(r.manager.Open())
	ended := slices.DeleteFunc(names(before.Open()), func(name string) bool {
		return r.scheduler != nil && slices.Contains(still, name)
	})
	r.say(controllerKind, by.release(ctx, ended))
	return nil
}

func (r *Runner) look() error {
	began := time.Now()
	sockets, err := linux.TCPSockets()
	if err != nil {
		return err
	}
	r.manager.Look(sockets, r.whole)
	r.looked = time.Now()
	r.whole, r.cost = false, r.looked.Sub(began)
	return nil
}

// end ends subflows; news of that makes them due again.
func (r *Runner) end(list []Subflow, counter *atomic.Uint64, why string) {
	for _, s := range list {
		r.log.Note("subflow from " + s.Local.String() + " to " + s.Remote.String() + " on path " +
			r.route(s) + " " + why + ": it is ended")
		err := linux.DestroySubflow(s.Token, s.Local, s.Remote)
		switch {
		case err == nil:
			counter.Add(1)
		case errors.Is(err, syscall.EINVAL): // of another path manager
			r.manager.Refused(s.Token)
		default:
			r.log.Note(err.Error())
		}
	}
}

// schedule asks the controller for the ports of those that have none, renews what is open, and
// releases what is gone.
func (r *Runner) schedule(ctx context.Context, due []Subflow, gone []string) []Subflow {
	fixed := func(s Subflow) bool { return s.Path != nil }
	scheduled := slices.DeleteFunc(slices.Clone(due), fixed)
	moved, err := r.scheduler.renew(ctx, slices.DeleteFunc(r.manager.Open(), fixed))
	r.end(moved, &r.counted.moved, "is to have another path")
	found, failed := r.scheduler.give(ctx, scheduled)
	r.say(controllerKind, errors.Join(err, failed, r.scheduler.release(ctx, gone)))
	return append(slices.DeleteFunc(due, func(s Subflow) bool { return !fixed(s) }), found...)
}

func (r *Runner) open(s Subflow) {
	if r.manager.IsLeft(s.Token) {
		return
	}
	err := linux.CreateSubflow(s.Token, s.ID, s.Local, s.Remote, s.Backup)
	if errors.Is(err, syscall.EINVAL) && linux.ForgetLocalID(s.Token, s.ID) == nil {
		err = linux.CreateSubflow(s.Token, s.ID, s.Local, s.Remote, s.Backup)
	}
	if err == nil {
		r.manager.Opened(s)
		r.counted.opened.Add(1)
		r.log.Note("subflow from " + s.Local.String() + " to " + s.Remote.String() +
			" takes path " + r.route(s))
		return
	}
	if errors.Is(err, syscall.EINVAL) {
		r.manager.Refused(s.Token)
	}
	if !r.manager.IsLeft(s.Token) {
		r.counted.failed.Add(1)
		r.log.Note("path " + r.route(s) + ": " + err.Error())
	}
}

const controllerKind = "controller"

// say tells of a problem of a kind once.
func (r *Runner) say(kind string, err error) {
	text := ""
	if err != nil && !errors.Is(err, context.Canceled) {
		text = err.Error()
	}
	if text != "" && text != r.problems[kind] {
		r.log.Warn(text + "; it is tried again")
	}
	r.problems[kind] = text
	all := slices.DeleteFunc(slices.Sorted(maps.Values(r.problems)),
		func(text string) bool { return text == "" })
	r.counted.problems.Store(&all)
}

// route names the path of a subflow.
func (r *Runner) route(s Subflow) string {
	if s.Path == nil && r.scheduler != nil {
		return r.scheduler.routes[s.Name()]
	}
	return routeText(s.Path)
}

func routeText(path []int) string {
	words := lists.Map(path, strconv.Itoa)
	return strings.Join(words, ",")
}

// tell answers those that ask, and counts.
func (r *Runner) tell() {
	r.counted.count(r.manager)
	for {
		select {
		case answer := <-r.asked:
			list := r.manager.Connections()
			for _, c := range list {
				for j, s := range c.Subflows {
					c.Subflows[j].Route = r.route(s)
				}
			}
			answer <- list
		default:
			return
		}
	}
}
