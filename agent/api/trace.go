package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	"sextant/config"
)

// Flow is a client's flow.
type Flow struct {
	Source      netip.AddrPort  `json:"source"`
	Destination netip.AddrPort  `json:"destination"`
	Protocol    config.Protocol `json:"protocol"`
}

// Trace says what an edge does with the packets of a flow, and why.
type Trace struct {
	Flow      Flow                 `json:"flow"`
	Service   string               `json:"service"`
	Policy    config.ServicePolicy `json:"policy"`
	Table     config.Table         `json:"table"`
	Bucket    int                  `json:"bucket"`
	Buckets   int                  `json:"buckets"`
	FlowLabel uint32               `json:"flowLabel"` // of the outer header
	Chain     []Place              `json:"chain"`
	// Opening are the segments of the packet that opens a connection, Following those of all
	// others, in the order of travel: one carrier, or the SIDs one by one.
	Opening   []netip.Addr `json:"opening"`
	Following []netip.Addr `json:"following"`
	// Shadow is the owner before the latest change, to which strays are sent (policy shadow only).
	Shadow string `json:"shadow,omitempty"`
}

// Place is a backend in a flow's chain.
type Place struct {
	Backend     string              `json:"backend"` // "" if it is not configured any more
	SID         netip.Addr          `json:"sid"`
	Role        string              `json:"role"` // candidate, past or reserve
	State       config.BackendState `json:"state"`
	LeftSeconds *float64            `json:"leftSeconds,omitempty"` // past: how long ago it left
	Site        string              `json:"site,omitempty"`
	// candidate: why it comes where it comes; not there if the table alone says
	Order *PlaceOrder `json:"order,omitempty"`
}

// PlaceOrder is why a candidate comes before or behind the others of its bucket: by its rank, which
// site, path and load make. What is 0 is not known, or does not count.
type PlaceOrder struct {
	Rank   int  `json:"rank"`
	Remote bool `json:"remote"` // in another site than the edge
	// cost of the way to it and to the nearest backend of the service, in the unit of the way's
	// metric
	Path           float64 `json:"path,omitempty"`
	LeastPath      float64 `json:"leastPath,omitempty"`
	PathAgeSeconds float64 `json:"pathAgeSeconds,omitempty"`
	// busy connections per core of its host, of the service's hosts in the mean, and in the mean as
	// refused SYNs told its host
	Load           float64 `json:"load,omitempty"`
	MeanLoad       float64 `json:"meanLoad,omitempty"`
	Told           float64 `json:"told,omitempty"`
	LoadAgeSeconds float64 `json:"loadAgeSeconds,omitempty"`
}

// Trace asks what becomes of a flow.
func (c *Client) Trace(ctx context.Context, f Flow) (Trace, error) {
	return ask[Trace](ctx, c, request{path: "/v1/trace", query: url.Values{
		"source": {f.Source.String()}, "destination": {f.Destination.String()},
		"protocol": {string(f.Protocol)},
	}})
}

func (h handler) trace(r *http.Request) (any, error) {
	f := Flow{Protocol: config.Protocol(r.FormValue("protocol"))}
	for name, target := range map[string]*netip.AddrPort{"source": &f.Source,
		"destination": &f.Destination} {
		a, err := netip.ParseAddrPort(r.FormValue(name))
		if err != nil {
			return nil, invalid(fmt.Sprintf("%s %q is not an address and port; write it like "+
				"[2001:db8::1]:443 or 192.0.2.1:443",
				name, r.FormValue(name)))
		}
		*target = a
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return h.agent.Trace(r.Context(), f)
}
