package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
)

func (a *app) routeCommand() *cobra.Command {
	return noun("route", "SRv6 routes learned from other routing software",
		seeAlso("sextant backend list", "sextant bgp routes"),
		a.routeList(), a.routeSources())
}

func (a *app) routeList() *cobra.Command {
	return &cobra.Command{
		Use: "list [VRF]", Short: "List the routes of VRFs with their shadows",
		Long: `List the routes of VRFs with their shadows.

NEXT-HOPS forward packets; where buckets distinguish flows, a weight is the number of buckets of a next hop. SHADOW
are the next hops before the last change; they forward strays, which hosts without the connection sent back. STATE is
pending until the kernel has taken a change, and names the reason where an edge does not use a route.`,
		Example:     "  sextant route list blue -o json",
		Annotations: seeAlso("sextant route sources", "sextant backend list"),
		Args:        takes("[VRF]"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			routes, err := a.agent().Routes(ctx)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if routes, err = routesOf(routes, args[0]); err != nil {
					return err
				}
			}
			return a.show(routesView(routes))
		}),
	}
}

// routesOf picks the routes of a VRF, or says which there are.
func routesOf(routes []api.Route, vrf string) (list []api.Route, err error) {
	var names []string
	for _, r := range routes {
		if r.VRF == vrf {
			list = append(list, r)
		}
		if len(names) == 0 || names[len(names)-1] != r.VRF {
			names = append(names, r.VRF)
		}
	}
	if len(list) == 0 {
		return nil, absent("VRF with routes", vrf, names)
	}
	return list, nil
}

func routesView(routes []api.Route) view {
	t := table{columns: []string{"VRF", "PREFIX", "NEXT-HOPS", "SHADOW", "STATE"},
		wide: []string{"DATAPATH"}}
	return listView(routes, t, func(r api.Route) (string, []any) {
		state := "-"
		switch {
		case r.Pending:
			state = "pending"
		case r.Ignored != "":
			state = string(r.Ignored)
		}
		return r.Prefix.String(), []any{r.VRF, r.Prefix, hopsText(r.NextHops), hopsText(r.Shadow),
			state, r.Datapath}
	})
}

// hopsText writes "fcbb:bb00:1::,fcbb:bb00:2:: fcbb:bb00:3:: weight 2": segments of a hop with
// commas, hops with spaces.
func hopsText(hops []api.RouteHop) string {
	words := make([]string, len(hops))
	for i, h := range hops {
		if words[i] = lists.Join(h.Segments, ","); h.Weight != 1 {
			words[i] += fmt.Sprintf(" weight %d", h.Weight)
		}
	}
	return orDash(strings.Join(words, " "))
}

func (a *app) routeSources() *cobra.Command {
	return &cobra.Command{
		Use: "sources", Short: "List the sources of this node's routes",
		Long: `List the sources of this node's routes: fpm is FRRouting's zebra, kernel the kernel's routing tables, bgp the node's
own speaker. While a source is not COMPLETE, its earlier routes stay in force.`,
		Example:     "  sextant route sources -o wide",
		Annotations: seeAlso("sextant route list", "sextant bgp peers"),
		RunE:        shows(a, a.agentFor, (*api.Client).RouteSources, routeSourcesView),
	}
}

func routeSourcesView(sources []api.RouteSource) view {
	t := table{
		columns: []string{"SOURCE", "CLIENT", "COMPLETE", "ROUTES", "MESSAGES", "SESSIONS",
			"MALFORMED"},
		wide: []string{"RESYNCS", "REASON"},
	}
	return listView(sources, t, func(s api.RouteSource) (string, []any) {
		return string(s.Source), []any{s.Source, known(s.Client, netip.AddrPort.String),
			yes(s.Complete), s.Routes, s.Messages, s.Sessions, s.Malformed, s.Resyncs,
			orDash(s.Reason)}
	})
}
