package role_test

import (
	"context"
	"log/slog"
	"testing"

	"sextant/agent/role"
)

// What a watch says that the owner has ended changes nothing any more, also if it was about to say
// it: select chooses at random between an owner that listens and an end.
func TestEndedWatchSaysNothing(t *testing.T) {
	loop := &role.NewCore(t.Context(), "test", slog.New(slog.DiscardHandler)).Loop
	go func() {
		for work := range loop.Work {
			work()
		}
	}()
	defer close(loop.Work)
	for range 1000 {
		ctx, end := context.WithCancel(t.Context())
		if err := loop.Do(ctx, func() {}); err != nil { // the owner listens then
			t.Fatal(err)
		}
		end()
		if err := loop.Do(ctx, func() { t.Error("it was said") }); err == nil {
			t.Fatal("Do does not tell of the end")
		}
	}
}
