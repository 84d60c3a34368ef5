package headend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/merge"
	"sextant/agent/network"
	"sextant/agent/pathprobe"
	"sextant/config"
	"sextant/packet/flow"
	"sextant/te/protection"
	"sextant/te/topology/format"
)

// Protections is what api.Agent says.
func (p *Protections) Protections(ctx context.Context) (list []api.Protection, err error) {
	err = p.Do(ctx, func() {
		p.headend.settleTraffic()
		for _, x := range p.Running {
			list = append(list, p.protectionView(x))
		}
	})
	return list, err
}

// noTopology is why nothing can be computed yet.
const noTopology = "the topology has not been read yet"

// Topology is what api.Agent says.
func (p *Protections) Topology(ctx context.Context) (t api.Topology, err error) {
	var n *network.Known
	err = p.Do(ctx, func() {
		n = p.Network
		t.Problem = p.problem
		if p.Node.Protect != nil {
			t.Source = p.Node.Protect.Topology
		}
	})
	if err != nil || n == nil {
		return t, err
	}
	text, err := format.Write(n.Graph, format.NodeLink)
	t.NodeLink = string(text)
	return t, err
}

// Protect is what api.Agent says. Additions come one after the other, so that each is told of the
// loads of those before; paths are computed in the caller's goroutine.
func (p *Protections) Protect(ctx context.Context, name string, spec api.ProtectionSpec,
	dryRun bool) (view api.Protection, err error) {
	c, err := spec.Config(name)
	if err != nil {
		return view, err
	}
	p.adding.Lock()
	defer p.adding.Unlock()
	x, err := p.admit(ctx, c, spec.From)
	if err != nil {
		return view, err
	}
	if !dryRun {
		if _, err = p.change(ctx, func(n *config.Node) (*config.Node, error) {
			next, err := config.AddProtection(n, x.Protection)
			if err == nil {
				p.offered = x
			}
			return next, err
		}); err != nil {
			return view, err
		}
	}
	err = p.Do(ctx, func() {
		if now := p.find(name); !dryRun && now != nil {
			x = now
		}
		view = p.protectionView(x)
	})
	return view, err
}

// admit computes what a protection would be, and refuses it if there are fewer paths than copies,
// links would be loaded beyond the bound, or the egress says that it would drop the copies.
func (p *Protections) admit(ctx context.Context, c config.Protection,
	from string) (*RunningProtection, error) {
	var n protection.Network
	loads := protection.Loads{}
	x := &RunningProtection{}
	var failed error
	var secret flow.Secret
	err := p.Do(ctx, func() {
		next, err := config.AddProtection(p.Node, c)
		switch {
		case err != nil:
			failed = err
			return
		case from != "" && from != p.Config.Node:
			failed = &api.Error{Code: api.Conflict,
				Message: fmt.Sprintf("traffic enters at node %q of the topology, not at %q; "+
					"ask the agent of that node", p.Config.Node, from)}
			return
		case p.Network == nil:
			message := cmp.Or(p.problem, noTopology) + "; see protect.topology in the node file"
			failed = &api.Error{Code: api.Conflict, Message: message}
			return
		}
		x.Protection = next.Protect.Protections[len(next.Protect.Protections)-1]
		x.Intent = IntentOf(x.Protection, next.Protect)
		secret = p.Node.Secret
		n = p.Network.View(p.Node.Domain.Block, p.downLinks())
		for _, other := range p.Running {
			loads.Add(other.Plan.Paths, other.Intent)
		}
	})
	if err != nil || failed != nil {
		return nil, cmp.Or(err, failed)
	}
	plan, err := n.Compute(x.Intent, protection.Question{Loads: loads, Prove: true})
	if err != nil {
		return nil, &api.Error{Code: api.Invalid, Message: err.Error()}
	}
	if err := plan.Refusal(x.Intent); err != nil {
		return nil, &api.Error{Code: api.Conflict, Message: err.Error()}
	}
	x.Begin(plan)
	x.proven, x.carries = true, x.State.Carrying() // as it would be
	return x, x.refuseUnmerged(ctx, secret)
}

// protectionView is a protection for people and programs.
func (p *Protections) protectionView(x *RunningProtection) api.Protection {
	v := api.Protection{
		Name: x.Name, From: x.Intent.From, To: x.To, Egress: x.Egress, Match: x.MatchText(),
		Copies: x.Copies, Spares: x.Spares,
		Disjoint: x.Disjoint, SIDs: x.SIDs, Model: x.Model, RateKbps: x.RateKbps, Flows: x.Flows(),
		Proof:   x.Plan.Proof,
		Changed: x.changed.Round(time.Microsecond), Replacements: x.moves, Replaced: x.Latest,
		Paths: []api.ProtectedPath{},
	}
	v.State, v.Reason = x.standing(p.problem, p.owes)
	carrying := map[int]bool{}
	for _, i := range x.carries {
		carrying[i] = true
		v.Paths = append(v.Paths, p.PathView(x, i, api.Carries))
	}
	for i, s := range x.State.Slots {
		if s.Used && !carrying[i] {
			v.Paths = append(v.Paths, p.PathView(x, i, x.RoleOf(i)))
		}
	}
	return v
}

// standing is how the protection fares, and what is missing.
func (x *RunningProtection) standing(topologyProblem, owes string) (api.ProtectionState, string) {
	carrying, merged, good := 0, 0, x.State.Carrying()
	for _, slot := range x.carries {
		if !slices.Contains(good, slot) {
			continue
		}
		carrying++
		if !slices.Contains(x.lacking, x.Flow+slot) {
			merged++
		}
	}
	short := cmp.Or(owes, x.problem, x.Plan.Short)
	switch {
	case !x.known:
		return api.Planning, cmp.Or(x.problem, topologyProblem, noTopology)
	case x.State.ReturnSuspected():
		return api.Suspended, "no probe of any path comes back; check the route from " + x.To +
			" to this node"
	case carrying == 0:
		return api.Unprotected, cmp.Or(short, "all paths are down")
	case x.answered && merged == 0:
		return api.Unprotected, x.mergeText()
	case carrying < x.Copies:
		return api.Degraded, cmp.Or(owes, x.mergeText(), short,
			"paths are down, and no others are known yet")
	case x.mustAnswer() && !x.answered, merged < x.Copies:
		return api.Degraded, x.mergeText()
	}
	return api.Protected, cmp.Or(owes, x.mergeText(), short)
}

// RoleOf is what a list that does not carry is for.
func (x *RunningProtection) RoleOf(slot int) api.PathRole {
	s := x.State.Slots[slot]
	tried, any := x.State.Tried()
	switch {
	case any && tried == slot:
		return api.Trial
	case s.Rank == protection.NoRank:
		return api.Watched
	case s.Fault != "" || s.Answer == protection.Silent:
		return api.Broken
	case s.Trial:
		return api.Trial
	}
	return api.Spare
}

var answerNames = map[protection.Answer]string{protection.Unknown: "unknown",
	protection.Answers: "answers", protection.Silent: "silent"}

// PathView is a path of a protection, as the API shows it.
func (p *Protections) PathView(x *RunningProtection, slot int,
	role api.PathRole) api.ProtectedPath {
	s := x.State.Slots[slot]
	v := api.ProtectedPath{
		List: protection.ListName(slot), Role: role, Links: []string{}, Segments: s.Path.Names,
		SIDs:  s.Path.Segments(x.Egress),
		Flow:  x.Flow + slot,
		Delay: s.Path.Delay, Probes: answerNames[s.Answer], Fault: s.Fault, DelayUnit: "none",
	}
	if at, held := x.State.HeldUntil(slot); held {
		next := p.Started.Add(at).Round(time.Second)
		v.NextTrial, v.TrialsInVain = &next, s.Trials.Vain
	}
	for _, l := range s.Path.Links {
		v.Links = append(v.Links, l.String())
	}
	if n := p.Network; n != nil {
		v.DelayUnit = format.DelayUnitName(n.Graph.DelayUnit())
	}
	if p := p.prober; p != nil {
		if stats, ok := p.Stats(pathprobe.Key{Name: x.Name, Slot: slot}); ok {
			v.RTTMs = float64(stats.RTT.Microseconds()) / 1000
			v.Loss = float64(stats.LossPermille) / 1000
		}
	}
	if p, told := x.came[uint32(v.Flow)]; told && role == api.Carries {
		if time.Since(x.changed) > merge.RecentSpan+
			egressInterval { // before, packets that went other ways are taken for lost
			v.CopyLoss = p.RecentLoss
		}
		if p.RecentDelaySeconds != nil {
			ms := *p.RecentDelaySeconds * 1000
			v.CopyDelayMs = &ms
		}
	}
	if policy := p.Store.Kept.Steered[x.Name]; policy != nil {
		for _, lists := range policy.Counted {
			if t := lists[v.List]; t != nil {
				v.Packets += t.Packets
			}
		}
	}
	return v
}
