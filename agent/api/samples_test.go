package api

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// looked counts how often its counters are taken, for which the event loop works a time, after one
// in which it does other work.
type looked struct {
	Agent
	times        int
	waits, takes time.Duration
}

func (l *looked) Counters(ctx context.Context) ([]Counters, error) {
	l.times++
	time.Sleep(l.waits + l.takes)
	SpendLoopTime(ctx, l.takes)
	return nil, nil
}

func (l *looked) Services(context.Context, ...string) ([]Service, error) { return nil, nil }

// A hundred streams that each want ten samples in a second cause as many looks as one, and leave an
// agent that is slow nine tenths of its time. That it has other work does not make samples older.
func TestStreamsShareSamples(t *testing.T) {
	for _, c := range []struct {
		waits, takes time.Duration
		most         int // looks in ten seconds
	}{
		{0, 0, 202}, {0, time.Millisecond, 199}, {0, 20 * time.Millisecond, 52},
		{50 * time.Millisecond, 0, 67}, {50 * time.Millisecond, 20 * time.Millisecond, 42},
	} {
		synctest.Test(t, func(t *testing.T) {
			agent := &looked{waits: c.waits, takes: c.takes}
			s := newSamples(agent)
			began := time.Now()
			var streams sync.WaitGroup
			for i := range 100 {
				streams.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					for time.Since(began) < 10*time.Second {
						got, err := s.take(t.Context())
						most := max(samplesLife, samplesShare*c.takes) + c.waits
						if age := time.Since(got.Time); err != nil || age > most {
							t.Errorf("a sample is %v old: %v", age, err)
						}
						time.Sleep(minInterval)
					}
				})
			}
			streams.Wait()
			if agent.times < c.most-c.most/6 || agent.times > c.most {
				t.Errorf("looks that wait %v and take %v: %d, want %d and not many less", c.waits,
					c.takes, agent.times, c.most)
			}
		})
	}
}
