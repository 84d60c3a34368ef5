package experiment

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
)

// SideBySide does so many jobs, some at a time. The first error ends all, except that a part is not
// computed now: the others are to be known, too. After each, tell gets how many are done; nil:
// nobody.
func SideBySide(ctx context.Context, atOnce, jobs int, do func(ctx context.Context, job int) error,
	tell func(done int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	var mutex sync.Mutex
	done := 0
	var other error
	for job := range jobs {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := do(ctx, job)
			mutex.Lock()
			defer mutex.Unlock()
			if done++; tell != nil {
				tell(done)
			}
			if errors.Is(err, errOther) {
				other, err = err, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return other
}
