package api

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"sextant/config"
)

// TelemetryCounters say what became of packets with in-band telemetry at a node, and of reports.
type TelemetryCounters struct {
	Packets  []TelemetryPackets `json:"packets"`
	Reported []TelemetryReports `json:"reported"` // by the sink
	// to the collector, pauses without a packet included
	Reports   uint64 `json:"reports"`
	Datagrams uint64 `json:"datagrams"`
	// that this machine did not send, or a collector refused: at least so many
	LostReports uint64 `json:"lostReports"`
}

// TelemetryPackets counts packets by what became of them: docs/reference/telemetry.md.
type TelemetryPackets struct {
	Outcome string `json:"outcome"`
	Packets uint64 `json:"packets"`
}

// TelemetryReports counts packets that the sink reported by one of the reasons.
type TelemetryReports struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// TelemetryWatch is an item of a source's watch list.
type TelemetryWatch struct {
	Name    string                 `json:"name"` // "": all other packets
	Service string                 `json:"service,omitempty"`
	Match   string                 `json:"match"` // as a rule says it
	OneIn   int                    `json:"oneIn"` // 0: none gets telemetry
	Choice  config.TelemetryChoice `json:"choice"`
	// what nodes write; with Path Tracing, none: interface and time
	Metadata []config.TelemetryMetadata `json:"metadata"`
}

// TelemetryWatchSpec is what a PUT says about an item of the watch list.
type TelemetryWatchSpec struct {
	Service          *string                     `json:"service,omitempty" setting:"telemetry.source.watch[].service"`
	Source           *netip.Prefix               `json:"source,omitempty" setting:"telemetry.source.watch[].source"`
	Destination      *netip.Prefix               `json:"destination,omitempty" setting:"telemetry.source.watch[].destination"`
	Protocol         *int                        `json:"protocol,omitempty" setting:"telemetry.source.watch[].protocol"`
	SourcePorts      *config.PortRange           `json:"sourcePorts,omitempty" setting:"telemetry.source.watch[].sourcePorts"`
	DestinationPorts *config.PortRange           `json:"destinationPorts,omitempty" setting:"telemetry.source.watch[].destinationPorts"`
	DSCP             *int                        `json:"dscp,omitempty" setting:"telemetry.source.watch[].dscp"`
	Metadata         *[]config.TelemetryMetadata `json:"metadata,omitempty" setting:"telemetry.source.watch[].metadata[]"`
	OneIn            *int                        `json:"oneIn,omitempty" setting:"telemetry.source.watch[].oneIn"`
	Choice           *config.TelemetryChoice     `json:"choice,omitempty" setting:"telemetry.source.watch[].choice"`
}

// TelemetryWatches returns a source's watch list; the last item is all other packets. None on a
// node that is no source.
func (c *Client) TelemetryWatches(ctx context.Context) ([]TelemetryWatch, error) {
	return items[TelemetryWatch](ctx, c, request{path: "/v1/telemetry/watch"})
}

// PutTelemetryWatch adds an item to the watch list, or changes one.
func (c *Client) PutTelemetryWatch(ctx context.Context, put Put, name string,
	spec TelemetryWatchSpec) (Changes, error) {
	return c.write(ctx, request{method: http.MethodPut, path: telemetryWatchPath(name),
		put: put.header()}, spec)
}

// DeleteTelemetryWatch deletes an item of the watch list.
func (c *Client) DeleteTelemetryWatch(ctx context.Context, name string) (Changes, error) {
	return ask[Changes](ctx, c, request{method: http.MethodDelete, path: telemetryWatchPath(name)})
}

func telemetryWatchPath(name string) string {
	return "/v1/telemetry/watch/" + url.PathEscape(name)
}

func (h handler) telemetryWatches(r *http.Request) (any, error) {
	n, err := h.agent.Config(r.Context())
	list := List[TelemetryWatch]{Items: []TelemetryWatch{}}
	if err != nil || n.Telemetry == nil || n.Telemetry.Source == nil {
		return list, err
	}
	s := n.Telemetry.Source
	for _, w := range n.TelemetryWatches() {
		list.Items = append(list.Items, TelemetryWatch{Name: w.Name, Service: w.Service,
			Match: w.Rule().Match(), OneIn: w.OneIn, Choice: w.Choice,
			Metadata: s.MetadataOf(w.Metadata)})
	}
	rest := config.SteeringRule{DSCP: config.AnyDSCP}
	list.Items = append(list.Items, TelemetryWatch{Match: rest.Match(), OneIn: s.OneIn,
		Choice: s.Choice, Metadata: s.MetadataOf(nil)})
	return list, nil
}

func (h handler) putTelemetryWatch(r *http.Request) (any, error) {
	var spec TelemetryWatchSpec
	if err := ReadJSON(r, &spec); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	return h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		change := config.TelemetryWatchChange(spec)
		if conditionOf(r).adds(n.HasTelemetryWatch(name)) {
			return config.AddTelemetryWatch(n, name, change)
		}
		return config.SetTelemetryWatch(n, name, change)
	})
}

func (h handler) deleteTelemetryWatch(r *http.Request) (any, error) {
	return h.change(r.Context(), func(n *config.Node) (*config.Node, error) {
		return config.DeleteTelemetryWatch(n, r.PathValue("name"))
	})
}
