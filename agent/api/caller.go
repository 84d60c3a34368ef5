package api

import (
	"context"
	"time"
)

type callerKey struct{}

// WithCaller says who asks: for the log and the history of configurations.
func WithCaller(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// CallerOf is who asks, as WithCaller was told; "unknown" if nobody told.
func CallerOf(ctx context.Context) string {
	if who, ok := ctx.Value(callerKey{}).(string); ok {
		return who
	}
	return "unknown"
}

type confirmKey struct{}

// withConfirmation wants a change to be confirmed in time, or it is undone.
func withConfirmation(ctx context.Context, within time.Duration) context.Context {
	return context.WithValue(ctx, confirmKey{}, within)
}

// ConfirmWithin is the time in which the change that is asked for must be confirmed; 0: it needs no
// confirmation.
func ConfirmWithin(ctx context.Context) time.Duration {
	within, _ := ctx.Value(confirmKey{}).(time.Duration)
	return within
}
