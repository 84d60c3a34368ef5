package hunting_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"sextant/sim/hunting"
)

func TestBounds(t *testing.T) {
	for name, wrong := range map[string]func(c *hunting.Config){
		"backlog below 0":    func(c *hunting.Config) { c.Servers[0].Backlog = -1 },
		"no worker":          func(c *hunting.Config) { c.Servers[0].Workers = 0 },
		"limit over 32 bits": func(c *hunting.Config) { c.Servers[0].Backlog = 1 << 32 },
		"product over 32 bits": func(c *hunting.Config) {
			c.Servers[0] = hunting.Server{Cores: 1 << 16, Workers: 1 << 16, Weight: 1}
		},
		"speed without end": func(c *hunting.Config) {
			c.Paces = []hunting.Pace{{Speed: math.Inf(1)}}
		},
		"balancers that know too much": func(c *hunting.Config) {
			c.Scheme = hunting.Scheme{Choice: hunting.LeastReported, Candidates: 2}
			c.Balancers, c.Servers = 10_000, alike(20_000, 1)
		},
		"no requests": func(c *hunting.Config) { c.Requests = nil },
	} {
		c := config(alike(2, 1), 0.9, 1000)
		wrong(&c)
		if _, err := hunting.Run(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Requests at a server that stands still for ever are not left out in silence.
func TestRequestsThatNeverEnd(t *testing.T) {
	c := config(alike(2, 1), 0.9, 1000)
	c.Paces = []hunting.Pace{{At: time.Second, Speed: 0}}
	if _, err := hunting.Run(c); err == nil || !strings.Contains(err.Error(), "do not end") {
		t.Errorf("error %v", err)
	}
}
