package model

import (
	"net/netip"
	"time"

	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// Group is weighted segment lists of which flows to a prefix that begin choose.
type Group struct {
	Prefix  netip.Prefix
	Lists   []srpolicy.Header
	Weights []uint32 // 0: it is down
	Flowlet time.Duration
}

// choice is what a flow has chosen.
type choice struct {
	last time.Duration
	turn uint16
	list int
}

const groupTurn = 0xd1342543de82ef95

// SetGroup gives a prefix a group, or another one. Flows know their list by its place in it.
func (h *Headend) SetGroup(g Group) {
	if h.groups == nil {
		h.groups, h.choices = map[netip.Prefix]*Group{}, map[flow.Tuple]choice{}
	}
	h.groups[g.Prefix] = &g
}

// RemoveGroup leaves flows to a prefix to shorter ones and to the table.
func (h *Headend) RemoveGroup(prefix netip.Prefix) { delete(h.groups, prefix) }

// groupOf is the group of the longest prefix that contains an address.
func (h *Headend) groupOf(dst netip.Addr) (best *Group) {
	for prefix, g := range h.groups {
		if prefix.Contains(dst) && (best == nil || prefix.Bits() > best.Prefix.Bits()) {
			best = g
		}
	}
	return best
}

// choose is the list of a packet's flow: the one that it has, or another one.
func (h *Headend) choose(g *Group, p *packet, t flow.Tuple) srpolicy.Header {
	now := time.Duration(0)
	if g.Flowlet > 0 {
		now = h.Clock()
	}
	fresh := choice{last: now}
	if known, ok := h.choices[t]; ok {
		pauses := g.Flowlet > 0 && known.last > 0 && now-known.last > g.Flowlet
		if known.list < len(g.Lists) && g.Weights[known.list] > 0 && !pauses {
			if g.Flowlet > 0 {
				known.last = now
				h.choices[t] = known
			}
			return g.Lists[known.list]
		}
		fresh.turn = known.turn + 1
	}
	goesOut := func(list int) uint64 { return h.GoesOut[g.Lists[list].Destination()] }
	hash := h.FlowHash.Hash(h.Secret, t) + uint64(fresh.turn)*groupTurn
	fresh.list = srpolicy.Choose(srpolicy.Shares(g.Weights), hash, goesOut)
	if p.transport.flags&(tcpFlagSYN|tcpFlagRST) == 0 {
		h.choices[t] = fresh
	}
	return g.Lists[fresh.list]
}
