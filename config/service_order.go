package config

import (
	"fmt"
	"slices"
)

// OrderBy is what the candidates of a bucket are ordered by.
type OrderBy string

// What candidates are ordered by. Of one bucket the first offer goes where the product is least.
const (
	OrderByPath OrderBy = "path" // the cost of the service's way to the backend
	OrderByLoad OrderBy = "load" // busy connections per core, which its host's agent tells
)

// Sites are the sites that the backends of the service name, sorted; "" is one, too.
func (s *Service) Sites() (sites []string) {
	for _, b := range s.Backends {
		sites = append(sites, b.Site)
	}
	slices.Sort(sites)
	return slices.Compact(sites)
}

// ordered reports whether the order of candidates depends on more than the table.
func (s *Service) ordered() bool { return len(s.Order) > 0 || len(s.Sites()) > 1 }

func (c *checker) order(where string, s Service) {
	at := join(where, "order")
	for i, by := range s.Order {
		if slices.Contains(s.Order[:i], by) {
			c.conflict(fmt.Sprintf("%s[%d]", at, i), fmt.Sprintf("%s is given twice", by),
				"delete one of the two")
		}
	}
	if !s.ordered() {
		return
	}
	if len(s.Order) == 0 {
		at = join(where, "backends")
	}
	switch {
	case s.Policy != PolicyOffer || s.Table != Rendezvous:
		c.conflict(at, fmt.Sprintf("candidates of policy %s with table %s have no order and no "+
			"sites", s.Policy, s.Table), "write policy: offer and table: rendezvous, or leave "+
			"order and sites out", join(where, "policy"), join(where, "table"))
	case s.Candidates < 2:
		c.conflict(at, "a bucket with one candidate has nothing to put in order",
			"write candidates: 2", join(where, "candidates"))
	case slices.Contains(s.Order, OrderByPath) && s.Way == nil:
		c.conflict(at, "without a way the cost of paths is not known",
			"add way: {by: delay}, or leave path out", join(where, "way"))
	}
}

func (c *checker) site(where, name string) {
	if name != "" {
		c.name(where, "site", name)
	}
}

func (c *checker) sites(where string, s Service) {
	for i, b := range s.Backends {
		c.site(fmt.Sprintf("%s.backends[%d].site", where, i), b.Site)
	}
	for i, l := range s.Learned {
		c.site(fmt.Sprintf("%s.learned[%d].site", where, i), l.Site)
	}
}

// orderWarnings are about orders and sites that do less than they seem to.
func (e *Edge) orderWarnings() (list []string) {
	for i := range e.Services {
		s := &e.Services[i]
		if sites := len(s.Sites()); sites > 1 && len(s.Backends) > s.Depth &&
			len(e.Peers) == 0 && e.Etcd == nil {
			list = append(list, fmt.Sprintf("service %q: %d backends in %d sites, and chains hold "+
				"%d: an edge that starts without memory does not know who had a bucket, and may "+
				"lose connections; write edge.peers or edge.etcd, which tell it", s.Name,
				len(s.Backends), sites, s.Depth))
		}
		if len(s.Order) > 0 && s.Protocol == UDP && len(s.QUIC.Configs) == 0 {
			list = append(list, fmt.Sprintf("service %q: UDP goes to the first of the candidates, "+
				"so its flows change their server whenever the order does; leave order out, or "+
				"where it is QUIC, write quic", s.Name))
		}
		for _, b := range s.Backends {
			if slices.Contains(s.Order, OrderByLoad) && !b.Agent.IsValid() {
				list = append(list, fmt.Sprintf("service %q: backend %q has no agent that could "+
					"tell its load, which counts as the mean of the others", s.Name, b.Name))
			}
		}
	}
	return list
}
