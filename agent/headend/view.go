package headend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/te/srpolicy"
)

// Policies is what api.Agent says.
func (h *Room) Policies(ctx context.Context) ([]api.Policy, error) {
	return role.Ask(ctx, &h.Loop, h.PolicyViews)
}

// MarkList is what api.Agent says.
func (h *Room) MarkList(ctx context.Context, policy, list string,
	down bool) (changes []config.Change, err error) {
	key := state.ListKey{Policy: policy, List: list}
	doErr := h.Do(ctx, func() {
		if was := h.Runs != nil && h.Runs.Steering.down[key]; was != down {
			if err = h.MarkLists(map[state.ListKey]bool{key: down}); err == nil {
				changes = []config.Change{{
					Operation: config.Modify, Object: "policy " + policy + ": list " + list,
					Field: "state",
					From:  string(listState(was)), To: string(listState(down)),
				}}
			}
		}
	})
	if doErr != nil {
		return nil, doErr
	}
	return changes, err
}

func listState(down bool) config.ListState {
	if down {
		return config.ListDown
	}
	return config.ListUp
}

// PolicyViews are the policies that run with their counters, those of the node file first.
func (h *Room) PolicyViews() ([]api.Policy, error) {
	if h.Runs == nil {
		return nil, nil
	}
	h.settleTraffic()
	var views []api.Policy
	for i, p := range h.Runs.Steering.Policies {
		numbered, err := h.Runs.Program.Numbered(p.Index)
		if err != nil {
			return nil, err
		}
		v := api.Policy{
			Name: p.Name, Index: p.Index, Computed: i >= h.Runs.Steering.own, Color: p.Color,
			Endpoint:      p.Endpoint,
			DropIfInvalid: p.DropIfInvalid, NumberedPackets: numbered, Rules: []string{},
			Paths: []api.PolicyPath{},
			MTU:   int(p.PacketMTU(h.Store.Kept.ActivePaths()[p.Name])),
		}
		for _, r := range h.Runs.Steering.rules {
			if r.Policy == p.Name {
				v.Rules = append(v.Rules, matchText(r.Match))
			}
		}
		addPaths(h.Store.Kept.Steered[p.Name], &v, p)
		views = append(views, v)
	}
	return views, nil
}

// addPaths adds the paths of a policy with their counters.
func addPaths(s *state.Steered, v *api.Policy, p srpolicy.Policy) {
	v.ActivePath = s.Path
	for _, path := range p.Paths {
		view := api.PolicyPath{
			Name: path.Name, Preference: path.Preference,
			Action:     config.SteeringAction(path.Action.String()),
			LeastLists: max(1, path.LeastLists), Active: path.Name == s.Path,
			Lists: []api.PolicyList{},
		}
		view.Why = whyActive(p, path, s.Path)
		shares := sharesOf(path)
		for i, l := range path.Lists {
			counted := datapath.Traffic{}
			if c := s.Counted[path.Name][l.Name]; c != nil {
				counted = *c
			}
			view.Lists = append(view.Lists, api.PolicyList{
				Name: l.Name, Segments: l.Segments, Reduced: l.Reduced, Weight: max(1, l.Weight),
				Redundancy: config.Redundancy(l.Redundancy.String()), Flow: l.Flow,
				State: listState(l.Down),
				Used:  view.Active && slices.Contains(s.Lists, l.Name), HeaderBytes: headerBytes(l),
				Share: shares[i], Packets: counted.Packets, Bytes: counted.Bytes,
			})
			v.Packets += counted.Packets
			v.Bytes += counted.Bytes
		}
		v.Paths = append(v.Paths, view)
	}
}

// whyActive says what decided about a path.
func whyActive(p srpolicy.Policy, path srpolicy.CandidatePath, active string) string {
	up, down := 0, []string(nil)
	for _, l := range path.Lists {
		if l.Down {
			down = append(down, l.Name)
		} else {
			up++
		}
	}
	least := max(1, path.LeastLists)
	switch {
	case up < least:
		return fmt.Sprintf("not valid: %d of its lists up, it needs %d; down: %s", up, least,
			strings.Join(down, ", "))
	case path.Name != active:
		return fmt.Sprintf("valid, but path %s is preferred", active)
	case len(down) > 0:
		return fmt.Sprintf("the preferred of the valid paths, without %s", strings.Join(down, ", "))
	case len(p.Paths) == 1:
		return "the only path"
	}
	return "the preferred of the valid paths"
}

// sharesOf are how much of a path's traffic takes each of its lists, if the path is active.
func sharesOf(p srpolicy.CandidatePath) []float64 {
	shares := make([]float64, len(p.Lists))
	total, first := 0.0, true
	for _, l := range p.Lists {
		if !l.Down {
			total += float64(max(1, l.Weight))
		}
	}
	for i, l := range p.Lists {
		switch {
		case l.Down:
		case p.Action == srpolicy.Mirror, p.Action == srpolicy.Path && first:
			shares[i], first = 1, false
		case p.Action == srpolicy.SplitFlow, p.Action == srpolicy.SplitPacket:
			shares[i] = float64(max(1, l.Weight)) / total
		}
	}
	return shares
}

// headerBytes is the length of a list's outer headers.
func headerBytes(l srpolicy.List) int {
	return config.SegmentList{
		Segments: l.Segments, Reduced: l.Reduced,
		Redundancy: config.Redundancy(l.Redundancy.String()),
	}.HeaderBytes()
}

// matchText writes what a rule chooses as the node file does.
func matchText(m srpolicy.Match) string {
	r := config.SteeringRule{
		Source: m.Source, Destination: m.Destination, Protocol: int(m.Protocol),
		SourcePorts:      config.PortRange(m.SourcePorts),
		DestinationPorts: config.PortRange(m.DestinationPorts), DSCP: config.AnyDSCP,
	}
	if m.ByDSCP {
		r.DSCP = int(m.DSCP)
	}
	if text := r.Match(); text != "" {
		return text
	}
	return "all packets"
}

// Protections is what api.Agent says.
func (h *Room) Protections(ctx context.Context) ([]api.Protection, error) {
	return h.Protecting.Protections(ctx)
}

// Protect is what api.Agent says.
func (h *Room) Protect(ctx context.Context, name string, spec api.ProtectionSpec,
	dryRun bool) (api.Protection, error) {
	return h.Protecting.Protect(ctx, name, spec, dryRun)
}

// Topology is what api.Agent says.
func (h *Room) Topology(ctx context.Context) (api.Topology, error) {
	return h.Protecting.Topology(ctx)
}
