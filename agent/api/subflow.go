package api

import (
	"context"
	"net/http"
	"net/netip"
)

// MPTCPConnection is a connection of Multipath TCP that a host has opened.
type MPTCPConnection struct {
	Token       string         `json:"token"`  // by which the kernel names it, 8 hexadecimal digits
	Source      netip.AddrPort `json:"source"` // of its first subflow
	Destination netip.AddrPort `json:"destination"`
	Rule        string         `json:"rule,omitempty"` // that it matches; "": none
	// managed: it gets subflows; watched: it has not carried enough; left: another path manager's,
	// or no rule's
	State      string         `json:"state"`
	AckedBytes uint64         `json:"ackedBytes"` // by the other end, on the subflows that are there
	Subflows   []MPTCPSubflow `json:"subflows"`   // on paths of the rule, the first among them
}

// MPTCPSubflow is a subflow on a path that is wanted.
type MPTCPSubflow struct {
	Source netip.AddrPort `json:"source"`
	// the index of the next hop at each router, or the routers that a controller named
	Path   string `json:"path"`
	Backup bool   `json:"backup,omitempty"` // used where no other subflow can be
}

// SubflowCounters are MPTCP connections that a host has opened, now, and what became of subflows.
type SubflowCounters struct {
	Managed int `json:"managed"` // connections that have subflows by their rule, or get them
	Watched int `json:"watched"` // connections that have not carried enough
	Left    int `json:"left"`    // connections of another path manager, or of no rule
	Open    int `json:"open"`    // subflows that were opened and are there

	Opened  uint64 `json:"opened"`
	Failed  uint64 `json:"failed"`  // the kernel did not open them
	Stalled uint64 `json:"stalled"` // were ended as they got no answers
	Surplus uint64 `json:"surplus"` // were ended as no rule wanted them any more
	Moved   uint64 `json:"moved"`   // were ended as the controller gave them another path
}

// Subflows returns the MPTCP connections that a host has opened.
func (c *Client) Subflows(ctx context.Context) ([]MPTCPConnection, error) {
	return items[MPTCPConnection](ctx, c, request{path: "/v1/subflows"})
}

func (h handler) subflows(r *http.Request) (any, error) {
	items, err := h.agent.Subflows(r.Context())
	return List[MPTCPConnection]{Items: notNull(items)}, err
}
