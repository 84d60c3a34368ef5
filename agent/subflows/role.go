package subflows

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
)

// Role is a host whose MPTCP connections get subflows. A nil Role is a node without it.
type Role struct {
	role.Loaded[*process]
	Config Settings
	room   *Room
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Room is the node's place for role subflows.
type Room struct {
	role.Slot[*Role]
}

// NewRoom makes the room of an agent.
func NewRoom(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
}

// Build makes what the configuration wants.
func (r *Room) Build(n *config.Node) (*Role, error) {
	if n.Subflows == nil {
		return nil, nil
	}
	s, err := settingsOf(n.Subflows)
	return &Role{Config: s, room: r}, err
}

func settingsOf(c *config.Subflows) (s Settings, err error) {
	s.AfterBytes = uint64(c.AfterBytes)
	v4, err := c.Codec(false)
	if err != nil {
		return s, err
	}
	v6, err := c.Codec(true)
	if err != nil {
		return s, err
	}
	for _, one := range c.Rules {
		s.Rules = append(s.Rules, Rule{Name: one.Name, Destination: one.Destination,
			Scheduled: one.Scheduled, Choices: one.NextHops.Counts(), IPv4: v4, IPv6: v6})
	}
	if at := c.Controller; at != nil {
		s.Controller = func() (*api.Client, error) { return clientOf(*at) }
	}
	return s, nil
}

// clientOf reads the files of a controller elsewhere.
func clientOf(at config.Scheduler) (*api.Client, error) {
	if at.Socket != "" {
		return api.NewClientOf("controller", "sextant controller -f FILE", at.Socket), nil
	}
	remote := api.Remote{Address: at.Address}
	token, err := os.ReadFile(at.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("subflows.controller.tokenFile: %w", err)
	}
	remote.Token = strings.TrimSpace(string(token))
	for _, file := range []struct {
		path string
		into *[]byte
	}{{at.TLS.CA, &remote.CA}, {at.TLS.Certificate, &remote.Certificate},
		{at.TLS.Key, &remote.Key}} {
		if file.path == "" {
			continue
		}
		if *file.into, err = os.ReadFile(file.path); err != nil {
			return nil, fmt.Errorf("subflows.controller.tls: %w", err)
		}
	}
	return api.NewRemoteClient("controller", remote)
}

// roleChange gives the kernel's path manager back when the role goes.
type roleChange struct {
	*role.Prepared[*Role]
	room   *Room
	former string
}

// Prepare is role.Room.
func (r *Room) Prepare(next *config.Node) (role.Change, error) {
	p, err := r.ChangeTo(func() (*Role, error) { return r.Build(next) })
	return &roleChange{Prepared: p, room: r}, err
}

// Commit is role.Change.
func (c *roleChange) Commit() (err error) {
	if c.Leaves() {
		if c.former, err = formerManager(c.Dir); err != nil {
			return err
		}
	}
	return c.Prepared.Commit()
}

// Finish is role.Change.
func (c *roleChange) Finish() {
	if c.Leaves() && c.room.Runs != nil {
		c.room.Runs.Program.Release()
	}
	c.Prepared.Finish()
	if c.Leaves() && c.former != "" {
		_ = giveBack(c.former) // the kernel took it once
	}
}

// Same is role.Switchable: whatever the settings, the process is the same.
func (r *Role) Same(*Role) bool { return true }

// Load is role.Switchable.
func (r *Role) Load(dir string) (err error) {
	log := r.room.Log
	runner, err := Open(Log{
		Note: func(text string) { log.Debug("subflows", "event", text) },
		Warn: func(text string) { log.Warn("subflows", "problem", text) }}, r.Config)
	if err != nil {
		return err
	}
	r.Program = &process{Runner: runner, dir: dir, life: r.room.Life,
		failed: func(err error) { log.Warn("subflows", "error", err) }}
	return nil
}

// Fill makes the settings hold.
func (r *Role) Fill(*Role) error {
	return r.Program.Set(r.Config)
}

// Warnings are what keeps connections from getting subflows.
func (r *Room) Warnings() (list []string) {
	if r.Runs == nil {
		return nil
	}
	problems := Problems()
	if told := r.Runs.Program.counted.problems.Load(); told != nil {
		problems = append(problems, *told...)
	}
	for _, problem := range problems {
		list = append(list, "subflows: "+problem)
	}
	return list
}

// Problems are settings of this network namespace that keep connections which are opened now from
// getting subflows.
func Problems() (list []string) {
	if value, err := linux.ReadSysctl("net.mptcp.enabled"); err == nil && value == "0" {
		list = append(list, "net.mptcp.enabled is 0 in this network namespace: connections do "+
			"not speak MPTCP; write 1, before they are opened: sysctl -w net.mptcp.enabled=1")
	}
	if value, userspace, err := linux.PathManager(); err == nil && !userspace {
		list = append(list, fmt.Sprintf("net.mptcp.pm_type is 0 in this network namespace: "+
			"connections are left to the path manager %s; write 1, before they are opened: "+
			"sysctl -w net.mptcp.pm_type=1", cmp.Or(value, "of the kernel")))
	}
	return list
}

// Subflows returns the MPTCP connections that this host has opened, by token; none on a node
// without the role.
func (r *Room) Subflows(ctx context.Context) ([]api.MPTCPConnection, error) {
	runner, err := role.Ask(ctx, &r.Loop, func() (*Runner, error) {
		if r.Runs == nil {
			return nil, nil
		}
		return r.Runs.Program.Runner, nil
	})
	if err != nil || runner == nil {
		return nil, err
	}
	known, err := runner.Connections(ctx)
	list := make([]api.MPTCPConnection, 0, len(known))
	for _, c := range known {
		one := api.MPTCPConnection{Token: fmt.Sprintf("%08x", c.Token), Source: c.Local,
			Destination: c.Remote, Rule: c.Rule, State: string(c.State), AckedBytes: c.AckedBytes,
			Subflows: []api.MPTCPSubflow{}}
		for _, s := range c.Subflows {
			one.Subflows = append(one.Subflows, api.MPTCPSubflow{Source: s.Local, Path: s.Route,
				Backup: s.Backup})
		}
		list = append(list, one)
	}
	return list, err
}

// End is role.Ender.
func (r *Room) End() {
	if r.Runs != nil {
		r.Runs.Program.stop()
	}
}

// Explain is role.Room.
func (r *Room) Explain(*explain.Explaining, string) error {
	return &api.Error{Code: api.Conflict, Message: "the role subflows sees connections, and no " +
		"packets: which subflows they have says sextant path subflows"}
}

// Clean gives the path manager of connections back that was there before the role.
func Clean(pins string) error {
	former, err := formerManager(pins)
	if err != nil || former == "" {
		return err
	}
	return giveBack(former)
}

// managerFile is the pin that has the former path manager.
const managerFile = "path_manager"

// formerManager is the path manager that was there before the role; "": the role is not there.
func formerManager(pins string) (string, error) { return datapath.KeptText(pins, managerFile) }

// giveBack makes the former path manager that of new connections, unless it was changed
// meanwhile.
func giveBack(former string) error {
	if _, userspace, err := linux.PathManager(); err != nil || !userspace {
		return nil
	}
	return linux.SetPathManager(former)
}
