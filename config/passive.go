package config

import "fmt"

// Passive says which of a host's own counters speak against a backend: what clients meet with,
// beside what checks find.
type Passive struct {
	// resets per opened connection in an interval above which it counts as a failed check; 0: never
	ResetsPermille int `key:"resets" as:"share" default:"0.5"`
	// share of connections that were asked for and not established above which it does; 0: never
	TimeoutsPermille int `key:"timeouts" as:"share" default:"0.5"`
	// connections asked for in an interval below which nothing can be told
	Minimum int `key:"minimum" default:"20" range:"1 1000000"`
}

func (c *checker) passive(where string, s Service) {
	if s.Protocol == UDP {
		c.invalid(where, "UDP has no connections that could be reset or time out", "delete passive")
	}
}

// String writes the thresholds.
func (p *Passive) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("resets %s timeouts %s minimum %d", FormatPermille(p.ResetsPermille),
		FormatPermille(p.TimeoutsPermille), p.Minimum)
}
