package agent

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
)

// Neighbours that are the way of packets are asked, in turn if they are many; others never.
func TestSolicitationsInTurn(t *testing.T) {
	s := solicitor{gateways: map[neighbour]bool{}}
	sid := netip.MustParseAddr("fcbb:bb00:1::")
	var entries []netlink.Neigh
	add := func(a netip.Addr, state int) {
		entries = append(entries, netlink.Neigh{
			LinkIndex: 2, IP: a.AsSlice(), State: state, HardwareAddr: []byte{2, 0, 0, 0, 0, 1},
		})
	}
	for i := range 200 {
		a := netip.AddrFrom16([16]byte{0xfd, 15: byte(i)})
		s.gateways[neighbour{2, a}] = true
		add(a, netlink.NUD_STALE)
	}
	add(sid, netlink.NUD_REACHABLE)
	add(netip.MustParseAddr("fd00::aaaa"), netlink.NUD_REACHABLE) // nobody's way
	add(netip.AddrFrom16([16]byte{0xfd, 15: 250}), netlink.NUD_FAILED)
	asked := map[netip.Addr]int{}
	for range 4 {
		chosen := s.choose(entries, map[netip.Addr]bool{sid: true})
		if len(chosen) != solicitMost {
			t.Fatalf("%d are asked at a time", len(chosen))
		}
		for _, n := range chosen {
			asked[n.address]++
		}
	}
	if len(asked) != 201 || asked[sid] == 0 {
		t.Errorf("%d are asked, the SID %d times", len(asked), asked[sid])
	}
}
