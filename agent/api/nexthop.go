package api

import (
	"context"
	"net/http"
	"net/netip"
)

// NextHops are the equal-cost next hops of a destination at a router with controllable load
// balancing. The index by which sources name a next hop is its place, from 0.
type NextHops struct {
	Prefix netip.Prefix  `json:"prefix"`
	Hops   []ECMPNextHop `json:"hops"`
	// Left is why the kernel hashes the destination's packets, whatever sources choose; "": it
	// does not.
	Left string `json:"left,omitempty"`
}

// ECMPNextHop is one of them.
type ECMPNextHop struct {
	Gateway   *netip.Addr `json:"gateway,omitempty"` // nil: the destination is on the link
	Interface string      `json:"interface"`
	Weight    uint32      `json:"weight"`
	Down      bool        `json:"down,omitempty"` // packets that name it are hashed
}

// NextHops returns the destinations among whose next hops sources choose.
func (c *Client) NextHops(ctx context.Context) ([]NextHops, error) {
	return items[NextHops](ctx, c, request{path: "/v1/next-hops"})
}

func (h handler) nextHops(r *http.Request) (any, error) {
	items, err := h.agent.NextHops(r.Context())
	return List[NextHops]{Items: notNull(items)}, err
}
