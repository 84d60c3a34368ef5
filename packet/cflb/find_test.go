package cflb

import (
	"net/netip"
	"testing"
)

// What is found takes the path by the decoding of each router, keeps what it was given, and is what
// the caller can use; a path of too many choices, or with an index that none has, is not found.
func TestFind(t *testing.T) {
	for _, fields := range []Fields{SourcePort, FlowLabel, BothPorts, FlowLabelSourcePort,
		FlowLabelBothPorts} {
		c, err := New(Defaults(fields, 4, [KeyLength]byte{1}))
		if err != nil {
			t.Fatal(err)
		}
		p := Packet{Src: netip.MustParseAddr("2001:db8::1"),
			Dst: netip.MustParseAddr("2001:db8::2"), Protocol: 6,
			HasPorts: true, SrcPort: 40000, DstPort: 443}
		path := []Hop{{64, 3}, {63, 0}, {61, 2}}
		used := map[Packet]bool{}
		for first := range uint32(8) {
			found, ok := c.Find(p, path, first*0x9e3779b9, func(p Packet) bool {
				return !used[p] && p.SrcPort >= 1024
			})
			if !ok || used[found] || found.SrcPort < 1024 || found.DstPort != 443 ||
				fields.HasLabel() && found.SrcPort != 40000 {
				t.Fatalf("%s: found %+v, %v", fields, found, ok)
			}
			used[found] = true
			group, err := c.NewGroup([]uint32{1, 1, 1, 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, hop := range path {
				found.HopLimit = hop.HopLimit
				if next, choice := c.NextHop(found, 9, group); next != hop.Index ||
					choice != Controlled {
					t.Errorf("%s: at %d the next hop is %d, %s", fields, hop.HopLimit, next, choice)
				}
			}
		}
		if found, ok := c.Find(p, []Hop{{64, 4}}, 0, func(Packet) bool { return true }); ok {
			t.Errorf("%s: index 4 of 4: %+v", fields, found)
		}
	}
	c, err := New(Defaults(FlowLabel, 2, [KeyLength]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	p := Packet{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")}
	if _, ok := c.Find(p, nil, 0, func(Packet) bool { return true }); ok {
		t.Error("an IPv4 packet has a flow label")
	}
}
