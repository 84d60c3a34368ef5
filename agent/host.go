package agent

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"sextant/agent/api"
	"sextant/agent/serverload"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/acceptance"
	"sextant/packet/srv6"
)

// refusalTime is how long a refused SYN stays refused: beyond the first retransmissions of a client
// (1, 3 and 7 s).
const refusalTime = 10 * time.Second

// hostRole is the host as it runs. A nil hostRole is a node without one.
type hostRole struct {
	loaded[*datapath.Host]
	config   datapath.HostConfig
	services []hostService
	numbers  map[string]uint32
	hmac     []srv6.HMACKey
	fresh    map[string]uint32 // services whose number had another owner or none
}

var _ switchable[*hostRole] = (*hostRole)(nil)

type hostService struct {
	config.HostService
	key    datapath.ServiceKey
	index  uint32
	policy acceptance.Policy
}

// hostRoom is the node's place for a host.
type hostRoom struct {
	slot[*hostRole]
	own *selfChecks // by which it finds out whether it serves
	// of services whose load is not that of their connections
	loads *serverload.Monitor
}

func newHostRoom(p parts) *hostRoom {
	return &hostRoom{slot: slot[*hostRole]{parts: p, name: api.Host}, own: newSelfChecks(p),
		loads: serverload.NewMonitor(p.life)}
}

func (h *hostRoom) opened() {}

func (h *hostRoom) end() {
	h.own.monitor.Stop()
	h.loads.Stop()
}

func (h *hostRoom) serve() {
	follow(h.life, &h.loop, h.own.monitor.Results(), h.own.ended)
	follow(h.life, &h.loop, h.loads.Results(), h.loadTold)
}

func (h *hostRoom) prepare(next *config.Node) (change, error) {
	return h.changeTo(func() (*hostRole, error) { return h.build(next) })
}

func (h *hostRoom) settled() {
	h.own.check()
	h.askLoads()
}

// hostConfig is the part of the configuration that is compiled into the programs.
func (h *hostRoom) hostConfig(n *config.Node) datapath.HostConfig {
	c := datapath.HostConfig{
		Domain:    domainOf(n, n.Host.Source),
		Learners:  n.Host.Learners,
		HMAC:      hmacRule(n.Host.HMAC),
		TunnelMTU: n.Domain.MTU - n.Domain.Overhead,
		Refusal:   refusalTime,
		Cgroup:    n.Host.Cgroup,
	}
	if c.Cgroup == "" {
		c.Cgroup = h.cgroup
	}
	for _, s := range n.Host.SIDs {
		c.SIDs = append(c.SIDs, datapath.LocalSID(s))
	}
	for _, i := range n.Host.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.HostInterface{Name: i.Name,
			Mode: attachModes[i.Mode]})
	}
	return c
}

// policyOf translates a configured acceptance policy.
func policyOf(a config.Accept) (acceptance.Policy, error) {
	kind, err := acceptance.ParseKind(string(a.Policy))
	threshold := a.Threshold
	if kind == acceptance.Dynamic {
		threshold = a.Initial
	}
	return acceptance.Policy{
		Kind: kind, Threshold: uint32(threshold), Window: uint32(a.Window),
		Workers:     uint32(a.Workers),
		LowPermille: uint32(a.LowPermille), HighPermille: uint32(a.HighPermille),
		Cores: uint32(cmp.Or(a.Cores, runtime.NumCPU())),
	}, err
}

// build makes what the configuration wants.
func (h *hostRoom) build(n *config.Node) (*hostRole, error) {
	if n.Host == nil {
		return nil, nil
	}
	next := &hostRole{config: h.hostConfig(n), hmac: hmacKeys(n.Host.HMAC)}
	if err := h.hostServices(next, n); err != nil {
		return nil, err
	}
	return next, nil
}

func (h *hostRole) load(dir string, running *hostRole) (err error) {
	if running != nil {
		h.loaded = running.loaded
		return nil
	}
	h.program, err = datapath.OpenHost(dir, h.config)
	return err
}

func (h *hostRole) same(other *hostRole) bool { return datapath.Same(h.config, other.config) }

func (h *hostRoom) hostServices(next *hostRole, n *config.Node) error {
	var endpoints []config.Endpoint
	for _, s := range n.Host.Services {
		endpoints = append(endpoints, s.Endpoint)
	}
	numbers, fresh, err := numberServices(h.store.kept.HostServices, endpoints)
	if err != nil {
		return err
	}
	next.numbers, next.fresh = numbers, fresh
	for _, s := range n.Host.Services {
		policy, err := policyOf(s.Accept)
		if err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
		policy.Reported = s.Load.Kind != config.LoadConnections
		policy.Queue = s.Load.Kind == config.LoadQueue
		next.services = append(next.services, hostService{
			HostService: s, key: serviceKey(s.Endpoint), index: numbers[s.Endpoint.String()],
			policy: policy,
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

// fill brings the program's tables from the previous services (nil: they are empty) to those of h.
func (h *hostRole) fill(before *hostRole) error {
	if err := h.fillHMAC(before); err != nil {
		return err
	}
	for _, s := range h.services {
		if old := before.service(s.Endpoint); old != nil && old.policy == s.policy &&
			old.QUIC == s.QUIC {
			continue
		}
		if index, ok := h.fresh[s.Endpoint.String()]; ok {
			if err := h.program.Clear(index); err != nil {
				return err
			}
		}
		h.program.SetQUIC(s.key, s.QUIC)
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

// adopt is the end of fresh numbers, too: they are the services' now.
func (h *hostRole) adopt(k *kept) {
	adopt(k.HostServices, h.numbers)
	h.fresh = nil
}

func (h *hostRoom) explain(x *explaining, on string) (err error) {
	if x.at, err = arrival(h.runs.attachments, "host", on); err != nil {
		return err
	}
	twin := h.runs.twin()
	x.decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return h.runs.decide(x, twin, e, frame)
	}
	x.made = func(f api.Flow, kinds []string) ([]framed, error) {
		return h.runs.offers(x, twin, f, kinds)
	}
	x.program, err = h.runs.program.Explainer()
	return err
}

func (h *hostRoom) capture(bytes int, interfaces ...string) (*datapath.Capture, error) {
	return h.runs.program.Capture(bytes, interfaces...)
}

// account names what a captured packet met, and what became of its offer.
func (h *hostRoom) account() accountant {
	twin := h.runs.twin()
	return func(e *api.Explanation, got datapath.Captured, frame []byte) {
		r := h.runs.account(twin, e, got.Interface, frame)
		if got.Verdict == model.Drop {
			return
		}
		if offer := capturedOffer(r.Offer, got.Taken); offer != model.OfferNone {
			e.Offer = offer.String()
		}
	}
}

func (h *hostRole) resolves() bool { return true }
