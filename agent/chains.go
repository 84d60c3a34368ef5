package agent

import (
	"fmt"
	"slices"
	"time"

	"sextant/config"
	"sextant/datapath"
	"sextant/flow"
	"sextant/pool"
)

var poolPolicies = map[config.ServicePolicy]pool.Policy{
	config.PolicyOffer: pool.Offer, config.PolicyShadow: pool.Shadow, config.PolicyECMP: pool.ECMP,
}

var poolMethods = map[config.Table]pool.Method{
	config.Rendezvous: pool.Rendezvous, config.Exact: pool.Exact, config.Modulo: pool.Modulo,
}

// poolSpec is what stays the same as long as the service's settings do. The seed is a function of the cluster's secret and the
// endpoint, so all edges have the same.
func poolSpec(s *edgeService, n *config.Node) pool.Spec {
	return pool.Spec{
		Buckets:    n.Edge.Buckets,
		Seed:       flow.SipHash13(n.Secret, []byte(s.Endpoint.String())),
		Policy:     poolPolicies[s.Policy],
		Method:     poolMethods[s.Table],
		Candidates: s.Candidates,
		Depth:      max(s.Depth, s.Candidates),
		Drain:      s.DrainTime,
	}
}

// chains makes the service's next generation: from the running one, or from what an earlier agent left in the kernel.
func (a *Agent) chains(s *edgeService, n *config.Node, dir string) error {
	members, err := a.members(&s.Service, n)
	if err != nil {
		return err
	}
	s.effect = a.effect(&s.Service, a.edge.service(s.Endpoint), members)
	members = s.effect.Backends
	s.members = members
	spec := poolSpec(s, n)
	previous, err := a.previousChains(s, n, dir)
	switch {
	case err != nil:
		return err
	case previous.running != nil:
		s.generation, s.past = previous.running, a.edge.service(s.Endpoint).past
		s.generation, err = a.follow(s, spec, n, members)
	case previous.chains != nil:
		if !a.startup.settled {
			s.past = previous.chains
		}
		s.generation, err = a.resume(s, spec, n, previous.chains, members)
	default:
		s.generation, err = pool.New(spec, members, a.now())
	}
	return err
}

// members are the service's backends as the pool knows them.
func (a *Agent) members(s *config.Service, n *config.Node) ([]pool.Backend, error) {
	members := make([]pool.Backend, len(s.Backends))
	for i, b := range s.Backends {
		id, err := numberSID(a.store.kept.SIDs, n.Domain.Block, b.SID)
		if err != nil {
			return nil, err
		}
		state, err := pool.ParseState(string(b.State))
		if err != nil {
			return nil, err
		}
		members[i] = pool.Backend{ID: id, Weight: uint32(b.Weight), State: state}
	}
	return members, nil
}

// now is the clock of the pools.
func (a *Agent) now() time.Duration { return time.Since(a.started) }

// previousChains are what a service's chains were before: a generation if it can go on, else the chains alone.
type previousChains struct {
	running *pool.Generation
	chains  []pool.Chain
}

func (a *Agent) previousChains(s *edgeService, n *config.Node, dir string) (previousChains, error) {
	running := a.edge.service(s.Endpoint)
	if running == nil {
		if a.node != nil {
			return previousChains{}, nil // a new service
		}
		chains, err := datapath.PinnedChains(dir, s.index)
		if err == nil && chains == nil {
			chains = a.chainsFromBefore(n, s)
		}
		if err != nil || a.rehashes(n) {
			return previousChains{}, err
		}
		return previousChains{chains: pool.Rebucket(chains, n.Edge.Buckets)}, nil
	}
	g := running.generation
	switch {
	case a.rehashes(n):
		return previousChains{}, nil
	case g.Buckets() == n.Edge.Buckets && running.Continuity == s.Continuity:
		return previousChains{running: g}, nil
	}
	return previousChains{chains: pool.Rebucket(chainsOf(g), n.Edge.Buckets)}, nil
}

// rehashes says whether flows are in other buckets by this node than by what ran before, so that
// chains of before say nothing.
func (a *Agent) rehashes(n *config.Node) bool {
	if a.node != nil {
		return a.node.Secret != n.Secret
	}
	return a.store.kept.Secret != "" && a.store.kept.Secret != secretMark(n.Secret)
}

// refresh brings the chains of the running services up to date: with what is known of the backends, and with the time.
func (a *Agent) refresh() error {
	if a.edge == nil {
		return nil
	}
	for i := range a.edge.services {
		if err := a.refreshService(&a.edge.services[i], a.node.Edge.Services[i]); err != nil {
			return err
		}
	}
	if a.checks.stale {
		a.check()
	}
	a.notePanics()
	return nil
}

// refreshService takes the service as the configuration has it.
func (a *Agent) refreshService(s *edgeService, configured config.Service) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("service %s: bring its chains up to date: %w", s.Name, err)
		}
	}()
	service := a.withLearned(configured)
	members, err := a.members(&service, a.node)
	if err != nil {
		return err
	}
	effect := a.effect(&service, s, members)
	members = effect.Backends
	next, err := a.follow(s, poolSpec(s, a.node), a.node, members)
	if err != nil {
		return err
	}
	if next != s.generation {
		if err := a.edge.setSIDs(service.Backends, members, s.pastSIDs); err != nil {
			return err
		}
		if err := a.edge.program.SetChains(s.index, next); err != nil {
			return err
		}
	}
	a.checks.stale = a.checks.stale || !slices.Equal(s.Backends, service.Backends)
	s.Service, s.members, s.generation, s.effect = service, members, next, effect
	return nil
}

// refreshRetry is when chains are brought up to date again that could not be.
const refreshRetry = time.Second

func (a *Agent) refreshOrWarn() {
	a.retryAt = 0
	a.retryLater(a.refresh())
}

// retryLater has all chains brought up to date again soon if there is an error.
func (a *Agent) retryLater(err error) {
	if err != nil {
		a.retryAt = a.now() + refreshRetry
		a.options.Log.Warn("chains stay as they were; tried again soon", "error", err, "after", refreshRetry)
	}
}

// refreshTime reports when refresh is due because of the time alone; never if nothing waits for that.
func (a *Agent) refreshTime() <-chan time.Time {
	wait, waits := a.nextRefresh()
	if a.retryAt != 0 {
		wait, waits = a.retryAt-a.now(), true
	}
	if !waits {
		return nil
	}
	return time.After(wait)
}

// nextRefresh is the time until the first past owner's drain time is over, or a weight grows; false if nobody waits for that.
func (a *Agent) nextRefresh() (time.Duration, bool) {
	first, waits := time.Duration(0), false
	if a.edge == nil {
		return 0, false
	}
	for i := range a.edge.services {
		if at, ok := a.edge.services[i].generation.NextAt(); ok && (!waits || at < first) {
			first, waits = at, true
		}
	}
	if at, ok := a.edge.nextStep(); ok && (!waits || at < first) {
		first, waits = at, true
	}
	return max(0, first-a.now()), waits
}
