package rib_test

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/linux/rtnetlink"
	"sextant/routing/rib"
)

var vip = netip.MustParsePrefix("2001:db8:80::80/128")

func hop(n int) rtnetlink.Hop {
	return rtnetlink.Hop{Weight: 1, Mode: rtnetlink.Encap,
		Segments: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", n))}}
}

func hops(ids ...int) (list []rtnetlink.Hop) {
	for _, n := range ids {
		list = append(list, hop(n))
	}
	return list
}

func route(kind rtnetlink.Kind, edit ...func(*rtnetlink.Message)) rtnetlink.Message {
	m := rtnetlink.Message{Kind: kind, Route: rtnetlink.Route{Table: 10, Prefix: vip, Metric: 20}}
	for _, e := range edit {
		e(&m)
	}
	return m
}

func by(ids ...int) func(*rtnetlink.Message) {
	return func(m *rtnetlink.Message) { m.Route.Hops = hops(ids...) }
}
func byObject(id uint32) func(*rtnetlink.Message) {
	return func(m *rtnetlink.Message) { m.Route.NextHopID = id }
}
func metric(n uint32) func(*rtnetlink.Message) {
	return func(m *rtnetlink.Message) { m.Route.Metric = n }
}
func special(m *rtnetlink.Message) { m.Route.Special = true }
func plain(m *rtnetlink.Message)   { m.Route.Hops = []rtnetlink.Hop{{Weight: 1}} }
func inTable(n uint32) func(*rtnetlink.Message) {
	return func(m *rtnetlink.Message) { m.Route.Table = n }
}

func object(id uint32, n int) rtnetlink.Message {
	return rtnetlink.Message{Kind: rtnetlink.NewNextHop,
		NextHop: rtnetlink.NextHop{ID: id, Hop: hop(n)}}
}

func group(id uint32, buckets int, members ...uint32) rtnetlink.Message {
	m := rtnetlink.Message{Kind: rtnetlink.NewNextHop,
		NextHop: rtnetlink.NextHop{ID: id, Buckets: buckets}}
	for i, member := range members {
		m.NextHop.Group = append(m.NextHop.Group, rtnetlink.Leg{ID: member, Weight: i + 1})
	}
	return m
}

func dropped(id uint32) rtnetlink.Message {
	return rtnetlink.Message{Kind: rtnetlink.DelNextHop, NextHop: rtnetlink.NextHop{ID: id}}
}

const (
	add = rtnetlink.NewRoute
	del = rtnetlink.DelRoute
)

// What a batch of messages comes to, batch by batch.
func TestChanges(t *testing.T) {
	type batch = []rtnetlink.Message
	for name, test := range map[string]struct {
		batches []batch
		want    string // what each batch changed
	}{
		"several hops in any order": {[]batch{{route(add, by(2, 1))}, {route(add, by(1, 2))}},
			"1 2|"},
		"replaced by zebra": {[]batch{{route(add, by(1))},
			{route(del, by(1)), route(add, by(2))}}, "1|2"},
		"flap": {[]batch{{route(add, by(1))},
			{route(add, by(2)), route(del, by(2)), route(add, by(1))}}, "1|"},
		"withdrawn": {[]batch{{route(add, by(1))}, {route(del, by(1))}}, "1|none"},
		"withdrawn without a metric": {[]batch{{route(add, by(1))}, {route(del, metric(0))}},
			"1|none"},
		"the lower metric": {[]batch{{route(add, by(1)), route(add, by(2), metric(10))},
			{route(del, metric(10))}}, "2|1"},
		"the higher metric goes": {[]batch{{route(add, by(1)), route(add, by(2), metric(10))},
			{route(del, by(1))}, {route(del, metric(10))}}, "2||none"},
		"a hop leaves": {[]batch{{route(add, by(1, 2, 3))}, {route(del, by(2))}},
			"1 2 3|1 3"},
		"no SRv6": {[]batch{{route(add, by(1))}, {route(add, plain)}}, "1|none"},
		"blackhole": {[]batch{{route(add, by(1))}, {route(add, by(1), special)}},
			"1|none"},
		"other table": {[]batch{{route(add, by(1), inTable(11))}}, ""},
		"object": {[]batch{{object(1, 7), route(add, byObject(1))},
			{object(1, 8)}, {dropped(1)}}, "7|8|none"},
		"group": {[]batch{{object(1, 7), object(2, 8), group(9, 0, 1, 2),
			route(add, byObject(9))}}, "7 8 weight 2"},
		"member of a group changes": {[]batch{{object(1, 7), object(2, 8), group(9, 0, 1, 2),
			route(add, byObject(9))}, {object(1, 6)}, {dropped(2)}},
			"7 8 weight 2|6 8 weight 2|6"},
		"group replaced": {[]batch{{object(1, 7), object(2, 8), group(9, 0, 1, 2),
			route(add, byObject(9))}, {group(9, 0, 2)}}, "7 8 weight 2|8"},
		"the route comes first": {[]batch{{route(add, byObject(9))},
			{group(9, 0, 1), object(1, 7)}}, "|7"},
		"another object, same hops": {[]batch{{object(1, 7), object(2, 7), route(add, byObject(1))},
			{route(add, byObject(2)), dropped(1)}}, "7|"},
		"group of groups": {[]batch{{object(1, 7), group(8, 0, 1), group(9, 0, 8),
			route(add, byObject(9))}}, ""},
		"a plain hop in a group": {[]batch{{object(1, 7),
			{Kind: rtnetlink.NewNextHop, NextHop: rtnetlink.NextHop{ID: 2}}, group(9, 0, 1, 2),
			route(add, byObject(9))}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := rib.Model{Tables: func(table uint32) bool { return table == 10 }}
			var got []string
			for _, b := range test.batches {
				for _, message := range b {
					m.Apply(message)
				}
				got = append(got, text(m.Changes()))
			}
			if diff := cmp.Diff(test.want, strings.Join(got, "|")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func text(changes []rib.Change) string {
	var words []string
	for _, c := range changes {
		words = append(words, strings.NewReplacer("fcbb:bb00:", "", "::",
			"").Replace(c.Set.String()))
	}
	return strings.Join(words, "; ")
}

// A source that tells all anew changes only what is not the same any more.
func TestSweep(t *testing.T) {
	var m rib.Model
	for _, message := range []rtnetlink.Message{
		object(1, 7), object(2, 8), route(add, byObject(1)), route(add, byObject(2), inTable(11)),
		route(add, by(5), inTable(12)), route(add, by(6), metric(30)),
	} {
		m.Apply(message)
	}
	m.Changes()
	m.Restart()
	m.Apply(object(1, 7))
	m.Apply(route(add, byObject(1)))
	m.Apply(route(add, by(5), inTable(12)))
	if changes := m.Changes(); len(changes) > 0 {
		t.Errorf("before all was told, %v changed", changes)
	}
	m.Apply(route(add, by(5, 4), inTable(12))) // a next hop joins
	if changes := m.Changes(); text(changes) != "4 5" {
		t.Errorf("%v changed, want that a next hop joined", changes)
	}
	m.Apply(route(add, by(5), inTable(12)))
	if changes := m.Changes(); len(changes) > 0 {
		t.Errorf("before all was told, %v changed", changes)
	}
	m.Apply(route(add, by(5, 4), inTable(12)))
	m.Sweep()
	changes := m.Changes()
	if len(changes) != 1 || changes[0].Table != 11 || changes[0].Set != (rib.Set{}) {
		t.Errorf("%v changed, want only that the route of table 11 is gone", changes)
	}
	if m.Len() != 2 || m.Size() != 3 {
		t.Errorf("%d routes and %d things are known, want 2 and 3", m.Len(), m.Size())
	}
}

// The changes, one after the other, always come to what a model says that took all messages at
// once.
func TestChangesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inBatches rib.Model
		var all []rtnetlink.Message
		state := map[rib.Destination]rib.Set{}
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			for range rapid.IntRange(0, 8).Draw(t, "messages") {
				m := drawMessage(t)
				all = append(all, m)
				inBatches.Apply(m)
			}
			for _, c := range inBatches.Changes() {
				if state[c.Destination] == c.Set {
					t.Fatalf("%v is no change", c)
				}
				if state[c.Destination] = c.Set; c.Set == (rib.Set{}) {
					delete(state, c.Destination)
				}
			}
		}
		var atOnce rib.Model
		for _, m := range all {
			atOnce.Apply(m)
		}
		want := map[rib.Destination]rib.Set{}
		for _, c := range atOnce.Changes() {
			want[c.Destination] = c.Set
		}
		if !maps.Equal(want, state) {
			t.Fatalf("the changes come to %v, want %v", state, want)
		}
	})
}

func drawMessage(t *rapid.T) rtnetlink.Message {
	id := func() uint32 { return rapid.Uint32Range(1, 3).Draw(t, "id") }
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return object(id(), rapid.IntRange(1, 3).Draw(t, "hop"))
	case 1:
		return group(id()+3, 0, rapid.SliceOfNDistinct(rapid.Uint32Range(1, 3), 1, 3,
			rapid.ID[uint32]).Draw(t, "members")...)
	case 2:
		return dropped(rapid.Uint32Range(1, 6).Draw(t, "gone"))
	case 3:
		return route(del, by(rapid.SliceOfNDistinct(rapid.IntRange(1, 3), 0, 2,
			rapid.ID[int]).Draw(t, "hops")...), metric(rapid.Uint32Range(0, 2).Draw(t, "metric")))
	case 4:
		return route(add, byObject(rapid.Uint32Range(1, 6).Draw(t, "object")),
			metric(rapid.Uint32Range(0, 2).Draw(t, "metric")))
	}
	m := route(add, by(rapid.SliceOfNDistinct(rapid.IntRange(1, 3), 1, 3, rapid.ID[int]).Draw(t,
		"hops")...), metric(rapid.Uint32Range(0, 2).Draw(t, "metric")))
	return m
}

// A hop that leaves a set with buckets moves its own buckets and no others; shares are near the
// weights.
func TestDraw(t *testing.T) {
	list := hops(1, 2, 3, 4)
	list[3].Weight = 3
	all, _ := rib.NewSet(list, 960)
	fewer, _ := rib.NewSet(append(hops(1, 3), list[3]), 960)
	before, after := all.Draw().Hops(), fewer.Draw().Hops()
	if len(before) != 960 || len(after) != 960 {
		t.Fatalf("%d and %d buckets, want 960", len(before), len(after))
	}
	left := rib.HopText(hop(2))
	for i := range before {
		if was, is := rib.HopText(before[i]), rib.HopText(after[i]); was != is && was != left {
			t.Errorf("bucket %d moved from %s to %s", i, was, is)
		}
	}
	shares := map[string]int{}
	for _, h := range all.Draw().Members() {
		shares[h.Segments[0].String()] = h.Weight
	}
	for n, want := range map[int]int{1: 160, 2: 160, 3: 160, 4: 480} {
		got := shares[hop(n).Segments[0].String()]
		if got < want*3/4 || got > want*5/4 {
			t.Errorf("hop %d has %d buckets, want about %d", n, got, want)
		}
	}
	if again := rib.Drawn(before); again != all.Draw() {
		t.Error("a set made of its buckets is another one")
	}
	if small, _ := rib.NewSet(hops(1), 0); small.Draw() != small ||
		small.WithBuckets(8).Draw().Buckets() != 8 || (rib.Set{}).Draw() != (rib.Set{}) {
		t.Error("sets without buckets, with one hop or without hops are not what they were")
	}
}
