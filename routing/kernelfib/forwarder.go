package kernelfib

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
	"sextant/routing/rib"
	"sextant/routing/shadowvrf"
)

// What is ours in the kernel's tables is known by these.
const (
	protocol  = 0x5f       // of routes, next hops and rules
	firstID   = 0x53000000 // of next hops; 24 bits are ours
	lastID    = 0x53ffffff
	metricOf6 = 1024 // what the kernel gives to routes of IPv6 that name none
)

// Forwarder writes routes by which the kernel forwards. Routes with the same next hops share one
// group of next hop objects, so that a change of many routes is a short message for each. It is for
// one goroutine at a time.
type Forwarder struct {
	socket *socket
	hops   map[hop]uint32 // ids of next hops
	groups map[rib.Set]group
	used   map[uint32]bool // ids that are there
	locals map[uint32]bool // ids of those that decapsulate and are in use
	next   uint32
}

// hop is a next hop object. A group names none twice, so that a hop with several legs has several
// objects.
type hop struct {
	to      rib.Set // of one hop, of weight 1
	ordinal int
}

// group is the next hop object of a set.
type group struct {
	id   uint32
	legs []rtnetlink.Leg
}

// OpenForwarder takes up what an earlier one left.
func OpenForwarder() (*Forwarder, error) {
	s, err := openSocket()
	if err != nil {
		return nil, err
	}
	f := &Forwarder{
		socket: s, hops: map[hop]uint32{}, groups: map[rib.Set]group{}, used: map[uint32]bool{},
		locals: map[uint32]bool{}, next: firstID,
	}
	if err := f.adopt(); err != nil {
		s.close()
		return nil, fmt.Errorf("read next hops: %w; this needs Linux 5.3 or newer", err)
	}
	return f, nil
}

// Close lets go; what was written stays.
func (f *Forwarder) Close() { f.socket.close() }

// adopt reads the next hops that are ours.
func (f *Forwarder) adopt() error {
	objects := map[uint32]rtnetlink.NextHop{}
	var decoder rtnetlink.Decoder
	err := f.socket.dump(f.socket.nextHops(), func(h rtnetlink.Header, body []byte) error {
		m, ok, err := decoder.Decode(h, body)
		if n := m.NextHop; err == nil && ok && n.Protocol == protocol && n.ID >= firstID &&
			n.ID <= lastID {
			objects[n.ID] = n
			f.used[n.ID] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for id, n := range objects {
		if len(n.Group) > 0 {
			f.adoptGroup(id, n, objects)
		}
	}
	return nil
}

// adoptGroup knows a group again. One that is not as it would be made now is removed when no route
// has it.
func (f *Forwarder) adoptGroup(id uint32, n rtnetlink.NextHop,
	objects map[uint32]rtnetlink.NextHop) {
	legs := make([]rtnetlink.Hop, len(n.Group))
	for i, leg := range n.Group {
		legs[i] = objects[leg.ID].Hop
		legs[i].Weight = leg.Weight
	}
	set, ok := rib.NewSet(legs, 0)
	if !ok {
		return
	}
	if !slices.EqualFunc(set.Hops(), legs, func(a, b rtnetlink.Hop) bool {
		return rib.HopText(a) == rib.HopText(b) && a.Mode == b.Mode
	}) {
		set = rib.Drawn(legs)
	}
	f.groups[set] = group{id, n.Group}
	for i, h := range keys(legs) {
		if _, there := f.hops[h]; !there {
			f.hops[h] = n.Group[i].ID
		}
	}
}

// keys are the next hop objects of a group.
func keys(legs []rtnetlink.Hop) []hop {
	list, seen := make([]hop, len(legs)), map[rib.Set]int{}
	for i, leg := range legs {
		leg.Weight = 1
		one, _ := rib.NewSet([]rtnetlink.Hop{leg}, 0)
		list[i] = hop{one, seen[one]}
		seen[one]++
	}
	return list
}

// Read lists the routes of a table that are ours. Of those whose next hops are not known again the
// set is the zero value.
func (f *Forwarder) Read(table uint32) (map[netip.Prefix]rib.Set, error) {
	sets := map[uint32]rib.Set{}
	for set, g := range f.groups {
		sets[g.id] = set
	}
	routes := map[netip.Prefix]rib.Set{}
	var decoder rtnetlink.Decoder
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		err := f.socket.dump(f.socket.routesOf(family, table),
			func(h rtnetlink.Header, body []byte) error {
				m, ok, err := decoder.Decode(h, body)
				if r := m.Route; err == nil && ok && r.Protocol == protocol && r.Table == table {
					routes[r.Prefix] = sets[r.NextHopID]
				}
				return err
			})
		if err != nil {
			return nil, fmt.Errorf("read table %d: %w", table, err)
		}
	}
	return routes, nil
}

// Apply writes operations into the tables, each of which replaces what was there in one step, in
// their order. It returns what became of those that failed, by their place in the list.
func (f *Forwarder) Apply(original, shadowed uint32,
	ops []shadowvrf.Op) (failed map[int]error, err error) {
	if err := f.makeGroups(ops); err != nil {
		return nil, err
	}
	b := f.socket.batch()
	tables := [...]uint32{shadowvrf.Original: original, shadowvrf.Shadow: shadowed}
	for _, op := range ops {
		r := rtnetlink.Route{Table: tables[op.Which], Prefix: op.Prefix, Protocol: protocol}
		if op.Prefix.Addr().Is6() {
			r.Metric = metricOf6
		}
		kind, flags := rtnetlink.DelRoute, uint16(0)
		if op.Set != (rib.Set{}) {
			kind, flags, r.NextHopID = rtnetlink.NewRoute, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
				f.groups[op.Set].id
		}
		if err := b.message(rtnetlink.Message{Kind: kind, Route: r}, flags); err != nil {
			return nil, err
		}
	}
	if err := b.flush(); err != nil {
		return nil, err
	}
	for i, err := range b.failed {
		if ops[i].Set == (rib.Set{}) && errors.Is(err, unix.ESRCH) {
			delete(b.failed, i) // it is not there
		}
	}
	return b.failed, nil
}

// makeGroups makes the groups of next hops that operations name and the kernel lacks: first the
// hops, then the groups.
func (f *Forwarder) makeGroups(ops []shadowvrf.Op) error {
	missing := map[rib.Set]bool{}
	for _, op := range ops {
		if _, there := f.groups[op.Set]; !there && op.Set != (rib.Set{}) {
			missing[op.Set] = true
		}
	}
	var hops, groups []rtnetlink.NextHop
	made, ids := map[uint32]hop{}, map[uint32]rib.Set{}
	for set := range missing {
		legs := set.Hops()
		group := rtnetlink.NextHop{Protocol: protocol}
		for i, key := range keys(legs) {
			id, there := f.hops[key]
			if !there {
				id = f.free()
				f.hops[key], made[id] = id, key
				hops = append(hops, rtnetlink.NextHop{ID: id, Protocol: protocol,
					Hop: key.to.Hops()[0]})
			}
			group.Group = append(group.Group, rtnetlink.Leg{ID: id, Weight: legs[i].Weight})
		}
		group.ID = f.free()
		ids[group.ID] = set
		groups = append(groups, group)
	}
	if err := f.create(hops, func(id uint32) { delete(f.hops, made[id]) }); err != nil {
		return fmt.Errorf("make next hops: %w", err)
	}
	for _, g := range groups {
		f.groups[ids[g.ID]] = group{g.ID, g.Group}
	}
	if err := f.create(groups, func(id uint32) { delete(f.groups, ids[id]) }); err != nil {
		return fmt.Errorf("make groups of next hops: %w", err)
	}
	return nil
}

// create makes next hops, and calls failed with those that were refused.
func (f *Forwarder) create(list []rtnetlink.NextHop, failed func(id uint32)) error {
	b := f.socket.batch()
	var problem error
	for _, n := range list {
		if err := b.message(rtnetlink.Message{Kind: rtnetlink.NewNextHop, NextHop: n},
			unix.NLM_F_CREATE|unix.NLM_F_REPLACE); err != nil {
			problem = err
		}
	}
	if err := b.flush(); err != nil {
		problem = err
	}
	if problem != nil {
		for _, n := range list {
			failed(n.ID)
		}
		return problem
	}
	for i, err := range b.failed {
		problem = err
		failed(list[i].ID)
		delete(f.used, list[i].ID)
	}
	return problem
}

// free is an id that nothing has.
func (f *Forwarder) free() uint32 {
	for f.used[f.next] {
		if f.next++; f.next > lastID {
			f.next = firstID
		}
	}
	f.used[f.next] = true
	return f.next
}

// Collect removes the next hops of sets other than those in use.
func (f *Forwarder) Collect(inUse map[rib.Set]bool) error {
	keep := map[uint32]bool{}
	for id := range f.locals {
		keep[id] = true
	}
	for set, g := range f.groups {
		if !inUse[set] {
			delete(f.groups, set)
			continue
		}
		keep[g.id] = true
		for _, leg := range g.legs {
			keep[leg.ID] = true
		}
	}
	for key, id := range f.hops {
		if !keep[id] {
			delete(f.hops, key)
		}
	}
	b := f.socket.batch()
	var ids []uint32
	for id := range f.used {
		if keep[id] {
			continue
		}
		ids = append(ids, id)
		if err := b.message(rtnetlink.Message{Kind: rtnetlink.DelNextHop,
			NextHop: rtnetlink.NextHop{ID: id}}, 0); err != nil {
			return err
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	for i, id := range ids {
		if err := b.failed[i]; err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove next hop %d: %w", id, err)
		}
		delete(f.used, id)
	}
	return nil
}

// Clear removes our routes from a table.
func (f *Forwarder) Clear(table uint32) error {
	routes, err := f.Read(table)
	if err != nil {
		return err
	}
	var ops []shadowvrf.Op
	for prefix := range routes {
		ops = append(ops, shadowvrf.Op{Prefix: prefix})
	}
	failed, err := f.Apply(table, table, ops)
	for _, refused := range failed {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("clear table %d: %w", table, err)
	}
	return nil
}
