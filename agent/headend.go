package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sextant/config"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// headendRole is the head-end as it runs. A nil headendRole is a node without one.
type headendRole struct {
	config      datapath.HeadendConfig
	program     *datapath.Headend
	steering    steering
	table       srpolicy.Table
	broken      bool // its programs are of no use any more, whatever their settings
	attachments []datapath.Attachment
}

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

// prepareHeadend builds what the configuration wants: only the table if the programs stay the same.
func (a *Agent) prepareHeadend(n *config.Node) (*prepared[*headendRole], error) {
	p := &prepared[*headendRole]{dir: filepath.Join(a.dir, "headend"), start: a.node == nil,
		old: a.headend}
	if n.Headend == nil {
		return p, nil
	}
	if _, err := os.Stat(filepath.Join(p.dir, "policy_traffic")); errors.Is(err, os.ErrNotExist) {
		a.store.kept.Steered = nil // the kernel begins to count
	}
	wanted, err := a.steering(n, a.store.kept.Computed, a.store.kept.downSet())
	if err != nil {
		return p, err
	}
	next := &headendRole{config: headendConfig(n), steering: wanted}
	next.config.Epoch, next.config.Numbers = a.nextEpoch()
	p.next = next
	if p.sameProgram() {
		next.program, next.attachments = p.old.program, p.old.attachments
	} else if next.program, err = datapath.OpenHeadend(p.dir, next.config); err != nil {
		return p, err
	}
	next.table, err = wanted.compile(next.program.Source(), a.store.kept.activePaths())
	return p, err
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

// raiseEpoch writes down in which epoch numbers are about to be given, before the first one is.
// From then on it is not known any more with which they would go on.
func (a *Agent) raiseEpoch(next *headendRole) error {
	if next == nil {
		return nil
	}
	return a.beginEpoch(next.program.Source().Epoch)
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

func (h *headendRole) isBroken() bool { return h != nil && h.broken }

func (h *headendRole) loaded() pinnable {
	if h.program == nil {
		return nil
	}
	return h.program
}

func (h *headendRole) runsAt(attachments []datapath.Attachment) { h.attachments = attachments }

// fill replaces all rules, policies and lists in one step.
func (h *headendRole) fill(*headendRole) error { return h.program.SetTable(h.table) }

func (h *headendRole) attached() []datapath.Attachment {
	if h == nil {
		return nil
	}
	return h.attachments
}

func (h *headendRole) forgetNextHops() error {
	if h == nil {
		return nil
	}
	return h.program.ForgetNextHops()
}

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
