package health

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sextant/config"
)

// TestStopAfterTheEnd: a monitor whose context ends while checks are under way can still be stopped
// when they have ended, or before.
func TestStopAfterTheEnd(t *testing.T) {
	for _, ended := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		begun := make(chan struct{})
		m := NewMonitorOf(ctx, func(ctx context.Context, _ Job) error {
			begun <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		var jobs []Job
		for i := range 5 {
			jobs = append(jobs, Job{Check: &config.Check{Interval: time.Millisecond,
				Timeout: time.Hour}, Target: Target{Service: "s", Backend: fmt.Sprint("b", i)}})
		}
		m.Set(jobs)
		for range jobs {
			<-begun
		}
		cancel()
		if ended {
			m.ended.Wait()
		}
		m.Stop()
	}
}
