package api

import (
	"context"
	"sync/atomic"
	"time"
)

// loopTime is how long the agent's event loop did the work of a context.
type loopTime struct{ spent atomic.Int64 }

type loopTimeKey struct{}

// metered returns a context whose work in the event loop is measured.
func metered(ctx context.Context) (context.Context, *loopTime) {
	t := &loopTime{}
	return context.WithValue(ctx, loopTimeKey{}, t), t
}

// SpendLoopTime tells that the event loop has worked so long for what the context is of.
func SpendLoopTime(ctx context.Context, long time.Duration) {
	if t, ok := ctx.Value(loopTimeKey{}).(*loopTime); ok {
		t.spent.Add(int64(long))
	}
}
