package main

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) pathNextHops() *cobra.Command {
	return &cobra.Command{
		Use:   "next-hops [ADDRESS]",
		Short: "List the next hops that sources choose from at a router",
		Long: `List the equal-cost next hops of a router with controllable load balancing (role cflb),
with the INDEX by which sources name them: sorted by gateway, then by interface, whatever the order
in which the kernel or a routing daemon holds them. With ADDRESS, those of the destination's longest
prefix. STATE is down for a next hop that keeps its index and gets no packets, and hashed where the
kernel decides.`,
		Example:     "  sextant path next-hops 10.3.1.3",
		Annotations: seeAlso("sextant path encode", "sextant path decode", "sextant status"),
		Args:        takes("[ADDRESS]"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			list, err := a.agent().NextHops(ctx)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if list, err = nextHopsOf(list, args[0]); err != nil {
					return err
				}
			}
			return a.show(nextHopsView(list))
		}),
	}
}

// nextHopsOf picks the longest prefix that holds an address.
func nextHopsOf(list []api.NextHops, text string) ([]api.NextHops, error) {
	to, err := netip.ParseAddr(text)
	if err != nil {
		return nil, usageErrorf("%q is no address", text)
	}
	var best []api.NextHops
	for _, n := range list {
		if n.Prefix.Contains(to) && (best == nil || n.Prefix.Bits() > best[0].Prefix.Bits()) {
			best = []api.NextHops{n}
		}
	}
	if best == nil {
		return nil, &api.Error{Code: api.NotFound, Message: "no route with several next hops " +
			"leads to " + text + "; see all with: sextant path next-hops"}
	}
	return best, nil
}

func nextHopsView(list []api.NextHops) view {
	t := table{columns: []string{"PREFIX", "INDEX", "GATEWAY", "INTERFACE", "WEIGHT", "STATE"},
		wide: []string{"CAUSE"}}
	v := view{value: api.List[api.NextHops]{Items: list}}
	for _, n := range list {
		v.names = append(v.names, n.Prefix.String())
		if len(n.Hops) == 0 {
			t.add(n.Prefix, "-", "-", "-", "-", "hashed", n.Left)
		}
		for i, hop := range n.Hops {
			state := "up"
			switch {
			case n.Left != "":
				state = "hashed"
			case hop.Down:
				state = "down"
			}
			t.add(n.Prefix, i, known(hop.Gateway, netip.Addr.String), hop.Interface, hop.Weight,
				state, orDash(n.Left))
		}
	}
	v.tables = tables{t}
	return v
}
