package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"sextant/config"
	"sextant/lb/discovery"
)

// BGPPeer is a BGP neighbor and its session.
type BGPPeer struct {
	Address netip.Addr `json:"address"`
	ASN     int        `json:"asn"`
	State   string     `json:"state"` // RFC 4271 section 8.2.2, in lower case
	// lost, settling (what it told before holds) or standing
	Session          string     `json:"session"`
	BFD              string     `json:"bfd,omitempty"` // "" without
	Since            *time.Time `json:"since,omitempty"`
	ReceivedRoutes   uint64     `json:"receivedRoutes"`
	AdvertisedRoutes uint64     `json:"advertisedRoutes"`
	Reason           string     `json:"reason,omitempty"` // why the session was lost
}

// BGPDirection says whether a route was learned or is announced.
type BGPDirection string

// The directions.
const (
	Learned   BGPDirection = "learned"
	Announced BGPDirection = "announced"
)

// BGPRoute is a route to a VIP.
type BGPRoute struct {
	Direction     BGPDirection     `json:"direction"`
	VIP           netip.Addr       `json:"vip"`
	SID           *netip.Addr      `json:"sid,omitempty"` // of hosts' routes
	Behavior      string           `json:"behavior,omitempty"`
	Weight        int              `json:"weight"`
	Draining      bool             `json:"draining"`
	Services      []discovery.Port `json:"services,omitempty"` // of the VIP; none: all
	Peer          *netip.Addr      `json:"peer,omitempty"`     // of learned ones
	Distinguisher string           `json:"routeDistinguisher,omitempty"`
	Ignored       discovery.Reason `json:"ignored,omitempty"` // why it is of no use
}

// BGPPeers returns the neighbors.
func (c *Client) BGPPeers(ctx context.Context) ([]BGPPeer, error) {
	return items[BGPPeer](ctx, c, request{path: "/v1/bgp/peers"})
}

// BGPRoutes returns the routes, announced ones first.
func (c *Client) BGPRoutes(ctx context.Context) ([]BGPRoute, error) {
	return items[BGPRoute](ctx, c, request{path: "/v1/bgp/routes"})
}

func (h handler) bgpPeers(r *http.Request) (any, error) {
	peers, err := h.agent.BGPPeers(r.Context())
	return List[BGPPeer]{Items: notNull(peers)}, err
}

func (h handler) bgpRoutes(r *http.Request) (any, error) {
	routes, err := h.agent.BGPRoutes(r.Context())
	return List[BGPRoute]{Items: notNull(routes)}, err
}

// BGPSpec is what a PUT says about the speaker.
type BGPSpec struct {
	Announce config.Announce `json:"announce"`
}

// Announce changes what a host says of its services: up, draining or nothing.
func (c *Client) Announce(ctx context.Context, what config.Announce) (Changes, error) {
	return c.write(ctx, request{method: http.MethodPut, path: "/v1/bgp"}, BGPSpec{what})
}

func (h handler) putBGP(r *http.Request) (any, error) {
	var spec BGPSpec
	if err := ReadJSON(r, &spec); err != nil {
		return nil, err
	}
	return h.change(r.Context(),
		func(n *config.Node) (*config.Node, error) { return config.SetAnnounce(n, spec.Announce) })
}
