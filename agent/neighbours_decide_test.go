package agent

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
)

// Who was asked and has not answered is forgotten; who is probed by the kernel alone, or was
// written by somebody, is left alone.
func TestConfirmerDecides(t *testing.T) {
	at := func(i byte) neighbour {
		return neighbour{2, netip.AddrFrom16([16]byte{0: 0xfd, 15: i})}
	}
	c := confirmer{}
	ask, forget := c.decide(map[neighbour]int{
		at(1): netlink.NUD_STALE, at(2): netlink.NUD_REACHABLE, at(3): netlink.NUD_PROBE,
		at(4): netlink.NUD_PERMANENT, at(5): netlink.NUD_NOARP, at(6): netlink.NUD_INCOMPLETE,
	})
	if len(ask) != 2 || ask[0] != at(1) || ask[1] != at(2) || forget != nil {
		t.Fatalf("asks %v, forgets %v", ask, forget)
	}
	_, forget = c.decide(map[neighbour]int{at(1): netlink.NUD_PROBE, at(3): netlink.NUD_PROBE})
	if len(forget) != 1 || forget[0] != at(1) {
		t.Fatalf("forgets %v", forget)
	}
}

// A round is bounded, and as many rounds as it takes come to all.
func TestConfirmerComesToAll(t *testing.T) {
	states := map[neighbour]int{}
	for i := range 200 {
		states[neighbour{2, netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(i)})}] = netlink.NUD_STALE
	}
	c, seen := confirmer{}, map[neighbour]int{}
	for range 4 {
		ask, _ := c.decide(states)
		if len(ask) != neighboursPerRound {
			t.Fatalf("a round of %d", len(ask))
		}
		for _, n := range ask {
			seen[n]++
		}
	}
	if len(seen) != len(states) {
		t.Errorf("four rounds came to %d of %d", len(seen), len(states))
	}
}
