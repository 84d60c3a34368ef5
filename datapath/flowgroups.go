package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/te/srpolicy"
)

// FlowGroups is how many prefixes of a head-end can have groups, and GroupLists how many lists a
// group can have.
const (
	FlowGroups = 1024
	GroupLists = 16
)

var _ [GroupLists]uint32 = flowGroup{}.List

// ErrNoFlowGroups says that a head-end was opened without groups.
var ErrNoFlowGroups = errors.New("flows that begin choose of no group here; " +
	"have them remember what they chose, with headend.spread")

// Group is weighted segment lists to a prefix: a flow that begins takes one of them, and keeps it.
type Group struct {
	Prefix  netip.Prefix
	Lists   []srpolicy.Header
	Weights []uint32 // of each list; 0: it is down
	// Flowlet is the pause after which a flow chooses again; 0: it keeps what it has.
	Flowlet time.Duration
	Hold    time.Duration // how long the group is used
}

// SetGroups gives prefixes groups, or other weights, each in one step: a packet sees the old group
// or the new one. Flows keep the lists that they have while these are in the group, and up. What is
// returned are the errors, in the order of the groups.
func (h *Headend) SetGroups(groups []Group) []error {
	failures := make([]error, len(groups))
	for i, g := range groups {
		if err := h.setGroup(g); err != nil {
			failures[i] = fmt.Errorf("set the group of %s: %w", g.Prefix, err)
		}
	}
	return failures
}

func (h *Headend) setGroup(g Group) error {
	if h.config.Spread == 0 {
		return ErrNoFlowGroups
	}
	if err := g.check(); err != nil {
		return err
	}
	now, err := coarseClock()
	if err != nil {
		return err
	}
	key := groupKey(g.Prefix)
	var old flowGroup
	err = h.maps["flow_groups"].Lookup(key, &old)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	places, err := h.placeLists(g.Lists)
	if err != nil {
		return err
	}
	slots, weights := mergeSlots(old.List[:old.Lists], places, g.Weights)
	group := flowGroup{Until: now + uint64(g.Hold), Flowlet: uint64(g.Flowlet),
		Lists: uint8(len(slots))}
	copy(group.List[:], slots)
	copy(group.Shares[:], srpolicy.Shares(weights))
	for i := range slots {
		if weights[i] > 0 {
			group.Up |= 1 << i
		}
	}
	err = h.maps["flow_groups"].Put(key, group)
	if errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("%d prefixes have groups, and there is room for no more", FlowGroups)
	}
	return err
}

// placeLists finds or makes places for the lists of a group. Places that run out meanwhile are
// looked for again: its first lists, which no group had yet, may have lost theirs.
func (h *Headend) placeLists(lists []srpolicy.Header) ([]uint32, error) {
	places := make([]uint32, len(lists))
	for range 2 {
		for i, header := range lists {
			var err error
			if places[i], err = h.placeList(header); err != nil {
				return nil, err
			}
		}
		if !slices.ContainsFunc(lists, func(l srpolicy.Header) bool {
			_, placed := h.flows.places[string(l.Octets)]
			return !placed
		}) {
			return places, nil
		}
	}
	return nil, fmt.Errorf("all %d segment lists are in use", flowLists)
}

// mergeSlots gives lists the slots that they have in the group before, since flows know their list
// by its slot, and others free ones, or those of lists that the group has no more. A slot whose
// list is left has weight 0.
func mergeSlots(old, lists, weights []uint32) (slots, slotWeights []uint32) {
	slots, slotWeights = slices.Clone(old), make([]uint32, len(old))
	var others []int
	for i, list := range lists {
		if slot := slices.Index(old, list); slot >= 0 {
			slotWeights[slot] = weights[i]
		} else {
			others = append(others, i)
		}
	}
	for _, i := range others {
		slot := len(slots)
		if slot == GroupLists {
			slot = slices.IndexFunc(slots, func(l uint32) bool {
				return !slices.Contains(lists, l)
			})
		} else {
			slots, slotWeights = append(slots, 0), append(slotWeights, 0)
		}
		slots[slot], slotWeights[slot] = lists[i], weights[i]
	}
	return slots, slotWeights
}

func (g *Group) check() error {
	switch {
	case !g.Prefix.IsValid() || g.Prefix != g.Prefix.Masked():
		return fmt.Errorf("%s is no prefix; write it without bits of a host", g.Prefix)
	case len(g.Lists) == 0 || len(g.Lists) > GroupLists || len(g.Lists) != len(g.Weights):
		return fmt.Errorf("%d lists with %d weights; as many are wanted, from 1 to %d",
			len(g.Lists), len(g.Weights), GroupLists)
	case !slices.ContainsFunc(g.Weights, func(w uint32) bool { return w > 0 }):
		return errors.New("each of its lists is down")
	case g.repeats():
		return errors.New("a list is given twice")
	case slices.ContainsFunc(g.Lists, func(l srpolicy.Header) bool {
		return l.Redundancy != srpolicy.None
	}):
		return errors.New("a list has numbers, which flows do not take; use a policy")
	case g.Flowlet < 0 || g.Hold <= 0:
		return fmt.Errorf("flowlets of %v, for %v: write times from 0 on, and above", g.Flowlet,
			g.Hold)
	}
	return nil
}

func (g *Group) repeats() bool {
	seen := map[string]bool{}
	for _, l := range g.Lists {
		seen[string(l.Octets)] = true
	}
	return len(seen) < len(g.Lists)
}

// RemoveGroup leaves flows to a prefix to shorter ones and to rules. It is no error if there is no
// group.
func (h *Headend) RemoveGroup(prefix netip.Prefix) error {
	if h.config.Spread == 0 {
		return fmt.Errorf("remove the group of %s: %w", prefix, ErrNoFlowGroups)
	}
	err := h.maps["flow_groups"].Delete(groupKey(prefix))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the group of %s: %w", prefix, err)
	}
	return nil
}

// Groups returns the groups whose time is not over, but for their weights: their lists that are up
// have weight 1, and those that are down, or were in the group before, 0.
func (h *Headend) Groups() ([]Group, error) {
	if h.config.Spread == 0 {
		return nil, nil
	}
	now, err := coarseClock()
	if err != nil {
		return nil, err
	}
	var groups []Group
	err = h.eachGroup(func(key groupPrefix, group *flowGroup) {
		if group.Until <= now {
			return
		}
		g := Group{Prefix: key.prefix(), Flowlet: time.Duration(group.Flowlet),
			Hold: time.Duration(group.Until - now)}
		for i, place := range group.List[:group.Lists] {
			g.Lists = append(g.Lists, h.flows.headers[place])
			g.Weights = append(g.Weights, group.Up>>i&1)
		}
		groups = append(groups, g)
	})
	return groups, err
}

func (h *Headend) eachGroup(each func(groupPrefix, *flowGroup)) error {
	var key groupPrefix
	var group flowGroup
	entries := h.maps["flow_groups"].Iterate()
	for entries.Next(&key, &group) {
		each(key, &group)
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("read the groups of flows: %w", err)
	}
	return nil
}

// sweepGroups removes groups whose time is over, and notes the lists of the others.
func (h *Headend) sweepGroups(now uint64, used map[uint32]bool) error {
	if h.config.Spread == 0 {
		return nil
	}
	var over []groupPrefix
	err := h.eachGroup(func(key groupPrefix, group *flowGroup) {
		if group.Until <= now {
			over = append(over, key)
			return
		}
		for _, place := range group.List[:group.Lists] {
			used[place] = true
		}
	})
	for _, key := range over {
		err = errors.Join(err, h.RemoveGroup(key.prefix()))
	}
	return err
}

// familyBits are those of a group's key before the address, and mappedBits those of an IPv4-mapped
// address before the IPv4 one.
const familyBits, mappedBits = 8, 96

func groupKey(p netip.Prefix) groupPrefix {
	key := groupPrefix{Bits: familyBits + uint32(p.Bits()), Destination: p.Addr().As16()}
	if p.Addr().Is4() {
		key.IPv4 = 1
		key.Bits += mappedBits
	}
	return key
}

func (k groupPrefix) prefix() netip.Prefix {
	address, bits := netip.AddrFrom16(k.Destination), int(k.Bits)-familyBits
	if k.IPv4 != 0 {
		address, bits = address.Unmap(), bits-mappedBits
	}
	return netip.PrefixFrom(address, bits)
}
