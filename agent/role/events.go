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
	second time.Time   // when the one began in which events are being logged
	lines  int         // of it
}

// eventLines is how many events are logged in a second. Of thousands of backends that go at once
// the log has the first, the API the latest, and metrics all.
const eventLines = 100

// Tell logs what has happened and remembers it.
func (l *eventLog) Tell(e api.Event) {
	e.Number, e.Time = 1, time.Now()
	if len(l.Latest) > 0 {
		e.Number = l.Latest[len(l.Latest)-1].Number + 1
	}
	if l.Latest = append(l.Latest, e); len(l.Latest) > eventsMax {
		l.Latest = slices.Clone(l.Latest[len(l.Latest)-eventsMax/2:])
	}
	if e.Time.Sub(l.second) >= time.Second {
		if l.lines > eventLines {
			l.Log.Warn("backends: events were not logged", "events", l.lines-eventLines)
		}
		l.second, l.lines = e.Time, 0
	}
	switch l.lines++; {
	case l.lines <= eventLines:
		l.Log.Info("backends", "event", e.String())
	case l.lines == eventLines+1:
		l.Log.Warn("backends: more events than are logged in a second", "logged", eventLines)
	}
}

// since returns the events after the one of a number.
func (l *eventLog) since(after uint64) []api.Event {
	first := slices.IndexFunc(l.Latest, func(e api.Event) bool { return e.Number > after })
	if first < 0 {
		return nil
	}
	return slices.Clone(l.Latest[first:])
}
