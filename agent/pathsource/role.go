// Package pathsource is role pathSource: a host whose connections take paths by rules.
package pathsource

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
)

// Role is a host whose connections take paths by rules. A nil Role is a node without it.
type Role struct {
	role.Loaded[*datapath.PathSource]
	Config datapath.PathSourceConfig
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Room is the node's place for role pathSource.
type Room struct {
	role.Slot[*Role]
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p, Name: api.PathSource}}
}

// Prepare is role.Room.
func (r *Room) Prepare(next *config.Node) (role.Change, error) {
	return r.ChangeTo(func() (*Role, error) { return r.Build(next) })
}

// Build makes what the configuration wants.
func (r *Room) Build(n *config.Node) (*Role, error) {
	p := n.PathSource
	if p == nil {
		return nil, nil
	}
	c := datapath.PathSourceConfig{Source4: p.Address(false), Source6: p.Address(true),
		PortsFrom: p.Ports.First, PortsTo: p.Ports.Last, OwnNamespace: true, Cgroup: r.Cgroup}
	var err4, err6 error
	c.IPv4, err4 = p.Codec(false)
	c.IPv6, err6 = p.Codec(true)
	for _, rule := range p.Rules {
		one := datapath.PathRule{Cgroup: rule.Cgroup, Command: rule.Command,
			Destination: rule.Destination, PortsFirst: rule.DestinationPorts.First,
			PortsLast: rule.DestinationPorts.Last, Protocol: uint8(rule.Protocol),
			Path: rule.Via.Hops(rule.HopLimit)}
		if rule.User != config.AnyUser {
			user := uint32(rule.User)
			one.User = &user
		}
		c.Rules = append(c.Rules, one)
	}
	return &Role{Config: c}, errors.Join(err4, err6)
}

// Same is role.Switchable.
func (r *Role) Same(other *Role) bool { return !r.Broken && datapath.Same(r.Config, other.Config) }

// Load is role.Switchable.
func (r *Role) Load(dir string, running *Role) (err error) {
	if running != nil {
		r.Loaded = running.Loaded
		return nil
	}
	r.Program, err = datapath.OpenPathSource(dir, r.Config)
	return err
}

// Fill has nothing to do: rules are constants of the programs.
func (r *Role) Fill(*Role) error { return nil }

// Count is role.Switchable.
func (r *Role) Count(c *api.Counters) error {
	counted, err := r.Program.Counters()
	steered := api.PathSourceCounters(counted)
	c.PathSource = &steered
	return err
}

// Explain is role.Room.
func (r *Room) Explain(*explain.Explaining, string) error {
	return &api.Error{Code: api.Conflict, Message: "the role pathSource sees sockets, and no " +
		"packets: which path a connection takes says sextant path decode"}
}

var steeredSockets = metrics.Description("path_source_sockets_total",
	"Sockets that were connected, by what became of them: they take the path of a rule (steered), "+
		"no free port takes it (no_port), the application had bound them (bound), or no rule "+
		"gives them a path (unmatched).", "outcome")

// Collect adds what became of sockets.
func (r *Room) Collect(out chan<- prometheus.Metric) {
	c := r.Counters().PathSource
	if c == nil {
		return
	}
	metrics.Counter(out, steeredSockets, c.Steered, "steered")
	metrics.Counter(out, steeredSockets, c.NoPort, "no_port")
	metrics.Counter(out, steeredSockets, c.Bound, "bound")
	metrics.Counter(out, steeredSockets, c.Unmatched, "unmatched")
}
