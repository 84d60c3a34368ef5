package agent

import (
	"context"
	"net/http"
	"time"

	"sextant/agent/api"
	"sextant/agent/edge"
	"sextant/agent/httpserver"
	"sextant/agent/peer"
	"sextant/agent/role"
	"sextant/packet/flow"
)

// metricsPort is what the agent answers at the metrics port.
func (a *Agent) metricsPort() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.Metrics())
	challenges := peer.NewChallenges()
	for path, handler := range map[string]http.Handler{
		"/v1/connections": api.ConnectionsHandler(a), "/v1/merge": api.MergeHandler(a),
	} {
		mux.Handle("GET "+path, challenges.Answer(a.secret, handler))
	}
	mux.Handle("GET "+edge.ChainsPath, a.ChainsHandler())
	httpserver.HandleProbes(mux, a.unready)
	return mux
}

// secret is the cluster's.
func (a *Agent) secret(ctx context.Context) (flow.Secret, error) {
	return role.See(ctx, &a.Loop, func() (flow.Secret, error) { return a.Node.Secret, nil })
}

// unready names what keeps the node from forwarding as its configuration says: programs that do not
// run where they should, and roles that do less than they should.
func (a *Agent) unready(ctx context.Context) ([]string, error) {
	return role.See(ctx, &a.Loop, func() (list []string, err error) {
		for _, r := range a.Running() {
			if why := r.Shortfall(); why != "" {
				list = append(list, "role "+string(r.Name)+": "+why)
			}
			for _, at := range r.Attached() {
				if fault := a.watch.faultAt(r.Name, at); fault != "" {
					list = append(list, "program "+r.Shown(at).Name+": "+fault)
				}
			}
		}
		return list, nil
	})
}

// Metrics is what api.Agent says.
func (a *Agent) Metrics() http.Handler { return a.metrics.Handler }

// Status is what api.Agent says.
func (a *Agent) Status(ctx context.Context) (api.Status, error) {
	return role.See(ctx, &a.Loop, a.status)
}

func (a *Agent) status() (api.Status, error) {
	s := api.Status{
		Node: a.Node.Name, Version: a.options.Version, Roles: a.Node.Roles(), StartedAt: a.Started,
		UptimeSeconds: int64(time.Since(a.Started).Seconds()), ConfigHash: a.fingerprint,
		Warnings: []string{},
		Programs: []api.Program{}, PinDirectory: a.Dir,
	}
	if u := a.Store.Kept.Unconfirmed; u != nil {
		s.Warnings = append(s.Warnings, "the configuration that runs is "+undoneUnless(u))
	}
	s.Warnings = append(s.Warnings, a.warnings...)
	s.Warnings = append(s.Warnings, a.Store.Warnings()...)
	for _, room := range a.Rooms {
		s.Warnings = append(s.Warnings, room.Warnings()...)
	}
	for _, r := range a.Running() {
		for _, at := range r.Attached() {
			p := r.Shown(at)
			p.Fault = a.watch.faultAt(r.Name, at)
			s.Programs = append(s.Programs, p)
		}
	}
	return s, nil
}
