package config

import "fmt"

// Passive says which of a host's own counters speak against a backend: what clients meet with, beside what checks find.
type Passive struct {
	ResetsPermille   int // resets per opened connection in an interval above which it counts as a failed check; 0: never
	TimeoutsPermille int // share of connections that were asked for and not established above which it does; 0: never
	Minimum          int // connections asked for in an interval below which nothing can be told
}

const maxPassiveMinimum = 1_000_000

func newPassive() *Passive { return &Passive{ResetsPermille: 500, TimeoutsPermille: 500, Minimum: 20} }

func readPassive(v value, p *Passive) {
	v.mapping(
		field{"resets", intoPermille(&p.ResetsPermille), ""},
		field{"timeouts", intoPermille(&p.TimeoutsPermille), ""},
		field{"minimum", intoNumber(&p.Minimum), ""},
	)
}

func (c *checker) passive(where string, s Service) {
	p := s.Check.Passive
	c.share(join(where, "resets"), "resets", p.ResetsPermille)
	c.share(join(where, "timeouts"), "timeouts", p.TimeoutsPermille)
	c.number(join(where, "minimum"), "minimum", p.Minimum, 1, maxPassiveMinimum)
	if s.Protocol == UDP {
		c.invalid(where, "UDP has no connections that could be reset or time out", "delete passive")
	}
}

// String writes the thresholds.
func (p *Passive) String() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("resets %s timeouts %s minimum %d", FormatPermille(p.ResetsPermille), FormatPermille(p.TimeoutsPermille), p.Minimum)
}

// documentPassive is the shape of a check's passive signals in the file.
type documentPassive struct {
	Resets   float64 `yaml:"resets" json:"resets"`
	Timeouts float64 `yaml:"timeouts" json:"timeouts"`
	Minimum  int     `yaml:"minimum" json:"minimum"`
}

func passiveDocument(p *Passive) *documentPassive {
	if p == nil {
		return nil
	}
	return &documentPassive{float64(p.ResetsPermille) / 1000, float64(p.TimeoutsPermille) / 1000, p.Minimum}
}
