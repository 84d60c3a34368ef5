package lab

import (
	"context"
	"sync"
)

// each calls f with 0 to count-1, all at the same time, and waits for all. The
// first error ends the context of the others and is returned.
func each(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for i := range count {
		wait.Go(func() {
			if err := f(ctx, i); err != nil {
				cancel(err) // only the first counts
			}
		})
	}
	wait.Wait()
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
