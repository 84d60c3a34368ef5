package headend

import (
	"fmt"
	"maps"
	"slices"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/te/srpolicy"
)

// steering is all that a head-end is to do: policies with their indexes and flows, and lists down
// that are.
type steering struct {
	rules    []srpolicy.Rule
	Policies []srpolicy.Policy
	own      int // how many of the policies are those of the node file, which come first
	numbers  map[string]state.PolicyNumbers
	computed state.Computed
	down     map[state.ListKey]bool
}

// SetComputed makes next the computed policies, in place of all that were. No packet sees half
// of it; on an error nothing has changed. keepPolicies makes an agent that starts again run them at
// once: the next change need not wait for the disk.
func (h *Room) SetComputed(next state.Computed) error {
	if h.Runs == nil {
		return noHeadend(h.Node)
	}
	return h.steerNow(next, h.Runs.Steering.down)
}

// ComputedNow returns the computed policies that run.
func (h *Room) ComputedNow() state.Computed {
	if h.Runs == nil {
		return state.Computed{}
	}
	c := h.Runs.Steering.computed
	return state.Computed{Rules: slices.Clone(c.Rules), Policies: slices.Clone(c.Policies)}
}

// MarkLists takes segment lists, of the node file or computed, out of use (true) or back into it;
// those that are not named stay as they are. It takes one map update. A list that the node file
// says is down stays down.
func (h *Room) MarkLists(marks map[state.ListKey]bool) error {
	if h.Runs == nil {
		return noHeadend(h.Node)
	}
	down := maps.Clone(h.Runs.Steering.down)
	for key, isDown := range marks {
		if !h.Runs.Steering.has(key) {
			return &api.Error{Code: api.NotFound,
				Message: fmt.Sprintf("policy %q has no segment list %q; see: sextant policy list",
					key.Policy, key.List)}
		}
		if delete(down, key); isDown {
			down[key] = true
		}
	}
	return h.steerAnew(h.Runs.Steering.computed, down)
}

func noHeadend(n *config.Node) error {
	return &api.Error{Code: api.Conflict, Message: fmt.Sprintf("node %q is no headend; add "+
		"\"headend:\" to its node file and apply it",
		n.Name)}
}

// steerAnew replaces the table, for good.
func (h *Room) steerAnew(c state.Computed, down map[state.ListKey]bool) error {
	err := h.steerNow(c, down)
	if err == nil {
		h.keepPolicies()
	}
	return err
}

// keepPolicies writes down what the head-end does.
func (h *Room) keepPolicies() {
	if err := h.Store.Write(); err != nil {
		h.Log.Warn("a restarted agent will not know the policies as they are now", "error",
			err)
	}
}

// steerNow replaces the table.
func (h *Room) steerNow(c state.Computed, down map[state.ListKey]bool) error {
	next, err := h.steering(h.Node, c, down)
	if err != nil {
		return err
	}
	table, err := next.Compile(h.Runs.Program.Source(), h.Store.Kept.ActivePaths())
	if err != nil {
		return err
	}
	if err := h.Runs.Program.SetTable(table); err != nil {
		return err
	}
	h.Runs.Steering, h.Runs.table = next, table
	next.keep(&h.Store.Kept)
	h.switchLists()
	return nil
}

// steering puts together what the node file, the agent and the marks say.
func (h *Room) steering(n *config.Node, c state.Computed,
	down map[state.ListKey]bool) (steering, error) {
	s := steering{computed: c, own: len(n.Headend.Policies), down: map[state.ListKey]bool{}}
	for _, p := range n.Headend.Policies {
		policy, err := steerPolicy(p, n.Domain)
		if err != nil {
			return s, err
		}
		s.Policies = append(s.Policies, policy)
	}
	for _, r := range n.Headend.Rules {
		s.rules = append(s.rules, role.SteerRule(r))
	}
	s.rules = append(s.rules, c.Rules...)
	for _, p := range c.Policies {
		if slices.ContainsFunc(s.Policies,
			func(o srpolicy.Policy) bool { return o.Name == p.Name }) {
			return s, &api.Error{Code: api.Conflict,
				Message: fmt.Sprintf("there are two policies %q; rename one of the two", p.Name)}
		}
		s.Policies = append(s.Policies, copyOfPolicy(p))
	}
	var err error
	if s.numbers, err = state.NumberPolicies(h.Store.Kept.Policies, s.Policies); err != nil {
		return s, err
	}
	for key := range down {
		if s.has(key) {
			s.down[key] = true
		}
	}
	for i := range s.Policies {
		s.complete(&s.Policies[i])
	}
	return s, s.uniqueFlows()
}

// complete gives a policy its index, and its lists their flows and marks.
func (s *steering) complete(p *srpolicy.Policy) {
	numbers := s.numbers[p.Name]
	p.Index = numbers.Index
	for i := range p.Paths {
		for j := range p.Paths[i].Lists {
			l := &p.Paths[i].Lists[j]
			if l.Redundancy != srpolicy.None && l.Flow == 0 {
				l.Flow = numbers.Flow(l.Name)
			}
			l.Down = l.Down || s.down[state.ListKey{Policy: p.Name, List: l.Name}]
		}
	}
}

func (s *steering) uniqueFlows() error {
	owners := map[uint32]state.ListKey{}
	for _, p := range s.Policies {
		for _, path := range p.Paths {
			for _, l := range path.Lists {
				key := state.ListKey{Policy: p.Name, List: l.Name}
				if owner, taken := owners[l.Flow]; l.Flow != 0 && taken && owner != key {
					return &api.Error{Code: api.Conflict,
						Message: fmt.Sprintf("segment lists %s of policy %s and %s of policy %s "+
							"have flow %d both; "+
							"say another flow for one of them", owner.List, owner.Policy, l.Name,
							p.Name, l.Flow)}
				}
				owners[l.Flow] = key
			}
		}
	}
	return nil
}

func (s *steering) has(key state.ListKey) bool {
	for _, p := range s.Policies {
		for _, path := range p.Paths {
			if p.Name == key.Policy && slices.ContainsFunc(path.Lists,
				func(l srpolicy.List) bool { return l.Name == key.List }) {
				return true
			}
		}
	}
	return false
}

func (s *steering) Compile(source srpolicy.Source,
	installed map[string]string) (srpolicy.Table, error) {
	return srpolicy.Compile(s.rules, s.Policies, source, installed)
}

// keep makes the steering what a restart finds.
func (s *steering) keep(k *state.Kept) {
	k.Policies, k.Computed, k.ListsDown = s.numbers, s.computed, nil
	for key := range s.down {
		k.ListsDown = append(k.ListsDown, key)
	}
	slices.SortFunc(k.ListsDown, state.ListKey.Compare)
}

// copyOfPolicy is a copy whose lists can be changed.
func copyOfPolicy(p srpolicy.Policy) srpolicy.Policy {
	p.Paths = slices.Clone(p.Paths)
	for i := range p.Paths {
		p.Paths[i].Lists = slices.Clone(p.Paths[i].Lists)
	}
	return p
}

// steerPolicy translates a configured policy.
func steerPolicy(p config.SRPolicy, d config.Domain) (srpolicy.Policy, error) {
	policy := srpolicy.Policy{
		Name: p.Name, Color: uint32(p.Color), Endpoint: p.Endpoint, DropIfInvalid: p.DropIfInvalid,
		MTU: uint16(min(p.InnerMTU(d),
			1<<16-1)),
	}
	for _, c := range p.Paths {
		action, err := srpolicy.ParseAction(string(c.Action))
		if err != nil {
			return policy, err
		}
		path := srpolicy.CandidatePath{Name: c.Name, Preference: uint32(c.Preference),
			Action: action, LeastLists: c.LeastLists}
		for _, l := range c.Lists {
			form, err := srpolicy.ParseRedundancy(string(l.Redundancy))
			if err != nil {
				return policy, err
			}
			path.Lists = append(path.Lists, srpolicy.List{
				Name: l.Name, Segments: l.Segments, Reduced: l.Reduced, Weight: uint32(l.Weight),
				Redundancy: form, Flow: uint32(l.Flow),
				Down: l.State == config.ListDown,
			})
		}
		policy.Paths = append(policy.Paths, path)
	}
	return policy, nil
}
