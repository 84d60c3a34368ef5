package agent

import (
	"context"
	"net/http"
	"time"

	"sextant/agent/api"
	"sextant/agent/httpserver"
)

// metricsPort is what the agent answers at the metrics port.
func (a *Agent) metricsPort() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.Metrics())
	mux.Handle("GET /v1/connections", api.ConnectionsHandler(a))
	mux.Handle("GET /v1/merge", api.MergeHandler(a))
	mux.Handle("GET "+chainsPath, a.chainsHandler())
	httpserver.HandleProbes(mux, a.unready)
	return mux
}

// unready names what keeps the node from forwarding as its configuration says: programs that do not
// run where they should, and roles that do less than they should.
func (a *Agent) unready(ctx context.Context) ([]string, error) {
	return ask(ctx, &a.loop, func() (list []string, err error) {
		for _, r := range a.running() {
			if why := r.shortfall(); why != "" {
				list = append(list, "role "+string(r.name)+": "+why)
			}
			for _, at := range r.attached() {
				if fault := a.watch.faultAt(r.name, at); fault != "" {
					list = append(list, "program "+r.shown(at).Name+": "+fault)
				}
			}
		}
		return list, nil
	})
}

// Status is what api.Agent says.
func (a *Agent) Status(ctx context.Context) (api.Status, error) {
	return ask(ctx, &a.loop, a.status)
}

func (a *Agent) status() (api.Status, error) {
	fingerprint, err := a.store.fingerprintOf(a.node)
	s := api.Status{
		Node: a.node.Name, Version: a.options.Version, Roles: a.node.Roles(), StartedAt: a.started,
		UptimeSeconds: int64(time.Since(a.started).Seconds()), ConfigHash: fingerprint,
		Warnings: append([]string{}, a.warnings...),
		Programs: []api.Program{}, PinDirectory: a.dir,
	}
	s.Warnings = append(s.Warnings, a.store.warnings()...)
	for _, room := range a.rooms {
		s.Warnings = append(s.Warnings, room.warnings()...)
	}
	for _, r := range a.running() {
		for _, at := range r.attached() {
			p := r.shown(at)
			p.Fault = a.watch.faultAt(r.name, at)
			s.Programs = append(s.Programs, p)
		}
	}
	return s, err
}
