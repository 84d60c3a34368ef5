package segment

import (
	"errors"
	"fmt"
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// ErrBroken is the error of a list that ends nowhere in the state of the IGP at hand.
var ErrBroken = errors.New("the list is broken")

// Replay is what a list does in the IGP as it is.
type Replay struct {
	Edges   []topology.Edge // all that packets may cross, in ascending order
	Latency int64           // of the worst branch
	Forced  bool            // whether there are no branches
}

// Replay follows a list as routers do, over all equal-cost paths. It is independent of how lists
// are found: it walks back from each SID over the edges whose weights add up. The error wraps
// ErrBroken when a SID cannot be reached or its link is down.
func (e *Engine) Replay(from topology.Node, sids []SID) (Replay, error) {
	w := e.walkers.Get().(*walker)
	defer e.walkers.Put(w)
	r := Replay{Forced: true}
	for i, sid := range sids {
		row := e.igp.From(from)
		if row.Dist[sid.Node] == spf.Unreachable {
			return Replay{}, fmt.Errorf("SID %d: %w: %s does not reach %s",
				i+1, ErrBroken, e.graph.Node(from).Name, e.graph.Node(sid.Node).Name)
		}
		w.follow(&r, e, row, sid.Node)
		if sid.Link != topology.NoEdge {
			if e.igp.Cost(sid.Link) == 0 {
				return Replay{}, fmt.Errorf("SID %d: %w: %s is down", i+1, ErrBroken,
					e.edgeName(sid.Link))
			}
			r.Edges = append(r.Edges, sid.Link)
			r.Latency += e.graph.Delay(sid.Link)
		}
		from = e.end(sid)
	}
	slices.Sort(r.Edges)
	r.Edges = slices.Compact(r.Edges)
	return r, nil
}

// walker walks back over shortest paths. One goroutine uses it at a time.
type walker struct {
	queue  spf.Heap
	round  uint64
	seen   []uint64 // == round: the node is on the way
	behind []int64  // of a node that was seen: the worst latency from it to the end
}

func newWalker(nodes int) *walker {
	return &walker{seen: make([]uint64, nodes), behind: make([]int64, nodes)}
}

// follow adds what all shortest paths of the row to one node cross. It begins at the far end and
// takes the nodes by their distance from there, so that each comes after those behind it; a node
// joins the queue when it is first seen.
func (w *walker) follow(r *Replay, e *Engine, row *spf.Row, to topology.Node) {
	w.round++
	w.queue = w.queue[:0]
	w.see(to, 0, 0)
	for len(w.queue) > 0 {
		v := w.queue.Pop().Node
		branches := 0
		for _, a := range e.igp.In(v) {
			if a.Cost == 0 || row.Dist[a.Node] == spf.Unreachable ||
				row.Dist[a.Node]+a.Cost != row.Dist[v] {
				continue
			}
			branches++
			r.Edges = append(r.Edges, a.Edge)
			w.see(a.Node, row.Dist[to]-row.Dist[a.Node], w.behind[v]+e.graph.Delay(a.Edge))
		}
		if branches > 1 {
			r.Forced = false
		}
	}
	r.Latency += w.behind[row.Root]
}

// see takes note of a node at a distance from the end, and of a latency to it.
func (w *walker) see(v topology.Node, distance uint64, latency int64) {
	if w.seen[v] == w.round {
		w.behind[v] = max(w.behind[v], latency)
		return
	}
	w.seen[v], w.behind[v] = w.round, latency
	w.queue.Push(spf.Item{Cost: distance, Node: v})
}

// Verdict is what comparing a path with its replay showed.
type Verdict struct {
	Replay
	Left    []topology.Edge // edges that packets may cross although they are not on the path
	Missing []topology.Edge // edges of the path that no packet crosses
}

// Verify replays a path's list against the IGP as it is. A path whose packets go where it says has
// nothing Left and nothing Missing, and is Forced unless its model is ECMP.
func (e *Engine) Verify(from topology.Node, p Path) (Verdict, error) {
	replay, err := e.Replay(from, p.SIDs)
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{Replay: replay, Left: without(replay.Edges, p.Edges),
		Missing: without(p.Edges, replay.Edges)}, nil
}

// without lists the edges of a that are not in b, in ascending order.
func without(a, b []topology.Edge) []topology.Edge {
	var rest []topology.Edge
	for _, edge := range a {
		if !slices.Contains(b, edge) {
			rest = append(rest, edge)
		}
	}
	slices.Sort(rest)
	return rest
}

// Overlap is where two paths of an answer meet.
type Overlap struct {
	First, Second int // which paths, from 0
	// edges of the second that it must not cross if it is to be disjoint from the first
	Edges []topology.Edge
}

// Overlaps replays all lists of an answer, and lists where those that should be disjoint meet:
// nothing, for the models other than Paper, as long as the IGP is in the state in which the answer
// was found.
func (e *Engine) Overlaps(a Answer) ([]Overlap, error) {
	replays := make([]Replay, len(a.Paths))
	for i, p := range a.Paths {
		var err error
		if replays[i], err = e.Replay(a.Query.From, p.SIDs); err != nil {
			return nil, fmt.Errorf("path %d: %w", i+1, err)
		}
	}
	var overlaps []Overlap
	taken := newEdgeSet(e.graph.Edges())
	for i := range replays {
		taken.clear()
		e.take(&taken, a.Query.Disjoint, a.Query.From, a.Query.To, replays[i].Edges)
		for j := i + 1; j < len(replays); j++ {
			var met []topology.Edge
			for _, edge := range replays[j].Edges {
				if taken.has(edge) {
					met = append(met, edge)
				}
			}
			if len(met) > 0 {
				overlaps = append(overlaps, Overlap{i, j, met})
			}
		}
	}
	return overlaps, nil
}
