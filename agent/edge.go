package agent

import (
	"fmt"
	"path/filepath"

	"sextant/config"
	"sextant/datapath"
	"sextant/flow"
	"sextant/pool"
)

// edgeRole is the edge as it runs. A nil edgeRole is a node without one.
type edgeRole struct {
	config      datapath.EdgeConfig
	program     *datapath.Edge
	services    []edgeService
	numbers     map[string]uint32
	attachments []datapath.Attachment
}

// edgeService is a service with its chains.
type edgeService struct {
	config.Service
	key        datapath.ServiceKey
	index      uint32
	ids        []uint16 // of the backends
	generation *pool.Generation
}

// protocolNumbers are the IP protocol numbers of the transports.
var protocolNumbers = map[config.Protocol]uint8{config.TCP: 6, config.UDP: 17}

func serviceKey(e config.Endpoint) datapath.ServiceKey {
	return datapath.ServiceKey{VIP: e.VIP, Port: e.Port, Protocol: protocolNumbers[e.Protocol]}
}

var edgeSides = map[config.Side]datapath.Side{
	config.External: datapath.External, config.Internal: datapath.Internal, config.Mixed: datapath.Mixed,
}

var encapsulations = map[config.Encapsulation]datapath.Encapsulation{
	config.Carrier: datapath.Carrier, config.SRH: datapath.SRH, config.SRHReduced: datapath.SRHReduced,
}

// edgeConfig is the part of the configuration that is compiled into the program.
func edgeConfig(n *config.Node) datapath.EdgeConfig {
	c := datapath.EdgeConfig{
		Secret:         n.Secret,
		Block:          n.Domain.Block,
		Infrastructure: n.Domain.Infrastructure,
		Source:         n.Edge.Source,
		Buckets:        n.Edge.Buckets,
		Encapsulation:  encapsulations[n.Edge.Encapsulation],
		HopLimit:       uint8(n.Edge.HopLimit),
	}
	for _, i := range n.Edge.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.EdgeInterface{Name: i.Name, Side: edgeSides[i.Side], Mode: attachModes[i.Mode]})
	}
	return c
}

// preparedEdge is a change of the edge that is built, but not yet switched to.
type preparedEdge struct {
	agent     *Agent
	dir       string
	old, next *edgeRole
}

// prepareEdge builds what the configuration wants: only the services that differ if the program stays the same, else all.
func (a *Agent) prepareEdge(n *config.Node) (preparedEdge, error) {
	p := preparedEdge{agent: a, dir: filepath.Join(a.dir, "edge"), old: a.edge}
	if n.Edge == nil {
		return p, nil
	}
	next := &edgeRole{config: edgeConfig(n)}
	if err := a.edgeServices(next, n, p.dir); err != nil {
		return p, err
	}
	p.next = next
	if p.sameProgram() {
		next.program, next.attachments = p.old.program, p.old.attachments
		return p, nil
	}
	var err error
	if next.program, err = datapath.OpenEdge(p.dir, next.config); err != nil {
		return p, err
	}
	if err := next.fill(nil); err != nil {
		next.program.Close()
		return p, err
	}
	return p, nil
}

func (p preparedEdge) sameProgram() bool {
	return p.old != nil && p.next != nil && p.old.config.Equal(p.next.config)
}

// edgeServices computes the chains of all services.
func (a *Agent) edgeServices(next *edgeRole, n *config.Node, dir string) error {
	var endpoints []config.Endpoint
	for _, s := range n.Edge.Services {
		endpoints = append(endpoints, s.Endpoint)
	}
	numbers, _, err := numberServices(a.store.kept.EdgeServices, endpoints)
	if err != nil {
		return err
	}
	next.numbers = numbers
	for _, s := range n.Edge.Services {
		service := edgeService{Service: s, key: serviceKey(s.Endpoint), index: numbers[s.Endpoint.String()]}
		if err := a.chains(&service, n, dir); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
		next.services = append(next.services, service)
	}
	return nil
}

// chains makes the service's next generation: from the running one, or from what an earlier agent left in the kernel.
func (a *Agent) chains(s *edgeService, n *config.Node, dir string) error {
	backends := make([]pool.Backend, len(s.Backends))
	for i, b := range s.Backends {
		id, err := numberSID(a.store.kept.SIDs, n.Domain.Block, b.SID)
		if err != nil {
			return err
		}
		state, err := pool.ParseState(string(b.State))
		if err != nil {
			return err
		}
		s.ids = append(s.ids, id)
		backends[i] = pool.Backend{ID: id, Weight: uint32(b.Weight), State: state}
	}
	seed := flow.SipHash13(n.Secret, []byte(s.Endpoint.String()))
	previous, err := a.previousChains(s, n.Edge.Buckets, dir)
	switch {
	case err != nil:
		return err
	case previous.running != nil:
		s.generation, err = previous.running.Next(backends)
	case previous.chains != nil:
		s.generation, err = pool.Resume(previous.chains, s.Candidates, seed, backends)
	default:
		s.generation, err = pool.New(n.Edge.Buckets, s.Candidates, seed, backends)
	}
	return err
}

// previousChains are what a service's chains were before: a generation if it can go on, else the chains alone.
type previousChains struct {
	running *pool.Generation
	chains  []pool.Chain
}

func (a *Agent) previousChains(s *edgeService, buckets int, dir string) (previousChains, error) {
	running := a.edge.service(s.Endpoint)
	if running == nil {
		if a.node != nil {
			return previousChains{}, nil // a new service
		}
		chains, err := datapath.PinnedChains(dir, s.index)
		if err != nil || len(chains) != buckets {
			return previousChains{}, err
		}
		return previousChains{chains: chains}, nil
	}
	g := running.generation
	if g.Buckets() != buckets {
		return previousChains{}, nil
	}
	if running.Candidates == s.Candidates {
		return previousChains{running: g}, nil
	}
	chains := make([]pool.Chain, buckets)
	for b := range chains {
		chains[b] = g.Chain(b)
	}
	return previousChains{chains: chains}, nil
}

// service finds a running service by endpoint, nil if there is none.
func (e *edgeRole) service(endpoint config.Endpoint) *edgeService {
	if e == nil {
		return nil
	}
	for i := range e.services {
		if e.services[i].Endpoint == endpoint {
			return &e.services[i]
		}
	}
	return nil
}

// fill brings the program's tables from the services of before (nil: they are empty) to those of e.
func (e *edgeRole) fill(before *edgeRole) error {
	for i := range e.services {
		if err := e.fillService(&e.services[i], before.service(e.services[i].Endpoint)); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	for _, s := range before.services {
		if e.service(s.Endpoint) != nil {
			continue
		}
		if err := e.program.DeleteService(s.key, !e.hasVIP(s)); err != nil {
			return err
		}
	}
	return nil
}

// fillService sets chains before the service that leads to them, so that no packet meets a service without chains.
func (e *edgeRole) fillService(s, before *edgeService) error {
	if before != nil && before.generation == s.generation {
		return nil
	}
	for i, b := range s.Backends {
		if err := e.program.SetSID(s.ids[i], b.SID); err != nil {
			return err
		}
	}
	if err := e.program.SetChains(s.index, s.generation); err != nil {
		return err
	}
	return e.program.SetService(s.key, s.index)
}

func (e *edgeRole) hasVIP(s edgeService) bool {
	for _, other := range e.services {
		if other.VIP == s.VIP {
			return true
		}
	}
	return false
}

// commit switches to what was prepared.
func (p preparedEdge) commit() (err error) {
	switch {
	case p.next == nil && p.old == nil:
		return nil
	case p.next == nil:
		return datapath.Unload(p.dir)
	case p.sameProgram():
		return p.next.fill(p.old)
	}
	p.next.attachments, err = p.next.program.Commit()
	return err
}

// rollBack brings back what ran before.
func (p preparedEdge) rollBack() (err error) {
	switch {
	case p.old == nil && p.next == nil:
		return nil
	case p.old == nil:
		return datapath.Unload(p.dir)
	case p.sameProgram():
		return p.old.fill(p.next)
	}
	p.old.attachments, err = p.old.program.Commit()
	return err
}

// discard lets go of what was prepared.
func (p preparedEdge) discard() {
	if p.next != nil && !p.sameProgram() {
		p.next.program.Close()
	}
}

// finish lets go of what ran before, and returns what runs.
func (p preparedEdge) finish() *edgeRole {
	if p.next != nil {
		adopt(p.agent.store.kept.EdgeServices, p.next.numbers)
	}
	if p.old != nil && !p.sameProgram() {
		p.old.program.Close()
	}
	return p.next
}

func (e *edgeRole) attached() []datapath.Attachment {
	if e == nil {
		return nil
	}
	return e.attachments
}

func (e *edgeRole) forgetNextHops() error {
	if e == nil {
		return nil
	}
	return e.program.ForgetNextHops()
}
