package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
	"sextant/packet/quiclb"
	"sextant/packet/srv6"
)

// edgeRole is the edge as it runs. A nil edgeRole is a node without one.
type edgeRole struct {
	loaded[*datapath.Edge]
	config   datapath.EdgeConfig
	services []edgeService
	places   map[config.Endpoint]int // of the services
	numbers  map[string]uint32
	hmac     srv6.HMACKey // the zero value: SRHs are not signed
	former   *former      // what is known of former flows; nil: nothing
}

var _ switchable[*edgeRole] = (*edgeRole)(nil)

// edgeService is a service with its chains.
type edgeService struct {
	config.Service
	key        datapath.ServiceKey
	index      uint32
	buckets    int            // of its table
	members    []pool.Backend // the backends, in the order of the configuration
	generation *pool.Generation
	former     *pool.Generation // from before another secret, or fewer buckets; nil: none
	effect     health.Effect    // how the members were determined
	// as long as it is not known who of it is still there; else nil
	past     []pool.Chain
	pastSIDs map[uint16]netip.Addr // of those of the past who are no members
}

// edgeRoom is the node's place for an edge.
type edgeRoom struct {
	slot[*edgeRole]
	checks *checks
	past   *exchange
	// Decisions on what backends are, so far and when it was last written down who is away.
	effects, awayNoted uint64
	strays             string // why the kernel may answer for VIPs; "": it does not
	// on the clock of now: when chains are tried again that could not be brought up to date; 0:
	// they could
	retryAt time.Duration
}

func newEdgeRoom(p parts) *edgeRoom {
	e := &edgeRoom{slot: slot[*edgeRole]{parts: p, name: api.Edge}}
	e.past = newExchange(p.core, p.found, e.list)
	e.checks = newChecks(p.core, e.list, e.refreshNamed)
	return e
}

// list is the services that run.
func (e *edgeRoom) list() []edgeService {
	if e.runs == nil {
		return nil
	}
	return e.runs.services
}

func (e *edgeRoom) opened() { e.past.open() }

func (e *edgeRoom) end() {
	e.checks.monitor.Stop()
	e.checks.signals.Stop()
	e.past.close()
}

func (e *edgeRoom) serve() {
	e.past.askOn(e.life)
	follow(e.life, &e.loop, e.checks.monitor.Results(), e.checks.checkEnded)
	follow(e.life, &e.loop, e.checks.signals.Results(), e.checks.signalEnded)
	follow(e.life, &e.loop, e.past.etcd.lateNews(), e.takeLate)
	follow(e.life, &e.loop, e.past.lateTold, e.takeLate)
}

// edgeChange is a change of the edge.
type edgeChange struct {
	*prepared[*edgeRole]
	room *edgeRoom
}

func (e *edgeRoom) prepare(next *config.Node) (change, error) {
	p, err := e.changeTo(func() (*edgeRole, error) { return e.build(next) })
	return edgeChange{p, e}, err
}

// chainsHandler answers other edges.
func (e *edgeRoom) chainsHandler() http.Handler { return e.past.chainsHandler() }

func (c edgeChange) guard(next *config.Node) error { return c.room.guard(next, c.prepared) }

func (e *edgeRoom) settled() {
	e.checks.check()
	e.dropStrays()
}

func (e *edgeRoom) placesChanged() { e.dropStrays() }

func (e *edgeRoom) note() {
	e.past.noteChains()
	e.noteAway()
}

func (e *edgeRoom) troubles() (list []string) {
	for _, trouble := range append([]string{e.checks.warning, e.strays}, e.shortHolds()...) {
		if trouble != "" {
			list = append(list, trouble)
		}
	}
	return list
}

func (e *edgeRoom) warnings() (list []string) {
	p := e.past
	for _, warning := range []string{p.journal.warning(), p.etcd.warning(), p.lateWarning()} {
		if warning != "" {
			list = append(list, warning)
		}
	}
	return append(list, e.runs.shareWarnings()...)
}

// limit is how many backends a service can have: as many as buckets.
func (e *edgeRoom) limit(s *config.Service) int {
	if running := e.runs.service(s.Endpoint); running != nil {
		return running.buckets
	}
	buckets, _ := e.node.Edge.BucketsOf(s)
	return buckets
}

func (e *edgeRoom) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	e.past.etcd.collect(out)
	_ = e.do(ctx, func() { // else the agent ends
		counter(out, pastIgnored, e.past.ignored)
		gauge(out, stateKept, oneIf(e.store.failure == nil && e.past.journal.warning() == ""))
	})
}

// protocolNumbers are the IP protocol numbers of the transports.
var protocolNumbers = map[config.Protocol]uint8{config.TCP: 6, config.UDP: 17}

func serviceKey(e config.Endpoint) datapath.ServiceKey {
	return datapath.ServiceKey{VIP: e.VIP, Port: e.Port, Protocol: protocolNumbers[e.Protocol]}
}

var attachSides = map[config.Side]datapath.Side{
	config.External: datapath.External, config.Internal: datapath.Internal,
	config.Mixed: datapath.Mixed,
}

var encapsulations = map[config.Encapsulation]datapath.Encapsulation{
	config.Carrier: datapath.Carrier, config.SRH: datapath.SRH,
	config.SRHReduced: datapath.SRHReduced,
}

// edgeConfig is the part of the configuration that is compiled into the program.
func edgeConfig(n *config.Node) datapath.EdgeConfig {
	c := datapath.EdgeConfig{
		Domain:        domainOf(n, n.Edge.Source),
		EdgeOuter:     n.Edge.EdgeOuter,
		Encapsulation: encapsulations[n.Edge.Encapsulation],
		Signs:         n.Edge.HMAC != nil,
		AnswerRate:    n.Edge.AnswerRate,
		Shadow:        n.Edge.Shadow.SID,
		LastOffer:     n.Edge.Shadow.LastOffer,
		FlowCache: datapath.FlowCache{SID: n.Edge.FlowCache.SID,
			Entries: n.Edge.FlowCache.Entries},
	}
	for _, i := range n.Edge.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.EdgeInterface{Name: i.Name,
			Side: attachSides[i.Side], Mode: attachModes[i.Mode]})
	}
	return c
}

// build makes what the configuration wants: only the services that differ if the program
// stays the same, else all.
func (e *edgeRoom) build(n *config.Node) (*edgeRole, error) {
	if n.Edge == nil {
		return nil, nil
	}
	next := &edgeRole{config: edgeConfig(n)}
	if n.Edge.HMAC != nil {
		next.hmac = n.Edge.HMAC.Key()
	}
	if err := e.edgeServices(next, n, e.pins(api.Edge)); err != nil {
		return nil, err
	}
	return next, e.keepFormer(next, n, e.pins(api.Edge))
}

func (e *edgeRole) load(dir string, running *edgeRole) (err error) {
	if running != nil {
		e.loaded = running.loaded
		return nil
	}
	e.program, err = datapath.OpenEdge(dir, e.config)
	return err
}

// same is false also if a service has another number of buckets: its entry and its table could not
// change in one step.
func (e *edgeRole) same(other *edgeRole) bool {
	for i := range other.services {
		s := e.service(other.services[i].Endpoint)
		if s != nil && s.buckets != other.services[i].buckets {
			return false
		}
	}
	return datapath.Same(e.config, other.config)
}

// edgeServices computes the chains of all services.
func (e *edgeRoom) edgeServices(next *edgeRole, n *config.Node, dir string) error {
	var endpoints []config.Endpoint
	for _, s := range n.Edge.Services {
		endpoints = append(endpoints, s.Endpoint)
	}
	numbers, _, err := numberServices(e.store.kept.EdgeServices, endpoints)
	if err != nil {
		return err
	}
	next.numbers, next.places = numbers, map[config.Endpoint]int{}
	next.services = make([]edgeService, len(n.Edge.Services))
	for i, s := range n.Edge.Services {
		next.places[s.Endpoint] = i
		next.services[i] = edgeService{
			Service: e.found.withLearned(s), key: serviceKey(s.Endpoint),
			index: numbers[s.Endpoint.String()],
		}
	}
	for some := range slices.Chunk(next.services, generationsAtOnce) {
		if err := e.someChains(some, n, dir); err != nil {
			return err
		}
	}
	return nil
}

// generationsAtOnce is of how many services the previous chains are held in memory.
const generationsAtOnce = 16

// someChains makes the generations of some services, on all processors.
func (e *edgeRoom) someChains(services []edgeService, n *config.Node, dir string) error {
	makers := make([]func() (*pool.Generation, error), len(services))
	for i := range services {
		var err error
		if makers[i], err = e.chains(&services[i], n, dir); err != nil {
			return fmt.Errorf("service %s: %w", services[i].Name, err)
		}
	}
	var making sync.WaitGroup
	failures := make([]error, len(services))
	for i, generation := range makers {
		making.Go(func() {
			var err error
			if services[i].generation, err = generation(); err != nil {
				failures[i] = fmt.Errorf("service %s: %w", services[i].Name, err)
			}
		})
	}
	making.Wait()
	return errors.Join(failures...)
}

// service finds a running service by endpoint, nil if there is none.
func (e *edgeRole) service(endpoint config.Endpoint) *edgeService {
	if e == nil {
		return nil
	}
	if i, ok := e.places[endpoint]; ok {
		return &e.services[i]
	}
	return nil
}

// fill brings the program's tables from the previous services (nil: they are empty) to those of e.
func (e *edgeRole) fill(before *edgeRole) error {
	if err := e.fillHMAC(before); err != nil {
		return err
	}
	taken := map[uint32]bool{}
	for i := range e.services {
		taken[e.services[i].index] = true
	}
	if err := e.clear(before, func(s *edgeService) bool { return taken[s.index] }); err != nil {
		return err
	}
	if err := e.fillNew(before); err != nil {
		return err
	}
	for i := range e.services {
		if err := e.fillService(&e.services[i],
			before.service(e.services[i].Endpoint)); err != nil {
			return err
		}
	}
	return e.clear(before, func(s *edgeService) bool { return !taken[s.index] })
}

// clear takes away previous services that e does not have: those whose number another has now
// before they would lead to its chains, the others last.
func (e *edgeRole) clear(before *edgeRole, which func(*edgeService) bool) error {
	if before == nil {
		return nil
	}
	for i := range before.services {
		s := &before.services[i]
		if e.service(s.Endpoint) != nil || !which(s) {
			continue
		}
		if err := e.program.SetQUIC(s.index, nil, nil); err != nil {
			return err
		}
		if err := e.program.DeleteService(s.key, !e.hasVIP(*s)); err != nil {
			return err
		}
		if err := e.program.DeleteChains(s.index); err != nil {
			return err
		}
	}
	return nil
}

// fillNew sets the chains of all services that were not there before.
func (e *edgeRole) fillNew(before *edgeRole) error {
	var all []datapath.ServiceChains
	for i := range e.services {
		s := &e.services[i]
		if before.service(s.Endpoint) != nil {
			continue
		}
		if err := e.setSIDs(s.Backends, s.members, s.pastSIDs); err != nil {
			return err
		}
		all = append(all, datapath.ServiceChains{Index: s.index, Generation: s.generation})
	}
	return e.program.FillChains(all)
}

// fillService sets chains before the service that leads to them, so that no packet meets a service
// without chains; of a new service, fillNew has.
func (e *edgeRole) fillService(s, before *edgeService) error {
	if before == nil || before.NewConnections != s.NewConnections {
		if err := e.program.LimitNewConnections(s.index, s.NewConnections.Rate,
			s.NewConnections.Burst); err != nil {
			return err
		}
	}
	if err := e.fillFormer(s, before); err != nil {
		return err
	}
	same := before != nil && before.generation == s.generation && before.former == s.former
	if same && before.NewConnections == s.NewConnections && slices.EqualFunc(before.QUIC.Configs,
		s.QUIC.Configs, config.QUIC.Equal) {
		return nil
	}
	if err := e.setQUIC(s); err != nil {
		return err
	}
	if same || before == nil {
		return e.program.SetService(s.key, s.index, s.buckets)
	}
	if err := e.setSIDs(s.Backends, s.members, s.pastSIDs); err != nil {
		return err
	}
	if err := e.program.SetChains(s.index, s.generation); err != nil {
		return err
	}
	return e.program.SetService(s.key, s.index, s.buckets)
}

// setQUIC tells the program by which connection IDs the service's backends are found.
func (e *edgeRole) setQUIC(s *edgeService) error {
	var configs []quiclb.Config
	for _, q := range s.QUIC.Configs {
		configs = append(configs, q.Config())
	}
	if configs == nil {
		return e.program.SetQUIC(s.index, nil, nil)
	}
	return e.program.SetQUIC(s.index, configs, slices.Sorted(maps.Keys(s.quicBackends())))
}

// quicBackends are the ids of those who may have connections.
func (s *edgeService) quicBackends() map[uint16]struct{} {
	ids := map[uint16]struct{}{}
	for _, m := range s.members {
		ids[m.ID] = struct{}{}
	}
	for _, g := range []*pool.Generation{s.generation, s.former} {
		if g == nil {
			continue
		}
		for b := range g.Buckets() {
			c := g.Chain(b)
			for _, id := range c.IDs[:c.Length] {
				ids[id] = struct{}{}
			}
		}
	}
	return ids
}

// setSIDs tells the program the SIDs of backends, and of others whom chains name.
func (e *edgeRole) setSIDs(backends []config.Backend, members []pool.Backend,
	others map[uint16]netip.Addr) error {
	for i, b := range backends {
		if err := e.program.SetSID(members[i].ID, b.SID); err != nil {
			return err
		}
	}
	for id, sid := range others {
		if err := e.program.SetSID(id, sid); err != nil {
			return err
		}
	}
	return nil
}

func (e *edgeRole) hasVIP(s edgeService) bool {
	for _, other := range e.services {
		if other.VIP == s.VIP {
			return true
		}
	}
	return false
}

// shareWarnings are about services that have too many backends for their buckets.
func (e *edgeRole) shareWarnings() (warnings []string) {
	if e == nil {
		return nil
	}
	for i := range e.services {
		s := &e.services[i]
		if text := s.ShareWarning(len(s.members), s.buckets); text != "" {
			warnings = append(warnings, text)
		}
	}
	return warnings
}

func (e *edgeRole) adopt(k *kept) {
	adopt(k.EdgeServices, e.numbers)
	k.Former = e.former.kept()
}

// shown tells the side, too.
func (e *edgeRole) shown(at datapath.Attachment) api.Program {
	p := e.loaded.shown(at)
	p.Side, p.Mode = sideName(at.Side), config.Mode(at.Mode.String())
	return p
}

// count adds what the flow cache did.
func (e *edgeRole) count(c *api.Counters) error {
	events, err := e.program.CacheEvents()
	for _, event := range events {
		c.FlowCache = append(c.FlowCache, api.CacheEvent{Event: event.Name, Packets: event.Packets})
	}
	return err
}

// cleanEdge removes the routes of health checks and of VIPs if an edge is there whose they are.
func cleanEdge(pins string) error {
	if err := removePaths(pins); err != nil {
		return err
	}
	return removeBlackholes(pins)
}

func (e *edgeRole) resolves() bool { return true }
