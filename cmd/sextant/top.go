package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// topFrame is one picture of the services' rates.
type topFrame struct {
	Time     time.Time    `json:"time"`
	Services []topService `json:"services"`
	Totals   []topTotal   `json:"totals"`
}

// topTotal is what all packets of a role have in common.
type topTotal struct {
	Role               api.Role `json:"role"`
	ForwardedPerSecond float64  `json:"forwardedPerSecond"`
	TakenPerSecond     float64  `json:"takenPerSecond"`
	DroppedPerSecond   float64  `json:"droppedPerSecond"`
}

type topService struct {
	Name             string   `json:"name"`
	Role             api.Role `json:"role"`
	PacketsPerSecond float64  `json:"packetsPerSecond"`
	BytesPerSecond   float64  `json:"bytesPerSecond"`
	// of an edge with a limit of new connections
	NewConnectionsPerSecond *float64     `json:"newConnectionsPerSecond,omitempty"`
	RefusedPerSecond        *float64     `json:"refusedPerSecond,omitempty"`
	Host                    *topHost     `json:"host,omitempty"`
	Backends                []topBackend `json:"backends,omitempty"`
}

type topHost struct {
	Policy            config.Policy `json:"policy"`
	Threshold         uint32        `json:"threshold"`
	Busy              int           `json:"busy"`
	OfferedPerSecond  float64       `json:"offeredPerSecond"`
	NewPerSecond      float64       `json:"newPerSecond"` // established connections
	RefusedPerSecond  float64       `json:"refusedPerSecond"`
	ForcedPerSecond   float64       `json:"forcedPerSecond"`
	PassedOnPerSecond float64       `json:"passedOnPerSecond"` // packets
}

type topBackend struct {
	Name             string              `json:"name"`
	State            config.BackendState `json:"state"`
	Health           string              `json:"health,omitempty"` // unknown, healthy or failing
	PacketsPerSecond float64             `json:"packetsPerSecond"`
	BytesPerSecond   float64             `json:"bytesPerSecond"`
}

func (a *app) topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "top", Short: "Watch the rates of services and backends",
		Long: `Watch the rates of services and backends, redrawn at each interval; Ctrl-C ends, and what was on the terminal before
comes back. In JSON, and where the output is no terminal, it is one picture after the other. NEW/s are connections: at an
edge of services with a limit of new connections, whose SYNs are counted, at a host those established; REFUSED/s are
those above the limit, or that a host left to the next candidate.`,
		Example:     "  sextant lab exec quickstart edge -- sextant top --count 5",
		Annotations: seeAlso("sextant monitor", "sextant service show"),
	}
	w := watchFlags(cmd)
	order := ""
	orders := []string{"configuration", "name", "packets", "bytes"}
	cmd.Flags().StringVar(&order, "sort", orders[0],
		"order of services and of their backends: "+strings.Join(orders, ", "))
	complete(cmd, "sort", orders...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.streams()
		if err == nil {
			err = oneOf("sort", order, orders)
		}
		if err != nil {
			return err
		}
		show := func(before, after api.Sample) error {
			frame := frameOf(before, after)
			frame.sort(order)
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(frame)
			}
			return a.draw(frame)
		}
		if asJSON {
			return a.follow(cmd, w, show)
		}
		return a.onScreen(func() error { return a.follow(cmd, w, show) })
	}
	return cmd
}

// draw writes a picture.
func (a *app) draw(f topFrame) error {
	var text strings.Builder
	fmt.Fprintln(&text, f.Time.Format(time.TimeOnly))
	for _, t := range f.Totals {
		fmt.Fprintf(&text, "%s: %s forwarded/s, %s taken/s, %s dropped/s\n", t.Role,
			scaled(t.ForwardedPerSecond), scaled(t.TakenPerSecond), scaled(t.DroppedPerSecond))
	}
	text.WriteString("\n")
	if err := topTables(f).write(&text, a.output == formatWide); err != nil {
		return err
	}
	return a.picture(text.String())
}

// sort orders services, and the backends of each.
func (f topFrame) sort(by string) {
	type rates struct {
		name           string
		packets, bytes float64
	}
	compare := map[string]func(a, b rates) int{
		"name":    func(a, b rates) int { return cmp.Compare(a.name, b.name) },
		"packets": func(a, b rates) int { return cmp.Compare(b.packets, a.packets) },
		"bytes":   func(a, b rates) int { return cmp.Compare(b.bytes, a.bytes) },
	}[by]
	if compare == nil {
		return
	}
	slices.SortStableFunc(f.Services, func(a, b topService) int {
		return compare(rates{a.Name, a.PacketsPerSecond, a.BytesPerSecond},
			rates{b.Name, b.PacketsPerSecond, b.BytesPerSecond})
	})
	for _, s := range f.Services {
		slices.SortStableFunc(s.Backends, func(a, b topBackend) int {
			return compare(rates{a.Name, a.PacketsPerSecond, a.BytesPerSecond},
				rates{b.Name, b.PacketsPerSecond, b.BytesPerSecond})
		})
	}
}

func frameOf(before, after api.Sample) topFrame {
	interval := after.Time.Sub(before.Time)
	earlier := map[string]api.Service{}
	for _, s := range before.Services {
		earlier[string(s.Role)+s.Name] = s
	}
	f := topFrame{Time: after.Time, Services: []topService{}}
	for _, s := range after.Services {
		if old, ok := earlier[string(s.Role)+s.Name]; ok {
			f.Services = append(f.Services, topServiceOf(old, s, interval))
		}
	}
	for i, c := range after.Counters {
		if i < len(before.Counters) {
			old := before.Counters[i]
			f.Totals = append(f.Totals, topTotal{c.Role,
				perSecond(old.ForwardedPackets(), c.ForwardedPackets(), interval),
				perSecond(old.TakenPackets, c.TakenPackets, interval),
				perSecond(old.DroppedPackets(), c.DroppedPackets(), interval)})
		}
	}
	return f
}

func topServiceOf(before, after api.Service, interval time.Duration) topService {
	t := topService{
		Name: after.Name, Role: after.Role,
		PacketsPerSecond: perSecond(before.Packets, after.Packets, interval),
		BytesPerSecond:   perSecond(before.Bytes, after.Bytes, interval),
	}
	if h, old := after.Host, before.Host; h != nil && old != nil {
		t.Host = &topHost{
			Policy: h.Accept.Policy, Threshold: h.Threshold, Busy: h.Busy,
			OfferedPerSecond:  perSecond(old.Offered, h.Offered, interval),
			NewPerSecond:      perSecond(old.Established, h.Established, interval),
			RefusedPerSecond:  perSecond(old.Refused, h.Refused, interval),
			ForcedPerSecond:   perSecond(old.Forced, h.Forced, interval),
			PassedOnPerSecond: perSecond(old.PassedOnPackets, h.PassedOnPackets, interval),
		}
	}
	if e, old := after.Edge, before.Edge; e != nil && old != nil {
		t.Backends = topBackendsOf(old.Backends, e.Backends, interval)
		if n, earlier := e.NewConnections, old.NewConnections; n != nil && earlier != nil {
			taken := perSecond(earlier.Taken, n.Taken, interval)
			refused := perSecond(earlier.Refused, n.Refused, interval)
			t.NewConnectionsPerSecond, t.RefusedPerSecond = &taken, &refused
		}
	}
	return t
}

func topBackendsOf(before, after []api.Backend, interval time.Duration) []topBackend {
	earlier := map[string]api.Backend{}
	for _, b := range before {
		earlier[b.Name] = b
	}
	var list []topBackend
	for _, b := range after {
		if old, ok := earlier[b.Name]; ok {
			top := topBackend{
				Name: b.Name, State: b.State,
				PacketsPerSecond: perSecond(old.Packets, b.Packets, interval),
				BytesPerSecond:   perSecond(old.Bytes, b.Bytes, interval),
			}
			if b.Health != nil {
				top.Health = b.Health.Status
			}
			list = append(list, top)
		}
	}
	return list
}

// topTables has one table per role that is there.
func topTables(f topFrame) tables {
	edge := table{columns: []string{"SERVICE", "BACKEND", "STATE", "HEALTH", "PACKETS/s",
		"BYTES/s", "NEW/s", "REFUSED/s"}}
	host := table{
		columns: []string{"SERVICE", "POLICY", "BUSY", "OFFERED/s", "NEW/s", "REFUSED/s",
			"PACKETS/s", "BYTES/s"},
		wide: []string{"THRESHOLD", "FORCED/s", "PASSED-ON/s"},
	}
	for _, s := range f.Services {
		if h := s.Host; h != nil {
			host.add(s.Name, h.Policy, h.Busy, scaled(h.OfferedPerSecond), scaled(h.NewPerSecond),
				scaled(h.RefusedPerSecond), scaled(s.PacketsPerSecond), scaled(s.BytesPerSecond),
				h.Threshold, scaled(h.ForcedPerSecond), scaled(h.PassedOnPerSecond))
			continue
		}
		edge.add(s.Name, "", "", "", scaled(s.PacketsPerSecond), scaled(s.BytesPerSecond),
			known(s.NewConnectionsPerSecond, scaled), known(s.RefusedPerSecond, scaled))
		for _, b := range s.Backends {
			edge.add("", b.Name, b.State, orDash(b.Health), scaled(b.PacketsPerSecond),
				scaled(b.BytesPerSecond), "", "")
		}
	}
	switch {
	case len(host.rows) == 0:
		return tables{edge}
	case len(edge.rows) == 0:
		return tables{host}
	}
	return tables{edge, host}
}
