package agent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighboursPerRound bounds how many neighbours are confirmed each time, once a second: as many
// solicitations leave.
const neighboursPerRound = 64

// confirmer keeps the addresses of IPv6 neighbours true. Programs send without the kernel, which
// therefore never finds out whether a neighbour still has the address it is sent to.
type confirmer struct {
	asked map[neighbour]bool // in the round before
	last  neighbour          // where the next round goes on
}

// neighbour names an entry of the kernel's table.
type neighbour struct {
	link    int
	address netip.Addr
}

func (n neighbour) compare(m neighbour) int {
	return cmp.Or(cmp.Compare(n.link, m.link), n.address.Compare(m.address))
}

// decide says what is to be done about the entries of a table, given by their states: whom to ask
// whether it is still there, and whom to forget, as it was asked and has not answered: the kernel
// then looks for it anew. Neither is anybody whom an operator or a protocol has written.
func (c *confirmer) decide(states map[neighbour]int) (ask, forget []neighbour) {
	for n, state := range states {
		switch {
		case state == netlink.NUD_PROBE && c.asked[n]:
			forget = append(forget, n)
		case state == netlink.NUD_STALE, state == netlink.NUD_REACHABLE:
			ask = append(ask, n)
		}
	}
	slices.SortFunc(forget, neighbour.compare)
	slices.SortFunc(ask, neighbour.compare)
	after, found := slices.BinarySearchFunc(ask, c.last, neighbour.compare)
	if found {
		after++
	}
	ask = append(slices.Clone(ask[after:]), ask[:after]...)
	ask = ask[:min(len(ask), neighboursPerRound)]
	c.asked = map[neighbour]bool{}
	for _, n := range ask {
		c.asked[n], c.last = true, n
	}
	return ask, forget
}

// confirmNeighbours does a round.
func (a *Agent) confirmNeighbours() {
	if a.edge == nil && a.host == nil && a.headend == nil {
		return
	}
	entries, err := netlink.NeighList(0, unix.AF_INET6)
	if err != nil {
		a.options.Log.Warn("neighbours are not confirmed in this second", "error", err)
		return
	}
	states, known := map[neighbour]int{}, map[neighbour]netlink.Neigh{}
	for _, e := range entries {
		address, ok := netip.AddrFromSlice(e.IP)
		if !ok || address.IsMulticast() || e.Flags&(netlink.NTF_PROXY|netlink.NTF_EXT_LEARNED) != 0 {
			continue
		}
		n := neighbour{e.LinkIndex, address}
		states[n], known[n] = e.State, e
	}
	ask, forget := a.confirms.decide(states)
	for _, n := range forget {
		e := known[n]
		a.noteUnconfirmed("forget", n, netlink.NeighDel(&e))
	}
	for _, n := range ask {
		// Without an address: what the kernel has learnt meanwhile stays.
		a.noteUnconfirmed("probe", n, netlink.NeighSet(&netlink.Neigh{
			LinkIndex: n.link, Family: unix.AF_INET6, IP: n.address.AsSlice(),
			State: netlink.NUD_PROBE, Flags: known[n].Flags,
		}))
	}
}

func (a *Agent) noteUnconfirmed(act string, n neighbour, err error) {
	if err != nil {
		a.options.Log.Debug("a neighbour is not confirmed", "error",
			fmt.Errorf("%s neighbour %s on interface %d: %w", act, n.address, n.link, err))
	}
}
