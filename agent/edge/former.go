package edge

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// Former flows are the connections from before another secret, or from before services had fewer
// buckets: nothing says in which bucket they are now. For a while the edge keeps the tables of
// before beside those of now, and offers packets to whom either names. The former tables follow the
// backends as the tables of now do, so that nobody who is down is in the way.

// former is what an edge keeps of former tables. It never changes.
type former struct {
	secret   flow.Secret
	hash     flow.Function
	until    time.Time
	services map[string]state.FormerService // by endpoint
}

// knows reports whether connections of a service are found by what was before.
func (f *former) knows(e config.Endpoint) bool {
	if f == nil {
		return false
	}
	_, ok := f.services[e.String()]
	return ok
}

// flows is what the program is told.
func (f *former) flows() datapath.FormerFlows {
	if f == nil {
		return datapath.FormerFlows{}
	}
	return datapath.FormerFlows{Known: true, Secret: f.secret, FlowHash: f.hash}
}

// isOver reports whether nobody asks for what was before any more.
func (f *former) isOver(now time.Time) bool { return f != nil && !now.Before(f.until) }

// formerAfter is what an edge knows of former tables when next takes the place of running: those
// from before that change if it moves flows to buckets that do not follow from the former ones,
// else what running knows. Nil is nothing.
func formerAfter(
	running, next *Role, before, n *config.Node, now time.Time,
) *former {
	f := &former{secret: before.Secret, hash: before.FlowHash, until: now.Add(n.Edge.FormerTime),
		services: map[string]state.FormerService{}}
	for i := range running.Services {
		s := &running.Services[i]
		then := next.service(s.Endpoint)
		if then == nil || s.Policy != config.PolicyOffer || then.Policy != config.PolicyOffer ||
			!rehashed(before, n) && s.Buckets <= then.Buckets {
			continue
		}
		f.services[s.Endpoint.String()] = state.FormerService{Buckets: s.Buckets,
			Continuity: s.Continuity}
	}
	switch {
	case len(f.services) > 0 && n.Edge.FormerTime > 0:
		return f
	case running.former.isOver(now):
		return nil
	}
	return running.former
}

// keepFormer gives next the former tables.
func (e *Room) keepFormer(next *Role, n *config.Node, pinned *datapath.PinnedTables) error {
	if e.Node == nil {
		next.former = formerOf(e.Store, time.Now())
	} else if e.Runs != nil {
		next.former = formerAfter(e.Runs, next, e.Node, n, time.Now())
	}
	next.Config.Former = next.former.flows()
	for i := range next.Services {
		s := &next.Services[i]
		if !next.former.knows(s.Endpoint) {
			continue
		}
		var err error
		if s.former, err = e.formerChains(next.former, s, n, pinned); err != nil {
			return fmt.Errorf("service %s: keep its former chains: %w", s.Name, err)
		}
	}
	return nil
}

// formerChains are the former chains of a service: those that ran until now, or the former ones
// of the running service, or those that an earlier agent left in the kernel.
func (e *Room) formerChains(
	f *former, s *Service, n *config.Node, pinned *datapath.PinnedTables,
) (*pool.Generation, error) {
	running := e.Runs.service(s.Endpoint)
	switch {
	case running != nil && f != e.Runs.former:
		return running.Generation.Next(s.Members, e.Now())
	case running != nil && running.former != nil:
		return running.former.Next(s.Members, e.Now())
	}
	of := f.services[s.Endpoint.String()]
	spec := poolSpec(s.Endpoint, of.Continuity, of.Buckets, f.secret)
	chains, err := pinned.FormerChains(s.Index)
	if err != nil {
		return nil, err
	}
	if len(chains) != of.Buckets {
		return pool.New(spec, s.Members, e.Now())
	}
	members := s.Members
	if !e.Found.Startup.Settled {
		members = e.withRemembered(s, n, chains, members)
	}
	return pool.Resume(spec, chains, members, e.Now())
}

// nextFormer are the former chains of a running service as they are to be. As long as the edge does
// not know all hosts, they stay.
func (e *Room) nextFormer(s *Service, members []pool.Backend) (*pool.Generation, error) {
	if s.former == nil || !e.Found.Startup.Settled {
		return s.former, nil
	}
	return s.former.Next(members, e.Now())
}

// join adds to a chain those who had a flow before.
func (f *former) join(
	before *pool.Generation, of api.Flow, chain pool.Chain, places []pool.Place,
) (pool.Chain, []pool.Place) {
	bucket := flow.Bucket(f.hash.Hash(f.secret, tupleOf(of)), uint32(before.Buckets()))
	chain = pool.Join(chain, before.Chain(int(bucket)))
	joined := make([]pool.Place, 0, chain.Length)
	for _, id := range chain.IDs[:chain.Length] {
		i := slices.IndexFunc(places, func(p pool.Place) bool { return p.ID == id })
		if i < 0 {
			joined = append(joined, pool.Place{ID: id, Role: pool.Former})
		} else {
			joined = append(joined, places[i])
		}
	}
	return chain, joined
}

// formerModel tells the program's model who had flows before.
func (e *Role) formerModel() *model.FormerFlows {
	return &model.FormerFlows{
		Secret: e.former.secret, FlowHash: e.former.hash,
		Buckets: func(service uint32) uint32 {
			if g := e.Services[service].former; g != nil {
				return uint32(g.Buckets())
			}
			return 0
		},
		Chains: func(service, bucket uint32) pool.Chain {
			return e.Services[service].former.Chain(int(bucket))
		},
	}
}

// endFormer removes the former tables when its time is over: programs that do not ask for it take
// the place of those that do.
func (e *Room) endFormer() error {
	if e.Runs == nil || !e.Runs.former.isOver(time.Now()) {
		return nil
	}
	e.Runs.Broken = true // what runs is no more what is to run
	if err := e.Reload(); err != nil {
		return fmt.Errorf("remove the former tables: %w", err)
	}
	e.Log.Info("connections from before the secret or the buckets changed are looked for " +
		"no more")
	return nil
}

// kept is what the state file has of it.
func (f *former) kept() *state.Former {
	if f == nil {
		return nil
	}
	return &state.Former{Secret: hex.EncodeToString(f.secret[:]),
		FlowHash: f.hash.String(), Until: f.until,
		Services: f.services}
}

// formerOf is what was kept and is not over; nil: nothing.
func formerOf(s *state.Store, now time.Time) *former {
	k := s.Kept.Former
	if k == nil || !now.Before(k.Until) {
		return nil
	}
	secret, err := flow.ParseSecret(k.Secret)
	if err != nil {
		return nil
	}
	hash, err := flow.ParseFunction(cmp.Or(k.FlowHash, flow.BySipHash.String()))
	if err != nil {
		return nil
	}
	return &former{secret: secret, hash: hash, until: k.Until, services: k.Services}
}
