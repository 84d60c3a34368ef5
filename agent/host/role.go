// Package host is role host: services, what they say of themselves, and whether they work.
package host

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/agent/serverload"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/acceptance"
	"sextant/packet/srv6"
)

// refusalTime is how long a refused SYN stays refused: beyond the first retransmissions of a client
// (1, 3 and 7 s).
const refusalTime = 10 * time.Second

// Role is the host as it runs. A nil Role is a node without one.
type Role struct {
	role.Loaded[*datapath.Host]
	Config   datapath.HostConfig
	Services []hostService
	numbers  map[string]uint32
	Hmac     []srv6.HMACKey
	fresh    map[string]uint32 // services whose number had another owner or none
	starts   bool              // an earlier agent's programs may be taken over
	filled   bool              // they were, with tables that have all that is wanted
}

var _ role.Switchable[*Role] = (*Role)(nil)

type hostService struct {
	config.HostService
	Key    datapath.ServiceKey
	Index  uint32
	Policy acceptance.Policy
}

// Room is the node's place for a host.
type Room struct {
	role.Slot[*Role]
	own *selfChecks // by which it finds out whether it serves
	// of services whose load is not that of their connections
	loads *serverload.Monitor
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}, own: newSelfChecks(p),
		loads: serverload.NewMonitor(p.Life)}
}

// End is role.Ender.
func (h *Room) End() {
	h.own.monitor.Stop()
	h.loads.Stop()
}

// Serve is role.Server.
func (h *Room) Serve() {
	role.FollowAll(h.Life, &h.Loop, h.own.monitor.Results(), h.own.ended)
	role.Follow(h.Life, &h.Loop, h.loads.Results(), h.loadTold)
}

// Prepare is role.Room.
func (h *Room) Prepare(next *config.Node) (role.Change, error) {
	return h.ChangeTo(func() (*Role, error) { return h.Build(next) })
}

// Settled is role.Settler.
func (h *Room) Settled() {
	h.own.check()
	h.askLoads()
}

// hostConfig is the part of the configuration that is compiled into the programs.
func (h *Room) hostConfig(n *config.Node) datapath.HostConfig {
	c := datapath.HostConfig{
		Domain:    role.DomainOf(n, n.Host.Source),
		Learners:  n.Host.Learners,
		HMAC:      hmacRule(n.Host.HMAC),
		TunnelMTU: n.Domain.MTU - n.Domain.Overhead,
		Refusal:   refusalTime,
		Cgroup:    n.Host.Cgroup,
	}
	c.Cgroup = cmp.Or(c.Cgroup, h.Cgroup)
	for _, s := range n.Host.SIDs {
		c.SIDs = append(c.SIDs, datapath.LocalSID(s))
	}
	for _, i := range n.Host.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.HostInterface{Name: i.Name,
			Mode: role.AttachModes[i.Mode]})
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

// Build makes what the configuration wants.
func (h *Room) Build(n *config.Node) (*Role, error) {
	if n.Host == nil {
		return nil, nil
	}
	next := &Role{Config: h.hostConfig(n), Hmac: hmacKeys(n.Host.HMAC),
		starts: h.Node == nil}
	if err := h.hostServices(next, n); err != nil {
		return nil, err
	}
	return next, nil
}

// Load is role.Switchable.
func (h *Role) Load(dir string) (err error) {
	if h.starts {
		if h.Program, err = datapath.TakeOverHost(dir, h.Config); err == nil {
			err = role.TakesOver(h.Program, func() error { return h.Fill(nil) })
		}
		if err == nil {
			h.filled = true
			return nil
		}
	}
	h.Program, err = datapath.OpenHost(dir, h.Config)
	return err
}

// Same is role.Switchable.
func (h *Role) Same(other *Role) bool { return datapath.Same(h.Config, other.Config) }

func (h *Room) hostServices(next *Role, n *config.Node) error {
	var endpoints []config.Endpoint
	for _, s := range n.Host.Services {
		endpoints = append(endpoints, s.Endpoint)
	}
	numbers, fresh, err := state.NumberServices(h.Store.Kept.HostServices, endpoints,
		datapath.MaxHostServices)
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
		next.Services = append(next.Services, hostService{
			HostService: s, Key: state.ServiceKey(s.Endpoint), Index: numbers[s.Endpoint.String()],
			Policy: policy,
		})
	}
	return nil
}

func (h *Role) service(endpoint config.Endpoint) *hostService {
	if h == nil {
		return nil
	}
	for i := range h.Services {
		if h.Services[i].Endpoint == endpoint {
			return &h.Services[i]
		}
	}
	return nil
}

// Fill brings the program's tables from the previous services (nil: they are empty) to those of h.
func (h *Role) Fill(before *Role) error {
	if before == nil && h.filled {
		return nil
	}
	if err := h.fillHMAC(before); err != nil {
		return err
	}
	for _, s := range h.Services {
		if old := before.service(s.Endpoint); old != nil && old.Policy == s.Policy &&
			old.QUIC == s.QUIC {
			continue
		}
		if index, ok := h.fresh[s.Endpoint.String()]; ok {
			if err := h.Program.Clear(index); err != nil {
				return err
			}
		}
		h.Program.SetQUIC(s.Key, s.QUIC)
		if err := h.Program.SetService(s.Key, s.Index, s.Policy); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	for _, s := range before.Services {
		if h.service(s.Endpoint) == nil {
			if err := h.Program.DeleteService(s.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// Adopt is the end of fresh numbers, too: they are the services' now.
func (h *Role) Adopt(k *state.Kept) {
	state.Adopt(k.HostServices, h.numbers)
	h.fresh = nil
}

// Explain is role.Room.
func (h *Room) Explain(x *explain.Explaining, on string) (err error) {
	if x.At, err = explain.Arrival(h.Runs.Attachments, "host", on); err != nil {
		return err
	}
	twin := h.Runs.twin()
	x.Decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return h.Runs.decide(x, twin, e, frame)
	}
	x.Made = func(f api.Flow, kinds []string) ([]explain.Framed, error) {
		return h.Runs.offers(x, twin, f, kinds)
	}
	x.Program, err = h.Runs.Program.Explainer()
	return err
}

// Capture is role.Capturer.
func (h *Room) Capture(bytes int, interfaces ...string) (*datapath.Capture, error) {
	return h.Runs.Program.Capture(bytes, interfaces...)
}

// Account names what a captured packet met, and what became of its offer.
func (h *Room) Account() role.Accountant {
	twin := h.Runs.twin()
	return func(e *api.Explanation, got datapath.Captured, frame []byte) {
		r := h.Runs.account(twin, e, got.Interface, frame)
		if got.Verdict == model.Drop {
			return
		}
		if offer := capturedOffer(r.Offer, got.Taken); offer != model.OfferNone {
			e.Offer = offer.String()
		}
	}
}

// Resolves is role.Role.
func (h *Role) Resolves() bool { return true }
