package protection

import (
	"context"
	"fmt"

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
	return experiment.SideBySide(ctx, lanesPerWorker*r.Workers(), jobs, do,
		func(done int) { r.Progress("%d of %d parts", done, jobs) })
}
