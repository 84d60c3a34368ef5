package hrtimer_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"sextant/linux/hrtimer"
)

func newTimer(t testing.TB) *hrtimer.Timer {
	t.Helper()
	timer, err := hrtimer.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { timer.Close() })
	return timer
}

func waitFor(t testing.TB, timer *hrtimer.Timer, at time.Time) {
	t.Helper()
	if err := timer.Set(at); err != nil {
		t.Fatal(err)
	}
	if err := timer.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestTimerGoesOffAfterItsTime(t *testing.T) {
	// The two readings of the clock that tie package time to the timerfd lie
	// less than this apart.
	const hair = 100 * time.Microsecond
	timer := newTimer(t)
	for _, after := range []time.Duration{0, time.Microsecond, 300 * time.Microsecond,
		5 * time.Millisecond} {
		at := time.Now().Add(after)
		waitFor(t, timer, at)
		if early := time.Until(at); early > hair {
			t.Errorf("set to %v from now: went off %v early", after, early)
		}
	}
}

func TestTimerInThePastGoesOffAtOnce(t *testing.T) {
	timer := newTimer(t)
	waitFor(t, timer, time.Now().Add(-time.Hour))
	waitFor(t, timer, time.Now().Add(-1000*24*time.Hour)) // before boot
}

func TestTimerSetAnewWhileWaiting(t *testing.T) {
	timer := newTimer(t)
	if err := timer.Set(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- timer.Wait() }()
	if err := timer.Set(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestTimerCloseEndsWait(t *testing.T) {
	timer := newTimer(t)
	done := make(chan error)
	go func() { done <- timer.Wait() }()
	if err := timer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Wait after Close: %v, want os.ErrClosed", err)
	}
	if err := timer.Set(time.Now()); err == nil {
		t.Error("Set after Close succeeds, want an error")
	}
}

// BenchmarkLateness measures how late a wait of some milliseconds ends, which
// is the bias of an emulated service time.
func BenchmarkLateness(b *testing.B) {
	wait := func(i int) time.Duration {
		return time.Millisecond + time.Duration(i*617%4000)*time.Microsecond
	}
	measure := func(b *testing.B, until func(time.Time)) {
		var late time.Duration
		for i := range b.N {
			at := time.Now().Add(wait(i))
			until(at)
			late += time.Since(at)
		}
		b.ReportMetric(float64(late.Microseconds())/float64(b.N), "µs-late/op")
	}
	b.Run("timerfd", func(b *testing.B) {
		timer := newTimer(b)
		measure(b, func(at time.Time) { waitFor(b, timer, at) })
	})
	b.Run("time.Sleep", func(b *testing.B) {
		measure(b, func(at time.Time) { time.Sleep(time.Until(at)) })
	})
}
