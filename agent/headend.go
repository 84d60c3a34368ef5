package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// headendRole is the head-end as it runs. A nil headendRole is a node without one.
type headendRole struct {
	loaded[*datapath.Headend]
	config   datapath.HeadendConfig
	steering steering
	table    srpolicy.Table
	active   map[string]string // paths, by policy
}

var _ switchable[*headendRole] = (*headendRole)(nil)

// headendConfig is the part of the configuration that is compiled into the programs, but for the
// epoch.
func headendConfig(n *config.Node) datapath.HeadendConfig {
	c := datapath.HeadendConfig{
		Domain:   domainOf(n, n.Headend.Source),
		HopLimit: uint8(n.Headend.HopLimit),
		Uplinks:  n.Headend.Uplinks,
		Local:    n.Headend.Local,
		Flows:    n.Headend.Flows,
	}
	for _, i := range n.Headend.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.HeadendInterface{Name: i.Name,
			Side: attachSides[i.Side], Mode: attachModes[i.Mode]})
	}
	return c
}

// headendRoom is the node's place for a head-end, with its policies and protections.
type headendRoom struct {
	slot[*headendRole]
	protections protections
	controllers controllers
	uplinks     string // why the head-end can't send on them; "": it can
}

func newHeadendRoom(p parts) *headendRoom {
	h := &headendRoom{slot: slot[*headendRole]{parts: p, name: api.Headend}}
	h.protections = protections{core: p.core, headend: h, speaker: p.speaker, change: p.change,
		computations: newComputations()}
	return h
}

func (h *headendRoom) opened() {}
func (h *headendRoom) end() {
	h.controllers.end()
	h.protections.end()
}

// headendChange is a change of the head-end.
type headendChange struct {
	*prepared[*headendRole]
	room *headendRoom
}

func (h *headendRoom) prepare(next *config.Node) (change, error) {
	p, err := h.changeTo(func() (*headendRole, error) { return h.build(next) })
	return headendChange{p, h}, err
}

func (h *headendRoom) settled() {
	h.noteSteered()
	h.protections.reprotect()
	h.followControllers()
}

func (h *headendRoom) steers() bool { return h.runs != nil }

func (h *headendRoom) routingNews() { h.protections.topologyMayHaveChanged() }

func (h *headendRoom) troubles() []string {
	if h.uplinks == "" {
		return nil
	}
	return []string{h.uplinks}
}

// build makes what the configuration wants: only the table if the programs stay the same.
func (h *headendRoom) build(n *config.Node) (*headendRole, error) {
	if n.Headend == nil {
		return nil, nil
	}
	counts := filepath.Join(h.pins(api.Headend), "policy_traffic")
	if _, err := os.Stat(counts); errors.Is(err, os.ErrNotExist) {
		h.store.kept.Steered = nil // the kernel begins to count
	}
	wanted, err := h.steering(n, h.store.kept.Computed, h.store.kept.downSet())
	if err != nil {
		return nil, err
	}
	next := &headendRole{config: headendConfig(n), steering: wanted,
		active: h.store.kept.activePaths()}
	next.config.Epoch, next.config.Numbers = h.nextEpoch()
	return next, nil
}

func (h *headendRole) load(dir string, running *headendRole) (err error) {
	if running != nil {
		h.loaded = running.loaded
	} else if h.program, err = datapath.OpenHeadend(dir, h.config); err != nil {
		return err
	}
	h.table, err = h.steering.compile(h.program.Source(), h.active)
	return err
}

// nextEpoch is the epoch of numbers that are not in the kernel: the last one if it is known with
// which they go on, else another than all that a merge may still remember.
func (h *headendRoom) nextEpoch() (epoch uint8, numbers map[uint32]uint64) {
	switch last := h.store.kept.Epoch; {
	case h.runs != nil:
		return h.runs.config.Epoch, nil
	case last != nil && h.store.kept.Numbers != nil:
		return *last, h.store.kept.Numbers
	case last != nil:
		return *last + 1, nil
	}
	return datapath.EpochOf(time.Now()), nil
}

// begin writes down in which epoch numbers are about to be given, before the first one is. From
// then on it is not known any more with which they would go on.
func (c headendChange) begin() error {
	if c.leaves() {
		return nil
	}
	return c.room.beginEpoch(c.next.program.Source().Epoch)
}

func (h *headendRole) adopt(k *kept) { h.steering.keep(k) }

func (h *headendRoom) explain(x *explaining, on string) (err error) {
	if x.at, err = arrival(h.runs.entrances(), "headend", on); err != nil {
		return err
	}
	twin := h.runs.model(h.node)
	if twin.Flows, err = h.runs.flowHeaders(); err != nil {
		return err
	}
	x.decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return h.runs.decide(x, twin, e, frame)
	}
	x.program, err = h.runs.program.Explainer(x.at.Side)
	return err
}

func (h *headendRoom) beginEpoch(epoch uint8) error {
	if last := h.store.kept.Epoch; last != nil && *last == epoch && h.store.kept.Numbers == nil {
		return nil
	}
	h.store.kept.Epoch, h.store.kept.Numbers = &epoch, nil
	return h.store.write()
}

func (h *headendRole) same(other *headendRole) bool {
	a, b := h.config, other.config
	a.Numbers, b.Numbers = nil, nil // what it began with
	return !h.broken && datapath.Same(a, b)
}

// fill replaces all rules, policies and lists in one step.
func (h *headendRole) fill(*headendRole) error { return h.program.SetTable(h.table) }

func (h *headendRole) resolves() bool { return true }

// policyWarnings tells of policies that do less than they are for.
func (h *headendRoom) warnings() []string {
	if h.runs == nil {
		return nil
	}
	warnings := h.controllers.warnings()
	if drops, err := h.runs.program.LoopDrops(); err == nil && drops > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"the kernel has dropped %d frames that were to be numbered: they are larger than the "+
				"interfaces srv6loop and srv6loop-in take; see: ip -s link show srv6loop", drops))
	}
	for _, p := range h.runs.steering.policies {
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
	return warnings
}

// watchDevices looks at interfaces that the head-end's programs know by number: its loop,
// with which they are loaded anew if it was removed, and its uplinks.
func (h *headendRoom) watchDevices() {
	if h.runs == nil {
		return
	}
	uplinks := ""
	if err := h.runs.program.FollowUplinks(); err != nil {
		uplinks = err.Error()
	}
	if uplinks != h.uplinks {
		if h.uplinks = uplinks; uplinks != "" {
			h.options.Log.Warn("the head-end can't send on an uplink", "error", uplinks)
		}
		h.rewarn()
	}
	if h.runs.program.HasLoop() {
		return
	}
	h.options.Log.Warn("the head-end's loop was removed; it is made anew, with its programs")
	h.runs.broken = true
	if err := h.reload(); err != nil {
		h.options.Log.Warn("the head-end's loop can't be made anew; tried again soon", "error",
			err, "after", attachInterval)
	}
}
