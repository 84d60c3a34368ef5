package listener

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/collector"
)

// handler serves the API.
func (l *Listener) handler(metrics http.Handler) http.Handler {
	mux := api.Mux("controller/listener", map[string]func(*http.Request) (any, error){
		"GET /v1/links":     l.getLinks,
		"GET /v1/exporters": l.getExporters,
		"GET /v1/path":      l.getPath,
	})
	mux.Handle("GET /metrics", metrics)
	return mux
}

func (l *Listener) getLinks(r *http.Request) (any, error) {
	list := api.List[Link]{Items: []Link{}}
	err := l.do(r.Context(), func() {
		now := collector.Now().SteadyNS
		l.table.EachLink(func(k collector.Link, s *collector.LinkState, seenNS int64) {
			list.Items = append(list.Items, newLink(k, s, ageMs(now, seenNS)))
		})
	})
	slices.SortFunc(list.Items, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(number(a.Egress), number(b.Egress)))
	})
	return list, err
}

func number(egress *uint32) uint32 {
	if egress == nil {
		return unknownInterface
	}
	return *egress
}

func (l *Listener) getExporters(r *http.Request) (any, error) {
	list := api.List[Exporter]{Items: []Exporter{}}
	err := l.do(r.Context(), func() {
		now := collector.Now().SteadyNS
		l.table.EachExporter(func(e collector.Exporter, s *collector.Sequence, seenNS int64) {
			list.Items = append(list.Items, Exporter{Address: e.Address, Node: e.Node,
				Hardware: e.Hardware, AgeMs: ageMs(now, seenNS), Received: s.Received,
				Lost: s.Lost, Late: s.Late, Duplicate: s.Duplicate, Restarts: s.Restarts})
		})
	})
	return list, err
}

func (l *Listener) getPath(r *http.Request) (any, error) {
	var f api.Flow
	for name, into := range map[string]*netip.AddrPort{"source": &f.Source,
		"destination": &f.Destination} {
		var err error
		if *into, err = netip.ParseAddrPort(r.FormValue(name)); err != nil {
			return nil, &api.Error{Code: api.Invalid, Message: name + " is not an address and " +
				"port; write it like [2001:db8::1]:443"}
		}
	}
	f.Protocol = config.Protocol(r.FormValue("protocol"))
	if f.Protocol != config.TCP && f.Protocol != config.UDP {
		return nil, &api.Error{Code: api.Invalid, Message: "protocol is tcp or udp"}
	}
	var path *Path
	err := l.do(r.Context(), func() {
		if p, seenNS := l.table.Path(tupleOf(f)); p != nil {
			path = &Path{Flow: f, AgeMs: ageMs(collector.Now().SteadyNS, seenNS),
				Packets: p.Packets, Hops: api.HopsOf(p.Samples[:p.Hops])}
		}
	})
	if err == nil && path == nil {
		err = &api.Error{Code: api.NotFound, Message: "no report has told of this flow; its " +
			"packets carry no telemetry, or a report of it was lost: see the exporters"}
	}
	return path, err
}

// Client talks to a listener. A call ends with its context.
type Client struct{ http *api.Client }

// NewClient makes a client for the listener behind a Unix socket. It connects when it is used.
func NewClient(socket string) *Client {
	return &Client{api.NewClientOf("telemetry listener", "sextant telemetry listen", socket)}
}

// Links returns the links that nodes told of, in the order of their nodes.
func (c *Client) Links(ctx context.Context) ([]Link, error) {
	list, err := api.Ask[api.List[Link]](ctx, c.http, http.MethodGet, "/v1/links", nil, nil)
	return list.Items, err
}

// Exporters returns what sends reports.
func (c *Client) Exporters(ctx context.Context) ([]Exporter, error) {
	list, err := api.Ask[api.List[Exporter]](ctx, c.http, http.MethodGet, "/v1/exporters", nil,
		nil)
	return list.Items, err
}

// Path returns the last path of a flow; the error has api.NotFound if there is none.
func (c *Client) Path(ctx context.Context, f api.Flow) (Path, error) {
	return api.Ask[Path](ctx, c.http, http.MethodGet, "/v1/path", url.Values{
		"source": {f.Source.String()}, "destination": {f.Destination.String()},
		"protocol": {string(f.Protocol)}}, nil)
}
