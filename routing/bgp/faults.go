package bgp

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// The ways in which a malformed message ends (RFC 7606 section 2).
const (
	treatedAsWithdraw  = "treat_as_withdraw"
	attributeDiscarded = "attribute_discard"
	sessionReset       = "session_reset"
)

// faultMessages are what GoBGP logs then: it tells of malformed messages in no other way.
var faultMessages = map[string]string{
	"the received Update message was treated as withdraw":       treatedAsWithdraw,
	"Some attributes were discarded":                            attributeDiscarded,
	"Session will be reset due to malformed BGP message":        sessionReset,
	"Session will be reset due to malformed BGP Header":         sessionReset,
	"Session will be reset due to malformed BGP update message": sessionReset,
}

// faults is the log handler of GoBGP: it counts malformed messages, and passes on warnings. What
// GoBGP logs below that, the speaker tells in its own words, or nobody needs.
type faults struct {
	slog.Handler
	total map[string]*atomic.Uint64
	muted *atomic.Bool
}

func newFaults(log *slog.Logger) *faults {
	return &faults{log.With("part", "bgp").Handler(), map[string]*atomic.Uint64{
		treatedAsWithdraw: {}, attributeDiscarded: {}, sessionReset: {},
	}, new(atomic.Bool)}
}

// Enabled is slog.Handler.
func (f *faults) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle is slog.Handler.
func (f *faults) Handle(ctx context.Context, r slog.Record) error {
	if kind, ok := faultMessages[r.Message]; ok {
		f.total[kind].Add(1)
	}
	if f.muted.Load() || !f.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return f.Handler.Handle(ctx, r)
}

// WithAttrs is slog.Handler.
func (f *faults) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &faults{f.Handler.WithAttrs(attrs), f.total, f.muted}
}

// WithGroup is slog.Handler.
func (f *faults) WithGroup(name string) slog.Handler {
	return &faults{f.Handler.WithGroup(name), f.total, f.muted}
}

// mute ends the log.
func (f *faults) mute() { f.muted.Store(true) }

func (f *faults) counts() map[string]uint64 {
	counts := map[string]uint64{}
	for kind, n := range f.total {
		counts[kind] = n.Load()
	}
	return counts
}
