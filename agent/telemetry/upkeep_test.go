package telemetry

import (
	"testing"
	"time"

	"sextant/linux"
)

// TestUtilization wants the share of the rate between two looks, and none where one is not known.
func TestUtilization(t *testing.T) {
	look := func(index int, octets uint64, kbps int, at time.Duration) use {
		return use{linux.LinkUse{Index: index, SentOctets: octets, RateKbps: kbps}, at}
	}
	for _, one := range []struct {
		name        string
		before, now use
		given       int
		want        uint32
		known       bool
	}{
		{"idle", look(3, 700, 1000, 0), look(3, 700, 1000, time.Second), 0, 0, true},
		{"a quarter of the driver's rate", look(3, 0, 1000, 0),
			look(3, 31250, 1000, time.Second), 0, 250000, true},
		{"half of the rate that is given", look(3, 0, 1000, time.Second),
			look(3, 6250, 1000, 1100*time.Millisecond), 1000, 500000, true},
		{"a burst above the rate", look(3, 0, 1000, 0), look(3, 1<<30, 1000, time.Second), 0,
			1000000, true},
		{"no rate", look(3, 0, 0, 0), look(3, 1, 0, time.Second), 0, 0, false},
		{"another interface of the name", look(3, 0, 1000, 0), look(4, 9, 1000, time.Second), 0,
			0, false},
		{"counters from zero on", look(3, 9, 1000, 0), look(3, 0, 1000, time.Second), 0, 0,
			false},
		{"no time", look(3, 0, 1000, 0), look(3, 9, 1000, 0), 0, 0, false},
	} {
		got, known := utilization(one.before, one.now, one.given)
		if got != one.want || known != one.known {
			t.Errorf("%s: %d, %v; want %d, %v", one.name, got, known, one.want, one.known)
		}
	}
}
