package segment

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"sextant/te/topology"
)

// Detours are the answers to policies for the case that a link fails, or all of a shared risk,
// found before that happens: then they are looked up, where an engine would have to mend its rows
// and to search. They are those that an engine finds in the network without the link.
//
// Prepared are the failures that cross a path of a policy, those that concern most policies first,
// as far as there is room. What is prepared holds for the state that the engine had at first: when
// the network is another one for good, Detours are made anew.
type Detours struct {
	engine  *Engine // of nobody else: while a failure is prepared, it is in that state
	answers []Answer
	watch   Watch
	todo    []failure
	work    preparation
	room    int // octets that answers may still take

	mu    sync.Mutex
	known map[string]prepared // by the key of a failure
}

// failure is a set of edges that fail together, in ascending order.
type failure []topology.Edge

// prepared is what is known of a failure. It does not change.
type prepared struct {
	down    failure
	answers map[int]Answer // of the policies that it affects, by their number
}

// preparation is a failure that the engine has been put into, and how far it has come.
type preparation struct {
	prepared
	undo     []Change
	affected []int // policies to be answered yet
}

// NewDetours begins with the answers to policies, which the engine has found in the state that it
// is in. From then on the engine is the Detours' alone. Prepared answers take some room octets at
// most.
func NewDetours(e *Engine, answers []Answer, room int) (*Detours, error) {
	d := &Detours{engine: e, answers: answers, room: room, known: map[string]prepared{}}
	concerned := map[string]int{}
	for i, a := range answers {
		if err := d.watch.Add(i, e, a); err != nil {
			return nil, err
		}
		of := map[string]failure{}
		for _, p := range a.Paths {
			for _, edge := range p.Edges {
				for _, f := range e.failuresOf(edge, a.Query.Disjoint) {
					of[f.key()] = f
				}
			}
		}
		for key, f := range of {
			if concerned[key]++; concerned[key] == 1 {
				d.todo = append(d.todo, f)
			}
		}
	}
	slices.SortFunc(d.todo, func(a, b failure) int {
		return cmp.Or(cmp.Compare(concerned[b.key()], concerned[a.key()]), slices.Compare(a, b))
	})
	return d, nil
}

// failuresOf are the failures in which an edge goes down: that of its link, and, where paths must
// not share a risk, those of its groups.
func (e *Engine) failuresOf(edge topology.Edge, kind Disjointness) []failure {
	all := []failure{e.linksOf(edge)}
	if kind == SRLGDisjoint {
		for _, group := range e.graph.Edge(edge).SRLGs {
			all = append(all, e.linksOf(e.groups[group]...))
		}
	}
	return all
}

// linksOf is the failure of the links of edges, in both directions.
func (e *Engine) linksOf(edges ...topology.Edge) failure {
	var f failure
	for _, edge := range edges {
		f = append(f, edge)
		if back := e.graph.Reverse(edge); back != topology.NoEdge {
			f = append(f, back)
		}
	}
	slices.Sort(f)
	return slices.Compact(f)
}

func (f failure) key() string {
	text := make([]byte, 0, 4*len(f))
	for _, e := range f {
		text = binary.BigEndian.AppendUint32(text, uint32(e))
	}
	return string(text)
}

// Step does a little of what is to be prepared: it puts the engine into the state of a failure, or
// answers one policy, or takes a failure back. It is false when there is nothing left to do. Steps
// are of one goroutine; After may be asked meanwhile.
func (d *Detours) Step() (more bool, err error) {
	w := &d.work
	switch {
	case w.down == nil && len(d.todo) == 0:
		d.Stop()
		return false, nil
	case w.down == nil:
		return true, d.begin()
	case len(w.affected) > 0:
		policy := w.affected[0]
		w.affected = w.affected[1:]
		a, err := d.engine.Disjoint(d.answers[policy].Query)
		if err != nil {
			return false, err
		}
		w.answers[policy] = a
		if d.room -= a.size(); d.room < 0 { // what is most worth its room is there
			w.affected, w.answers, d.todo = nil, nil, nil
		}
		return true, nil
	}
	return true, d.end()
}

// Stop ends the steps: what is prepared is kept, and the engine and its rows are given up. It is of
// the goroutine that makes the steps.
func (d *Detours) Stop() {
	d.engine, d.watch, d.todo, d.work = nil, Watch{}, nil, preparation{}
}

// begin puts the engine into the state of the next failure.
func (d *Detours) begin() error {
	w := &d.work
	w.down, d.todo = d.todo[0], d.todo[1:]
	var changes []Change
	w.undo, w.answers = nil, map[int]Answer{}
	for _, edge := range w.down {
		w.undo = append(w.undo, Change{edge, uint32(d.engine.igp.Cost(edge))})
		changes = append(changes, Change{edge, 0})
	}
	update, err := d.engine.Apply(changes...)
	w.affected = d.watch.Affected(update)
	return err
}

// end takes the failure back, and makes known what was found.
func (d *Detours) end() error {
	_, err := d.engine.Apply(d.work.undo...)
	if d.work.answers != nil {
		d.mu.Lock()
		d.known[d.work.down.key()] = d.work.prepared
		d.mu.Unlock()
	}
	d.work = preparation{}
	return err
}

// size is about how many octets an answer takes.
func (a Answer) size() int {
	size := 256
	for _, p := range a.Paths {
		size += 96 + 4*len(p.Edges) + 8*len(p.SIDs)
	}
	return size
}

// After tells what policies take when edges are down that were up at first, and nothing else
// differs: those that are not listed keep what they have. If all of the edges are of one failure
// that was prepared, the answers are as good as any engine's. Otherwise they are paths that still
// carry, but not always the best, and fewer than can be found or none: Stop is NotSought then. A
// list goes on to force its path when others fail: what it follows stays the only shortest one.
func (d *Detours) After(down ...topology.Edge) (answers map[int]Answer, exact bool) {
	f := slices.Compact(slices.Sorted(slices.Values(down)))
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(f) == 0 {
		return nil, true
	}
	if p, ok := d.known[failure(f).key()]; ok {
		return maps.Clone(p.answers), true
	}
	answers = map[int]Answer{}
	for i, a := range d.answers {
		if slices.ContainsFunc(a.Paths, func(p Path) bool { return meet(p.Edges, f) }) {
			answers[i] = a.without(f)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.known)) {
		p := d.known[key]
		if slices.ContainsFunc(p.down, func(e topology.Edge) bool {
			_, is := slices.BinarySearch(f, e)
			return !is
		}) {
			continue // some of it is up
		}
		for i, a := range p.answers {
			if a = a.without(f); a.betterThan(answers[i]) {
				answers[i] = a
			}
		}
	}
	return answers, false
}

// without is the answer without the paths that cross an edge.
func (a Answer) without(edges []topology.Edge) Answer {
	left := slices.DeleteFunc(slices.Clone(a.Paths),
		func(p Path) bool { return meet(p.Edges, edges) })
	if len(left) < len(a.Paths) {
		a.Paths, a.Stop, a.Needs, a.Rearranged = left, NotSought, 0, false
	}
	return a
}

// betterThan compares answers to one query: by the number of paths, then by the first one.
func (a Answer) betterThan(b Answer) bool {
	if len(a.Paths) != len(b.Paths) {
		return len(a.Paths) > len(b.Paths)
	}
	return len(a.Paths) > 0 && a.Paths[0].Latency < b.Paths[0].Latency
}
