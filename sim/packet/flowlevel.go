package packet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// FlowLevel simulates flows, not packets: each has the rate that max-min fairness gives it, from
// its start to its end.
type FlowLevel struct {
	best    bool // flows that look at other paths look at all
	n       *Network
	paths   *Simulation // of which only routing and path tables are used
	fluid   *Fluid
	flows   []levelFlow // by number of the fluid
	ends    []int32     // heap of flows, by when they end
	place   []int32     // in the heap, by flow
	now     float64     // seconds
	done    func(Completed)
	random  *rand.Rand
	scratch []int32
	tick    []int32 // scratch
}

// levelFlow is a flow under way.
type levelFlow struct {
	flow  Flow
	left  float64 // bytes at the time at
	at    float64
	end   float64
	table int32
	path  int32
	moves int
}

// NewFlowLevel prepares a run without flows. It knows the schemes ECMP and Random, which are the
// same here, Greedy, and Rerouted, where every RerouteEvery each flow that the fabric limits looks
// at two random paths; with BestResponse at all of them, until no flow would move.
func NewFlowLevel(c Config) (*FlowLevel, error) {
	best := c.Paths.Scheme == BestResponse
	if best || c.Paths.Scheme == Rerouted {
		c.Paths.Scheme = Random
	} else {
		c.Paths.RerouteEvery = 0
	}
	if c.Paths.Scheme != ECMP && c.Paths.Scheme != Random && c.Paths.Scheme != Greedy {
		return nil, fmt.Errorf("flow level: paths are chosen by hash, at random or by a " +
			"scheduler; this scheme needs packets")
	}
	paths, err := New(c)
	if err != nil {
		return nil, err
	}
	capacity := make([]float64, len(c.Network.links))
	for l := range capacity {
		capacity[l] = c.Network.Rate(l)
	}
	return &FlowLevel{best: best, n: c.Network, paths: paths, fluid: NewFluid(capacity),
		done: c.Done, random: rand.New(rand.NewPCG(c.Seed, 6))}, nil
}

// Run plays a stream of flows until a time. Flows that last longer are dropped.
func (x *FlowLevel) Run(next func() (Flow, bool), until Time) error {
	f, more := next()
	end, every := until.Seconds(), x.paths.paths.RerouteEvery.Seconds()
	tick := end
	if every > 0 {
		tick = every
	}
	for {
		start := end
		if more {
			start = min(f.Start.Seconds(), end)
		}
		for len(x.ends) > 0 && x.flows[x.ends[0]].end <= min(start, tick) {
			x.finish(x.ends[0])
		}
		if tick < start {
			x.now = tick
			x.reroute()
			tick += every
			continue
		}
		x.now = start
		if start >= end {
			return nil
		}
		if err := x.begin(f); err != nil {
			return err
		}
		f, more = next()
	}
}

// gain is how much faster another path must be before a flow moves there.
const gain = 1.1

// responses is how often all flows look at all paths at most, until none moves.
const responses = 20

// drawn is how many random paths a flow looks at, as in SMOOTHIE's Algorithm 1.
const drawn = 2

// reroute lets each flow that a link of the fabric limits look at other paths, and move if it would
// be faster there.
func (x *FlowLevel) reroute() {
	x.tick = append(x.tick[:0], x.ends...)
	slices.Sort(x.tick)
	for moved, times := true, 0; moved && times < responses; times++ {
		moved = false
		for _, number := range x.tick {
			if other := x.other(number); other >= 0 {
				x.move(number, other)
				moved = x.best
			}
		}
	}
}

// other is the path that a flow moves to, none if it stays.
func (x *FlowLevel) other(number int32) int32 {
	f := &x.flows[number]
	fabric := x.paths.paths.tables[f.table].fabric
	if len(fabric) < 2 || !contains(fabric[f.path], x.fluid.Limit(number)) {
		return none
	}
	best, least := none, gain*x.fluid.Rate(number)
	looks := drawn
	if x.best {
		looks = len(fabric)
	}
	for i := range looks {
		if !x.best {
			i = x.random.IntN(len(fabric))
		}
		if int32(i) == f.path {
			continue
		}
		if share := x.share(fabric[i], fabric[f.path]); share >= least {
			best, least = int32(i), share
		}
	}
	return best
}

// share is what one more flow would have of a path's links that another path lacks.
func (x *FlowLevel) share(path, other []int32) float64 {
	share := math.Inf(1)
	for _, l := range path {
		if !contains(other, l) {
			share = min(share, x.fluid.Share(l))
		}
	}
	return share
}

// move puts a flow onto another path.
func (x *FlowLevel) move(number, path int32) {
	f := &x.flows[number]
	x.count(number, -1)
	f.path = path
	f.moves++
	x.count(number, 1)
	x.fluid.Move(number, x.path(x.n.Hosts[f.flow.Src], x.n.Hosts[f.flow.Dst], f.table, int(path)))
	x.update()
}

func (x *FlowLevel) begin(f Flow) error {
	if f.Src == f.Dst || f.Bytes < 1 {
		return fmt.Errorf("flow of %d bytes from host %d to host %d: ends must differ, and a "+
			"byte is the least", f.Bytes, f.Src,
			f.Dst)
	}
	src, dst := x.n.Hosts[f.Src], x.n.Hosts[f.Dst]
	table := x.paths.table(src, dst)
	n := len(x.paths.paths.tables[table].fabric)
	if n == 0 {
		return fmt.Errorf("there is no path from host %d to host %d", f.Src, f.Dst)
	}
	choice := x.random.IntN(n)
	if x.paths.paths.Scheme == Greedy {
		choice = x.paths.leastLoaded(table)
	}
	path := x.path(src, dst, table, choice)
	number := x.fluid.Add(path)
	for int(number) >= len(x.flows) {
		x.flows = append(x.flows, levelFlow{})
		x.place = append(x.place, none)
	}
	x.flows[number] = levelFlow{flow: f, left: float64(f.Bytes), at: x.now, end: x.now,
		table: table, path: int32(choice)}
	x.count(number, 1)
	x.place[number] = int32(len(x.ends))
	x.ends = append(x.ends, number)
	x.update()
	return nil
}

// path is the links of a path of a table, those of the hosts too.
func (x *FlowLevel) path(src, dst Node, table int32, choice int) []int32 {
	x.scratch = append(x.scratch[:0],
		x.paths.between(src, dst, x.paths.paths.tables[table].fabric[choice])...)
	return x.scratch
}

// count notes a flow on the links of the fabric, for the scheduler.
func (x *FlowLevel) count(number, by int32) {
	f := &x.flows[number]
	for _, l := range x.paths.paths.tables[f.table].fabric[f.path] {
		x.paths.paths.flows[l] += by
	}
}

func (x *FlowLevel) finish(number int32) {
	f := &x.flows[number]
	x.now = f.end
	last := len(x.ends) - 1
	at := x.place[number]
	x.swap(int(at), last)
	x.ends = x.ends[:last]
	x.place[number] = none
	if int(at) < last {
		x.fix(x.ends[at])
	}
	x.count(number, -1)
	done := Completed{Flow: f.flow, Finish: Time(f.end * float64(Second)), Reroutes: f.moves}
	x.fluid.Remove(number)
	x.update()
	if x.done != nil {
		x.done(done)
	}
}

// update plans the ends of flows whose rates changed.
func (x *FlowLevel) update() {
	for _, number := range x.fluid.Changed() {
		f := &x.flows[number]
		f.left = max(f.left-x.fluid.Previous(number)*(x.now-f.at), 0)
		f.at = x.now
		f.end = x.now + f.left/x.fluid.Rate(number)
		x.fix(number)
	}
}

// fix moves a flow to its place in the heap.
func (x *FlowLevel) fix(number int32) {
	at := int(x.place[number])
	end := func(i int) float64 { return x.flows[x.ends[i]].end }
	for at > 0 && end((at-1)/2) > end(at) {
		x.swap(at, (at-1)/2)
		at = (at - 1) / 2
	}
	for {
		child := 2*at + 1
		if child >= len(x.ends) {
			return
		}
		if child+1 < len(x.ends) && end(child+1) < end(child) {
			child++
		}
		if end(child) >= end(at) {
			return
		}
		x.swap(at, child)
		at = child
	}
}

func (x *FlowLevel) swap(i, j int) {
	x.ends[i], x.ends[j] = x.ends[j], x.ends[i]
	x.place[x.ends[i]], x.place[x.ends[j]] = int32(i), int32(j)
}
