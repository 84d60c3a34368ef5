package api

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// looked counts how often its counters are taken, which takes a time.
type looked struct {
	Agent
	times int
	takes time.Duration
}

func (l *looked) Counters(context.Context) ([]Counters, error) {
	l.times++
	time.Sleep(l.takes)
	return nil, nil
}

func (l *looked) Services(context.Context, ...string) ([]Service, error) { return nil, nil }

// A hundred streams that each want ten samples in a second cause as many looks as one, and leave an
// agent that is slow nine tenths of its time.
func TestStreamsShareSamples(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		most  int // looks in ten seconds
	}{{0, 202}, {time.Millisecond, 199}, {20 * time.Millisecond, 52}} {
		synctest.Test(t, func(t *testing.T) {
			agent := &looked{takes: c.takes}
			s := newSamples(agent)
			began := time.Now()
			var streams sync.WaitGroup
			for i := range 100 {
				streams.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					for time.Since(began) < 10*time.Second {
						got, err := s.take(t.Context())
						most := max(samplesLife, samplesShare*c.takes)
						if age := time.Since(got.Time); err != nil || age > most {
							t.Errorf("a sample is %v old: %v", age, err)
						}
						time.Sleep(minInterval)
					}
				})
			}
			streams.Wait()
			if agent.times < c.most-c.most/6 || agent.times > c.most {
				t.Errorf("looks that take %v: %d, want %d and not many less", c.takes, agent.times,
					c.most)
			}
		})
	}
}
