package config

import "fmt"

// NewConnections limits how many TCP connections are opened to a service at one edge; the zero value lets as many as come.
type NewConnections struct {
	Rate  int // per second
	Burst int // at once, after a time with fewer
}

// maxNewConnections bounds the rate: more SYNs than a processor can look at.
const maxNewConnections = 1e9

func readNewConnections(v value, n *NewConnections) {
	v.mapping(
		field{"rate", intoNumber(&n.Rate), `"rate: " and how many new connections per second the service may get`},
		field{"burst", intoNumber(&n.Burst), `"burst: " and how many of them at once`},
	)
}

func (c *checker) newConnections(where string, s Service) {
	n := s.NewConnections
	if n == (NewConnections{}) {
		return
	}
	c.number(join(where, "newConnections.rate"), "rate", n.Rate, 1, maxNewConnections)
	c.number(join(where, "newConnections.burst"), "burst", n.Burst, 1, maxNewConnections)
	if s.Protocol != TCP {
		c.conflict(join(where, "newConnections"),
			fmt.Sprintf("service %q of protocol %s has no connections that could be counted", s.Name, s.Protocol),
			"delete newConnections", join(where, "protocol"))
	}
}

type documentNewConnections struct {
	Rate  int `yaml:"rate" json:"rate"`
	Burst int `yaml:"burst" json:"burst"`
}

func newConnectionsDocument(n NewConnections) *documentNewConnections {
	if n == (NewConnections{}) {
		return nil
	}
	return &documentNewConnections{n.Rate, n.Burst}
}

// String writes the limit as a person would.
func (n NewConnections) String() string {
	if n == (NewConnections{}) {
		return "none"
	}
	return fmt.Sprintf("%d per second, %d at once", n.Rate, n.Burst)
}
