package state

import (
	"fmt"
	"maps"

	"sextant/config"
	"sextant/te/srpolicy"
)

// NumberPolicies numbers policies and their lists: those that are known as before, others with free
// numbers, if possible such that nobody had. What is gone stays known until its number goes to
// another.
func NumberPolicies(known map[string]PolicyNumbers,
	policies []srpolicy.Policy) (map[string]PolicyNumbers, error) {
	numbers, taken, remembered := map[string]PolicyNumbers{}, map[uint32]bool{}, map[uint32]bool{}
	for _, p := range known {
		remembered[p.Index] = true
	}
	for _, p := range policies {
		if before, ok := known[p.Name]; ok {
			numbers[p.Name], taken[before.Index] = PolicyNumbers{before.Index,
				maps.Clone(before.Lists)}, true
		}
	}
	for _, p := range policies {
		n, ok := numbers[p.Name]
		if !ok {
			index, free := FreeIndex(srpolicy.MaxPolicies, taken, remembered)
			if !free {
				return nil, fmt.Errorf("%d policies are more than the %d that a head-end can have",
					len(policies), srpolicy.MaxPolicies)
			}
			n, taken[index] = PolicyNumbers{index, map[string]uint32{}}, true
		}
		if err := n.numberLists(p); err != nil {
			return nil, err
		}
		numbers[p.Name] = n
	}
	for name, n := range known {
		if _, ok := numbers[name]; !ok && !taken[n.Index] {
			numbers[name] = n
		}
	}
	return numbers, nil
}

// numberLists gives the lists that have none a number.
func (p PolicyNumbers) numberLists(policy srpolicy.Policy) error {
	present := map[string]bool{}
	for _, path := range policy.Paths {
		for _, l := range path.Lists {
			present[l.Name] = true
		}
	}
	taken, remembered := map[uint32]bool{}, map[uint32]bool{}
	for name, n := range p.Lists {
		taken[n], remembered[n] = taken[n] || present[name], true
	}
	for _, path := range policy.Paths {
		for _, l := range path.Lists {
			if _, ok := p.Lists[l.Name]; ok {
				continue
			}
			n, free := FreeIndex(config.MaxPolicyLists, taken, remembered)
			if !free {
				return fmt.Errorf("policy %s has more than %d different segment lists", policy.Name,
					config.MaxPolicyLists)
			}
			maps.DeleteFunc(p.Lists, func(_ string, other uint32) bool { return other == n })
			p.Lists[l.Name], taken[n] = n, true
		}
	}
	return nil
}

// FreeIndex prefers numbers that nobody ever had.
func FreeIndex(limit uint32, taken, remembered map[uint32]bool) (uint32, bool) {
	for _, avoided := range []map[uint32]bool{remembered, nil} {
		for n := range limit {
			if !taken[n] && !avoided[n] {
				return n, true
			}
		}
	}
	return 0, false
}
