// Package edge is role edge: services with their chains, checks of their backends, and what edges
// tell each other of the past.
package edge

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
	"sextant/packet/lists"
	"sextant/packet/quiclb"
	"sextant/packet/srv6"
)

// Role is the edge as it runs. A nil Role is a node without one.
type Role struct {
	role.Loaded[*datapath.Edge]
	Config   datapath.EdgeConfig
	Services []Service
	places   map[config.Endpoint]int // of the services
	named    map[string]int          // the same by name, see placesByName
	numbers  map[string]uint32
	since    *since
	Hmac     srv6.HMACKey             // the zero value: SRHs are not signed
	former   *former                  // what is known of former flows; nil: nothing
	await    func(func() error) error // role.Loop.Await
	starts   bool                     // an earlier agent's programs may be taken over
	filled   bool                     // they were, with tables that have all that is wanted
	crowded  bool                     // paths have no room in the program's table
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Service is a service with its chains.
type Service struct {
	config.Service
	Key        datapath.ServiceKey
	Index      uint32
	Buckets    int            // of its table
	Members    []pool.Backend // the backends, in the order of the configuration
	Generation *pool.Generation
	former     *pool.Generation // from before another secret, or fewer buckets; nil: none
	effect     health.Effect    // how the members were determined
	// as long as it is not known who of it is still there; else nil
	past     []pool.Chain
	way      *serviceWay           // by which they were computed; nil: none is wanted
	Paths    paths                 // to the members
	order    pool.Order            // of candidates; nil: as the table has them
	pastSIDs map[uint16]netip.Addr // of those of the past who are no members
	counted  shares                // when they were asked for last
	led      bool                  // packets may be led over SIDs to some backends
}

// Room is the node's place for an edge.
type Room struct {
	role.Slot[*Role]
	checks   *checks
	Past     *exchange
	ways     ways
	loads    loads
	changes  uint64   // so far, of what running services have: their members, states and chains
	noted    revision // of the services when they were last written down
	due      due      // of the services of a revision
	strays   string   // why the kernel may answer for VIPs; "": it does not
	loopless string   // why the loop of copies is not there; "": it is, or none is wanted
	// on the clock of now: when chains are tried again that could not be brought up to date; 0:
	// they could
	retryAt time.Duration
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	e := &Room{Slot: role.Slot[*Role]{Parts: p}}
	e.Past = newExchange(p.Core, p.Found, e.list)
	e.checks = newChecks(p.Core, e.list, e.refreshNamed)
	return e
}

// list is the services that run.
func (e *Room) list() []Service {
	if e.Runs == nil {
		return nil
	}
	return e.Runs.Services
}

// Opened is role.Opener.
func (e *Room) Opened(file *config.Node) { e.Past.open(file) }

// End is role.Ender.
func (e *Room) End() {
	e.checks.monitor.Stop()
	e.checks.signals.Stop()
	e.ways.end()
	e.loads.end()
	e.Past.close()
}

// Serve is role.Server.
func (e *Room) Serve() {
	e.Past.askOn(e.Life)
	role.FollowAll(e.Life, &e.Loop, e.checks.monitor.Results(), e.checks.checksEnded)
	role.FollowAll(e.Life, &e.Loop, e.checks.signals.Results(), e.checks.signalsEnded)
	role.Follow(e.Life, &e.Loop, e.Past.etcd.lateNews(), e.takeLate)
	role.Follow(e.Life, &e.Loop, e.Past.lateTold, e.takeLate)
	e.keepRoutes()
}

// edgeChange is a change of the edge.
type edgeChange struct {
	*role.Prepared[*Role]
	room *Room
}

// Prepare is role.Room.
func (e *Room) Prepare(next *config.Node) (role.Change, error) {
	p, err := e.ChangeTo(func() (*Role, error) { return e.Build(next) })
	return edgeChange{p, e}, err
}

// ChainsHandler answers other edges.
func (e *Room) ChainsHandler() http.Handler { return e.Past.chainsHandler() }

func (c edgeChange) Guard(next *config.Node) error { return c.room.Guard(next, c.Prepared) }

// Settled is role.Settler.
func (e *Room) Settled() {
	if e.Runs != nil {
		e.Runs.since = nil
	}
	e.followNetwork()
	e.keepDetours()
	e.followLoads()
	e.check()
	e.dropStrays()
}

// PlacesChanged is role.PlaceWatcher.
func (e *Room) PlacesChanged() { e.dropStrays() }

// revision is by what one state of the running services is told from another: the loop compares it
// after each piece of work, and looks at ten thousand services only when it has changed.
type revision struct {
	runs    *Role
	changes uint64
}

func (e *Room) revision() revision { return revision{e.Runs, e.changes} }

// Note is role.Follower.
func (e *Room) Note() {
	if now := e.revision(); now != e.noted {
		e.noted = now
		e.Past.noteChains()
		e.noteAway()
	}
}

// Troubles is role.Troubled.
func (e *Room) Troubles() (list []string) {
	for _, trouble := range append([]string{e.checks.warning, e.strays, e.loopless},
		e.shortHolds()...) {
		if trouble != "" {
			list = append(list, trouble)
		}
	}
	return list
}

// Warnings is role.Room.
func (e *Room) Warnings() (list []string) {
	p := e.Past
	for _, warning := range []string{p.Journal.warning(), p.etcd.warning(), p.lateWarning()} {
		if warning != "" {
			list = append(list, warning)
		}
	}
	return slices.Concat(list, e.Runs.shareWarnings(), e.wayWarnings(), e.orderWarnings())
}

// Limit is how many backends a service can have: as many as buckets.
func (e *Room) Limit(s *config.Service) int {
	if running := e.Runs.service(s.Endpoint); running != nil {
		return running.Buckets
	}
	buckets, _ := e.Node.Edge.BucketsOf(s)
	return buckets
}

// Collect is metrics.Collector.
func (e *Room) Collect(out chan<- prometheus.Metric) {
	e.Past.etcd.collect(out)
	metrics.Part(out, string(e.Name), func(ctx context.Context) error {
		return e.Do(ctx, func() {
			metrics.Counter(out, metrics.PastIgnored, e.Past.ignored)
			metrics.Gauge(out, metrics.StateKept,
				metrics.OneIf(e.Store.Failure == nil && e.Past.Journal.warning() == ""))
		})
	})
}

var encapsulations = map[config.Encapsulation]datapath.Encapsulation{
	config.Carrier: datapath.Carrier, config.SRH: datapath.SRH,
	config.SRHReduced: datapath.SRHReduced,
}

// edgeConfig is the part of the configuration that is compiled into the program.
func edgeConfig(n *config.Node) datapath.EdgeConfig {
	c := datapath.EdgeConfig{
		Domain:        role.DomainOf(n, n.Edge.Source),
		EdgeOuter:     n.Edge.EdgeOuter,
		Encapsulation: encapsulations[n.Edge.Encapsulation],
		Signs:         n.Edge.HMAC != nil,
		AnswerRate:    n.Edge.AnswerRate,
		Shadow:        n.Edge.Shadow.SID,
		LastOffer:     n.Edge.Shadow.LastOffer,
		FlowCache: datapath.FlowCache{SID: n.Edge.FlowCache.SID,
			Entries: n.Edge.FlowCache.Entries},
		Copies: n.Edge.HasCopies(),
	}
	c.Capacity, c.Paths = CapacityOf(n.Edge)
	for _, i := range n.Edge.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.EdgeInterface{Name: i.Name,
			Side: role.AttachSides[i.Side], Mode: role.AttachModes[i.Mode]})
	}
	return c
}

// Build makes what the configuration wants: only the services that differ if the program
// stays the same, else all.
func (e *Room) Build(n *config.Node) (*Role, error) {
	if n.Edge == nil {
		return nil, nil
	}
	e.readAhead(n.Edge.Network)
	next := &Role{Config: edgeConfig(n), await: e.Await, starts: e.Node == nil}
	if e.Runs != nil {
		next.Config.Capacity = next.Config.Capacity.AtLeast(e.Runs.Config.Capacity)
		if e.Runs.crowded {
			next.Config.Capacity, _ = next.Config.Capacity.WithMorePaths()
		}
	}
	if n.Edge.HMAC != nil {
		next.Hmac = n.Edge.HMAC.Key()
	}
	pinned, err := datapath.OpenPinnedTables(e.Pins(api.Edge))
	if err != nil {
		return nil, err
	}
	defer pinned.Close()
	if err := e.edgeServices(next, n, pinned); err != nil {
		return nil, err
	}
	next.Config.Capacity = next.Config.Capacity.AtLeast(
		datapath.CapacityFor(0, 0, next.ledBackends()))
	if err := e.keepFormer(next, n, pinned); err != nil {
		return nil, err
	}
	if next.former != nil || e.Runs != nil && e.Runs.former != nil {
		next.since = nil // all services may have other former chains
	}
	next.Config.Capacity = next.Config.Capacity.AtLeast(
		datapath.CapacityForTable(next.mostBuckets()))
	return next, nil
}

// Load is role.Switchable.
func (e *Role) Load(dir string) (err error) {
	if e.starts {
		if e.Program, err = datapath.TakeOverEdge(dir, e.Config); err == nil {
			e.Program.Await = e.await
			err = role.TakesOver(e.Program, func() error { return e.Fill(nil) })
		}
		if err == nil {
			e.filled = true
			return nil
		}
	}
	if e.Program, err = datapath.OpenEdge(dir, e.Config); err == nil {
		e.Program.Await = e.await
	}
	return err
}

// Same is false also if a service has another number of buckets: its entry and its table could not
// change in one step.
func (e *Role) Same(other *Role) bool {
	if e.Broken {
		return false
	}
	for _, i := range other.placesSince(e) {
		s := e.service(other.Services[i].Endpoint)
		if s != nil && s.Buckets != other.Services[i].Buckets {
			return false
		}
	}
	return datapath.Same(e.Config, other.Config)
}

// edgeServices computes the chains of all services.
func (e *Room) edgeServices(next *Role, n *config.Node, pinned *datapath.PinnedTables) error {
	if err := e.number(next, n); err != nil {
		return err
	}
	next.Services = make([]Service, len(n.Edge.Services))
	var changed []*Service
	var places []int
	follows := e.Runs != nil && config.SharesAllButServices(e.Node, n)
	for i := range n.Edge.Services {
		s := &n.Edge.Services[i]
		if runs := e.unchanged(i, s); follows && runs != nil {
			next.Services[i] = *runs
			next.Services[i].former = nil // keepFormer says
			continue
		}
		next.Services[i] = Service{
			Service: e.Found.WithLearned(*s), Key: state.ServiceKey(s.Endpoint),
			Index: next.numbers[s.Endpoint.String()],
		}
		next.Services[i].led = next.Services[i].HasPaths()
		changed, places = append(changed, &next.Services[i]), append(places, i)
	}
	if next.since != nil {
		next.since.changed = places
	}
	e.makeRoom(n, changed...)
	for some := range slices.Chunk(changed, generationsAtOnce) {
		if err := e.someChains(some, n, pinned); err != nil {
			return err
		}
	}
	return nil
}

// service finds a running service by endpoint, nil if there is none.
func (e *Role) service(endpoint config.Endpoint) *Service {
	if e == nil {
		return nil
	}
	if i, ok := e.places[endpoint]; ok {
		return &e.Services[i]
	}
	return nil
}

// Fill brings the program's tables from the previous services (nil: they are empty) to those of e.
func (e *Role) Fill(before *Role) error {
	if before == nil && e.filled {
		return nil
	}
	if err := e.fillHMAC(before); err != nil {
		return err
	}
	taken := map[uint32]bool{}
	if !e.hasAllOf(before) {
		for i := range e.Services {
			taken[e.Services[i].Index] = true
		}
	}
	if err := e.clear(before, func(s *Service) bool { return taken[s.Index] }); err != nil {
		return err
	}
	if err := e.fillNew(before); err != nil {
		return err
	}
	if err := e.fillServices(before); err != nil {
		return err
	}
	return e.clear(before, func(s *Service) bool { return !taken[s.Index] })
}

// clear takes away previous services that e does not have: those whose number another has now
// before they would lead to its chains, the others last.
func (e *Role) clear(before *Role, which func(*Service) bool) error {
	if before == nil || e.hasAllOf(before) {
		return nil
	}
	var gone []uint32
	for i := range before.Services {
		s := &before.Services[i]
		if e.service(s.Endpoint) != nil || !which(s) {
			continue
		}
		if err := e.Program.SetQUIC(s.Index, nil, nil); err != nil {
			return err
		}
		if err := e.Program.DeleteService(s.Key, !e.hasVIP(*s)); err != nil {
			return err
		}
		gone = append(gone, s.Index)
	}
	return e.Program.DeleteChains(gone...)
}

// fillNew sets the chains of all services that were not there before.
func (e *Role) fillNew(before *Role) error {
	var all []datapath.ServiceChains
	for _, i := range e.placesSince(before) {
		s := &e.Services[i]
		if before.service(s.Endpoint) != nil {
			continue
		}
		if err := e.setSIDs(s.Backends, s.Members, s.pastSIDs); err != nil {
			return err
		}
		all = append(all, datapath.ServiceChains{Index: s.Index, Generation: s.Generation})
	}
	return e.Program.FillChains(all)
}

// setQUIC tells the program by which connection IDs the service's backends are found.
func (e *Role) setQUIC(s *Service) error {
	configs, backends := s.quic()
	return e.Program.SetQUIC(s.Index, configs, backends)
}

// quic are the service's configurations of connection IDs, and the backends that have some. Who
// that is takes a look at all chains: none is taken where no connection ID names a server.
func (s *Service) quic() (configs []quiclb.Config, backends []uint16) {
	if len(s.QUIC.Configs) == 0 {
		return nil, nil
	}
	return lists.Map(s.QUIC.Configs, config.QUIC.Config), slices.Sorted(maps.Keys(s.quicBackends()))
}

// quicBackends are the ids of those who may have connections.
func (s *Service) quicBackends() map[uint16]struct{} {
	ids := map[uint16]struct{}{}
	for _, m := range s.Members {
		ids[m.ID] = struct{}{}
	}
	for _, g := range []*pool.Generation{s.Generation, s.former} {
		if g == nil {
			continue
		}
		for _, c := range g.Chains() {
			for _, id := range c.IDs[:c.Length] {
				ids[id] = struct{}{}
			}
		}
	}
	return ids
}

// setSIDs tells the program the SIDs of backends, and of others whom chains name.
func (e *Role) setSIDs(backends []config.Backend, members []pool.Backend,
	others map[uint16]netip.Addr) error {
	for i, b := range backends {
		if err := e.Program.SetSID(members[i].ID, b.SID); err != nil {
			return err
		}
	}
	for id, sid := range others {
		if err := e.Program.SetSID(id, sid); err != nil {
			return err
		}
	}
	return nil
}

func (e *Role) hasVIP(s Service) bool {
	return slices.ContainsFunc(e.Services, func(other Service) bool { return other.VIP == s.VIP })
}

// shareWarnings are about services that have too many backends for their buckets.
func (e *Role) shareWarnings() (warnings []string) {
	if e == nil {
		return nil
	}
	for i := range e.Services {
		s := &e.Services[i]
		if text := s.ShareWarning(len(s.Members), s.Buckets); text != "" {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

// Adopt is role.Role.
func (e *Role) Adopt(k *state.Kept) {
	if e.since == nil {
		state.Adopt(k.EdgeServices, e.numbers)
	}
	k.Former = e.former.kept()
}

// Shown tells the side, too.
func (e *Role) Shown(at datapath.Attachment) api.Program {
	p := e.Loaded.Shown(at)
	p.Side, p.Mode = role.SideName(at.Side), config.Mode(at.Mode.String())
	return p
}

// Count adds what the flow cache did.
func (e *Role) Count(c *api.Counters) error {
	events, err := e.Program.CacheEvents()
	for _, event := range events {
		c.FlowCache = append(c.FlowCache, api.CacheEvent{Event: event.Name, Packets: event.Packets})
	}
	return err
}

// CleanEdge removes the routes of health checks and of VIPs if an edge is there whose they are.
func CleanEdge(pins string) error {
	if err := removePaths(pins); err != nil {
		return err
	}
	return removeBlackholes(pins)
}

// Resolves is role.Role.
func (e *Role) Resolves() bool { return true }

// fillHMAC gives the edge the key to sign with, from the next packet on.
func (e *Role) fillHMAC(before *Role) error {
	if e.Hmac == (srv6.HMACKey{}) || before != nil && before.Hmac == e.Hmac {
		return nil
	}
	return e.Program.SetSigningKey(e.Hmac)
}

// removePaths removes the routes of health checks if an edge is there whose checks they are.
func removePaths(edge string) error {
	if _, err := os.Stat(edge); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return health.RemovePaths()
}
