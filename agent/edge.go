package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"sextant/config"
	"sextant/datapath"
	"sextant/health"
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
	members    []pool.Backend // the backends, in the order of the configuration
	generation *pool.Generation
	effect     health.Effect // how the members came about
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
		Shadow:         n.Edge.Shadow.SID,
		LastOffer:      n.Edge.Shadow.LastOffer,
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
	begun     bool               // commit has begun to change what runs
	before    *datapath.Snapshot // what was pinned then, if programs are replaced
}

// prepareEdge builds what the configuration wants: only the services that differ if the program stays the same, else all.
func (a *Agent) prepareEdge(n *config.Node) (*preparedEdge, error) {
	p := &preparedEdge{agent: a, dir: filepath.Join(a.dir, "edge"), old: a.edge}
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
	next.program, err = datapath.OpenEdge(p.dir, next.config)
	return p, err
}

func (p *preparedEdge) sameProgram() bool {
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
		service := edgeService{Service: a.withLearned(s), key: serviceKey(s.Endpoint), index: numbers[s.Endpoint.String()]}
		if err := a.chains(&service, n, dir); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
		next.services = append(next.services, service)
	}
	return nil
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
		if err := e.program.SetSID(s.members[i].ID, b.SID); err != nil {
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

// commit switches to what was prepared. If it fails, rollBack is to follow.
func (p *preparedEdge) commit() (err error) {
	if p.old == nil && p.next == nil && p.agent.node != nil {
		return nil
	}
	if p.begun = true; p.sameProgram() {
		return p.next.fill(p.old)
	}
	if p.before, err = datapath.TakeSnapshot(p.dir); err != nil {
		return err
	}
	if p.next == nil {
		return datapath.Unload(p.dir)
	}
	if err := p.next.fill(nil); err != nil {
		return err
	}
	p.next.attachments, err = p.next.program.Commit()
	return err
}

// rollBack brings back what ran before, whether this agent or an earlier one had put it there.
func (p *preparedEdge) rollBack() error {
	switch {
	case p.begun && p.sameProgram():
		return p.old.fill(p.next)
	case p.before != nil:
		return p.before.Restore()
	}
	return nil
}

// discard lets go of what was prepared.
func (p *preparedEdge) discard() {
	if p.next != nil && p.next.program != nil && !p.sameProgram() {
		p.next.program.Close()
	}
	if p.before != nil {
		p.before.Close()
	}
	os.Remove(p.dir) // if nothing is pinned in it
}

// finish lets go of what ran before, and returns what runs.
func (p *preparedEdge) finish() *edgeRole {
	if p.old != nil && !p.sameProgram() {
		p.old.program.Close()
	}
	if p.before != nil {
		p.before.Close()
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
