package role

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/monitoring"
	"sextant/agent/state"
	"sextant/config"
)

// Core is what all parts of an agent share. Only the owner goroutine touches the store, the node
// and the events.
type Core struct {
	Loop
	eventLog
	Version string // of the binary
	Started time.Time
	Life    context.Context      // ends with the agent
	Updates prometheus.Histogram // how long changes took, in seconds
	Store   *state.Store
	Node    *config.Node // what runs; nil: nothing yet
	Dir     string       // of pins
	Cgroup  string       // root of the cgroup2 file system
	// Sources of the list of those who fail.
	Failing []func([]health.Key) []health.Key
	// What a part calls when something has changed that others show or announce: the warnings of
	// the status, and what routing is told.
	Rewarn, Announce func()
}

// NewCore makes what the parts of an agent share, for as long as ctx lasts. Store, node and
// directories are set when they are known.
func NewCore(ctx context.Context, version string, log *slog.Logger) *Core {
	return &Core{
		Loop:     NewLoop(),
		eventLog: eventLog{Log: log},
		Version:  version, Started: time.Now(), Life: ctx,
		Updates: updateSeconds.Histogram(prometheus.ExponentialBuckets(0.0001, 4, 8)),
	}
}

var updateSeconds = monitoring.Define(monitoring.Histogram, "map_update_duration_seconds",
	"Time from a decided change to the tables that carry it.")

// Now is the clock of the agent: the time since it began.
func (c *Core) Now() time.Duration { return time.Since(c.Started) }

// Pins is where a role's programs and tables are pinned.
func (c *Core) Pins(name api.Role) string { return filepath.Join(c.Dir, string(name)) }

// Events is what api.Agent says.
func (c *Core) Events(ctx context.Context, after uint64) (events []api.Event, err error) {
	err = c.Look(ctx, func() { events = c.since(after) })
	return events, err
}

// KeepFailing writes down who fails, so that an agent that follows does not send connections there.
func (c *Core) KeepFailing() {
	var failing []health.Key
	for _, add := range c.Failing {
		failing = add(failing)
	}
	slices.SortFunc(failing, health.Key.Compare)
	if slices.Equal(failing, c.Store.Kept.Failing) {
		return
	}
	c.Store.Kept.Failing = failing
	if err := c.Store.Write(); err != nil {
		c.Log.Warn("a restarted agent will not know which backends fail", "error", err)
	}
}

// Follow gives the owner goroutine what comes from a channel, until ctx ends.
func Follow[T any](ctx context.Context, l *Loop, news <-chan T, take func(T)) {
	go func() {
		for {
			select {
			case one, open := <-news:
				if !open || l.Do(ctx, func() { take(one) }) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// batch is how much of what comes at once is one piece of work at most: the owner has others to do.
const batch = 64

// FollowAll is Follow for what may come by thousands in a second: what waits is one piece of work.
func FollowAll[T any](ctx context.Context, l *Loop, news <-chan T, take func([]T)) {
	all := make(chan []T)
	go func() {
		for {
			var list []T
			select {
			case one := <-news:
				list = append(list, one)
			case <-ctx.Done():
				return
			}
			for more := true; more && len(list) < batch; {
				select {
				case one := <-news:
					list = append(list, one)
				default:
					more = false
				}
			}
			select {
			case all <- list:
			case <-ctx.Done():
				return
			}
		}
	}()
	Follow(ctx, l, all, take)
}

// Every has the owner goroutine do something again and again, until ctx ends.
func Every(ctx context.Context, l *Loop, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	context.AfterFunc(ctx, ticker.Stop)
	Follow(ctx, l, ticker.C, func(time.Time) { f() })
}
