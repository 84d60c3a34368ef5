package agent

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/monitoring"
	"sextant/config"
)

// core is what all parts of an agent share. Only the owner goroutine touches the store, the node
// and the events.
type core struct {
	loop
	eventLog
	options Options
	started time.Time
	life    context.Context      // ends with the agent
	updates prometheus.Histogram // how long changes took, in seconds
	store   *store
	node    *config.Node // what runs; nil: nothing yet
	dir     string       // of pins
	cgroup  string       // root of the cgroup2 file system
	// Sources of the list of those who fail.
	failing []func([]health.Key) []health.Key
	// What a part calls when something has changed that others show or announce: the warnings of
	// the status, and what routing is told.
	rewarn, announce func()
}

func newCore(ctx context.Context, options Options) *core {
	return &core{
		loop:     loop{work: make(chan func()), done: make(chan struct{})},
		eventLog: eventLog{log: options.Log},
		options:  options, started: time.Now(), life: ctx,
		updates: updateSeconds.Histogram(prometheus.ExponentialBuckets(0.0001, 4, 8)),
	}
}

var updateSeconds = monitoring.Define(monitoring.Histogram, "map_update_duration_seconds",
	"Time from a decided change to the tables that carry it.")

// now is the clock of the agent: the time since it began.
func (c *core) now() time.Duration { return time.Since(c.started) }

// pins is where a role's programs and tables are pinned.
func (c *core) pins(name api.Role) string { return filepath.Join(c.dir, string(name)) }

// Events is what api.Agent says.
func (c *core) Events(ctx context.Context, after uint64) (events []api.Event, err error) {
	err = c.do(ctx, func() { events = c.since(after) })
	return events, err
}

// keepFailing writes down who fails, so that an agent that follows does not send connections there.
func (c *core) keepFailing() {
	var failing []health.Key
	for _, add := range c.failing {
		failing = add(failing)
	}
	slices.SortFunc(failing, health.Key.Compare)
	if slices.Equal(failing, c.store.kept.Failing) {
		return
	}
	c.store.kept.Failing = failing
	if err := c.store.write(); err != nil {
		c.options.Log.Warn("a restarted agent will not know which backends fail", "error", err)
	}
}

// loop is the goroutine that owns the agent's state, as others see it.
type loop struct {
	work chan func()
	done chan struct{} // closed when the goroutine has ended
}

// errEnding answers those who come too late.
var errEnding = &api.Error{Code: api.Internal,
	Message: "the agent is ending; ask again when it runs"}

// do runs f in the owner goroutine and waits for it.
func (l *loop) do(ctx context.Context, f func()) error {
	finished := make(chan struct{})
	select {
	case l.work <- func() { f(); close(finished) }:
		<-finished
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errEnding
	}
}

// ask runs f in the owner goroutine, and returns what it does.
func ask[T any](ctx context.Context, l *loop, f func() (T, error)) (answer T, err error) {
	if doErr := l.do(ctx, func() { answer, err = f() }); doErr != nil {
		var none T
		return none, doErr
	}
	return answer, err
}

// follow gives the owner goroutine what comes from a channel, until ctx ends.
func follow[T any](ctx context.Context, l *loop, news <-chan T, take func(T)) {
	go func() {
		for {
			select {
			case one, open := <-news:
				if !open || l.do(ctx, func() { take(one) }) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// every has the owner goroutine do something again and again, until ctx ends.
func every(ctx context.Context, l *loop, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	context.AfterFunc(ctx, ticker.Stop)
	follow(ctx, l, ticker.C, func(time.Time) { f() })
}
