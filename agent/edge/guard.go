package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// breakage is a change that ends connections, and that was not said to be allowed to.
type breakage struct {
	changes  []config.Change // that do it
	services []lostService
	starts   bool // of an agent that takes over
}

// lostService is a service some of whose connections would end.
type lostService struct {
	secret   flow.Secret // of the cluster, while the service ran
	name     string
	endpoint config.Endpoint
	share    float64 // of its connections, more than 0
	agents   []netip.AddrPort
	now      int  // its connections
	counted  bool // all of them
}

// Unwrap makes it a conflict with what runs.
func (b *breakage) Unwrap() error { return config.ErrConflict }

// namedChanges bounds how many changes an error names: all of them says diff.
const namedChanges = 10

// Error says what would end, why, and how to do it all the same.
func (b *breakage) Error() string {
	var changes, ends []string
	for _, c := range b.changes[:min(len(b.changes), namedChanges)] {
		changes = append(changes, c.String())
	}
	if more := len(b.changes) - len(changes); more > 0 {
		changes = append(changes, fmt.Sprintf("and %d more", more))
	}
	for _, s := range b.services {
		ends = append(ends, s.String())
	}
	if len(ends) == 0 {
		ends = []string{"those that need what is changed"}
	}
	how := "apply it with --break-connections (breakConnections=1)"
	if b.starts {
		how = "start the agent with --break-connections"
	}
	return fmt.Sprintf("this would end connections: %s (%s); packets are forwarded as before; "+
		"if they may end, %s",
		strings.Join(ends, "; "), strings.Join(changes, "; "), how)
}

func (s *lostService) String() string {
	text := fmt.Sprintf("%s of those of service %s", percent(s.share), s.name)
	if s.counted {
		text += fmt.Sprintf(", about %.0f of %d now", s.share*float64(s.now), s.now)
	}
	return text
}

// percent rounds, but never to none or all.
func percent(share float64) string {
	switch {
	case share >= 1:
		return "all"
	case share < 0.01:
		return "less than 1 %"
	case share > 0.99:
		return "more than 99 %"
	}
	return fmt.Sprintf("about %.0f %%", share*100)
}

// Guard refuses a change that ends connections. Before is what ran, by this agent or by an earlier
// one whose programs forward on; where none do, as after a power failure, a warning has to be
// enough.
func (e *Room) Guard(next *config.Node, edge *role.Prepared[*Role]) error {
	before, rehashed := e.Node, e.rehashes(next)
	if before == nil {
		if before = e.Store.Earlier(); before == nil {
			return nil
		}
		before.Secret = next.Secret
	}
	b := &breakage{changes: config.EndsConnections(before, next), starts: e.Node == nil}
	if moves := config.MovesConnections(before, next); len(moves) > 0 || rehashed {
		var err error
		if b.services, err = e.lost(before, edge, rehashed); err != nil {
			return err
		}
		if len(b.services) > 0 {
			b.changes = append(b.changes, moves...)
		}
		if len(b.services) > 0 && rehashed && before.FlowHash == next.FlowHash &&
			before.Secret == next.Secret {
			b.changes = append(b.changes, config.Change{
				Operation: config.Modify, Object: "node", Field: "secret",
				From: "(not shown)", To: "(another, not shown)",
			})
		}
	}
	switch {
	case len(b.services) == 0 && len(b.changes) == 0:
		return nil
	case b.starts && e.Found.Startup.Fresh:
		e.Log.Warn("earlier connections end", "why", b.Error())
		return nil
	}
	return b
}

// lost are the services of which connections end.
func (e *Room) lost(
	before *config.Node, edge *role.Prepared[*Role], rehashed bool,
) (list []lostService, err error) {
	if before.Edge == nil {
		return nil, nil
	}
	places := allPlaces(before.Edge.Services)
	if !rehashed && edge.Next != nil && edge.Next.hasAllOf(e.Runs) {
		places = edge.Next.placesSince(e.Runs) // before is what runs
	}
	for _, place := range places {
		old := e.Found.WithLearned(before.Edge.Services[place])
		if old.Protocol != config.TCP && len(old.QUIC.Configs) == 0 {
			continue // no connections
		}
		next, running := edge.Next.service(old.Endpoint), e.Runs.service(old.Endpoint)
		if next != nil && running != nil && next.Generation == running.Generation &&
			next.former == running.former && !rehashed {
			continue
		}
		chains, err := e.runningChains(old.Endpoint, edge.Dir)
		if err != nil {
			return nil, err
		}
		if next != nil && !rehashed && keepsNone(&old, &next.Service) &&
			len(chains) == next.Generation.Buckets() {
			continue
		}
		s := lostService{
			name: old.Name, endpoint: old.Endpoint, share: 1, secret: before.Secret,
		}
		if next != nil {
			same, err := e.translation(before, &old, next)
			if err != nil {
				return nil, err
			}
			if running != nil {
				s.share = e.Runs.lostShare(running, chains, next, edge.Next.former, rehashed, same)
			} else {
				s.share = pool.Lost(chains, next.Generation.AllChains(), rehashed, same)
			}
		} else if pool.Lost(chains, nil, true, func(uint16) uint16 { return 0 }) == 0 {
			continue // it had no backends
		}
		for _, backend := range old.Backends {
			s.agents = append(s.agents, backend.Agent)
		}
		if s.share > 0 {
			list = append(list, s)
		}
	}
	return list, nil
}

// lostShare is of the connections of a running service at whose chains no packets arrive after a
// change, and of those from before an earlier one.
func (e *Role) lostShare(running *Service, chains []pool.Chain, next *Service, f *former,
	rehashed bool, same func(id uint16) uint16) (share float64) {
	now := next.Generation.AllChains()
	if next.former != nil {
		now = pool.Beside(now, f.services[next.Endpoint.String()].Continuity.Candidates)
	}
	begins := f != e.former && next.former != nil &&
		running.Candidates+next.Candidates <= pool.MaxChain
	if begins {
		share = pool.Lost(chains, next.former.AllChains(), false, same)
	} else {
		share = pool.Lost(chains, now, rehashed, same)
	}
	switch {
	case running.former == nil || e.former.isOver(time.Now()):
		return share
	case !begins && next.former != nil:
		former := pool.Lost(running.former.AllChains(), next.former.AllChains(), false, same)
		return max(share, former)
	}
	return max(share, pool.Lost(running.former.AllChains(), now, true, same))
}

// keepsNone reports whether a service has, and keeps, a policy that lets connections end at each
// change of its backends: the operator chose it explicitly.
func keepsNone(old, next *config.Service) bool {
	return old.Policy != config.PolicyOffer && old.Continuity == next.Continuity
}

// runningChains are those by which packets of a service are forwarded.
func (e *Room) runningChains(at config.Endpoint, dir string) ([]pool.Chain, error) {
	if e.Node != nil {
		return e.Runs.service(at).Generation.AllChains(), nil
	}
	index, known := e.Store.Kept.EdgeServices[at.String()]
	if !known {
		return nil, nil
	}
	chains, err := datapath.PinnedChains(dir, index)
	if chains == nil && err == nil {
		chains = e.Past.Journal.read(at).chains
	}
	return chains, err
}

// translation says which id a backend of a service had before has now, 0 if it has none.
func (e *Room) translation(
	before *config.Node, old *config.Service, next *Service,
) (func(id uint16) uint16, error) {
	now := map[netip.Addr]uint16{}
	for i, b := range next.Backends {
		now[b.SID] = next.Members[i].ID
	}
	for id, sid := range next.pastSIDs {
		now[sid] = id
	}
	var ids []uint16 // by id, asked for each candidate of all chains
	for _, b := range old.Backends {
		id, err := e.Store.Kept.SIDs.Number(before.Domain.Block, b.SID)
		if err != nil {
			return nil, err
		}
		if more := int(id) + 1 - len(ids); more > 0 {
			ids = append(ids, make([]uint16, more)...)
		}
		ids[id] = now[b.SID]
	}
	return func(id uint16) uint16 {
		if int(id) >= len(ids) {
			return 0
		}
		return ids[id]
	}, nil
}

// countPatience bounds how long hosts are asked for their connections.
const countPatience = time.Second

// Counted adds to a refusal how many connections there are now, where all hosts can tell.
func Counted(ctx context.Context, err error) error {
	var b *breakage
	if !errors.As(err, &b) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	var asked sync.WaitGroup
	for i := range b.services {
		asked.Go(func() { b.services[i].count(ctx) })
	}
	asked.Wait()
	return b
}

// count asks the hosts of a service.
func (s *lostService) count(ctx context.Context) {
	sum := 0
	for _, agent := range s.agents {
		if !agent.IsValid() {
			return
		}
		c, err := api.AskHost(ctx, s.secret, agent, s.endpoint)
		if err != nil {
			return
		}
		sum += c.Connections
	}
	s.now, s.counted = sum, len(s.agents) > 0
}
