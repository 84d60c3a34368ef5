package experiment

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// watchInterval is how often the servers are looked at while they are loaded.
const watchInterval = 500 * time.Millisecond

// bars draw a number of busy connections, from none to more than the machine has workers.
var bars = []rune(" ▁▂▃▄▅▆▇█")

// watch shows how busy each server is until stop is called.
func (r *huntingRun) watch(ctx context.Context, p phase) (stop func()) {
	if r.options.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		begun := time.Now()
		for ctx.Err() == nil {
			r.show(ctx, p, time.Since(begun))
			select {
			case <-ctx.Done():
			case <-time.After(watchInterval):
			}
		}
		r.options.Progress("")
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

func (r *huntingRun) show(ctx context.Context, p phase, elapsed time.Duration) {
	hosts, err := r.hosts(ctx)
	if err != nil {
		return // the load itself will tell
	}
	var picture strings.Builder
	most := 0
	for _, h := range hosts {
		picture.WriteRune(bar(h.Busy))
		most = max(most, h.Busy)
	}
	left := max(0, r.options.WarmUp+p.measure-elapsed)
	r.options.Progress(fmt.Sprintf(
		"%-7s of %d %4.0f s left   busy connections per server [%s] most %d",
		p.policy, p.candidates, left.Seconds(), picture.String(), most))
}

// bar has one step for every two connections.
func bar(busy int) rune { return bars[min(max(busy+1, 0)/2, len(bars)-1)] }
