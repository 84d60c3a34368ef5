package segment

import (
	"maps"
	"slices"

	"sextant/te/topology"
)

// Watch finds the policies that a change affects, without looking at those that it does not: it
// knows which policies pass a node in a segment from a given node, and which cross a link by End.X.
// The zero Watch watches nothing.
type Watch struct {
	passes map[hop]map[int]int // how many segments of a policy pass
	links  map[topology.Edge]map[int]int
	known  map[int]entry
}

// hop is a node on a segment that begins at root.
type hop struct{ root, node topology.Node }

// entry is what a policy was put under.
type entry struct {
	hops  []hop
	links []topology.Edge
}

// Add watches a policy, by a number of the caller's, with the paths of its answer. They must be in
// the state of the IGP that the engine has. A policy that was added before is watched anew.
func (w *Watch) Add(policy int, e *Engine, a Answer) error {
	w.Remove(policy)
	if w.known == nil {
		*w = Watch{passes: map[hop]map[int]int{}, links: map[topology.Edge]map[int]int{},
			known: map[int]entry{}}
	}
	var en entry
	for _, p := range a.Paths {
		from := a.Query.From
		for i, sid := range p.SIDs {
			r, err := e.Replay(from, p.SIDs[i:i+1])
			if err != nil {
				return err
			}
			for _, edge := range r.Edges {
				if edge != sid.Link {
					en.hops = append(en.hops, hop{from, e.graph.To(edge)})
				}
			}
			if sid.Link != topology.NoEdge {
				en.links = append(en.links, sid.Link)
			}
			from = e.end(sid)
		}
	}
	for _, h := range en.hops {
		count(w.passes, h, policy, 1)
	}
	for _, l := range en.links {
		count(w.links, l, policy, 1)
	}
	w.known[policy] = en
	return nil
}

// Remove ends the watch over a policy.
func (w *Watch) Remove(policy int) {
	for _, h := range w.known[policy].hops {
		count(w.passes, h, policy, -1)
	}
	for _, l := range w.known[policy].links {
		count(w.links, l, policy, -1)
	}
	delete(w.known, policy)
}

func count[K comparable](index map[K]map[int]int, key K, policy, by int) {
	if index[key] == nil {
		index[key] = map[int]int{}
	}
	index[key][policy] += by
	if index[key][policy] == 0 {
		delete(index[key], policy)
	}
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

// Affected lists the policies whose packets may now take other ways, or none, in ascending order. A
// policy that is not listed is realised as before, though it need not be the best any more: a link
// that came up does not affect those that do without.
func (w *Watch) Affected(u Update) []int {
	found := map[int]bool{}
	add := func(policies map[int]int) {
		for p := range policies {
			found[p] = true
		}
	}
	for _, c := range u.Changes {
		if c.Weight == 0 {
			add(w.links[c.Edge])
		}
	}
	for _, row := range u.Rows {
		if row.Toward {
			continue
		}
		for _, v := range row.Touched {
			add(w.passes[hop{row.Root, v}])
		}
	}
	return slices.Sorted(maps.Keys(found))
}
