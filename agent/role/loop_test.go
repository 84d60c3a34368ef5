package role_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sextant/agent/role"
)

// serve does the work of a loop until its test ends.
func serve(t *testing.T) *role.Loop {
	loop, over := role.NewLoop(), make(chan struct{})
	go func() {
		defer close(loop.Done)
		for {
			select {
			case f := <-loop.Work:
				f()
			case f := <-loop.Looks:
				f()
			case <-over:
				return
			}
		}
	}()
	t.Cleanup(func() { close(over); <-loop.Done })
	return &loop
}

// While a change waits, those who look are served, also by what waits itself; the next change is
// not begun before the first has ended.
func TestLooksDuringAChange(t *testing.T) {
	loop, slow, waits := serve(t), make(chan error), make(chan struct{})
	failure := errors.New("the disk is full")
	var steps []string // of the owner goroutine
	note := func(step string) func() { return func() { steps = append(steps, step) } }
	ended := make(chan error, 2)
	go func() {
		ended <- loop.Do(t.Context(), func() {
			note("begins")()
			if err := loop.Await(func() error { close(waits); return <-slow }); err != failure {
				t.Errorf("the change was told %v", err)
			}
			note("ends")()
		})
	}()
	<-waits
	go func() { ended <- loop.Do(t.Context(), note("second")) }()
	for range 100 {
		err := loop.Look(t.Context(), func() {
			if err := loop.Await(func() error { note("look")(); return nil }); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := loop.Look(gone, note("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("who has left is told %v", err)
	}
	slow <- failure
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Error(err)
	}
	want := slices.Concat([]string{"begins"}, slices.Repeat([]string{"look"}, 100),
		[]string{"ends", "second"})
	if !slices.Equal(steps, want) {
		t.Errorf("the owner did %q", steps)
	}
}
