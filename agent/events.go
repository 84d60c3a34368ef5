package agent

import (
	"context"
	"slices"
	"time"

	"sextant/agent/api"
)

// eventsMax is how many events are remembered for those who ask.
const eventsMax = 1024

// tell logs what has happened and remembers it.
func (a *Agent) tell(e api.Event) {
	e.Number, e.Time = 1, time.Now()
	if len(a.events) > 0 {
		e.Number = a.events[len(a.events)-1].Number + 1
	}
	if a.events = append(a.events, e); len(a.events) > eventsMax {
		a.events = slices.Clone(a.events[len(a.events)-eventsMax/2:])
	}
	a.options.Log.Info("backends", "event", e.String())
}

// Events is what api.Agent says.
func (a *Agent) Events(ctx context.Context, after uint64) (events []api.Event, err error) {
	err = a.do(ctx, func() {
		first := slices.IndexFunc(a.events, func(e api.Event) bool { return e.Number > after })
		if first >= 0 {
			events = slices.Clone(a.events[first:])
		}
	})
	return events, err
}
