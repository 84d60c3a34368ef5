package main

import (
	"testing"
	"time"

	"sextant/sim/hunting"
)

// Each server has its speed from the start, stalls in turn with it, and has it at the end.
func TestPacesAlternate(t *testing.T) {
	o := huntingOptions{servers: 5, cores: 2, speeds: []float64{1, 0.5}, seed: 3,
		stall: time.Second, stallEvery: 4 * time.Second, stallSpeed: 0.1}
	if got := o.capacity(); got != 8 {
		t.Errorf("capacity %g, want 8 cores: three of speed 1, two of half", got)
	}
	last := map[int]hunting.Pace{}
	stalls := 0
	var at time.Duration
	for _, p := range o.paces(200 * time.Second) {
		usual := []float64{1, 0.5}[p.Server%2]
		before, known := last[p.Server]
		want := usual
		if known && before.Speed == usual {
			want = usual * 0.1
			stalls++
		}
		if p.Speed != want || p.At < at || want == usual && known && p.At-before.At != time.Second {
			t.Fatalf("%+v after %+v", p, before)
		}
		at, last[p.Server] = p.At, p
	}
	for server, p := range last {
		if p.Speed != o.speed(server) {
			t.Errorf("server %d is left with %+v", server, p)
		}
	}
	// 5 servers in 200 s, of which each stalls every 5 s.
	if stalls < 150 || stalls > 250 {
		t.Errorf("%d stalls, want some 200", stalls)
	}
}
