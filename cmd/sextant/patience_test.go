package main

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestPatience: a large node file gets the time that it takes, unless a time is given.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		given []string
		size  int
		want  time.Duration
	}{
		{nil, 0, 5 * time.Second},
		{nil, 1 << 20, 5*time.Second + perMiB},
		{nil, 8 << 20, 5*time.Second + 8*perMiB},
		{[]string{"--timeout", "2s"}, 8 << 20, 2 * time.Second},
		{[]string{"--timeout", "5s"}, 8 << 20, 5 * time.Second},
	} {
		a, cmd := &app{}, &cobra.Command{}
		a.addGlobals(cmd.Flags())
		if err := cmd.ParseFlags(c.given); err != nil {
			t.Fatal(err)
		}
		if got := a.patience(cmd, c.size); got != c.want {
			t.Errorf("%v, %d bytes: %v, want %v", c.given, c.size, got, c.want)
		}
	}
}
