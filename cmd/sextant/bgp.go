package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/discovery"
)

func (a *app) bgpCommand() *cobra.Command {
	return noun("bgp", "Sessions and routes of the node's BGP speaker",
		seeAlso("sextant backend list", "sextant config show"),
		a.bgpPeers(), a.bgpRoutes(), a.bgpAnnounce())
}

func (a *app) bgpPeers() *cobra.Command {
	return &cobra.Command{
		Use: "peers", Short: "List the BGP neighbors and their sessions",
		Long: `List the BGP neighbors and their sessions.

WORD is how the neighbor's routes count. Of a standing session, a route that is not announced is withdrawn. While a
session is settling (a graceful restart, or before the neighbor has sent all routes), earlier routes stay in force. Of a
lost session, the hosts that no other neighbor announces are removed.`,
		Example:     "  sextant bgp peers -o wide",
		Annotations: seeAlso("sextant bgp routes"),
		RunE:        shows(a, a.agentFor, (*api.Client).BGPPeers, bgpPeersView),
	}
}

func bgpPeersView(peers []api.BGPPeer) view {
	t := table{
		columns: []string{"NEIGHBOR", "ASN", "STATE", "WORD", "BFD", "RECEIVED", "ADVERTISED"},
		wide:    []string{"SINCE", "REASON"},
	}
	return listView(peers, t, func(p api.BGPPeer) (string, []any) {
		return p.Address.String(), []any{p.Address, p.ASN, p.State, p.Session, orDash(p.BFD),
			p.ReceivedRoutes, p.AdvertisedRoutes, known(p.Since, timeText), orDash(p.Reason)}
	})
}

func (a *app) bgpRoutes() *cobra.Command {
	return &cobra.Command{
		Use: "routes", Short: "List the routes to VIPs that are announced and learned",
		Example:     "  sextant bgp routes -o json",
		Annotations: seeAlso("sextant bgp peers", "sextant backend list"),
		RunE:        shows(a, a.agentFor, (*api.Client).BGPRoutes, bgpRoutesView),
	}
}

func bgpRoutesView(routes []api.BGPRoute) view {
	t := table{
		columns: []string{"DIRECTION", "VIP", "SERVICES", "SID", "WEIGHT", "STATE", "NEIGHBOR",
			"IGNORED"},
		wide: []string{"BEHAVIOR", "DISTINGUISHER"},
	}
	return listView(routes, t, func(r api.BGPRoute) (string, []any) {
		weight, state := count(r.Weight), config.Up
		if r.SID == nil {
			weight = "-"
		}
		if r.Draining {
			state = config.Draining
		}
		return r.VIP.String(), []any{r.Direction, r.VIP, portsText(r.Services),
			known(r.SID, netip.Addr.String), weight, state, known(r.Peer, netip.Addr.String),
			orDash(string(r.Ignored)), orDash(r.Behavior), orDash(r.Distinguisher)}
	})
}

// portsText writes "80/tcp,any/udp", or "all".
func portsText(ports []discovery.Port) string {
	if len(ports) == 0 {
		return "all"
	}
	texts := make([]string, len(ports))
	for i, p := range ports {
		texts[i] = fmt.Sprintf("%s/%s", config.FormatPort(p.Port), p.Protocol)
	}
	return strings.Join(texts, ",")
}

func (a *app) bgpAnnounce() *cobra.Command {
	words := []string{string(config.AnnounceUp), string(config.AnnounceDraining),
		string(config.AnnounceNothing)}
	return &cobra.Command{
		Use: "announce WHAT", Short: "Announce by BGP that this host is up or draining, or " +
			"withdraw it",
		Long: `Announce the state of this host by BGP: up (new connections), draining (no new connections, existing ones continue) or
nothing (its routes are withdrawn, which edges treat as draining).`,
		Example:           "  sextant bgp announce draining",
		Annotations:       seeAlso("sextant bgp routes", "sextant service list"),
		Args:              takes("WHAT"),
		ValidArgsFunction: first(func() []string { return words }),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if !slices.Contains(words, args[0]) {
				return usageErrorf("unknown word %q; write %s", args[0], strings.Join(words, ", "))
			}
			return a.changed(a.agent().Announce(ctx, config.Announce(args[0])))
		}),
	}
}
