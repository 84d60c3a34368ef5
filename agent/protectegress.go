package agent

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
)

// egressInterval is how often egresses are asked what came by each path.
const egressInterval = time.Second

// watchEgresses asks the agents of egresses. Where paths are not probed, what an egress says is how a failure is noticed.
func (a *Agent) watchEgresses(ctx context.Context) {
	tick := time.NewTicker(egressInterval)
	defer tick.Stop()
	failed := map[netip.AddrPort]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var agents []netip.AddrPort
		if a.do(ctx, func() { agents = a.protections.egresses() }) != nil {
			return
		}
		for _, agent := range agents {
			flows, err := api.AskEgress(ctx, agent)
			if err != nil && !failed[agent] && ctx.Err() == nil {
				a.options.Log.Warn("what came of copies is not known", "error", err)
			}
			failed[agent] = err != nil
			if a.do(ctx, func() { a.egressTold(agent, flows) }) != nil {
				return
			}
		}
	}
}

// egresses are the agents that protections name, each once.
func (p *protections) egresses() (agents []netip.AddrPort) {
	for _, x := range p.running {
		if x.Agent.IsValid() && !slices.Contains(agents, x.Agent) {
			agents = append(agents, x.Agent)
		}
	}
	return agents
}

// egressTold takes in what came, by flow.
func (a *Agent) egressTold(agent netip.AddrPort, flows []api.MergedFlow) {
	paths := map[uint32]api.MergedPath{}
	for _, f := range flows {
		for _, p := range f.Paths {
			paths[p.Flow] = p
		}
	}
	for _, x := range a.protections.running {
		if x.Agent != agent {
			continue
		}
		x.came = paths
		if a.protections.prober != nil {
			continue
		}
		next := x.state
		for _, slot := range x.state.Carrying() {
			if p, known := paths[uint32(x.Flow+slot)]; known && p.Packets > 0 {
				next = next.Probed(slot, !p.Silent)
			}
		}
		a.changeState(x, next)
	}
}
