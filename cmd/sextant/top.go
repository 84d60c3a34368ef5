package main

import (
	"encoding/json"
	"fmt"
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
}

type topService struct {
	Name             string       `json:"name"`
	Role             api.Role     `json:"role"`
	PacketsPerSecond float64      `json:"packetsPerSecond"`
	BytesPerSecond   float64      `json:"bytesPerSecond"`
	Host             *topHost     `json:"host,omitempty"`
	Backends         []topBackend `json:"backends,omitempty"`
}

type topHost struct {
	Policy            config.Policy `json:"policy"`
	Threshold         uint32        `json:"threshold"`
	Busy              int           `json:"busy"`
	OfferedPerSecond  float64       `json:"offeredPerSecond"`
	RefusedPerSecond  float64       `json:"refusedPerSecond"`
	ForcedPerSecond   float64       `json:"forcedPerSecond"`
	PassedOnPerSecond float64       `json:"passedOnPerSecond"` // packets
}

type topBackend struct {
	Name             string              `json:"name"`
	State            config.BackendState `json:"state"`
	PacketsPerSecond float64             `json:"packetsPerSecond"`
	BytesPerSecond   float64             `json:"bytesPerSecond"`
}

func (a *app) topCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "top", Short: "Watch the rates of services and backends",
		Long: `Watch the rates of services and backends, redrawn at each interval; Ctrl-C ends. In JSON, and where the output is
no terminal, it is one picture after the other.`,
		Example:           "  sextant lab exec quickstart edge -- sextant top --count 5",
		Annotations:       seeAlso("sextant monitor", "sextant service show"),
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	w := watchFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.streams()
		if err != nil {
			return err
		}
		return a.follow(cmd, w, func(before, after api.Sample) error {
			frame := frameOf(before, after)
			if asJSON {
				return json.NewEncoder(a.stdout).Encode(frame)
			}
			return a.draw(frame)
		})
	}
	return cmd
}

// draw writes a picture in one piece, so that it does not flicker: home, each
// line cleared behind its end, then all below.
func (a *app) draw(f topFrame) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n", f.Time.Format(time.TimeOnly))
	if err := topTables(f).write(&text, a.output == formatWide); err != nil {
		return err
	}
	picture := text.String() + "\n"
	if a.terminal {
		picture = "\x1b[H" + strings.ReplaceAll(text.String(), "\n", "\x1b[K\n") + "\x1b[J"
	}
	_, err := fmt.Fprint(raw(a.stdout), picture) // its cells drive nothing
	return err
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
			RefusedPerSecond:  perSecond(old.Refused, h.Refused, interval),
			ForcedPerSecond:   perSecond(old.Forced, h.Forced, interval),
			PassedOnPerSecond: perSecond(old.PassedOnPackets, h.PassedOnPackets, interval),
		}
	}
	if e, old := after.Edge, before.Edge; e != nil && old != nil {
		t.Backends = topBackendsOf(old.Backends, e.Backends, interval)
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
			list = append(list, topBackend{
				Name: b.Name, State: b.State,
				PacketsPerSecond: perSecond(old.Packets, b.Packets, interval),
				BytesPerSecond:   perSecond(old.Bytes, b.Bytes, interval),
			})
		}
	}
	return list
}

// topTables has one table per role that is there.
func topTables(f topFrame) tables {
	edge := table{columns: []string{"SERVICE", "BACKEND", "STATE", "PACKETS/s", "BYTES/s"}}
	host := table{
		columns: []string{"SERVICE", "POLICY", "THRESHOLD", "BUSY", "OFFERED/s", "REFUSED/s",
			"PACKETS/s", "BYTES/s"},
		wide: []string{"FORCED/s", "PASSED-ON/s"},
	}
	for _, s := range f.Services {
		if h := s.Host; h != nil {
			host.rows = append(host.rows, []string{
				s.Name, string(h.Policy), count(h.Threshold), count(h.Busy),
				scaled(h.OfferedPerSecond), scaled(h.RefusedPerSecond),
				scaled(s.PacketsPerSecond), scaled(s.BytesPerSecond), scaled(h.ForcedPerSecond),
				scaled(h.PassedOnPerSecond),
			})
			continue
		}
		edge.rows = append(edge.rows, []string{s.Name, "", "", scaled(s.PacketsPerSecond),
			scaled(s.BytesPerSecond)})
		for _, b := range s.Backends {
			edge.rows = append(edge.rows, []string{"", b.Name, string(b.State),
				scaled(b.PacketsPerSecond),
				scaled(b.BytesPerSecond)})
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
