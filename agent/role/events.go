package role

import (
	"log/slog"
	"slices"
	"time"

	"sextant/agent/api"
)

// eventsMax is how many events are remembered for those who ask.
const eventsMax = 1024

// eventLog is what has happened to services and backends.
type eventLog struct {
	Log    *slog.Logger
	Latest []api.Event // the latest
}

// Tell logs what has happened and remembers it.
func (l *eventLog) Tell(e api.Event) {
	e.Number, e.Time = 1, time.Now()
	if len(l.Latest) > 0 {
		e.Number = l.Latest[len(l.Latest)-1].Number + 1
	}
	if l.Latest = append(l.Latest, e); len(l.Latest) > eventsMax {
		l.Latest = slices.Clone(l.Latest[len(l.Latest)-eventsMax/2:])
	}
	l.Log.Info("backends", "event", e.String())
}

// since returns the events after the one of a number.
func (l *eventLog) since(after uint64) []api.Event {
	first := slices.IndexFunc(l.Latest, func(e api.Event) bool { return e.Number > after })
	if first < 0 {
		return nil
	}
	return slices.Clone(l.Latest[first:])
}
