// Package headend is role headend: SR policies with their traffic, protections, and paths of single
// flows.
package headend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// Role is the head-end as it runs. A nil Role is a node without one.
type Role struct {
	role.Loaded[*datapath.Headend]
	Config   datapath.HeadendConfig
	Steering steering
	table    srpolicy.Table
	Active   map[string]string // paths, by policy
}

var _ role.Switchable[*Role] = (*Role)(nil)

// headendConfig is the part of the configuration that is compiled into the programs, but for the
// epoch.
func headendConfig(n *config.Node) datapath.HeadendConfig {
	c := datapath.HeadendConfig{
		Domain:   role.DomainOf(n, n.Headend.Source),
		HopLimit: uint8(n.Headend.HopLimit),
		Uplinks:  n.Headend.Uplinks,
		Local:    n.Headend.Local,
		Flows:    n.Headend.Flows,
		Spread:   n.Headend.Spread,
	}
	for _, i := range n.Headend.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.HeadendInterface{Name: i.Name,
			Side: role.AttachSides[i.Side], Mode: role.AttachModes[i.Mode]})
	}
	return c
}

// Room is the node's place for a head-end, with its policies and protections.
type Room struct {
	role.Slot[*Role]
	Protecting  Protections
	controllers controllers
	uplinks     string // why the head-end can't send on them; "": it can
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	h := &Room{Slot: role.Slot[*Role]{Parts: p}}
	h.Protecting = Protections{Core: p.Core, headend: h, speaker: p.Speaker, change: p.Change,
		computations: newComputations()}
	return h
}

// End is role.Ender.
func (h *Room) End() {
	h.controllers.end()
	h.Protecting.end()
}

// headendChange is a change of the head-end.
type headendChange struct {
	*role.Prepared[*Role]
	room *Room
}

// Prepare is role.Room.
func (h *Room) Prepare(next *config.Node) (role.Change, error) {
	p, err := h.ChangeTo(func() (*Role, error) { return h.Build(next) })
	return headendChange{p, h}, err
}

// Settled is role.Settler.
func (h *Room) Settled() {
	h.noteSteered()
	h.Protecting.reprotect()
	h.followControllers()
}

func (h *Room) steers() bool { return h.Runs != nil }

// RoutingNews is role.RoutingListener.
func (h *Room) RoutingNews() { h.Protecting.topologyMayHaveChanged() }

// Troubles is role.Troubled.
func (h *Room) Troubles() []string {
	return slices.DeleteFunc([]string{h.uplinks, h.Protecting.owes},
		func(trouble string) bool { return trouble == "" })
}

// Due reports when what protections owe is tried again.
func (h *Room) Due() (wait time.Duration, waits bool) {
	return h.Protecting.retryAt - h.Now(), h.Protecting.owes != ""
}

// Act tries it.
func (h *Room) Act() { h.Protecting.reinstall() }

// Build makes what the configuration wants: only the table if the programs stay the same.
func (h *Room) Build(n *config.Node) (*Role, error) {
	if n.Headend == nil {
		return nil, nil
	}
	counts := filepath.Join(h.Pins(api.Headend), "policy_traffic")
	if _, err := os.Stat(counts); errors.Is(err, os.ErrNotExist) {
		h.Store.Kept.Steered = nil // the kernel begins to count
	}
	wanted, err := h.steering(n, h.Store.Kept.Computed, h.Store.Kept.DownSet())
	if err != nil {
		return nil, err
	}
	next := &Role{Config: headendConfig(n), Steering: wanted,
		Active: h.Store.Kept.ActivePaths()}
	next.Config.Epoch, next.Config.Numbers = h.NextEpoch()
	return next, nil
}

// Load is role.Switchable.
func (h *Role) Load(dir string) (err error) {
	if h.Program, err = datapath.OpenHeadend(dir, h.Config); err != nil {
		return err
	}
	return h.compile()
}

// Continue is role.Switchable.
func (h *Role) Continue(running role.Role) error {
	return errors.Join(h.Loaded.Continue(running), h.compile())
}

func (h *Role) compile() (err error) {
	h.table, err = h.Steering.Compile(h.Program.Source(), h.Active)
	return err
}

// NextEpoch is the epoch of numbers that are not in the kernel: the last one if it is known with
// which they go on, else another than all that a merge may still remember.
func (h *Room) NextEpoch() (epoch uint8, numbers map[uint32]uint64) {
	switch last := h.Store.Kept.Epoch; {
	case h.Runs != nil:
		return h.Runs.Config.Epoch, nil
	case last != nil && h.Store.Kept.Numbers != nil:
		return *last, h.Store.Kept.Numbers
	case last != nil:
		return *last + 1, nil
	}
	return datapath.EpochOf(time.Now()), nil
}

// Begin writes down in which epoch numbers are about to be given, before the first one is. From
// then on it is not known any more with which they would go on.
func (c headendChange) Begin() error {
	if c.Leaves() {
		return nil
	}
	return c.room.BeginEpoch(c.Next.Program.Source().Epoch)
}

// Adopt is role.Role.
func (h *Role) Adopt(k *state.Kept) { h.Steering.keep(k) }

// Explain is role.Room.
func (h *Room) Explain(x *explain.Explaining, on string) (err error) {
	if x.At, err = explain.Arrival(h.Runs.entrances(), "headend", on); err != nil {
		return err
	}
	twin := h.Runs.model(h.Node)
	if twin.Flows, err = h.Runs.flowHeaders(); err != nil {
		return err
	}
	if err := h.Runs.tellGroups(twin); err != nil {
		return err
	}
	x.Decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return h.Runs.decide(x, twin, e, frame)
	}
	x.Program, err = h.Runs.Program.Explainer(x.At.Side)
	return err
}

// BeginEpoch writes down that numbers of an epoch are given from now on.
func (h *Room) BeginEpoch(epoch uint8) error {
	if last := h.Store.Kept.Epoch; last != nil && *last == epoch && h.Store.Kept.Numbers == nil {
		return nil
	}
	h.Store.Kept.Epoch, h.Store.Kept.Numbers = &epoch, nil
	return h.Store.Write()
}

// Same is role.Switchable.
func (h *Role) Same(other *Role) bool {
	a, b := h.Config, other.Config
	a.Numbers, b.Numbers = nil, nil // what it began with
	return !h.Broken && datapath.Same(a, b)
}

// Fill replaces all rules, policies and lists in one step.
func (h *Role) Fill(*Role) error { return h.Program.SetTable(h.table) }

// Resolves is role.Role.
func (h *Role) Resolves() bool { return true }

// Warnings tells of controllers, packets in loops, and policies that do less than they are for.
func (h *Room) Warnings() []string {
	if h.Runs == nil {
		return nil
	}
	warnings := h.controllers.warnings()
	if drops, err := h.Runs.Program.LoopDrops(); err == nil && drops > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"the kernel has dropped %d frames that were to be numbered: they are larger than the "+
				"interfaces srv6loop and srv6loop-in take; see: ip -s link show srv6loop", drops))
	}
	for _, p := range h.Runs.Steering.Policies {
		if _, ok := p.Active(""); ok {
			continue
		}
		fate := "is forwarded as if there were no policy"
		if p.DropIfInvalid {
			fate = "is dropped"
		}
		warnings = append(warnings, fmt.Sprintf("policy %s has no valid path: its traffic %s; "+
			"see: sextant policy show %s", p.Name, fate,
			p.Name))
	}
	for _, x := range h.Protecting.Running {
		if text := x.mergeText(); text != "" {
			warnings = append(warnings, "protection "+x.Name+": "+text)
		}
	}
	return warnings
}

// WatchDevices looks at interfaces that the head-end's programs know by number: its loop,
// with which they are loaded anew if it was removed, and its uplinks.
func (h *Room) WatchDevices() {
	if h.Runs == nil {
		return
	}
	uplinks := ""
	if err := h.Runs.Program.FollowUplinks(); err != nil {
		uplinks = err.Error()
	}
	if uplinks != h.uplinks {
		if h.uplinks = uplinks; uplinks != "" {
			h.Log.Warn("the head-end can't send on an uplink", "error", uplinks)
		}
		h.Rewarn()
	}
	if h.Runs.Program.HasLoop() {
		if raised, err := h.Runs.Program.RaiseLoop(); err != nil {
			h.Log.Warn("the head-end's loop is down, and can't be brought up; tried again soon",
				"error", err)
		} else if raised {
			h.Log.Warn("the head-end's loop was down; it is brought up")
		}
		return
	}
	h.Log.Warn("the head-end's loop was removed; it is made anew, with its programs")
	h.Runs.Broken = true
	if err := h.Reload(); err != nil {
		h.Log.Warn("the head-end's loop can't be made anew; tried again soon", "error",
			err)
	}
}
