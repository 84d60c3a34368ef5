package elephant

import (
	"errors"
	"fmt"
	"slices"

	"sextant/te/edgecoloring"
	"sextant/te/spf"
	"sextant/te/topology"
)

// Objective says which path is the best one.
type Objective uint8

// The objectives.
const (
	// Flows: the fewest flows on the fullest link, over the link's share of the greatest capacity;
	// among those the fewest on all links together.
	Flows Objective = iota
	// Weight: the least sum of the links' weights; among those the fewest flows on all links.
	Weight
	// Coloring: in a folded Clos network, what keeps the fullest link as empty as any choice of
	// paths for all flows can.
	Coloring
	objectives
)

var objectiveNames = [objectives]string{"flows", "weight", "coloring"}

// String returns the name that ParseObjective reads.
func (o Objective) String() string {
	if o >= objectives {
		return fmt.Sprintf("objective %d", uint8(o))
	}
	return objectiveNames[o]
}

// ParseObjective reads the name of an objective: flows, weight or coloring.
func ParseObjective(name string) (Objective, error) {
	if i := slices.Index(objectiveNames[:], name); i >= 0 {
		return Objective(i), nil
	}
	return 0, fmt.Errorf("%q: choose flows, weight or coloring", name)
}

// Settings are what a Scheduler needs beside the network.
type Settings struct {
	// Cost of a link, at least 1: paths of the least sum are taken.
	Cost func(topology.Edge) uint64
	// Weight of a link that is up, at least 0, as telemetry has it now; nil: all are 0.
	Weight func(topology.Edge) float64
	// Herd is by how much a flow that is placed makes a link heavier for those that are placed by
	// Weight together with it, before telemetry shows it.
	Herd float64
}

// Flow is the number of a flow in its Scheduler. Numbers of removed flows are used again.
type Flow int32

const none edgecoloring.Flow = -1

type flow struct {
	from, to topology.Node
	by       Objective
	path     []topology.Edge
	color    edgecoloring.Flow // none: it has no part in the coloring
}

// A Scheduler knows the flows and on which links they are. It serves one goroutine.
type Scheduler struct {
	settings Settings
	graph    *topology.Graph
	table    *spf.Table
	scale    []float64 // by edge: greatest capacity over the link's
	loads    []int32   // flows, by edge
	recent   []int32   // of these, placed by the call that runs
	down     map[topology.Edge]bool

	flows   []flow
	unused  []Flow
	clos    *clos
	noClos  error
	byColor []Flow
	moved   []Flow
	search  search
	block   []topology.Edge // of which room gives
}

// New returns a scheduler without flows. Leaves are the routers that hosts are at: between them a
// folded Clos network is looked for.
func New(view topology.View, leaves []topology.Node, s Settings) *Scheduler {
	it := &Scheduler{settings: s, graph: view.Graph, table: spf.New(view, s.Cost, s.Cost),
		scale: make([]float64, view.Edges()), loads: make([]int32, view.Edges()),
		recent: make([]int32, view.Edges()), down: map[topology.Edge]bool{},
		search: newSearch(view.Nodes())}
	var most int64
	for e := range topology.Edge(view.Edges()) {
		most = max(most, view.Edge(e).CapacityKbps)
		if !view.Up(e) {
			it.down[e] = true
		}
	}
	for e := range it.scale {
		it.scale[e] = 1
		if capacity := view.Edge(topology.Edge(e)).CapacityKbps; capacity > 0 {
			it.scale[e] = float64(most) / float64(capacity)
		}
	}
	it.clos, it.noClos = newClos(view.Graph, leaves, s.Cost)
	return it
}

// Colors says why paths can't be chosen by Coloring; nil: they can.
func (s *Scheduler) Colors() error { return s.noClos }

// ErrNoPath says that no way leads from one router to another.
var ErrNoPath = errors.New("no way leads there")

// Ends are the routers where a flow enters and leaves the network.
type Ends struct{ From, To topology.Node }

// Best returns the paths that as many flows would get, placed together, and places none. Coloring
// is refused: it gives a path to flows that stay.
func (s *Scheduler) Best(ends Ends, by Objective, count int) (paths [][]topology.Edge, err error) {
	if by == Coloring {
		return nil, errors.New("by coloring only flows that are placed have a path, for others " +
			"move for them; choose flows or weight")
	}
	all := make([]Ends, count)
	for i := range all {
		all[i] = ends
	}
	placed, err := s.Place(by, all...)
	if err != nil {
		return nil, err
	}
	for _, f := range placed {
		paths = append(paths, s.Path(f))
	}
	for _, f := range placed {
		s.Remove(f)
	}
	return paths, nil
}

// Place gives paths to flows that arrive together. Others change theirs by Coloring alone. An error
// changes nothing.
func (s *Scheduler) Place(by Objective, ends ...Ends) ([]Flow, error) {
	s.moved = s.moved[:0]
	if by == Coloring {
		return s.color(ends)
	}
	var placed []Flow
	for _, e := range ends {
		path, ok := s.best(e, by)
		if !ok {
			for _, f := range placed {
				s.Remove(f)
			}
			return nil, ErrNoPath
		}
		f := s.add(flow{from: e.From, to: e.To, by: by, path: path, color: none})
		s.count(s.recent, path, 1)
		placed = append(placed, f)
	}
	for _, f := range placed {
		s.count(s.recent, s.flows[f].path, -1)
	}
	return placed, nil
}

// Put takes over a flow that has a path already, a way from one router to another. It has no part
// in the coloring.
func (s *Scheduler) Put(by Objective, ends Ends, path []topology.Edge) Flow {
	s.moved = s.moved[:0]
	return s.add(flow{from: ends.From, to: ends.To, by: by, path: slices.Clone(path), color: none})
}

// Remove removes a flow. No other changes its path.
func (s *Scheduler) Remove(f Flow) {
	s.moved = s.moved[:0]
	it := &s.flows[f]
	s.count(s.loads, it.path, -1)
	if it.color != none {
		s.clos.colors.Remove(it.color)
	}
	*it = flow{color: none}
	s.unused = append(s.unused, f)
}

// Path returns the path of a flow; the caller must not change it.
func (s *Scheduler) Path(f Flow) []topology.Edge { return s.flows[f].path }

// Load returns how many flows are on a link.
func (s *Scheduler) Load(e topology.Edge) int { return int(s.loads[e]) }

// Moved returns the flows whose paths the last call changed, but for those that it placed. It is
// valid until the next.
func (s *Scheduler) Moved() []Flow { return s.moved }

// SetUp notes that a link is up or down. Flows whose path is no shortest one any more, which
// routers do not take, get another, if there is one; no other flow goes back.
func (s *Scheduler) SetUp(e topology.Edge, up bool) {
	s.moved = s.moved[:0]
	if s.down[e] == !up {
		return
	}
	if s.down[e] = !up; up {
		delete(s.down, e)
	}
	change := spf.Change{Edge: e}
	if up {
		change.Cost = s.settings.Cost(e)
	}
	s.table.Apply(change)
	for f := range s.flows {
		it := &s.flows[f]
		if s.shortest(it) {
			continue
		}
		if path, ok := s.best(Ends{it.from, it.to}, it.by); ok {
			s.move(Flow(f), path)
		}
	}
}

// shortest says whether a flow is on a shortest path.
func (s *Scheduler) shortest(it *flow) bool {
	if len(it.path) == 0 {
		return true
	}
	row := s.table.To(it.to)
	return !slices.ContainsFunc(it.path, func(e topology.Edge) bool { return !row.Tight(e) })
}

// add enters a flow.
func (s *Scheduler) add(it flow) Flow {
	f := Flow(len(s.flows))
	if n := len(s.unused); n > 0 {
		f, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		s.flows = append(s.flows, flow{})
	}
	s.flows[f] = it
	s.count(s.loads, it.path, 1)
	return f
}

func (s *Scheduler) move(f Flow, path []topology.Edge) {
	it := &s.flows[f]
	s.count(s.loads, it.path, -1)
	it.path = path
	s.count(s.loads, path, 1)
	s.moved = append(s.moved, f)
}

// longest is the length of the paths of a coloring at most.
const longest = 4

// room is memory for a path of the coloring. Paths of many flows lie together.
func (s *Scheduler) room() []topology.Edge {
	if len(s.block) < longest {
		s.block = make([]topology.Edge, 1<<10*longest)
	}
	path := s.block[:0:longest]
	s.block = s.block[longest:]
	return path
}

func (s *Scheduler) count(loads []int32, path []topology.Edge, by int32) {
	for _, e := range path {
		loads[e] += by
	}
}

// color places flows by edge coloring.
func (s *Scheduler) color(ends []Ends) ([]Flow, error) {
	if s.noClos != nil {
		return nil, fmt.Errorf("no coloring: %w; choose flows or weight", s.noClos)
	}
	leaves := make([]edgecoloring.Ends, len(ends))
	for i, e := range ends {
		if s.table.To(e.To).Dist[e.From] == spf.Unreachable {
			return nil, ErrNoPath
		}
		from, to := s.clos.leaves[e.From], s.clos.leaves[e.To]
		if from == 0 || to == 0 {
			return nil, errors.New("no coloring: no hosts are at one of its ends; choose flows " +
				"or weight")
		}
		leaves[i] = edgecoloring.Ends{Src: from - 1, Dst: to - 1}
	}
	colors, err := s.clos.colors.Add(leaves...)
	if err != nil {
		return nil, err
	}
	changed := slices.Clone(s.clos.colors.Moved())
	placed := make([]Flow, len(ends))
	for i, color := range colors {
		path := s.colored(color, ends[i])
		placed[i] = s.add(flow{from: ends[i].From, to: ends[i].To, by: Coloring, path: path,
			color: color})
		for int(color) >= len(s.byColor) {
			s.byColor = append(s.byColor, 0)
		}
		s.byColor[color] = placed[i]
	}
	for _, color := range changed {
		f := s.byColor[color]
		it := &s.flows[f]
		path := s.colored(color, Ends{it.from, it.to})
		if !slices.Equal(path, it.path) {
			s.move(f, path)
		}
	}
	return placed, nil
}

// colored is the path of a color; if a link of it is down, the one with the fewest flows.
func (s *Scheduler) colored(color edgecoloring.Flow, ends Ends) []topology.Edge {
	path := s.clos.path(s.room(), color, ends)
	if slices.ContainsFunc(path, func(e topology.Edge) bool { return s.down[e] }) {
		if other, ok := s.best(ends, Flows); ok {
			return other
		}
	}
	return path
}
