// Package pathsource is role pathSource: a host whose connections take paths by rules.
package pathsource

import (
	"errors"
	"fmt"
	"slices"
	"time"

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
	absent []string // cgroups of rules
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Room is the node's place for role pathSource.
type Room struct {
	role.Slot[*Role]
	lookAt time.Duration // when cgroups are looked at next
}

// lookInterval is the time between looks at cgroups that rules name.
const lookInterval = time.Second

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
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
		Interfaces: p.Interfaces, PortsFrom: p.Ports.First, PortsTo: p.Ports.Last,
		OwnNamespace: true, Cgroup: r.Cgroup}
	var err4, err6 error
	c.IPv4, err4 = p.Codec(false)
	c.IPv6, err6 = p.Codec(true)
	for _, rule := range p.Rules {
		one := datapath.PathRule{Cgroup: rule.Cgroup, Command: rule.Command,
			Destination: rule.Destination, PortsFirst: rule.DestinationPorts.First,
			PortsLast: rule.DestinationPorts.Last, Protocol: uint8(rule.Protocol),
			Path: rule.Via.Hops(rule.HopLimit)}
		if rule.User != config.AnyUser {
			one.User = new(uint32(rule.User))
		}
		c.Rules = append(c.Rules, one)
	}
	return &Role{Config: c}, errors.Join(err4, err6)
}

// Same is role.Switchable.
func (r *Role) Same(other *Role) bool {
	a, b := r.Config, other.Config
	a.Rules, b.Rules = nil, nil // Fill sets them
	return !r.Broken && datapath.Same(a, b)
}

// Load is role.Switchable.
func (r *Role) Load(dir string) (err error) {
	r.Program, err = datapath.OpenPathSource(dir, r.Config)
	return err
}

// Fill makes the rules hold.
func (r *Role) Fill(*Role) (err error) {
	_, r.absent, err = r.Program.SetRules(r.Config.Rules)
	return err
}

// Due is when cgroups are looked at again: rules name them, and systemd makes that of a service
// anew when it starts.
func (r *Room) Due() (wait time.Duration, waits bool) {
	if r.Runs == nil || !slices.ContainsFunc(r.Runs.Config.Rules,
		func(one datapath.PathRule) bool { return one.Cgroup != "" }) {
		return 0, false
	}
	return r.lookAt - r.Now(), true
}

// Act makes the rules follow cgroups that were made, removed, or made again.
func (r *Room) Act() {
	r.lookAt = r.Now() + lookInterval
	changed, absent, err := r.Runs.Program.SetRules(r.Runs.Config.Rules)
	if err != nil {
		r.Log.Warn("path rules stay as they were; tried again", "error", err, "after",
			lookInterval)
		return
	}
	r.Runs.absent = absent
	if changed {
		r.Log.Info("path rules follow their cgroups", "absent", absent)
	}
}

// Warnings names cgroups of rules that are not there.
func (r *Room) Warnings() (list []string) {
	if r.Runs == nil {
		return nil
	}
	for _, dir := range r.Runs.absent {
		list = append(list, fmt.Sprintf("pathSource: there is no cgroup %s, so rules that name it "+
			"match nothing; they will when it is made", dir))
	}
	return list
}

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
		"no free port or flow label takes it (no_port), the application had bound them (bound), "+
		"or no rule gives them a path (unmatched).", "outcome")

// Collect adds what became of sockets.
func (r *Room) Collect(out chan<- prometheus.Metric) {
	c := r.Counters(out).PathSource
	if c == nil {
		return
	}
	metrics.Counter(out, steeredSockets, c.Steered, "steered")
	metrics.Counter(out, steeredSockets, c.NoPort, "no_port")
	metrics.Counter(out, steeredSockets, c.Bound, "bound")
	metrics.Counter(out, steeredSockets, c.Unmatched, "unmatched")
}
