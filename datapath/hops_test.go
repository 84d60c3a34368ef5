package datapath

import (
	"fmt"
	"net/netip"
	"testing"

	"sextant/te/srpolicy"
)

// tableOf is a table of which each rule has one list, to a first segment.
func tableOf(t *testing.T, firsts ...int) (table srpolicy.Table, addresses []netip.Addr) {
	t.Helper()
	var rules []srpolicy.Rule
	var policies []srpolicy.Policy
	for i, first := range firsts {
		address := netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", first))
		name := fmt.Sprint("p", i)
		rules = append(rules, srpolicy.Rule{Policy: name})
		policies = append(policies, srpolicy.Policy{Name: name, Index: uint32(i),
			Paths: []srpolicy.CandidatePath{{
				Action: srpolicy.Path, Lists: []srpolicy.List{{Name: "a",
					Segments: []netip.Addr{address}}},
			}}})
		addresses = append(addresses, address)
	}
	table, err := srpolicy.Compile(rules, policies, srpolicy.Source{Addr: netip.IPv6Loopback(),
		HopLimit: 64}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table, addresses
}

// However often tables change, numbers stay low: those of segments that are gone are given again,
// once none of the table in use has them, and then it is said that next hops are to be forgotten.
func TestHopNumbers(t *testing.T) {
	h := hopNumbers{of: map[netip.Addr]uint16{}}
	before := map[netip.Addr]uint16{}
	for turn := range 1000 {
		table, addresses := tableOf(t, turn+1, turn+2, turn+3, turn+3)
		if again := h.give(table); again != (turn >= 2) {
			t.Fatalf("turn %d: again %v", turn, again)
		}
		seen := map[uint16]netip.Addr{}
		for address, number := range h.of {
			if other, taken := seen[number]; taken || number == 0 || number > 5 {
				t.Fatalf("turn %d: number %d for %s and %s", turn, number, address, other)
			}
			seen[number] = address
		}
		for _, address := range addresses {
			if number, known := before[address]; known && h.of[address] != number {
				t.Fatalf("turn %d: %s had number %d, now %d", turn, address, number, h.of[address])
			}
		}
		h.keep(table)
		before = h.of
		if len(h.of) != 3 {
			t.Fatalf("turn %d: %d numbers are kept", turn, len(h.of))
		}
	}
}
