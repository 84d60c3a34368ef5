package rib

import (
	"net/netip"

	"sextant/linux/rtnetlink"
)

// Destination is a prefix in a table.
type Destination struct {
	Table  uint32
	Prefix netip.Prefix
}

// Model is what a source has sent. The zero value has no routes. It is not for several goroutines
// at once.
type Model struct {
	Tables func(uint32) bool // which tables count; nil: all

	routes   map[Destination]route
	nextHops map[uint32]nextHop
	sets     map[*rtnetlink.Hop]Set // of lists of hops that a decoder shares, by their first one
	resolved map[uint32]Set         // of next hops
	told     map[Destination]Set    // what Changes said last
	changed  map[Destination]bool
	stale    map[uint32]bool // next hops that changed under routes
	settling bool            // the source has begun to tell all anew, and has not told all yet
	round    uint32
}

// route is the variants of a destination, by metric; nearly always there is one.
type route struct {
	variant
	more []variant
}

type variant struct {
	metric, nextHop, round uint32
	hops                   []rtnetlink.Hop // if there is no next hop object; shared
	special                bool
	none                   bool // it was the last, and went
}

type nextHop struct {
	rtnetlink.NextHop
	round uint32
}

// maxSets bounds what is remembered to save time.
const maxSets = 1 << 14

// Apply takes in a message.
func (m *Model) Apply(message rtnetlink.Message) {
	m.begin()
	switch message.Kind {
	case rtnetlink.NewNextHop:
		m.nextHops[message.NextHop.ID] = nextHop{message.NextHop, m.round}
		m.stale[message.NextHop.ID] = true
	case rtnetlink.DelNextHop:
		delete(m.nextHops, message.NextHop.ID)
		m.stale[message.NextHop.ID] = true
	case rtnetlink.NewRoute, rtnetlink.DelRoute:
		r := message.Route
		to := Destination{r.Table, r.Prefix}
		if m.Tables != nil && !m.Tables(r.Table) {
			return
		}
		if m.changed[to] = true; message.Kind == rtnetlink.NewRoute {
			m.add(to, r)
		} else {
			m.remove(to, r)
		}
	}
}

func (m *Model) begin() {
	if m.routes == nil {
		m.routes, m.nextHops, m.told = map[Destination]route{}, map[uint32]nextHop{},
			map[Destination]Set{}
		m.changed, m.stale, m.resolved = map[Destination]bool{}, map[uint32]bool{}, map[uint32]Set{}
	}
}

func (m *Model) add(to Destination, r rtnetlink.Route) {
	next := variant{metric: r.Metric, nextHop: r.NextHopID, round: m.round, hops: r.Hops,
		special: r.Special}
	here, there := m.routes[to]
	if !there {
		m.routes[to] = route{variant: next}
		return
	}
	if old := here.find(r.Metric); old != nil {
		*old = next
	} else {
		here.more = append(here.more, next)
	}
	m.routes[to] = here
}

func (r *route) find(metric uint32) *variant {
	if r.metric == metric {
		return &r.variant
	}
	for i := range r.more {
		if r.more[i].metric == metric {
			return &r.more[i]
		}
	}
	return nil
}

// remove takes a variant away. Where it has several hops and the message names some of them, these
// alone go.
func (m *Model) remove(to Destination, r rtnetlink.Route) {
	here, there := m.routes[to]
	if !there {
		return
	}
	old := here.find(r.Metric)
	if old == nil && r.Metric == 0 { // zebra does not always say which
		old = &here.variant
	}
	if old == nil {
		return
	}
	if rest := without(old.hops, r.Hops); r.NextHopID == 0 && len(rest) > 0 &&
		len(rest) < len(old.hops) {
		old.hops = rest
		m.routes[to] = here
		return
	}
	if here.dropVariant(old); here.none {
		delete(m.routes, to)
		return
	}
	m.routes[to] = here
}

func (r *route) dropVariant(v *variant) {
	last := len(r.more) - 1
	switch {
	case v == &r.variant && last < 0:
		r.variant = variant{none: true}
		return
	case v == &r.variant:
		r.variant = r.more[last]
	default:
		*v = r.more[last]
	}
	r.more = r.more[:last]
}

func without(hops, others []rtnetlink.Hop) (rest []rtnetlink.Hop) {
	remove := map[string]int{}
	for _, h := range others {
		remove[textOf(h)]++
	}
	for _, h := range hops {
		if text := textOf(h); remove[text] > 0 {
			remove[text]--
			continue
		}
		rest = append(rest, h)
	}
	return rest
}

// Restart says that the source tells all it knows anew. Until Sweep no route is gone, and none
// loses a next hop: routing software that starts learns next hops one after the other.
func (m *Model) Restart() {
	m.round++
	m.settling = true
}

// Sweep forgets what the source has not told since Restart.
func (m *Model) Sweep() {
	m.begin()
	m.settling = false
	for to, r := range m.routes {
		for i := len(r.more) - 1; i >= 0; i-- {
			if r.more[i].round != m.round {
				r.dropVariant(&r.more[i])
				m.changed[to] = true
			}
		}
		if r.round != m.round {
			r.dropVariant(&r.variant)
			m.changed[to] = true
		}
		if r.none {
			delete(m.routes, to)
			continue
		}
		m.routes[to] = r
	}
	for id, n := range m.nextHops {
		if n.round != m.round {
			delete(m.nextHops, id)
			m.stale[id] = true
		}
	}
}

// Size is how many routes and next hops are remembered.
func (m *Model) Size() int { return len(m.routes) + len(m.nextHops) }

// Len is how many routes are known, of the tables that count.
func (m *Model) Len() int { return len(m.routes) }

// Change is what became of a destination.
type Change struct {
	Destination
	Set Set // the zero value: there is no route over SRv6
}

// Changes says what differs from what it said last. Whatever came and went in between is not in it.
// The order is that of a map.
func (m *Model) Changes() (list []Change) {
	m.begin()
	if len(m.stale) > 0 {
		m.spread()
	}
	for to := range m.changed {
		set := m.best(to)
		if m.settling && !set.covers(m.told[to]) {
			continue // it may be told still
		}
		if delete(m.changed, to); set == m.told[to] {
			continue
		}
		if list = append(list, Change{to, set}); set == (Set{}) {
			delete(m.told, to)
			continue
		}
		m.told[to] = set
	}
	return list
}

// spread marks the routes whose next hops changed.
func (m *Model) spread() {
	clear(m.resolved)
	for id, n := range m.nextHops {
		for _, leg := range n.Group {
			if m.stale[leg.ID] {
				m.stale[id] = true
				break
			}
		}
	}
	for to, r := range m.routes {
		touched := m.stale[r.nextHop] && r.nextHop != 0
		for _, v := range r.more {
			touched = touched || m.stale[v.nextHop] && v.nextHop != 0
		}
		if touched {
			m.changed[to] = true
		}
	}
	clear(m.stale)
}

// best is the set of the variant with the lowest metric.
func (m *Model) best(to Destination) Set {
	here, there := m.routes[to]
	if !there {
		return Set{}
	}
	v := here.variant
	for _, other := range here.more {
		if other.metric < v.metric {
			v = other
		}
	}
	switch {
	case v.special:
		return Set{}
	case v.nextHop != 0:
		return m.resolve(v.nextHop)
	case len(v.hops) == 0:
		return Set{}
	}
	return m.known(&v.hops[0], func() Set { s, _ := NewSet(v.hops, 0); return s })
}

// known remembers what a list of hops that is shared came to.
func (m *Model) known(first *rtnetlink.Hop, make func() Set) Set {
	if s, there := m.sets[first]; there {
		return s
	}
	if m.sets == nil || len(m.sets) >= maxSets {
		m.sets = map[*rtnetlink.Hop]Set{}
	}
	s := make()
	m.sets[first] = s
	return s
}

// resolve is the set that a next hop object stands for. Groups hold no groups.
func (m *Model) resolve(id uint32) Set {
	if s, there := m.resolved[id]; there {
		return s
	}
	n, there := m.nextHops[id]
	if !there {
		return Set{}
	}
	hops := []rtnetlink.Hop{n.Hop}
	if len(n.Group) > 0 {
		hops = make([]rtnetlink.Hop, 0, len(n.Group))
	}
	for _, leg := range n.Group {
		member, there := m.nextHops[leg.ID]
		if !there || len(member.Group) > 0 {
			continue // a hop that is away, as one whose link is down
		}
		hop := member.Hop
		hop.Weight = leg.Weight
		hops = append(hops, hop)
	}
	s, _ := NewSet(hops, n.Buckets)
	m.resolved[id] = s
	return s
}
