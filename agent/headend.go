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

var _ room[*headendRole] = (*headendRole)(nil)

// headendConfig is the part of the configuration that is compiled into the programs, but for the
// epoch.
func headendConfig(n *config.Node) datapath.HeadendConfig {
	c := datapath.HeadendConfig{
		Secret: n.Secret, Block: n.Domain.Block, Locators: n.Domain.Locators,
		Infrastructure: n.Domain.Infrastructure,
		Source:         n.Headend.Source, HopLimit: uint8(n.Headend.HopLimit),
		Uplinks: n.Headend.Uplinks,
		Local:   n.Headend.Local,
	}
	for _, i := range n.Headend.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.HeadendInterface{Name: i.Name,
			Side: attachSides[i.Side], Mode: attachModes[i.Mode]})
	}
	return c
}

// buildHeadend makes what the configuration wants: only the table if the programs stay the same.
func (a *Agent) buildHeadend(n *config.Node) (*headendRole, error) {
	if n.Headend == nil {
		return nil, nil
	}
	counts := filepath.Join(a.pins(api.Headend), "policy_traffic")
	if _, err := os.Stat(counts); errors.Is(err, os.ErrNotExist) {
		a.store.kept.Steered = nil // the kernel begins to count
	}
	wanted, err := a.steering(n, a.store.kept.Computed, a.store.kept.downSet())
	if err != nil {
		return nil, err
	}
	next := &headendRole{config: headendConfig(n), steering: wanted,
		active: a.store.kept.activePaths()}
	next.config.Epoch, next.config.Numbers = a.nextEpoch()
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
func (a *Agent) nextEpoch() (epoch uint8, numbers map[uint32]uint64) {
	switch last := a.store.kept.Epoch; {
	case a.headend != nil:
		return a.headend.config.Epoch, nil
	case last != nil && a.store.kept.Numbers != nil:
		return *last, a.store.kept.Numbers
	case last != nil:
		return *last + 1, nil
	}
	return datapath.EpochOf(time.Now()), nil
}

// begin writes down in which epoch numbers are about to be given, before the first one is. From
// then on it is not known any more with which they would go on.
func (h *headendRole) begin(a *Agent) error { return a.beginEpoch(h.program.Source().Epoch) }

func (h *headendRole) adopt(k *kept) { h.steering.keep(k) }

func (h *headendRole) warnings(a *Agent) []string { return a.policyWarnings() }

func (h *headendRole) explain(x *explaining, on string) (err error) {
	if x.at, err = arrival(h.entrances(), "headend", on); err != nil {
		return err
	}
	x.headend, x.decide = h.model(x.agent.node), x.onHeadend
	x.program, err = h.program.Explainer(x.at.Side)
	return err
}

func (a *Agent) beginEpoch(epoch uint8) error {
	if last := a.store.kept.Epoch; last != nil && *last == epoch && a.store.kept.Numbers == nil {
		return nil
	}
	a.store.kept.Epoch, a.store.kept.Numbers = &epoch, nil
	return a.store.write()
}

func (h *headendRole) same(other *headendRole) bool {
	return !h.broken && h.config.Equal(other.config)
}

// fill replaces all rules, policies and lists in one step.
func (h *headendRole) fill(*headendRole) error { return h.program.SetTable(h.table) }

func (h *headendRole) resolves() bool { return true }

// policyWarnings tells of policies that do less than they are for.
func (a *Agent) policyWarnings() []string {
	var warnings []string
	if a.headend == nil {
		return nil
	}
	if drops, err := a.headend.program.LoopDrops(); err == nil && drops > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"the kernel has dropped %d frames that were to be numbered: they are larger than the "+
				"interfaces srv6loop and srv6loop-in take; see: ip -s link show srv6loop", drops))
	}
	for _, p := range a.headend.steering.policies {
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
