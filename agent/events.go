package agent

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
	log    *slog.Logger
	events []api.Event // the latest
}

// tell logs what has happened and remembers it.
func (l *eventLog) tell(e api.Event) {
	e.Number, e.Time = 1, time.Now()
	if len(l.events) > 0 {
		e.Number = l.events[len(l.events)-1].Number + 1
	}
	if l.events = append(l.events, e); len(l.events) > eventsMax {
		l.events = slices.Clone(l.events[len(l.events)-eventsMax/2:])
	}
	l.log.Info("backends", "event", e.String())
}

// since returns the events after the one of a number.
func (l *eventLog) since(after uint64) []api.Event {
	first := slices.IndexFunc(l.events, func(e api.Event) bool { return e.Number > after })
	if first < 0 {
		return nil
	}
	return slices.Clone(l.events[first:])
}
