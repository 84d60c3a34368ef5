package api

import (
	"context"
	"net/http"
	"strings"
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

type matchKey struct{}

// matching wants a write to change one configuration alone: that of the ETag in If-Match.
func matching(r *http.Request) *http.Request {
	tag := r.Header.Get("If-Match")
	if r.Method == http.MethodGet || tag == "" || tag == "*" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), matchKey{}, strings.Trim(tag, `"`)))
}

// OnlyChanges is the fingerprint of the one configuration that may be changed; "": any.
func OnlyChanges(ctx context.Context) string {
	fingerprint, _ := ctx.Value(matchKey{}).(string)
	return fingerprint
}
