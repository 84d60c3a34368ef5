package edge

import (
	"net/netip"
	"slices"
	"time"

	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

var poolPolicies = map[config.ServicePolicy]pool.Policy{
	config.PolicyOffer: pool.Offer, config.PolicyShadow: pool.Shadow, config.PolicyECMP: pool.ECMP,
}

var poolMethods = map[config.Table]pool.Method{
	config.Rendezvous: pool.Rendezvous, config.Exact: pool.Exact, config.Modulo: pool.Modulo,
}

// poolSpec is what stays the same as long as the service's settings do. The seed is a function of
// the cluster's secret and the endpoint, so all edges have the same.
func poolSpec(e config.Endpoint, k config.Continuity, buckets int, secret flow.Secret) pool.Spec {
	return pool.Spec{
		Buckets:    buckets,
		Seed:       flow.SipHash13(secret, []byte(e.String())),
		Policy:     poolPolicies[k.Policy],
		Method:     poolMethods[k.Table],
		Candidates: k.Candidates,
		Depth:      max(k.Depth, k.Candidates),
		Drain:      k.DrainTime,
	}
}

// Spec is what the service is made by.
func (s *Service) Spec(n *config.Node) pool.Spec {
	return poolSpec(s.Endpoint, s.Continuity, s.Buckets, n.Secret)
}

// chains prepares the service, and returns what makes its next generation: from the running one, or
// from what an earlier agent left in the kernel, which was found there. That only reads what the
// service does not own.
func (e *Room) chains(
	s *Service, n *config.Node, found datapath.MarkedChains,
) (generation func() (*pool.Generation, error), err error) {
	members, err := e.members(&s.Service, n)
	if err != nil {
		return nil, err
	}
	s.effect = e.effect(&s.Service, e.Runs.service(s.Endpoint), members)
	members = s.effect.Backends
	s.Members = members
	if s.way, err = e.wayOf(&s.Service, n); err != nil {
		return nil, err
	}
	if s.Paths, err = e.pathsOf(&s.Service, s.way, members, n); err != nil {
		return nil, err
	}
	if running := e.Runs.service(s.Endpoint); running != nil {
		s.order = running.order
	}
	s.order = e.orderOf(s, n)
	previous := e.previousChains(s, n, found)
	s.Buckets = previous.buckets
	spec := s.Spec(n)
	switch {
	case previous.running != nil:
		s.Generation, s.past = previous.running, e.Runs.service(s.Endpoint).past
		return func() (*pool.Generation, error) { return e.follow(s, spec, n, members) }, nil
	case previous.found.Buckets() > 0 && e.Found.Startup.Settled:
		return func() (*pool.Generation, error) {
			return e.takeUp(s, spec, n, previous.found, members)
		}, nil
	}
	if chains := previous.read(); chains != nil {
		if !e.Found.Startup.Settled {
			s.past = chains
		}
		return func() (*pool.Generation, error) {
			return e.resume(s, spec, n, chains, members)
		}, nil
	}
	return func() (*pool.Generation, error) { return pool.New(spec, members, e.Now()) }, nil
}

// members are the service's backends as the pool knows them.
func (e *Room) members(s *config.Service, n *config.Node) ([]pool.Backend, error) {
	members, sites := make([]pool.Backend, len(s.Backends)), s.Sites()
	for i, b := range s.Backends {
		id, err := e.Store.Kept.SIDs.Number(n.Domain.Block, b.SID)
		if err != nil {
			return nil, err
		}
		is, err := pool.ParseState(string(b.State))
		if err != nil {
			return nil, err
		}
		site, _ := slices.BinarySearch(sites, b.Site)
		members[i] = pool.Backend{ID: id, Key: state.KeyOf(n.Domain.Block, b.SID),
			Weight: uint32(b.Weight), State: is, Site: uint16(site)}
	}
	return members, nil
}

// makeRoom forgets ids that nothing uses, if there might be none for the backends of services.
func (e *Room) makeRoom(n *config.Node, services ...*Service) {
	var wanted []netip.Addr
	for _, s := range services {
		for _, b := range s.Backends {
			wanted = append(wanted, b.SID)
		}
	}
	e.Store.Kept.SIDs.Prune(n.Domain.Block, wanted, func() map[netip.Addr]bool {
		used := map[netip.Addr]bool{}
		for _, s := range services {
			s.addSIDs(used)
		}
		if e.Runs != nil {
			for i := range e.Runs.Services {
				e.Runs.Services[i].addSIDs(used)
			}
		}
		return used
	})
}

// addSIDs adds all that have ids for the service.
func (s *Service) addSIDs(to map[netip.Addr]bool) {
	for _, b := range s.Backends {
		to[b.SID] = true
		for _, sid := range s.PathTo(b) {
			to[sid] = true
		}
	}
	for _, sids := range []map[uint16]netip.Addr{s.pastSIDs, s.Paths.sids} {
		for _, sid := range sids {
			to[sid] = true
		}
	}
}

// previousChains are what a service's chains were before: a generation if it can go on, else what
// was found in the kernel, or chains alone, or nothing; and how many buckets the service has
// therefore.
type previousChains struct {
	running *pool.Generation
	found   datapath.MarkedChains
	chains  []pool.Chain
	buckets int
}

// read returns the chains, wherever they are; nil: there are none.
func (p *previousChains) read() []pool.Chain {
	if p.chains == nil {
		return p.found.Read()
	}
	return p.chains
}

// previousChains finds them. A service has the number of buckets that the node file declares;
// without one it keeps what it had, here or at its peers, since another number would send packets
// of old connections to backends that do not have them. Chains are carried over to a number that is
// declared.
func (e *Room) previousChains(
	s *Service, n *config.Node, found datapath.MarkedChains,
) (p previousChains) {
	var declared bool
	p.buckets, declared = n.Edge.BucketsOf(&s.Service)
	running := e.Runs.service(s.Endpoint)
	switch {
	case running == nil && e.Node != nil:
		return p // a new service
	case running == nil:
		if p.found = found; found.Buckets() == 0 { // others may know
			p.chains = e.Past.chainsFromBefore(n, s, p.buckets, declared)
		}
	case !e.rehashes(n) && running.Continuity == s.Continuity &&
		(!declared || running.Buckets == p.buckets):
		p.running, p.buckets = running.Generation, running.Buckets
		return p
	default:
		p.chains = running.Generation.AllChains()
	}
	had := p.found.Buckets() + len(p.chains) // of which there is one
	if had == 0 {
		return p
	}
	if !declared {
		p.buckets = had
	}
	switch {
	case e.rehashes(n):
		p.found, p.chains = datapath.MarkedChains{}, nil
	case had != p.buckets:
		p.found, p.chains = datapath.MarkedChains{}, pool.Rebucket(p.read(), p.buckets)
	}
	return p
}

// rehashes says whether flows are in other buckets by this node than by what ran before, so that
// previous chains say nothing.
func (e *Room) rehashes(n *config.Node) bool {
	if e.Node != nil {
		return rehashed(e.Node, n)
	}
	return e.Store.Kept.Secret != "" && e.Store.Kept.Secret != state.HashMark(n.Secret, n.FlowHash)
}

// rehashed says whether flows have another hash by n than by before.
func rehashed(before, n *config.Node) bool {
	return before.Secret != n.Secret || before.FlowHash != n.FlowHash
}

// check has backends checked, now or soon.
func (e *Room) check() {
	before := e.checks.warning
	if e.checks.check(); e.checks.stale {
		e.retryAt = e.Now() + refreshRetry
	}
	if e.checks.warning != before {
		e.Rewarn()
	}
}

// Due is when refresh is due because of the time alone; false if nothing waits for that.
func (e *Room) Due() (wait time.Duration, waits bool) {
	if e.retryAt != 0 {
		return e.retryAt - e.Now(), true
	}
	return e.nextRefresh()
}

// Act is role.Timed.
func (e *Room) Act() { e.refreshOrWarn() }

// due is when services have to be looked at because of the time.
type due struct {
	of    revision
	at    time.Duration
	waits bool // else there is no such time
}

// nextRefresh is the time until the first previous owner's drain time is over, or a weight grows;
// false if nobody waits for that.
func (e *Room) nextRefresh() (time.Duration, bool) {
	if e.Runs == nil {
		return 0, false
	}
	if e.due.of != e.revision() {
		e.due = due{of: e.revision()}
		e.due.at, e.due.waits = e.Runs.nextStep()
	}
	first, waits := e.due.at, e.due.waits
	if f := e.Runs.former; f != nil {
		if at := e.Now() + time.Until(f.until); !waits || at < first {
			first, waits = at, true
		}
	}
	return max(0, first-e.Now()), waits
}
