package headend

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/flow"
)

// merging is what the egress of a protection said last of the protection's flows.
type merging struct {
	answered bool
	lacking  []int // flows that it does not merge
}

// mergesTold takes in which flows an egress merges.
func (p *Protections) mergesTold(agent netip.AddrPort, merged []api.MergedFlow) {
	for _, x := range p.Running {
		if x.Agent != agent {
			continue
		}
		before := x.merging
		x.merging = mergingOf(x.Protection, merged)
		if len(x.lacking) > 0 && !slices.Equal(x.lacking, before.lacking) {
			p.Log.Warn("copies are lost", "protection", x.Name, "why", x.mergeText())
		}
	}
}

// mergingOf looks for the flows of a protection among those that an egress merges. It drops
// numbered packets of all others.
func mergingOf(c config.Protection, merged []api.MergedFlow) merging {
	m, merged := merging{answered: true}, mergedOf(c.Egress, merged)
	for _, flow := range c.Flows() {
		if !slices.ContainsFunc(merged, func(f api.MergedFlow) bool {
			return slices.Contains(f.Flows, uint32(flow))
		}) {
			m.lacking = append(m.lacking, flow)
		}
	}
	return m
}

// mergedOf are the flows of the SID by which an egress takes what comes to an address: of several
// the longest prefix. The same flow ids are other flows at another SID, as of another head-end.
func mergedOf(egress netip.Addr, merged []api.MergedFlow) (list []api.MergedFlow) {
	longest := -1
	for _, f := range merged {
		if f.SID.Contains(egress) {
			longest = max(longest, f.SID.Bits())
		}
	}
	for _, f := range merged {
		if f.SID.Contains(egress) && f.SID.Bits() == longest {
			list = append(list, f)
		}
	}
	return list
}

// mustAnswer reports whether the egress has an agent that can tell whether it merges copies.
func (x *RunningProtection) mustAnswer() bool {
	return x.Agent.IsValid() && x.Redundancy != config.NotNumbered
}

// mergeText says which flows the egress lacks or may lack, and what would help; "": none.
func (x *RunningProtection) mergeText() string {
	switch {
	case !x.mustAnswer():
		return ""
	case !x.answered:
		return fmt.Sprintf("the egress's agent at %s has not said yet that it merges flows %s of "+
			"SID %s; see that it runs with api.metrics at this address", x.Agent,
			config.FormatFlows(x.Flows()), x.Egress)
	case len(x.lacking) == 0:
		return ""
	}
	return fmt.Sprintf("the egress's agent at %s has no flows %s of SID %s in its merge section, "+
		"and drops copies of these; add them to merge.sids there, or choose with --flow those "+
		"that it has", x.Agent, config.FormatFlows(x.lacking), x.Egress)
}

// refuseUnmerged asks the egress of a protection that is to be for its flows. If it does not
// answer, it is asked again as long as the protection runs.
func (x *RunningProtection) refuseUnmerged(ctx context.Context, secret flow.Secret) error {
	if !x.mustAnswer() {
		return nil
	}
	flows, err := api.AskEgress(ctx, secret, x.Agent)
	if err != nil {
		return nil
	}
	if x.merging = mergingOf(x.Protection, flows); len(x.lacking) > 0 {
		return &api.Error{Code: api.Conflict, Message: x.mergeText()}
	}
	return nil
}
