package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sextant/accept"
	"sextant/config"
	"sextant/datapath"
)

// refusalTime is how long a refused SYN stays refused: beyond the first retransmissions of a client (1, 3 and 7 s).
const refusalTime = 10 * time.Second

// hostRole is the host as it runs. A nil hostRole is a node without one.
type hostRole struct {
	config      datapath.HostConfig
	program     *datapath.Host
	services    []hostService
	numbers     map[string]uint32
	fresh       map[string]uint32 // services whose number had another owner or none
	attachments []datapath.Attachment
}

type hostService struct {
	config.HostService
	key    datapath.ServiceKey
	index  uint32
	policy accept.Policy
}

// hostConfig is the part of the configuration that is compiled into the programs.
func (a *Agent) hostConfig(n *config.Node) datapath.HostConfig {
	c := datapath.HostConfig{
		Secret:         n.Secret,
		Infrastructure: n.Domain.Infrastructure,
		Source:         n.Host.Source,
		TunnelMTU:      n.Domain.MTU - n.Domain.Overhead,
		Refusal:        refusalTime,
		Cgroup:         n.Host.Cgroup,
	}
	if c.Cgroup == "" {
		c.Cgroup = a.cgroup
	}
	for _, s := range n.Host.SIDs {
		c.SIDs = append(c.SIDs, datapath.LocalSID(s))
	}
	for _, i := range n.Host.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.HostInterface{Name: i.Name, Mode: attachModes[i.Mode]})
	}
	return c
}

// policyOf translates a configured acceptance policy.
func policyOf(a config.Accept) (accept.Policy, error) {
	kind, err := accept.ParseKind(string(a.Policy))
	threshold := a.Threshold
	if kind == accept.Dynamic {
		threshold = a.Initial
	}
	return accept.Policy{
		Kind: kind, Threshold: uint32(threshold), Window: uint32(a.Window), Workers: uint32(a.Workers),
		LowPermille: uint32(a.LowPermille), HighPermille: uint32(a.HighPermille),
	}, err
}

// preparedHost is a change of the host that is built, but not yet switched to.
type preparedHost struct {
	agent     *Agent
	dir       string
	old, next *hostRole
	begun     bool               // commit has begun to change what runs
	before    *datapath.Snapshot // what was pinned then, if programs are replaced
}

func (a *Agent) prepareHost(n *config.Node) (*preparedHost, error) {
	p := &preparedHost{agent: a, dir: filepath.Join(a.dir, "host"), old: a.host}
	if n.Host == nil {
		return p, nil
	}
	next := &hostRole{config: a.hostConfig(n)}
	if err := a.hostServices(next, n); err != nil {
		return p, err
	}
	p.next = next
	if p.sameProgram() {
		next.program, next.attachments = p.old.program, p.old.attachments
		return p, nil
	}
	var err error
	next.program, err = datapath.OpenHost(p.dir, next.config)
	return p, err
}

func (p *preparedHost) sameProgram() bool {
	return p.old != nil && p.next != nil && p.old.config.Equal(p.next.config)
}

func (a *Agent) hostServices(next *hostRole, n *config.Node) error {
	var endpoints []config.Endpoint
	for _, s := range n.Host.Services {
		endpoints = append(endpoints, s.Endpoint)
	}
	numbers, fresh, err := numberServices(a.store.kept.HostServices, endpoints)
	if err != nil {
		return err
	}
	next.numbers, next.fresh = numbers, fresh
	for _, s := range n.Host.Services {
		policy, err := policyOf(s.Accept)
		if err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
		next.services = append(next.services, hostService{
			HostService: s, key: serviceKey(s.Endpoint), index: numbers[s.Endpoint.String()], policy: policy,
		})
	}
	return nil
}

func (h *hostRole) service(endpoint config.Endpoint) *hostService {
	if h == nil {
		return nil
	}
	for i := range h.services {
		if h.services[i].Endpoint == endpoint {
			return &h.services[i]
		}
	}
	return nil
}

// fill brings the program's tables from the services of before (nil: they are empty) to those of h.
func (h *hostRole) fill(before *hostRole) error {
	for _, s := range h.services {
		if old := before.service(s.Endpoint); old != nil && old.policy == s.policy {
			continue
		}
		if index, ok := h.fresh[s.Endpoint.String()]; ok {
			if err := h.program.Clear(index); err != nil {
				return err
			}
		}
		if err := h.program.SetService(s.key, s.index, s.policy); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	for _, s := range before.services {
		if h.service(s.Endpoint) == nil {
			if err := h.program.DeleteService(s.key); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit switches to what was prepared. If it fails, rollBack is to follow.
func (p *preparedHost) commit() (err error) {
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
func (p *preparedHost) rollBack() error {
	switch {
	case p.begun && p.sameProgram():
		return p.old.fill(p.next)
	case p.before != nil:
		return p.before.Restore()
	}
	return nil
}

// discard lets go of what was prepared.
func (p *preparedHost) discard() {
	if p.next != nil && p.next.program != nil && !p.sameProgram() {
		p.next.program.Close()
	}
	if p.before != nil {
		p.before.Close()
	}
	os.Remove(p.dir) // if nothing is pinned in it
}

// finish lets go of what ran before, and returns what runs.
func (p *preparedHost) finish() *hostRole {
	if p.old != nil && !p.sameProgram() {
		p.old.program.Close()
	}
	if p.before != nil {
		p.before.Close()
	}
	if p.next != nil {
		p.next.fresh = nil // their numbers are theirs now
	}
	return p.next
}

func (h *hostRole) attached() []datapath.Attachment {
	if h == nil {
		return nil
	}
	return h.attachments
}

func (h *hostRole) forgetNextHops() error {
	if h == nil {
		return nil
	}
	return h.program.ForgetNextHops()
}
