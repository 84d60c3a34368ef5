package edgecoloring

import "fmt"

// A FatTree assigns paths to flows between the hosts of a fat tree of k-port switches (Al-Fares,
// Loukissas and Vahdat, "A scalable, commodity data center network architecture", 2008): k pods of
// k/2 edge and k/2 aggregation switches, k/2 hosts at each edge switch, and k/2 groups of k/2 core
// switches, group a linked to aggregation switch a of each pod. If no host sends or receives more
// than one flow, no link carries more than one. It serves one goroutine.
type FatTree struct {
	k            int
	aggregations *Coloring // flows between edge switches, the color is the aggregation switch
	// for each aggregation switch, flows between pods, the color is the core switch
	cores  []*Coloring
	flows  []flow
	unused []Flow
	byEdge []Flow   // of the edges of aggregations
	byCore [][]Flow // of the edges of each of cores
	moved  []Flow
	marked []bool // the flows in moved
}

// A Flow is the number of a flow in its FatTree. Numbers of removed flows are used again.
type Flow int32

type flow struct {
	src, dst int32 // hosts
	edge     Edge  // of aggregations, none under one edge switch
	group    int8  // where core is
	core     Edge  // of cores[group], none within a pod
	entered  bool  // core stands
}

// A Path is a way through a fat tree: an aggregation switch of both pods, 0 to k/2-1, and a core
// switch of its group, 0 to k/2-1. They are -1 where the way does not lead.
type Path struct{ Aggregation, Core int }

// NewFatTree returns a fat tree without flows. k is even, 2 to 128.
func NewFatTree(k int) (*FatTree, error) {
	if k < 2 || k%2 != 0 || k > 2*ColorsMax {
		return nil, fmt.Errorf("a fat tree of %d-port switches: the number has to be even, 2 to %d",
			k, 2*ColorsMax)
	}
	t := &FatTree{k: k, byCore: make([][]Flow, k/2)}
	var err error
	if t.aggregations, err = New(k*k/2, k*k/2, k/2); err != nil {
		return nil, err
	}
	for range k / 2 {
		cores, err := New(k, k, k/2)
		if err != nil {
			return nil, err
		}
		t.cores = append(t.cores, cores)
	}
	return t, nil
}

// Hosts returns the number of hosts, k^3/4.
func (t *FatTree) Hosts() int { return t.k * t.k * t.k / 4 }

// EdgeSwitch returns the edge switch of a host: k/2 of them are a pod.
func (t *FatTree) EdgeSwitch(host int) int { return host / (t.k / 2) }

// Pod returns the pod of a host.
func (t *FatTree) Pod(host int) int { return host / (t.k * t.k / 4) }

// Ends are the hosts between which a flow runs.
type Ends struct{ Src, Dst int }

// Add gives paths to new flows. Many at once take less time than one after the other: no path is
// given twice meanwhile. An error changes nothing.
func (t *FatTree) Add(flows ...Ends) ([]Flow, error) {
	for _, ends := range flows {
		if ends.Src < 0 || ends.Src >= t.Hosts() || ends.Dst < 0 || ends.Dst >= t.Hosts() {
			return nil, fmt.Errorf("flow from host %d to %d: the hosts are 0 to %d", ends.Src,
				ends.Dst, t.Hosts()-1)
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
func (t *FatTree) join(ends Ends) Flow {
	f := Flow(len(t.flows))
	if n := len(t.unused); n > 0 {
		f, t.unused = t.unused[n-1], t.unused[:n-1]
	} else {
		t.flows, t.marked = append(t.flows, flow{}), append(t.marked, false)
	}
	t.flows[f] = flow{src: int32(ends.Src), dst: int32(ends.Dst), edge: none, core: none}
	if t.EdgeSwitch(ends.Src) == t.EdgeSwitch(ends.Dst) {
		return f
	}
	e := t.aggregations.Add(t.EdgeSwitch(ends.Src), t.EdgeSwitch(ends.Dst))
	t.flows[f].edge = e
	t.byEdge = put(t.byEdge, e, f)
	for _, e := range t.aggregations.Moved() {
		if other := t.byEdge[e]; t.flows[other].entered {
			t.mark(other)
			t.leave(other)
		}
	}
	return f
}

// enter gives a flow between pods a core switch of the group of its aggregation switch.
func (t *FatTree) enter(f Flow) {
	it := &t.flows[f]
	if it.edge == none || it.entered {
		return
	}
	it.entered = true
	from, to := t.Pod(int(it.src)), t.Pod(int(it.dst))
	if from == to {
		return
	}
	group := t.aggregations.Color(it.edge)
	e := t.cores[group].Add(from, to)
	it.group, it.core = int8(group), e
	t.byCore[group] = put(t.byCore[group], e, f)
	for _, moved := range t.cores[group].Moved() {
		t.mark(t.byCore[group][moved])
	}
}

func (t *FatTree) leave(f Flow) {
	it := &t.flows[f]
	if it.core != none {
		t.cores[it.group].Remove(it.core)
	}
	it.core, it.entered = none, false
}

// Remove removes a flow that Add returned. No other flow changes its path.
func (t *FatTree) Remove(f Flow) {
	t.forget()
	t.leave(f)
	if e := t.flows[f].edge; e != none {
		t.aggregations.Remove(e)
	}
	t.unused = append(t.unused, f)
}

// Path returns the path of a flow.
func (t *FatTree) Path(f Flow) Path {
	p := Path{-1, -1}
	if it := t.flows[f]; it.edge != none {
		p.Aggregation = t.aggregations.Color(it.edge)
		if it.core != none {
			p.Core = t.cores[it.group].Color(it.core)
		}
	}
	return p
}

// GreatestLoad returns the greatest number of flows that a link between two switches carries one
// way.
func (t *FatTree) GreatestLoad() int {
	most := t.aggregations.greatestUse()
	for _, cores := range t.cores {
		most = max(most, cores.greatestUse())
	}
	return most
}

// Moved returns the other flows whose paths the last Add changed, each once. It is valid until the
// next.
func (t *FatTree) Moved() []Flow { return t.moved }

func (t *FatTree) mark(f Flow) {
	if !t.marked[f] {
		t.marked[f] = true
		t.moved = append(t.moved, f)
	}
}

func (t *FatTree) forget() {
	for _, f := range t.moved {
		t.marked[f] = false
	}
	t.moved = t.moved[:0]
}

// put sets element e, which may be one behind the end.
func put(flows []Flow, e Edge, f Flow) []Flow {
	if int(e) == len(flows) {
		return append(flows, f)
	}
	flows[e] = f
	return flows
}
