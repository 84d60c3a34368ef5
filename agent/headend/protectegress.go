package headend

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/packet/flow"
	"sextant/te/frer"
	"sextant/te/protection"
)

// egressInterval is how often egresses are asked what came by each path.
const egressInterval = time.Second

// watchEgresses asks the agents of egresses. Where paths are not probed, what an egress says is how
// a failure is noticed.
func (p *Protections) watchEgresses(ctx context.Context) {
	tick := time.NewTicker(egressInterval)
	defer tick.Stop()
	failed := map[netip.AddrPort]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var agents []netip.AddrPort
		var secret flow.Secret
		if p.Do(ctx, func() { agents, secret = p.egresses(), p.Node.Secret }) != nil {
			return
		}
		for _, agent := range agents {
			flows, err := api.AskEgress(ctx, secret, agent)
			if err != nil && !failed[agent] && ctx.Err() == nil {
				p.Log.Warn("what came of copies is not known", "error", err)
			}
			failed[agent] = err != nil
			if p.Do(ctx, func() {
				if err == nil { // else it merges as before
					p.mergesTold(agent, flows)
				}
				p.egressTold(agent, flows)
			}) != nil {
				return
			}
		}
	}
}

// egresses are the agents that protections name, each once.
func (p *Protections) egresses() (agents []netip.AddrPort) {
	for _, x := range p.Running {
		if x.Agent.IsValid() && !slices.Contains(agents, x.Agent) {
			agents = append(agents, x.Agent)
		}
	}
	return agents
}

// egressTold takes in what came, by flow.
func (p *Protections) egressTold(agent netip.AddrPort, flows []api.MergedFlow) {
	for _, x := range p.Running {
		if x.Agent != agent {
			continue
		}
		paths := map[uint32]api.MergedPath{}
		for _, f := range mergedOf(x.Egress, flows) {
			for _, p := range f.Paths {
				paths[p.Flow] = p
			}
		}
		x.came = paths
		if p.prober == nil && len(paths) > 0 && p.owes == "" { // else others carry than believed
			p.BelieveEgress(x, paths, p.Now())
		}
	}
}

// How lists that fell silent are tried again where nothing probes them.
const (
	FirstTrial = 5 * time.Second
	mostTrial  = 5 * time.Minute
	trialLasts = 3 * egressInterval
)

// BelieveEgress takes a protection's lists for silent by which nothing comes, and tries those
// again. Now is on the agent's clock.
func (p *Protections) BelieveEgress(x *RunningProtection, paths map[uint32]api.MergedPath,
	now time.Duration) {
	next := x.State
	missed := x.missed(paths, now)
	for _, slot := range x.State.Carrying() {
		p, known := paths[uint32(x.Flow+slot)]
		silent := p.Silent && p.Packets > 0 || slices.Contains(missed, slot)
		if !known || p.Packets == 0 && !silent {
			continue
		}
		if next = next.Probed(slot, !silent); silent {
			x.noticed(api.Replacement{Because: protection.ListName(slot) +
				" silent, as the egress says", Noticed: time.Now()})
		}
	}
	var came [protection.MaxSlots]uint64
	for slot := range came {
		came[slot] = paths[uint32(x.Flow+slot)].Packets
	}
	retry := protection.Retry{First: FirstTrial, Most: mostTrial, Lasts: trialLasts, Seed: p.Seed}
	next = next.Counted(now, came, retry,
		func(path protection.Path) bool { return p.HasRoom(x.Intent, path) })
	p.tellTrials(x, next, now)
	p.changeState(x, next)
}

// hearing watches what comes by the lists that carry. The egress itself knows of a list that fell
// silent, but not of one that began to carry and never brought a packet: which lists carry, it is
// not told.
type hearing struct {
	watch *frer.Watch
	slots []int // that carry
}

// missed are the slots of lists by which nothing has come for as long as a trial lasts, and five
// packets by another, since these lists carry. Of an egress that does not merge one of them nothing
// can be said.
func (x *RunningProtection) missed(paths map[uint32]api.MergedPath,
	now time.Duration) (slots []int) {
	carrying := x.State.Carrying()
	if x.watch == nil || !slices.Equal(x.slots, carrying) {
		x.hearing = hearing{frer.NewWatch(trialLasts, 0), carrying}
	}
	var sample frer.Sample
	for _, slot := range carrying {
		p, known := paths[uint32(x.Flow+slot)]
		if !known {
			x.hearing = hearing{}
			return nil
		}
		sample.Passed += p.Packets
		sample.Paths = append(sample.Paths, p.Packets)
	}
	for _, f := range x.watch.Observe(now, sample) {
		slots = append(slots, carrying[f.Path])
	}
	return slots
}

// HasRoom tells that the links of a path can take one copy more.
func (p *Protections) HasRoom(i protection.Intent, path protection.Path) bool {
	if p.Network == nil {
		return true
	}
	loads := protection.Loads{}
	for _, x := range p.Running {
		loads.Add(x.Plan.Paths, x.Intent)
	}
	_, full := loads.Full(p.Network.Graph, path, i)
	return !full
}

// tellTrials tells of trials that begin and end.
func (p *Protections) tellTrials(x *RunningProtection, next protection.State, now time.Duration) {
	before, wasTried := x.State.Tried()
	after, isTried := next.Tried()
	if wasTried && (!isTried || after != before) {
		event := api.Event{Policy: x.Name, List: protection.ListName(before), Status: "answers",
			Reason: "copies came by it in a trial"}
		if at, held := next.HeldUntil(before); held {
			event.Status = "silent"
			event.Reason = fmt.Sprintf("a trial failed; the next one is in %v",
				(at - now).Round(time.Second))
		}
		p.Tell(event)
	}
	if isTried && (!wasTried || after != before) {
		p.Tell(api.Event{
			Policy: x.Name, List: protection.ListName(after), Status: "trial",
			Reason: "it was silent, and is sent copies again",
		})
	}
}
