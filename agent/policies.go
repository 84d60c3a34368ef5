package agent

import (
	"fmt"
	"maps"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/te/srpolicy"
)

// listKey names a segment list of a policy. Lists of one name in a policy's paths are one list.
type listKey struct {
	Policy string `json:"policy"`
	List   string `json:"list"`
}

// computed are policies that the agent made itself, beside those of the node file, and the rules
// that lead to them, which come after those of the node file. Indexes are ignored, and flows of 0
// chosen: numberPolicies does.
type computed struct {
	Rules    []srpolicy.Rule   `json:"rules,omitempty"`
	Policies []srpolicy.Policy `json:"policies,omitempty"`
}

// steering is all that a head-end is to do: policies with their indexes and flows, and lists down
// that are.
type steering struct {
	rules    []srpolicy.Rule
	policies []srpolicy.Policy
	own      int // how many of the policies are those of the node file, which come first
	numbers  map[string]policyNumbers
	computed computed
	down     map[listKey]bool
}

// setComputed makes next the computed policies, in the place of all that were. No packet sees half
// of it; on an error nothing has changed. keepPolicies makes an agent that starts again run them at
// once: the next change need not wait for the disk.
func (h *headendRoom) setComputed(next computed) error {
	if h.runs == nil {
		return noHeadend(h.node)
	}
	return h.steerNow(next, h.runs.steering.down)
}

// computedNow returns the computed policies that run.
func (h *headendRoom) computedNow() computed {
	if h.runs == nil {
		return computed{}
	}
	c := h.runs.steering.computed
	return computed{slices.Clone(c.Rules), slices.Clone(c.Policies)}
}

// markLists takes segment lists, of the node file or computed, out of use (true) or back into it;
// those that are not named stay as they are. It takes one map update. A list that the node file
// says is down stays down.
func (h *headendRoom) markLists(marks map[listKey]bool) error {
	if h.runs == nil {
		return noHeadend(h.node)
	}
	down := maps.Clone(h.runs.steering.down)
	for key, isDown := range marks {
		if !h.runs.steering.has(key) {
			return &api.Error{Code: api.NotFound,
				Message: fmt.Sprintf("policy %q has no segment list %q; see: sextant policy list",
					key.Policy, key.List)}
		}
		if delete(down, key); isDown {
			down[key] = true
		}
	}
	return h.steerAnew(h.runs.steering.computed, down)
}

func noHeadend(n *config.Node) error {
	return &api.Error{Code: api.Conflict, Message: fmt.Sprintf("node %q is no headend; add "+
		"\"headend:\" to its node file and apply it",
		n.Name)}
}

// steerAnew replaces the table, for good.
func (h *headendRoom) steerAnew(c computed, down map[listKey]bool) error {
	err := h.steerNow(c, down)
	if err == nil {
		h.keepPolicies()
	}
	return err
}

// keepPolicies writes down what the head-end does.
func (h *headendRoom) keepPolicies() {
	if err := h.store.write(); err != nil {
		h.options.Log.Warn("a restarted agent will not know the policies as they are now", "error",
			err)
	}
}

// steerNow replaces the table.
func (h *headendRoom) steerNow(c computed, down map[listKey]bool) error {
	next, err := h.steering(h.node, c, down)
	if err != nil {
		return err
	}
	table, err := next.compile(h.runs.program.Source(), h.store.kept.activePaths())
	if err != nil {
		return err
	}
	if err := h.runs.program.SetTable(table); err != nil {
		return err
	}
	h.runs.steering, h.runs.table = next, table
	next.keep(&h.store.kept)
	h.switchLists()
	return nil
}

// steering puts together what the node file, the agent and the marks say.
func (h *headendRoom) steering(n *config.Node, c computed,
	down map[listKey]bool) (steering, error) {
	s := steering{computed: c, own: len(n.Headend.Policies), down: map[listKey]bool{}}
	for _, p := range n.Headend.Policies {
		policy, err := steerPolicy(p, n.Domain)
		if err != nil {
			return s, err
		}
		s.policies = append(s.policies, policy)
	}
	for _, r := range n.Headend.Rules {
		s.rules = append(s.rules, steerRule(r))
	}
	s.rules = append(s.rules, c.Rules...)
	for _, p := range c.Policies {
		if slices.ContainsFunc(s.policies,
			func(o srpolicy.Policy) bool { return o.Name == p.Name }) {
			return s, &api.Error{Code: api.Conflict,
				Message: fmt.Sprintf("there are two policies %q; rename one of the two", p.Name)}
		}
		s.policies = append(s.policies, copyOfPolicy(p))
	}
	var err error
	if s.numbers, err = numberPolicies(h.store.kept.Policies, s.policies); err != nil {
		return s, err
	}
	for key := range down {
		if s.has(key) {
			s.down[key] = true
		}
	}
	for i := range s.policies {
		s.complete(&s.policies[i])
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
				l.Flow = numbers.flow(l.Name)
			}
			l.Down = l.Down || s.down[listKey{p.Name, l.Name}]
		}
	}
}

func (s *steering) uniqueFlows() error {
	owners := map[uint32]listKey{}
	for _, p := range s.policies {
		for _, path := range p.Paths {
			for _, l := range path.Lists {
				key := listKey{p.Name, l.Name}
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

func (s *steering) has(key listKey) bool {
	for _, p := range s.policies {
		for _, path := range p.Paths {
			if p.Name == key.Policy && slices.ContainsFunc(path.Lists,
				func(l srpolicy.List) bool { return l.Name == key.List }) {
				return true
			}
		}
	}
	return false
}

func (s *steering) compile(source srpolicy.Source,
	installed map[string]string) (srpolicy.Table, error) {
	return srpolicy.Compile(s.rules, s.policies, source, installed)
}

// keep makes the steering what a restart finds.
func (s *steering) keep(k *kept) {
	k.Policies, k.Computed, k.ListsDown = s.numbers, s.computed, nil
	for key := range s.down {
		k.ListsDown = append(k.ListsDown, key)
	}
	slices.SortFunc(k.ListsDown, listKey.compare)
}

func (k kept) downSet() map[listKey]bool {
	down := map[listKey]bool{}
	for _, key := range k.ListsDown {
		down[key] = true
	}
	return down
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

func steerRule(r config.SteeringRule) srpolicy.Rule {
	rule := srpolicy.Rule{Policy: r.Policy, Match: srpolicy.Match{
		Source: r.Source, Destination: r.Destination, Protocol: uint8(r.Protocol),
		SourcePorts:      srpolicy.Ports(r.SourcePorts),
		DestinationPorts: srpolicy.Ports(r.DestinationPorts),
	}}
	if r.DSCP != config.AnyDSCP {
		rule.Match.DSCP, rule.Match.ByDSCP = uint8(r.DSCP), true
	}
	return rule
}
