package controller

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/agent/southbound"
	"sextant/te/reroute"
	"sextant/te/topology"
)

// A head-end that no controller gives weights spreads flows by its rules and routes again after so
// many leases: weights of long ago are worse than none.
const groupLeases = 4

// weightStep is by what part of all flows the share of a path must change, until head-ends are told
// new weights.
const weightStep = 1.0 / 64

// leastGroups bounds how often weights are sent: each time all of them are computed.
const leastGroups = time.Millisecond

// checkSpread returns what is wrong with prefixes, and with how flows to them are spread.
func (c *Config) checkSpread() error {
	at, some := map[netip.Prefix]string{}, false
	for i, r := range c.Routers {
		for j, p := range r.Prefixes {
			switch other, taken := at[p]; {
			case !p.IsValid() || p != p.Masked() || p.Addr().Is4In6():
				return fmt.Errorf("routers[%d].prefixes[%d]: %s is no prefix, or has bits behind "+
					"its length; write it like 2001:db8:1::/64", i, j, p)
			case taken:
				return fmt.Errorf("routers[%d].prefixes[%d]: %s is behind %s already", i, j, p,
					other)
			}
			at[p], some = r.Name, true
		}
	}
	switch p := c.Policy; {
	case p.Groups > 0 && !some:
		return fmt.Errorf("policy.groups %v: say which destinations are behind which "+
			"router, by routers[].prefixes", p.Groups)
	case p.Groups > 0 && p.Groups < leastGroups:
		return fmt.Errorf("policy.groups %v: write at least %v", p.Groups, leastGroups)
	case p.Flowlet > southbound.MaxFlowlet:
		return fmt.Errorf("policy.flowlet %v: write at most %v", p.Flowlet, southbound.MaxFlowlet)
	}
	return nil
}

// spreading is the groups of paths of which flows that begin choose at head-ends. It belongs to the
// event loop.
type spreading struct {
	prefixes map[topology.Node][]netip.Prefix // behind routers; none: flows are not spread
	heads    map[string]*spreadHead           // by router, of those that follow
}

// spreadHead is the groups of one head-end.
type spreadHead struct {
	to    []topology.Node
	paths []reroute.Group
	lists [][][]netip.Addr // segment lists of the paths
	told  []toldGroup
}

// toldGroup is what a head-end knows of a group.
type toldGroup struct {
	shares []float64 // of all flows, by path; -1: it is down. nil: none was sent
	at     time.Time
}

// takePrefixes notes which prefixes are behind which routers.
func (c *Controller) takePrefixes(config *Config) error {
	c.spreading = spreading{prefixes: map[topology.Node][]netip.Prefix{},
		heads: map[string]*spreadHead{}}
	if config.Policy.Groups == 0 {
		return nil
	}
	for i, r := range config.Routers {
		v, ok := c.graph.Lookup(r.Name)
		if !ok {
			return fmt.Errorf("routers[%d]: %s has no router %q", i, c.graph.Name(), r.Name)
		}
		if len(r.Prefixes) > 0 {
			c.spreading.prefixes[v] = r.Prefixes
		}
	}
	return nil
}

// spreadAnew makes the groups of all head-ends again: shortest paths have changed. Head-ends are
// told at once.
func (c *Controller) spreadAnew() {
	clear(c.spreading.heads)
	c.spread(time.Now())
}

// forgetSpread notes that nothing is known of what a head-end has.
func (c *Controller) forgetSpread(router string) { delete(c.spreading.heads, router) }

// spread tells head-ends the weights of their groups that have changed, or are about to end.
func (c *Controller) spread(now time.Time) {
	if len(c.spreading.prefixes) == 0 {
		return
	}
	for router, h := range c.gifts.heads {
		if h.session == nil || !h.followed || h.groups == 0 {
			continue
		}
		s := c.spreading.heads[router]
		if s == nil {
			var err error
			if s, err = c.newSpreadHead(router, h); err != nil {
				h.lastError = err.Error()
				continue
			}
			c.spreading.heads[router] = s
		}
		c.spreadAt(s, h, now)
	}
}

// newSpreadHead finds the groups of a head-end: of the paths that segment lists can hold flows to.
func (c *Controller) newSpreadHead(router string, h *head) (*spreadHead, error) {
	from, err := c.names.node(router)
	if err != nil {
		return nil, err
	}
	s := &spreadHead{}
	for to := range c.spreading.prefixes {
		if to != from {
			s.to = append(s.to, to)
		}
	}
	slices.Sort(s.to)
	for _, to := range s.to {
		group := c.decider.Group(from, to)
		var lists [][]netip.Addr
		group.Paths = slices.DeleteFunc(group.Paths, func(path []topology.Edge) bool {
			list, err := c.segments.of(path)
			if err != nil {
				h.refuses(err.Error())
				return true
			}
			lists = append(lists, list)
			return false
		})
		s.paths, s.lists = append(s.paths, group), append(s.lists, lists)
	}
	s.told = make([]toldGroup, len(s.paths))
	return s, nil
}

// spreadAt tells one head-end.
func (c *Controller) spreadAt(s *spreadHead, h *head, now time.Time) {
	c.decider.Weigh(s.paths, c.now())
	south := c.options.Config.Southbound
	hold := min(south.Hold, groupLeases*south.Lease)
	for i := range s.paths {
		shares := sharesOf(s.paths[i].Weights)
		told := &s.told[i]
		if told.shares != nil && now.Sub(told.at) < hold/2 && !differ(told.shares, shares) {
			continue
		}
		*told = toldGroup{shares, now}
		for _, prefix := range c.spreading.prefixes[s.to[i]] {
			h.session.setGroup(prefix, s.group(i, prefix, hold, c.options.Config.Policy.Flowlet))
		}
	}
}

// group is a group for a head-end; nil: none of its paths is up.
func (s *spreadHead) group(i int, prefix netip.Prefix, hold,
	flowlet time.Duration) *southbound.Group {
	g := &southbound.Group{Prefix: prefix, Hold: hold, Flowlet: flowlet}
	up := false
	for j, weight := range s.paths[i].Weights {
		g.Paths = append(g.Paths, southbound.WeighedPath{Segments: s.lists[i][j], Weight: weight})
		up = up || weight > 0
	}
	if !up {
		return nil
	}
	return g
}

// sharesOf are the parts of all flows that weights stand for, and -1 for paths that are down.
func sharesOf(weights []uint32) []float64 {
	sum := 0.0
	for _, w := range weights {
		sum += float64(w)
	}
	shares := make([]float64, len(weights))
	for i, w := range weights {
		if shares[i] = -1; w > 0 {
			shares[i] = float64(w) / sum
		}
	}
	return shares
}

func differ(a, b []float64) bool {
	for i := range a {
		if (a[i] < 0) != (b[i] < 0) || math.Abs(a[i]-b[i]) >= weightStep {
			return true
		}
	}
	return false
}

// groups lists what head-ends were told, by head-end and destination.
func (c *Controller) groups() []Group {
	list := []Group{}
	for router, s := range c.spreading.heads {
		for i, told := range s.told {
			g := Group{From: router, To: c.graph.Node(s.to[i]).Name,
				Prefixes: c.spreading.prefixes[s.to[i]], Paths: []GroupPath{}}
			for j, share := range told.shares {
				path := GroupPath{Path: c.names.routers(s.paths[i].Paths[j])}
				if share >= 0 {
					path.Share = &share
				}
				g.Paths = append(g.Paths, path)
			}
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return list
}

// heldGroups clears the groups of a head-end that another controller gave, to prefixes which this
// one does not.
func (c *Controller) heldGroups(s *session, prefixes []netip.Prefix) {
	own := map[netip.Prefix]bool{}
	for to, all := range c.spreading.prefixes {
		for _, prefix := range all {
			own[prefix] = c.graph.Node(to).Name != s.router
		}
	}
	for _, prefix := range prefixes {
		if !own[prefix] {
			s.setGroup(prefix, nil)
		}
	}
}

// groupsApplied notes what a head-end did with groups.
func (c *Controller) groupsApplied(s *session, refused map[netip.Prefix]string) {
	for prefix, reason := range refused {
		if h := c.gifts.heads[s.router]; h != nil {
			h.refused++
			h.lastError = fmt.Sprintf("group of %s: %s", prefix, reason)
		}
	}
}
