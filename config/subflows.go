package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sextant/packet/cflb"
)

// Subflows is the role of a host whose connections of Multipath TCP get subflows on chosen paths
// through a network with controllable load balancing, by their source ports.
type Subflows struct {
	// absolute path of a file with the network's key; "": a controller chooses for all
	KeyFile string `key:"keyFile" omit:"zero"`
	// what KeyFile holds; nil as long as it has not been read
	Key CFLBKey `secret:"key"`
	// nil: a controller chooses for connections of the family, or they get no subflows
	IPv4 *Selector `key:"ipv4" title:"subflows ipv4"`
	IPv6 *Selector `key:"ipv6" title:"subflows ipv6"`
	// which gives paths to subflows; without it nobody does
	Controller *Scheduler `key:"controller" change:"whole"`
	// bytes that the other end has acknowledged before a connection gets subflows
	AfterBytes int `key:"afterBytes" default:"1048576" range:"0 1099511627776"`
	// the first that a connection's destination matches decides
	Rules []SubflowRule `key:"rules" item:"subflow rule %s" by:"place" change:"whole"`
}

// Scheduler is a controller that is asked for paths: one on this machine, by its socket, or
// elsewhere.
type Scheduler struct {
	// absolute path of the controller's socket; "": it is elsewhere
	Socket string `key:"socket" omit:"zero"`
	// host and port of the controller's api.listen
	Address string `key:"address" as:"controller" omit:"zero"`
	// absolute path of a file with a token of the controller
	TokenFile string   `key:"tokenFile" omit:"zero"`
	TLS       TLSFiles `key:"tls" omit:"zero"`
}

// SubflowRule says which subflows connections to a destination get.
type SubflowRule struct {
	// in lists and metrics
	Name string `key:"name"`
	// the zero prefix: any
	Destination netip.Prefix `key:"destination" as:"any" omit:"zero"`
	// how many next hops each router on the way has: a subflow is on each path
	NextHops HopCounts `key:"nextHops" omit:"zero"`
	// how many subflows get paths of the controller, beside the first
	Scheduled int `key:"scheduled" omit:"zero" range:"1 8" zero:"where nextHops says the paths"`
}

// HopCounts are how many next hops each router on a way has, the first one's first: "2,2".
type HopCounts string

const (
	subflowRulesMax = 64
	subflowsMax     = 8 // subflows.SlotsMax
	routersMax      = 32
)

// ParseHopCounts reads how many next hops routers have.
func ParseHopCounts(s string) (HopCounts, error) {
	words := strings.Split(s, ",")
	for _, word := range words {
		if n, err := strconv.ParseUint(word, 10, 16); err != nil || n < 1 || n > cflb.RadixMax ||
			len(words) > routersMax {
			return "", invalid(fmt.Sprintf("%q does not say how many next hops routers have", s),
				`write the number of each router on the way, like "2,2"`)
		}
	}
	return HopCounts(s), nil
}

// Counts are the numbers; nil: there are none.
func (h HopCounts) Counts() (counts []int) {
	if h == "" {
		return nil
	}
	for word := range strings.SplitSeq(string(h), ",") {
		n, _ := strconv.Atoi(word)
		counts = append(counts, n)
	}
	return counts
}

// Codec prepares what encodes the paths of a family; nil: none are computed.
func (s *Subflows) Codec(ipv6 bool) (*cflb.Codec, error) {
	selector := s.IPv4
	if ipv6 {
		selector = s.IPv6
	}
	if selector == nil {
		return nil, nil
	}
	return selector.codec(s.Key)
}

func (s *Subflows) check(c *checker) {
	selects := s.IPv4 != nil || s.IPv6 != nil
	switch {
	case selects && s.KeyFile == "":
		c.invalid("subflows.keyFile", "no file with the network's key is given",
			"name it by its absolute path, or leave ipv4 and ipv6 out")
	case s.KeyFile != "":
		c.directory("subflows.keyFile", s.KeyFile)
	}
	for ipv6, selector := range map[bool]*Selector{false: s.IPv4, true: s.IPv6} {
		where := map[bool]string{false: "subflows.ipv4", true: "subflows.ipv6"}[ipv6]
		c.selector(where, selector)
		if selector != nil && selector.Fields != "source-port" && selector.Fields != "ports" {
			c.invalid(where+".fields", "subflows are steered by their ports",
				"write source-port or ports, at all sources and routers of the network")
		}
	}
	c.scheduler("subflows.controller", s.Controller)
	c.count("subflows.rules", "subflow rules", len(s.Rules), subflowRulesMax)
	names := unique[string]{}
	for i, r := range s.Rules {
		where := fmt.Sprintf("subflows.rules[%d]", i)
		c.name(join(where, "name"), "subflow rule", r.Name)
		names.once(c, join(where, "name"), r.Name, "give one another name",
			"subflow rule %q is there twice")
		c.subflowRule(where, s, r)
	}
}

func (c *checker) scheduler(where string, s *Scheduler) {
	switch {
	case s == nil:
		return
	case s.Socket != "" && s.Address != "":
		c.conflict(join(where, "address"), "the controller is at a socket, and elsewhere",
			"leave one of the two", join(where, "socket"))
	case s.Socket != "":
		c.socket(join(where, "socket"), s.Socket)
	case s.Address == "":
		c.invalid(where, "it is not said where the controller is",
			`add "socket: /run/sextant/controller.sock", or address and tokenFile`)
	case s.TokenFile == "":
		c.invalid(join(where, "tokenFile"), "a controller elsewhere answers those that have tokens",
			"name a file that sextant token wrote, by its absolute path")
	}
	for _, file := range []struct{ key, path string }{{"tokenFile", s.TokenFile},
		{"tls.ca", s.TLS.CA}, {"tls.certificate", s.TLS.Certificate}, {"tls.key", s.TLS.Key}} {
		if file.path != "" {
			c.directory(join(where, file.key), file.path)
		}
	}
}

func (c *checker) subflowRule(where string, s *Subflows, r SubflowRule) {
	switch {
	case (r.NextHops == "") == (r.Scheduled == 0):
		c.invalid(where, "the paths of subflows are not said, or twice", "write either nextHops, "+
			`like "2,2", or scheduled, and how many subflows a controller is to give paths`)
		return
	case r.Scheduled > 0 && s.Controller == nil:
		c.conflict(join(where, "scheduled"), "no controller is named that gives paths",
			`add "controller: {socket: /run/sextant/controller.sock}" to subflows`)
		return
	}
	paths, most := 1, 1
	for _, n := range r.NextHops.Counts() {
		paths, most = min(paths*n, subflowsMax+1), max(most, n)
	}
	if paths > subflowsMax {
		c.invalid(join(where, "nextHops"), fmt.Sprintf("%s: more paths than a connection has "+
			"subflows, %d", r.NextHops, subflowsMax),
			"have a controller choose some: write scheduled in place of nextHops")
	}
	c.subflowFamilies(where, s, r, most)
}

// subflowFamilies checks that selectors of the families that the rule is about name its next hops.
func (c *checker) subflowFamilies(where string, s *Subflows, r SubflowRule, most int) {
	served := r.Scheduled > 0
	for ipv6, selector := range map[bool]*Selector{false: s.IPv4, true: s.IPv6} {
		if selector == nil || r.Destination.IsValid() && r.Destination.Addr().Is6() != ipv6 {
			continue
		}
		if served = true; most > selector.Radix && r.Scheduled == 0 {
			c.invalid(join(where, "nextHops"), fmt.Sprintf("a router has %d next hops, and "+
				"selectors of radix %d name %[2]d", most, selector.Radix),
				"raise the radix, at all sources and routers of the network")
		}
	}
	if !served {
		c.invalid(where, "no selector is there for its destination",
			`add "ipv4: {fields: source-port}" or ipv6 to subflows`)
	}
}
