package config

import "fmt"

// NewConnections limits how many TCP connections are opened to a service at one edge; the zero
// value lets as many as come.
type NewConnections struct {
	// per second
	Rate int `key:"rate" range:"1 1000000000"`
	// at once, after a time with fewer
	Burst int `key:"burst" range:"1 1000000000"`
}

// maxNewConnections bounds the rate: more SYNs than a processor can look at.
func (c *checker) newConnections(where string, s Service) {
	n := s.NewConnections
	if n == (NewConnections{}) {
		return
	}
	if s.Protocol != TCP {
		c.conflict(join(where, "newConnections"),
			fmt.Sprintf("service %q of protocol %s has no connections that could be counted",
				s.Name, s.Protocol),
			"delete newConnections", join(where, "protocol"))
	}
}

// String writes the limit as a person would.
func (n NewConnections) String() string {
	if n == (NewConnections{}) {
		return "none"
	}
	return fmt.Sprintf("%d per second, %d at once", n.Rate, n.Burst)
}
