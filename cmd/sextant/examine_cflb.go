package main

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/agent/api"
	"sextant/agent/pathtrace"
	"sextant/config"
	"sextant/linux/facts"
)

// Bounds of what routers are asked.
const (
	askedNextHops     = 64
	askedDestinations = 3 // behind each: one that hashes addresses alone shows by several
	askedSources      = 6 // own addresses, until a router answers to one
	askedRounds       = 16
	askedSilent       = 2           // without an answer; one round may wait for neighbours
	askedWait         = time.Second // Linux answers one probe a second, after a burst
)

// askFollowers asks the routers at next hops for next hops of their own, by selectors of this
// node's network. Those that do not answer are left out.
func askFollowers(n *config.Node, list []api.NextHops) (found []facts.Follower, err error) {
	if n.CFLB.Key == nil {
		text, err := os.ReadFile(n.CFLB.KeyFile)
		if err != nil {
			return nil, err
		}
		if n.CFLB.Key, err = config.ParseCFLBKey(string(text)); err != nil {
			return nil, err
		}
	}
	var asking []*follower
	for _, of := range list {
		for _, hop := range of.Hops {
			if hop.Gateway == nil || hop.Down || len(asking) == askedNextHops ||
				slices.ContainsFunc(asking, func(o *follower) bool {
					return o.Gateway == *hop.Gateway && o.Interface == hop.Interface
				}) {
				continue
			}
			asking = append(asking, &follower{Follower: facts.Follower{Prefix: of.Prefix,
				Gateway: *hop.Gateway, Interface: hop.Interface}})
		}
	}
	var running sync.WaitGroup
	for _, one := range asking {
		running.Go(func() { one.err = one.ask(n.CFLB) })
	}
	running.Wait()
	for _, one := range asking {
		err = errors.Join(err, one.err)
		if one.known {
			found = append(found, one.Follower)
		}
	}
	return found, err
}

// follower is a router that is asked.
type follower struct {
	facts.Follower
	known bool
	err   error
}

func (f *follower) ask(c *config.CFLB) error {
	codec, err := c.Codec(f.Prefix.Addr().Is6())
	if err != nil {
		return err
	}
	for _, source := range ownAddresses(f.Prefix.Addr().Is4()) {
		all := pathtrace.Asked{}
		for round := range askedRounds {
			destinations := destinationsIn(f.Prefix)
			to := destinations[round%len(destinations)]
			wire, err := pathtrace.OpenSockets(to, f.Interface)
			if err != nil {
				return err
			}
			asked, err := pathtrace.Ask(wire, pathtrace.Plan{Codec: codec, Src: source, Dst: to,
				Port: 80, Choices: []int{2}, Seed: pathtrace.NewSeed()}, askedWait)
			wire.Close()
			if err != nil {
				return err
			}
			for index, from := range asked {
				all[index] = append(all[index], from...)
			}
			if f.Follows, f.known = all.Follows(); f.known || len(all) == 0 &&
				round+1 == askedSilent {
				break // if nobody answers, no router has a way back to this source
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return nil
}

// destinationsIn are some addresses of a prefix; of the default route, those of documentation.
func destinationsIn(prefix netip.Prefix) (list []netip.Addr) {
	at := prefix.Masked().Addr()
	switch {
	case prefix.IsSingleIP():
		return []netip.Addr{at}
	case prefix.Bits() == 0 && at.Is4():
		at = netip.MustParseAddr("192.0.2.0")
	case prefix.Bits() == 0:
		at = netip.MustParseAddr("2001:db8::")
	}
	for range askedDestinations {
		if at = at.Next(); prefix.Contains(at) {
			list = append(list, at)
		}
	}
	return list
}

// ownAddresses are those of this machine from which probes can be sent, those of the loopback
// interface first: routers have ways to these at the likeliest.
func ownAddresses(ipv4 bool) (list []netip.Addr) {
	family := netlink.FAMILY_V6
	if ipv4 {
		family = netlink.FAMILY_V4
	}
	addresses, err := netlink.AddrList(nil, family)
	if err != nil {
		return nil
	}
	slices.SortStableFunc(addresses,
		func(a, b netlink.Addr) int { return a.LinkIndex - b.LinkIndex })
	for _, a := range addresses {
		address, ok := netip.AddrFromSlice(a.IP)
		if address = address.Unmap(); ok && address.IsGlobalUnicast() &&
			len(list) < askedSources {
			list = append(list, address)
		}
	}
	return list
}
