package edgecoloring

import "fmt"

// A Clos assigns paths to flows between the leaf switches of a folded Clos network: pods, in each
// of which every leaf has one link to every aggregation switch, and groups of core switches, of
// which group a has one link to aggregation switch a of every pod. A network of leaves and spines
// is one pod without core. It serves one goroutine.
type Clos struct {
	leaves       int
	pods         []int32   // by a leaf's row in the coloring: of all as sources, then of all
	aggregations *Coloring // flows between leaves, the color is the aggregation switch
	// for each aggregation switch, flows between pods, the color is the core switch
	cores  []*Coloring
	flows  []record
	unused []Flow
	moved  []Flow
}

// Levels of a flow's record. Its group is that of its core switch, or noGroup.
const (
	byLeaf = iota
	byCore
)

// States of a flow.
const (
	between uint8 = 1 << iota // it is between leaves
	entered                   // group stands
	marked                    // it is in moved
)

// A Flow is the number of a flow in its network. Numbers of removed flows are used again.
type Flow = Edge

const noGroup = -1

// A Path is a way through a folded Clos network: the place of an aggregation switch in both pods,
// and that of a core switch in its group, from 0. They are -1 where the way does not lead.
type Path struct{ Aggregation, Core int }

// NewClos returns a network without flows, of leaves in these pods, which are numbered from 0, and
// so many aggregation switches in each pod and core switches in each group. Without core there is
// one pod.
func NewClos(pods []int, aggregations, cores int) (*Clos, error) {
	count := 0
	for leaf, pod := range pods {
		if pod < 0 || pod >= len(pods) {
			return nil, fmt.Errorf("leaf %d is in pod %d: pods are 0 to %d", leaf, pod, len(pods)-1)
		}
		count = max(count, pod+1)
	}
	if count > 1 && cores < 1 {
		return nil, fmt.Errorf("%d pods without core switches: nothing connects them", count)
	}
	if err := check(len(pods), len(pods), aggregations); err != nil {
		return nil, fmt.Errorf("aggregation switches: %w", err)
	}
	t := &Clos{leaves: len(pods), cores: make([]*Coloring, aggregations)}
	t.pods = make([]int32, 1+2*len(pods))
	for leaf, pod := range pods {
		t.pods[1+leaf], t.pods[1+len(pods)+leaf] = int32(pod), int32(pod)
	}
	t.aggregations = newOf(&t.flows, byLeaf, len(pods), len(pods), aggregations)
	if cores == 0 {
		return t, nil
	}
	if err := check(count, count, cores); err != nil {
		return nil, fmt.Errorf("core switches: %w", err)
	}
	for i := range t.cores {
		t.cores[i] = newOf(&t.flows, byCore, count, count, cores)
	}
	return t, nil
}

// Ends are where a flow begins and ends: leaves of a Clos, hosts of a FatTree.
type Ends struct{ Src, Dst int }

// Add gives paths to new flows. Many at once take less time than one after the other: no path is
// given twice meanwhile. An error changes nothing.
func (t *Clos) Add(flows ...Ends) ([]Flow, error) {
	for _, ends := range flows {
		if n := t.leaves; ends.Src < 0 || ends.Src >= n || ends.Dst < 0 || ends.Dst >= n {
			return nil, fmt.Errorf("flow from leaf %d to %d: the leaves are 0 to %d", ends.Src,
				ends.Dst, n-1)
		}
	}
	t.forget()
	added := make([]Flow, len(flows))
	for i, ends := range flows {
		added[i] = t.join(ends)
	}
	for _, f := range t.moved { // those that have left their groups
		t.enter(f)
	}
	for _, f := range added {
		t.enter(f)
	}
	return added, nil
}

// join gives a new flow its aggregation switch. Flows whose switch has to change leave their core
// switches; they enter new ones when all have left, so that no pod has more flows in a group than
// links.
func (t *Clos) join(ends Ends) Flow {
	f := Flow(len(t.flows))
	if n := len(t.unused); n > 0 {
		f, t.unused = t.unused[n-1], t.unused[:n-1]
	} else {
		t.flows = append(t.flows, record{})
	}
	it := &t.flows[f]
	*it = record{group: noGroup}
	if ends.Src == ends.Dst {
		return f
	}
	it.state = between
	t.aggregations.add(f, ends.Src, ends.Dst)
	for _, other := range t.aggregations.Moved() {
		if it := &t.flows[other]; it.state&entered != 0 {
			t.mark(other)
			t.leave(other, it)
		}
	}
	return f
}

// enter gives a flow between pods a core switch of the group of its aggregation switch.
func (t *Clos) enter(f Flow) {
	it := &t.flows[f]
	if it.state&(between|entered) != between {
		return
	}
	it.state |= entered
	from, to := t.pod(it, 0), t.pod(it, 1)
	if from == to {
		return
	}
	it.group = it.color[byLeaf]
	cores := t.cores[it.group]
	cores.add(f, from, to)
	for _, moved := range cores.Moved() {
		t.mark(moved)
	}
}

// pod is where a flow's leaf of a side is. A leaf has a place in each layer of the coloring.
func (t *Clos) pod(it *record, side int) int {
	row := int(it.ends[byLeaf][side])
	if row >= len(t.pods) {
		row = 1 + (row-1)%(2*t.leaves)
	}
	return int(t.pods[row])
}

func (t *Clos) leave(f Flow, it *record) {
	if it.group != noGroup {
		t.cores[it.group].remove(f)
	}
	it.group = noGroup
	it.state &^= entered
}

// Remove removes a flow that Add returned. No other flow changes its path.
func (t *Clos) Remove(f Flow) {
	t.forget()
	it := &t.flows[f]
	if t.leave(f, it); it.state&between != 0 {
		t.aggregations.remove(f)
	}
	t.unused = append(t.unused, f)
}

// Path returns the path of a flow.
func (t *Clos) Path(f Flow) Path {
	p := Path{-1, -1}
	if it := &t.flows[f]; it.state&between != 0 {
		p.Aggregation = int(it.color[byLeaf])
		if it.group != noGroup {
			p.Core = int(it.color[byCore])
		}
	}
	return p
}

// GreatestLoad returns the greatest number of flows that a link between two switches carries one
// way.
func (t *Clos) GreatestLoad() int {
	most := t.aggregations.greatestUse()
	for _, cores := range t.cores {
		if cores != nil {
			most = max(most, cores.greatestUse())
		}
	}
	return most
}

// Moved returns the other flows whose paths the last Add changed, each once. It is valid until the
// next.
func (t *Clos) Moved() []Flow { return t.moved }

func (t *Clos) mark(f Flow) {
	if it := &t.flows[f]; it.state&marked == 0 {
		it.state |= marked
		t.moved = append(t.moved, f)
	}
}

func (t *Clos) forget() {
	for _, f := range t.moved {
		t.flows[f].state &^= marked
	}
	t.moved = t.moved[:0]
}
