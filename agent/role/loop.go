package role

import (
	"context"
	"time"

	"sextant/agent/api"
)

// Loop is the goroutine that owns the agent's state, as others see it. It does one piece of work
// after the other. A change that waits for the kernel or the disk ([Loop.Await]) keeps all other
// work waiting, but not those who only look: they see what was before it.
type Loop struct {
	Work  chan func()
	Looks chan func()   // work that changes nothing, and that is done during a change, too
	Done  chan struct{} // closed when the goroutine has ended
	looks bool          // it does such work now
}

// NewLoop makes a loop whose work the caller does.
func NewLoop() Loop {
	return Loop{Work: make(chan func()), Looks: make(chan func()), Done: make(chan struct{})}
}

// errEnding answers those who come too late.
var errEnding = &api.Error{Code: api.Internal,
	Message: "the agent is ending; ask again when it runs"}

// Do runs f in the owner goroutine and waits for it. Once the owner has ended ctx, f does not run.
func (l *Loop) Do(ctx context.Context, f func()) (err error) { return l.give(ctx, l.Work, f) }

// Look is Do for what only reads, of a state that changes leave whole until they are done: it does
// not wait for a change that waits itself.
func (l *Loop) Look(ctx context.Context, f func()) (err error) { return l.give(ctx, l.Looks, f) }

func (l *Loop) give(ctx context.Context, to chan<- func(), f func()) (err error) {
	finished := make(chan struct{})
	select {
	case to <- func() {
		if err = ctx.Err(); err == nil {
			began := time.Now()
			f()
			api.SpendLoopTime(ctx, time.Since(began))
		}
		close(finished)
	}:
		<-finished
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-l.Done:
		return errEnding
	}
}

// Await is for the owner goroutine: it waits for something that takes the kernel or the disk long,
// and that touches nothing of the state, in another goroutine, while it serves those who only look.
func (l *Loop) Await(slow func() error) error {
	if l.looks {
		return slow()
	}
	done := make(chan error, 1)
	go func() { done <- slow() }()
	for {
		select {
		case f := <-l.Looks:
			l.looks = true
			f()
			l.looks = false
		case err := <-done:
			return err
		}
	}
}

// Ask runs f in the owner goroutine, and returns what it does.
func Ask[T any](ctx context.Context, l *Loop, f func() (T, error)) (answer T, err error) {
	return asked(ctx, l.Do, f)
}

// See is Ask for what only reads, as [Loop.Look] does.
func See[T any](ctx context.Context, l *Loop, f func() (T, error)) (answer T, err error) {
	return asked(ctx, l.Look, f)
}

func asked[T any](ctx context.Context, by func(context.Context, func()) error,
	f func() (T, error)) (answer T, err error) {
	if byErr := by(ctx, func() { answer, err = f() }); byErr != nil {
		var none T
		return none, byErr
	}
	return answer, err
}
