package hunting_test

import (
	"testing"
	"time"

	"sextant/sim/hunting"
)

// balanced returns the mean response in ms of 100 two-core servers at a load.
func balanced(t *testing.T, text string, rho float64, change func(*hunting.Config)) float64 {
	t.Helper()
	scheme, err := hunting.ParseScheme(text)
	if err != nil {
		t.Fatal(err)
	}
	c := config(alike(100, 2), rho, 50_000)
	c.Scheme = scheme
	change(&c)
	return run(t, c).Pages.MeanMs
}

func fresh(*hunting.Config) {}

// A balancer that hears at once of each connection that comes and goes knows all loads.
func TestReportsOfNowAreTheLoads(t *testing.T) {
	for _, rho := range []float64{0.5, 0.9} {
		charon, ideal := balanced(t, "charon/2", rho, fresh), balanced(t, "jsq/2", rho, fresh)
		if charon < 0.97*ideal || charon > 1.03*ideal {
			t.Errorf("load %g: mean %.2f ms by reports, %.2f by loads", rho, charon, ideal)
		}
	}
}

// Old news are worth less, and so is what a thousand balancers hear, each of few connections.
func TestNewsGetOld(t *testing.T) {
	random := balanced(t, "random", 0.9, fresh)
	for _, text := range []string{"charon/2", "prequal", "prequal=0"} {
		now := balanced(t, text, 0.9, fresh)
		late := balanced(t, text, 0.9, func(c *hunting.Config) { c.News = 50 * time.Millisecond })
		many := balanced(t, text, 0.9, func(c *hunting.Config) { c.Balancers = 1000 })
		if !(now < 0.8*random && now < late && now < many) {
			t.Errorf("%s: mean %.1f ms, %.1f by news of 50 ms, %.1f with 1,000 balancers; random "+
				"%.1f", text, now, late, many, random)
		}
	}
}

// Prequal finds out which servers are slow: half of these have one core, the others eight, and all
// the same share of random choice, of which the small ones could not serve half.
func TestProbesFindSlowServers(t *testing.T) {
	c := config(append(alike(50, 1), alike(50, 8)...), 0.6, 50_000)
	scheme, err := hunting.ParseScheme("prequal")
	if err != nil {
		t.Fatal(err)
	}
	c.Scheme = scheme
	if r := run(t, c); r.Pages.MeanMs > 25 {
		t.Errorf("mean %.1f ms, want less than 25", r.Pages.MeanMs)
	}
}
