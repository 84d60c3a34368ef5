package agent

import (
	"context"
	"net/netip"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/routing/rib"
)

// Routes is what api.Agent says.
func (r *routing) Routes(ctx context.Context) (list []api.Route, err error) {
	err = r.Do(ctx, func() {
		if r.Node.Routing == nil {
			return
		}
		for _, v := range r.Node.Routing.VRFs {
			if v.Datapath == config.WithEBPF {
				list = append(list, r.edgeRoutes(v)...)
			} else {
				list = append(list, r.router.routes(v.Name)...)
			}
		}
	})
	return list, err
}

// edgeRoutes are those of a VRF whose next hops are backends.
func (r *routing) edgeRoutes(v config.VRF) (list []api.Route) {
	reasons := map[netip.Prefix]discovery.Reason{}
	for key := range r.refused {
		if key.peer == peersOf[v.Source] && key.distinguisher == v.Name {
			reasons[key.prefix] = key.reason
		}
	}
	for to, set := range r.tables[v.Source].routes {
		if to.Table == uint32(v.Table) {
			list = append(list, api.Route{
				VRF: v.Name, Prefix: to.Prefix, Datapath: v.Datapath, NextHops: hopsView(set),
				Ignored: reasons[to.Prefix],
			})
		}
	}
	slices.SortFunc(list, func(a, b api.Route) int { return a.Prefix.Compare(b.Prefix) })
	return list
}

// routes are those of a VRF by which the kernel forwards.
func (r *router) routes(name string) (list []api.Route) {
	for _, v := range r.vrfs {
		if v.Name != name {
			continue
		}
		for _, row := range v.table.Entries() {
			list = append(list, api.Route{
				VRF: v.Name, Prefix: row.Prefix, Datapath: v.Datapath,
				NextHops: hopsView(row.Original), Shadow: hopsView(row.Shadow),
				Pending: row.Original != row.Wanted,
			})
		}
	}
	return list
}

func hopsView(set rib.Set) []api.RouteHop {
	hops := []api.RouteHop{}
	for _, h := range set.Members() {
		hops = append(hops, api.RouteHop{Segments: h.Segments, Weight: h.Weight})
	}
	return hops
}

// RouteSources is what api.Agent says.
func (r *routing) RouteSources(ctx context.Context) (list []api.RouteSource, err error) {
	err = r.Do(ctx, func() { list = r.sources() })
	return list, err
}

func (r *routing) sources() (list []api.RouteSource) {
	for _, source := range []config.RouteSource{config.SourceBGP, config.SourceFPM,
		config.SourceKernel} {
		told := r.tables[source]
		if told == nil {
			continue
		}
		view := api.RouteSource{Source: source, Complete: told.complete, Routes: len(told.routes)}
		switch source {
		case config.SourceFPM:
			s := r.fpm.State()
			if s.Client.IsValid() {
				view.Client = &s.Client
			}
			view.Messages, view.Sessions, view.Malformed, view.Reason = s.Messages, s.Sessions,
				s.Malformed, s.LastReason
		case config.SourceKernel:
			view.Resyncs = r.kernel.Resyncs()
		}
		list = append(list, view)
	}
	return list
}

// collectRouting adds what is known of routes.
func (r *routing) Collect(out chan<- prometheus.Metric) {
	metrics.Part(out, "routing", func(ctx context.Context) error {
		return r.Do(ctx, func() { r.collect(out) })
	})
}

func (r *routing) collect(out chan<- prometheus.Metric) {
	for _, s := range r.sources() {
		source := string(s.Source)
		metrics.Gauge(out, sourceRoutes, float64(s.Routes), source)
		metrics.Gauge(out, sourceComplete, metrics.OneIf(s.Complete), source)
		switch s.Source {
		case config.SourceFPM:
			metrics.Gauge(out, fpmUp, metrics.OneIf(s.Client != nil))
			metrics.Counter(out, fpmMessages, s.Messages)
			metrics.Counter(out, fpmMalformed, s.Malformed)
		case config.SourceKernel:
			metrics.Counter(out, kernelResyncs, s.Resyncs)
		}
	}
	for cause, n := range r.ignored {
		if cause.way != discovery.BGP {
			metrics.Counter(out, routesIgnored, n, string(cause.way), string(cause.reason))
		}
	}
	if r.router == nil {
		return
	}
	for _, v := range r.router.vrfs {
		metrics.Counter(out, vrfChanges, v.moved, v.Name)
		metrics.Gauge(out, vrfProblem, metrics.OneIf(r.warning() != ""), v.Name)
	}
}

var (
	sourceRoutes = metrics.Description("route_source_routes",
		"Routes over SRv6 that a source has told.",
		"source")
	sourceComplete = metrics.Description("route_source_complete",
		"Whether a source has told all there is.",
		"source")
	fpmUp       = metrics.Description("fpm_session_up", "Whether zebra is connected.")
	fpmMessages = metrics.Description("fpm_messages_total",
		"Changes of routes and next hops that zebra told.")
	fpmMalformed = metrics.Description("fpm_malformed_sessions_total",
		"Sessions of FPM that ended because of what was sent.")
	kernelResyncs = metrics.Description("kernel_routes_resyncs_total",
		"How often routing tables were read anew, after lost messages or because a link went up "+
			"or down.")
	routesIgnored = metrics.Description("routes_ignored_total",
		"Routes over SRv6 that were of no use to the edge, by reason.", "source", "reason")
	vrfChanges = metrics.Description("vrf_route_changes_total",
		"Routes of a VRF that were changed in the kernel, each after its shadow.", "vrf")
	vrfProblem = metrics.Description("vrf_failing", "Whether the kernel refuses what routing told.",
		"vrf")
)
