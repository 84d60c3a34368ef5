package api

import (
	"context"
	"net/http"
	"net/netip"

	"sextant/config"
	"sextant/lb/discovery"
)

// Route is a route over SRv6 of a VRF.
type Route struct {
	VRF      string          `json:"vrf"`
	Prefix   netip.Prefix    `json:"prefix"`
	Datapath config.Datapath `json:"datapath"`
	// as they are used; none: there is no route any more, only its shadow
	NextHops []RouteHop `json:"nextHops"`
	// Shadow are the next hops before the last change, which strays meet; none: nothing changed
	// yet, or it is long ago.
	Shadow []RouteHop `json:"shadow,omitempty"`
	// Pending is true as long as the kernel has not taken what routing told.
	Pending bool `json:"pending,omitempty"`
	// Ignored is why an edge has no use for the route.
	Ignored discovery.Reason `json:"ignored,omitempty"`
}

// RouteHop is a next hop of a route.
type RouteHop struct {
	Segments []netip.Addr `json:"segments"`
	Weight   int          `json:"weight"` // if flows are told apart by buckets, how many it has
}

// RouteSource is who tells of routes.
type RouteSource struct {
	Source   config.RouteSource `json:"source"`
	Client   *netip.AddrPort    `json:"client,omitempty"` // of fpm: who is connected
	Complete bool               `json:"complete"`         // all that there is was told
	Routes   int                `json:"routes"`           // over SRv6
	Messages uint64             `json:"messages,omitempty"`
	Sessions uint64             `json:"sessions,omitempty"`
	// sessions that ended because of what was sent
	Malformed uint64 `json:"malformed,omitempty"`
	// of kernel: how often all was read anew
	Resyncs uint64 `json:"resyncs,omitempty"`
	Reason  string `json:"reason,omitempty"` // why the last session ended
}

// Routes returns the routes of VRFs.
func (c *Client) Routes(ctx context.Context) ([]Route, error) {
	return items[Route](ctx, c, request{path: "/v1/routes"})
}

// RouteSources returns who tells of them.
func (c *Client) RouteSources(ctx context.Context) ([]RouteSource, error) {
	return items[RouteSource](ctx, c, request{path: "/v1/routes/sources"})
}

func (h handler) routes(r *http.Request) (any, error) {
	routes, err := h.agent.Routes(r.Context())
	return List[Route]{Items: notNull(routes)}, err
}

func (h handler) routeSources(r *http.Request) (any, error) {
	sources, err := h.agent.RouteSources(r.Context())
	return List[RouteSource]{Items: notNull(sources)}, err
}
