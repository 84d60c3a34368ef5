package hunting_test

import (
	"math"
	"testing"
	"time"

	"sextant/sim/hunting"
	"sextant/sim/workload"
)

// Twice as fast servers under twice the load are the same in half the time, whatever chooses them.
func TestPaceIsTheUnitOfTime(t *testing.T) {
	for _, text := range []string{"random", "average/3", "charon/2", "jsq"} {
		scheme, err := hunting.ParseScheme(text)
		if err != nil {
			t.Fatal(err)
		}
		usual := config(alike(10, 2), 0.8, 20_000)
		usual.Scheme = scheme
		fast := config(alike(10, 2), 0.8, 20_000)
		fast.Scheme = scheme
		usual.Requests = workload.NewPoisson(16/service.Seconds(), service, 1)
		fast.Requests = workload.NewPoisson(32/service.Seconds(), service, 1)
		fast.News = usual.News / 2
		fast.Until, fast.WarmUp = fast.Until/2, fast.WarmUp/2
		for i := range fast.Servers {
			fast.Paces = append(fast.Paces, hunting.Pace{Server: i, Speed: 2})
		}
		slow, quick := run(t, usual).Pages.MeanMs, run(t, fast).Pages.MeanMs
		if math.Abs(slow-2*quick) > 0.02*slow {
			t.Errorf("%s: mean %.3f ms, and %.3f of servers twice as fast", text, slow, quick)
		}
	}
}

// Two requests of 10 ms to one core from 0 and 5 ms on: it stands still from 8 to 108 ms, and runs
// at half its pace from then on. By hand: the first has had 6.5 ms by then, the second 1.5; each
// gets a quarter. After 14 ms the first ends at 122, the second alone, with 5 ms left, at 132.
func TestPacesByHand(t *testing.T) {
	c := config(alike(1, 1), 0.5, 1)
	c.Requests = &given{{At: 0, Service: 10 * time.Millisecond},
		{At: 5 * time.Millisecond, Service: 10 * time.Millisecond}}
	c.Until, c.WarmUp = 0, 0
	c.Paces = []hunting.Pace{{At: 8 * time.Millisecond}, {At: 108 * time.Millisecond, Speed: 0.5}}
	r := run(t, c)
	if want := (122 + 127) / 2.0; math.Abs(r.Pages.MeanMs-want) > 0.01 || r.Requests != 2 {
		t.Errorf("%d requests in %.3f ms in the mean, want 2 in %.1f", r.Requests, r.Pages.MeanMs,
			want)
	}
}

// given is a list of requests.
type given []workload.Request

func (g *given) Next() (workload.Request, bool) {
	if len(*g) == 0 {
		return workload.Request{}, false
	}
	r := (*g)[0]
	*g = (*g)[1:]
	return r, true
}

// Hosts that refuse find out which servers are slow: random choice overloads those that are half as
// fast as the others.
func TestHuntingFindsSlowServers(t *testing.T) {
	slow := func(c *hunting.Config) {
		for i := 0; i < len(c.Servers); i += 2 {
			c.Paces = append(c.Paces, hunting.Pace{Server: i, Speed: 0.5})
		}
	}
	random, average := balanced(t, "random", 0.6, slow), balanced(t, "average/3", 0.6, slow)
	if !(average < random/2) {
		t.Errorf("mean %.1f ms, %.1f of random choice; want less than half", average, random)
	}
}
