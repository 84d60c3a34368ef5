package protection

import (
	"context"
	"fmt"
	"sync"

	"sextant/experiment"
)

// chunkRequests are measured in one lab.
const chunkRequests = 100

// lanesPerWorker is how many labs run side by side for each processor: a request mostly waits.
const lanesPerWorker = 3

// cell is a measurement: a setting under a name that is a file's.
type cell struct {
	name    string
	setting setting
}

// measureAll runs so many requests in each setting, chunk by chunk, and returns the outcomes in the
// order of the cells. Chunks that an earlier run finished are taken from there.
func measureAll(ctx context.Context, r *experiment.Recorder, cells []cell,
	count int) ([]requests, error) {
	chunks := (count + chunkRequests - 1) / chunkRequests
	outcomes := make([][]requests, len(cells))
	for i := range outcomes {
		outcomes[i] = make([]requests, chunks)
	}
	err := sideBySide(ctx, r, len(cells)*chunks, func(ctx context.Context, i int) error {
		c, chunk := cells[i/chunks], i%chunks
		s := c.setting
		s.Seed = uint64(chunk) + 1 // the same for all settings: what differs is not chance
		part, err := experiment.Part(r, fmt.Sprintf("%s-%d", c.name, chunk),
			func() (outcome requests, err error) {
				err = within(ctx, labName(i), s, func(ctx context.Context, a *arena) error {
					outcome, err = a.fetch(ctx, min(chunkRequests, count))
					return err
				})
				return outcome, err
			})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		outcomes[i/chunks][chunk] = part
		return nil
	})
	sums := make([]requests, len(cells))
	for i, parts := range outcomes {
		for _, part := range parts {
			sums[i] = sums[i].add(part)
		}
	}
	return sums, err
}

// labName names the lab of a job; others can run beside it.
func labName(i int) string { return fmt.Sprintf("protection-%d", i) }

// sideBySide does jobs, several at a time. The first error ends all.
func sideBySide(ctx context.Context, r *experiment.Recorder, jobs int,
	do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	var mu sync.Mutex
	next, done := 0, 0
	take := func(finished int) int {
		mu.Lock()
		defer mu.Unlock()
		done += finished
		r.Progress("%d of %d parts", done, jobs)
		next++
		return next - 1
	}
	for range min(jobs, lanesPerWorker*r.Workers()) {
		wait.Go(func() {
			for i := take(0); i < jobs && ctx.Err() == nil; i = take(1) {
				if err := do(ctx, i); err != nil {
					cancel(err) // only the first counts
				}
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
