package api

import (
	"context"
	"time"
)

// Streams of samples take a tenth of the event loop's time at most, and none takes a sample that is
// older than samplesLife because of others, unless the event loop works longer than that for ten.
// What a look waits, for the loop or for a processor, does not count: other work is done meanwhile.
const (
	samplesLife  = minInterval / 2
	samplesShare = 10
)

// samples are what streams see of an agent. One look at it serves all that ask within a short time:
// the event loop does not do more for a hundred streams than for one.
type samples struct {
	agent Agent
	turn  chan struct{} // of who looks, or reads what follows
	last  Sample        // without events
	until time.Time     // for which it serves
}

func newSamples(agent Agent) *samples {
	return &samples{agent: agent, turn: make(chan struct{}, 1)}
}

// take returns the counters and services of a short time ago. They are for many: who gets them
// changes nothing of them.
func (s *samples) take(ctx context.Context) (Sample, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return Sample{}, ctx.Err()
	}
	if time.Now().Before(s.until) {
		return s.last, nil
	}
	ctx, loop := metered(ctx)
	counters, err := s.agent.Counters(ctx)
	if err != nil {
		return Sample{}, err
	}
	services, err := s.agent.Services(ctx)
	if err != nil {
		return Sample{}, err
	}
	now := time.Now()
	s.last = Sample{Time: now, Counters: notNull(counters), Services: notNull(services)}
	s.until = now.Add(max(samplesLife, (samplesShare-1)*time.Duration(loop.spent.Load())))
	return s.last, nil
}
