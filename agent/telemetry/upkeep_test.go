package telemetry

import (
	"testing"
	"time"

	"sextant/linux"
)

// TestUtilization wants the share of the rate between two looks, and none where one is not known.
func TestUtilization(t *testing.T) {
	look := func(index int, octets uint64, kbps int, at time.Duration) use {
		return use{LinkUse: linux.LinkUse{Index: index, SentOctets: octets, RateKbps: kbps},
			at: at}
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

// TestLookingAtLinks wants rare looks at what the programs meter, and frequent ones at all else.
func TestLookingAtLinks(t *testing.T) {
	metered := use{at: time.Second, metered: true, queueAt: 4 * time.Second}
	if next := metered.next(); next != metered.queueAt {
		t.Errorf("metered: next look at %v", next)
	}
	measured := use{at: time.Second, queueAt: 4 * time.Second}
	if next := measured.next(); next != time.Second+useInterval {
		t.Errorf("measured: next look at %v", next)
	}
	r := &Room{usesAt: time.Hour, uses: map[string]use{"eth1": metered}}
	r.lookAgain()
	if next := r.uses["eth1"].next(); r.usesAt != 0 || next != 0 {
		t.Errorf("after a change: next look at %v, %v", r.usesAt, next)
	}
}
