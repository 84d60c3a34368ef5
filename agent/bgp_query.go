package agent

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
	"sextant/lb/discovery"
)

// BGPPeers is what api.Agent says.
func (b *peering) BGPPeers(ctx context.Context) (list []api.BGPPeer, err error) {
	err = b.askSpeaker(ctx, func(s *speaker) error {
		peers, err := s.Peers()
		for _, p := range peers {
			peer := api.BGPPeer{
				Address: p.Address, ASN: p.ASN, State: p.State, Session: p.Session.String(),
				BFD: p.BFD, Reason: p.Reason,
				ReceivedRoutes: p.Received, AdvertisedRoutes: p.Advertised,
			}
			if !p.Since.IsZero() {
				peer.Since = &p.Since
			}
			list = append(list, peer)
		}
		return err
	})
	return list, err
}

// BGPRoutes is what api.Agent says.
func (b *peering) BGPRoutes(ctx context.Context) (list []api.BGPRoute, err error) {
	err = b.askSpeaker(ctx, func(s *speaker) error {
		for _, r := range s.Announced() {
			route := api.BGPRoute{Direction: api.Announced, VIP: r.VIP, Weight: r.Weight,
				Draining: r.Draining, Services: r.Services}
			if r.SID.Prefix.IsValid() {
				sid := r.SID.Prefix.Addr()
				route.SID, route.Behavior = &sid, r.SID.Behavior.String()
			}
			list = append(list, route)
		}
		table, err := s.Routes()
		if err != nil {
			return err
		}
		for _, r := range table.Routes {
			if !r.Peer.IsValid() {
				continue // this node's own, which it announces
			}
			reason := b.routing.reason(r)
			list = append(list, learnedRoute(r, reason))
		}
		for _, r := range table.Refused {
			list = append(list, learnedRoute(r.Route, r.Reason))
		}
		slices.SortStableFunc(list, func(a, b api.BGPRoute) int {
			return cmp.Or(cmp.Compare(a.Direction, b.Direction), a.VIP.Compare(b.VIP),
				routeSID(a).Compare(routeSID(b)),
				cmp.Compare(a.Distinguisher, b.Distinguisher))
		})
		return nil
	})
	return list, err
}

func routeSID(r api.BGPRoute) netip.Addr {
	if r.SID == nil {
		return netip.Addr{}
	}
	return *r.SID
}

// reason is why a route is ignored by one service at least; "" if it is by none.
func (r *routing) reason(route discovery.Route) discovery.Reason {
	for key := range r.refused {
		if key.peer == route.Peer && key.prefix == route.Prefix &&
			key.distinguisher == route.Distinguisher {
			return key.reason
		}
	}
	return ""
}

func learnedRoute(r discovery.Route, reason discovery.Reason) api.BGPRoute {
	route := api.BGPRoute{
		Direction: api.Learned, VIP: r.Prefix.Addr(), Weight: r.Weight, Draining: r.Draining,
		Services: r.Services,
		Peer:     &r.Peer, Distinguisher: r.Distinguisher, Ignored: reason,
	}
	if r.SID.IsValid() {
		route.SID, route.Behavior = &r.SID, r.Behavior.String()
	}
	return route
}

// collectBGP adds what the speaker counts.
func (b *peering) Collect(out chan<- prometheus.Metric) {
	metrics.Part(out, "bgp", func(ctx context.Context) error {
		return b.askSpeaker(ctx, func(s *speaker) error { return b.collect(s, out) })
	})
}

func (b *peering) collect(s *speaker, out chan<- prometheus.Metric) error {
	peers, err := s.States()
	for _, p := range peers {
		metrics.Gauge(out, metrics.BgpUp, metrics.OneIf(p.Up()), p.Address.String())
	}
	for cause, n := range b.routing.ignored {
		if cause.way == discovery.BGP {
			metrics.Counter(out, metrics.BgpIgnored, n, string(cause.reason))
		}
	}
	for handling, n := range s.Faults() {
		metrics.Counter(out, metrics.BgpFaults, n, handling)
	}
	return err
}
