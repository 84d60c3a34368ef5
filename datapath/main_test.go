package datapath

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the garbage of tests grow: they make millions of packets and keep few, so that the
// collector would work all the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}
