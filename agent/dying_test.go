package agent

import (
	"log/slog"
	"testing"
	"time"

	"sextant/agent/state"
)

// An agent that starts while the one before is still dying waits for it, and does not fail.
func TestStartWaitsForADyingAgent(t *testing.T) {
	dir := t.TempDir()
	first, err := state.Open(dir, "edge1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, first.Close)
	second, err := state.Open(dir, "edge1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("the lock was free a moment later: %v", err)
	}
	second.Close()
}
