package edge

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/role"
	"sextant/config"
	"sextant/packet/flow"
)

// Passive signals: what clients meet with at a backend, as its host counts it. The edge sees no
// answers to clients, which go straight to them, so it asks the host's agent, as often as it checks
// the backend.

// signals turns a host's counters into results like those of checks.
type signals struct {
	*health.Monitor
	mutex  sync.Mutex
	secret flow.Secret // of the cluster
	last   map[health.Key]api.HostConnections
}

// newSignals makes a monitor of passive signals.
func newSignals(ctx context.Context) *signals {
	s := &signals{last: map[health.Key]api.HostConnections{}}
	s.Monitor = health.NewMonitorOf(ctx, s.probe)
	return s
}

// ask makes the hosts those that are asked.
func (s *signals) ask(jobs []health.Job, secret flow.Secret) {
	s.mutex.Lock()
	s.secret = secret
	s.mutex.Unlock()
	s.Set(jobs)
}

// passiveJob is what is asked about a backend; false: nothing.
func passiveJob(s *config.Service, b config.Backend, j health.Job) (health.Job, bool) {
	j.Target.Agent, j.Target.Endpoint = b.Agent, s.Endpoint
	j.Target.Mark, j.Target.Source = 0, netip.Addr{}
	return j, s.Check.Passive != nil && b.Agent.IsValid()
}

// probe returns what speaks against the backend since the last time; nil if nothing does. Who can't
// be asked gives no signal: that its agent is away says nothing about the server.
func (s *signals) probe(ctx context.Context, j health.Job) error {
	s.mutex.Lock()
	secret := s.secret
	s.mutex.Unlock()
	now, err := api.AskHost(ctx, secret, j.Target.Agent, j.Target.Endpoint)
	if err != nil {
		return nil
	}
	key := health.Key{Service: j.Target.Service, Backend: j.Target.Backend}
	s.mutex.Lock()
	before, known := s.last[key]
	s.last[key] = now
	s.mutex.Unlock()
	if !known {
		return nil
	}
	return judge(j.Check.Passive, before, now)
}

// judge compares what a host counted between two times with the thresholds. Counters that went back
// are those of another start. Resets about packets of connections that the host does not have are
// none: any client can ask for these, of any host.
func judge(p *config.Passive, before, now api.HostConnections) error {
	if now.Opened < before.Opened || now.Established < before.Established ||
		now.Resets < before.Resets || now.StrayResets < before.StrayResets {
		return nil
	}
	opened, established := now.Opened-before.Opened, now.Established-before.Established
	resets := now.Resets - before.Resets
	resets -= min(resets, now.StrayResets-before.StrayResets)
	above := func(part uint64, permille int) bool {
		return permille > 0 && part*1000 > opened*uint64(permille)
	}
	switch {
	case opened < uint64(p.Minimum):
		return nil
	case above(resets, p.ResetsPermille):
		return fmt.Errorf("its host sent %d resets for %d connections asked for, more than %s of "+
			"them", resets, opened,
			config.FormatPermille(p.ResetsPermille))
	case established < opened && above(opened-established, p.TimeoutsPermille):
		return fmt.Errorf("at its host %d of %d connections asked for were not established, more "+
			"than %s of them",
			opened-established, opened,
			config.FormatPermille(p.TimeoutsPermille))
	}
	return nil
}

// signalsEnded takes results of passive signals.
func (k *checks) signalsEnded(list []health.Result) {
	k.take(list, k.signals, func(r health.Result, c *role.Checked) {
		before := c.Status()
		c.Passive = c.Passive.After(r.Err == nil,
			health.Rules{Rise: c.Check.Rise, Fall: c.Check.Fall})
		if c.Complaint = r.Err; c.Status() != before {
			c.Since = r.At
		}
	})
}
