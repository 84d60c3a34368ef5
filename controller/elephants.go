package controller

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/packet/cflb"
	"sextant/te/elephant"
	"sextant/te/topology"
)

// Bounds of the elephants.
const (
	elephantsMax    = 1 << 17
	elephantNameMax = 200
	bestMax         = 256 // paths of one question
	defaultSeconds  = 60
	secondsMax      = 24 * 60 * 60
)

// elephants are the flows that have paths of a network with controllable load balancing. They are
// a cache: a source asks again before the time of its flow is over, with what the flow has.
type elephants struct {
	fabric *fabric
	named  map[string]*placed
	flows  map[elephant.Flow]*placed
	uses   map[api.Flow]string // name, by what is on the wire
	random *rand.Rand
}

// placed is an elephant that has a path.
type placed struct {
	name    string
	by      elephant.Objective
	flow    elephant.Flow
	ends    elephant.Ends
	steered Steered
	until   time.Time
	fresh   bool // telemetry is not told of it yet
}

func newElephants(f *fabric, seed uint64) *elephants {
	return &elephants{fabric: f, named: map[string]*placed{}, flows: map[elephant.Flow]*placed{},
		uses: map[api.Flow]string{}, random: rand.New(rand.NewPCG(seed, 0x656c657068616e74))}
}

// takeFabric makes what is known of a network with controllable load balancing, of which the file
// names what is present: flows keep their paths if they are still there.
func (c *Controller) takeFabric(present *Config) error {
	weight := func(e topology.Edge) float64 { return c.decider.Weight(e, c.now()).Value }
	f, err := newFabric(present, c.names, weight, present.Policy.Herd)
	if err == nil && f != nil {
		c.elephants = newElephants(f, c.seed)
	}
	return err
}

// adopt takes over elephants of another topology, with what they carry: they keep their paths if
// these are still there.
func (e *elephants) adopt(from *elephants, now time.Time) (lost int) {
	for _, old := range from.list(now) {
		_, err := e.put([]Placement{{Name: old.Name, Flow: old.Flow, FlowLabel: old.FlowLabel,
			By: old.By, Seconds: old.Seconds}}, now)
		if err != nil {
			lost++
		}
	}
	return lost
}

// noFabric says that the file has no section for it.
func (c *Controller) noFabric() error {
	if c.elephants != nil {
		return nil
	}
	return conflict("this controller has no network whose sources choose paths; add the section " +
		"cflb to its file")
}

// steer gives a flow the header fields of its path; what it has is kept if it will do.
func (e *elephants) steer(name string, flow api.Flow, label *uint32, path []topology.Edge,
	ends elephant.Ends) (Steered, error) {
	return e.fabric.steer(flow, label, path, ends, e.random.Uint32(), func(flow api.Flow) bool {
		other, taken := e.uses[flow]
		return !taken || other == name
	})
}

// ports answers with what a flow carries on a path.
func (e *elephants) ports(q PathQuestion) (Steered, error) {
	ends, err := e.fabric.ends(q.Flow)
	if err != nil {
		return Steered{}, err
	}
	var path []topology.Edge
	if len(q.Path) > 1 {
		if path, err = e.fabric.path(q.Path); err != nil {
			return Steered{}, err
		}
	}
	from, to := ends.From, ends.From
	if len(path) > 0 {
		from, to = e.fabric.graph.From(path[0]), e.fabric.graph.To(path[len(path)-1])
	}
	if from != ends.From || to != ends.To {
		return Steered{}, invalid("the flow enters at %s and leaves at %s; its path begins and "+
			"ends there", e.fabric.name(ends.From), e.fabric.name(ends.To))
	}
	return e.steer("", q.Flow, q.FlowLabel, path, ends)
}

// objective reads which path is to be best.
func (e *elephants) objective(by string) (elephant.Objective, error) {
	if by == "" {
		return e.fabric.best, nil
	}
	o, err := elephant.ParseObjective(by)
	if err != nil {
		return o, invalid("by: %v", err)
	}
	return o, nil
}

// best answers with the paths that so many flows would get, with what takes them.
func (e *elephants) bestPaths(q PathQuestion) (list []Steered, err error) {
	by, err := e.objective(q.By)
	if err != nil {
		return nil, err
	}
	if q.Count == 0 {
		q.Count = 1
	}
	if q.Count < 0 || q.Count > bestMax {
		return nil, invalid("count %d: ask for 1 to %d paths", q.Count, bestMax)
	}
	ends, err := e.fabric.ends(q.Flow)
	if err != nil {
		return nil, err
	}
	paths, err := e.fabric.paths.Best(ends, by, q.Count)
	if err != nil {
		return nil, conflict("%v", err)
	}
	used := map[api.Flow]bool{}
	for _, path := range paths {
		s, err := e.fabric.steer(q.Flow, q.FlowLabel, path, ends, e.random.Uint32(),
			func(flow api.Flow) bool { return e.uses[flow] == "" && !used[flow] })
		if err != nil {
			return nil, err
		}
		used[s.Flow] = true
		list = append(list, s)
	}
	return list, nil
}

// put gives elephants their paths, or more time. An error changes nothing.
func (e *elephants) put(list []Placement, now time.Time) (out Placements, err error) {
	news, err := e.sort(list)
	if err != nil {
		return out, err
	}
	moved, err := e.admit(list, news)
	if err != nil {
		return out, err
	}
	for _, item := range list {
		p := e.named[item.Name]
		seconds := item.Seconds
		if seconds == 0 {
			seconds = defaultSeconds
		}
		p.until = now.Add(time.Duration(seconds * float64(time.Second)))
		_ = e.refresh(p) // says so with the flow
		answer := e.answer(p, now)
		answer.Moved = item.Flow.Source.Port() != 0 && item.Flow != p.steered.Flow ||
			item.FlowLabel != nil && p.steered.FlowLabel != nil &&
				*item.FlowLabel != *p.steered.FlowLabel
		out.Items = append(out.Items, answer)
		delete(moved, item.Name)
	}
	out.Moved = []Elephant{}
	for _, name := range slices.Sorted(maps.Keys(moved)) {
		answer := e.answer(e.named[name], now)
		answer.Moved = true
		out.Moved = append(out.Moved, answer)
	}
	return out, nil
}

// sort checks placements, and returns those of flows that have no path yet.
func (e *elephants) sort(list []Placement) (news []*placed, err error) {
	bad := func(i int, format string, args ...any) error {
		return invalid("elephant %d: %s", i+1, fmt.Sprintf(format, args...))
	}
	seen := map[string]bool{}
	for i, item := range list {
		switch {
		case item.Name == "" || len(item.Name) > elephantNameMax:
			return nil, bad(i, "a name of 1 to %d bytes is needed, by which the flow is renewed "+
				"and released", elephantNameMax)
		case seen[item.Name]:
			return nil, bad(i, "%q is there twice", item.Name)
		case item.Seconds < 0 || item.Seconds > secondsMax:
			return nil, bad(i, "seconds %v: write up to %d", item.Seconds, secondsMax)
		}
		seen[item.Name] = true
		by, err := e.objective(item.By)
		if err == nil {
			_, err = packetOf(item.Flow, item.FlowLabel)
		}
		if err != nil {
			return nil, bad(i, "%v", err)
		}
		if p := e.named[item.Name]; p != nil {
			if !sameEnds(p.steered.Flow, item.Flow) {
				return nil, conflict("elephant %d: %q is the name of a flow from %s to %s; "+
					"release it, or give this one another name", i+1, item.Name,
					p.steered.Flow.Source.Addr(), p.steered.Flow.Destination)
			}
			continue
		}
		p := &placed{name: item.Name, by: by, fresh: true, steered: Steered{Flow: item.Flow,
			FlowLabel: item.FlowLabel}}
		if p.ends, err = e.fabric.ends(item.Flow); err != nil {
			return nil, err
		}
		news = append(news, p)
	}
	if len(e.named)+len(news) > elephantsMax {
		return nil, conflict("%d flows have paths; at most %d can", len(e.named), elephantsMax)
	}
	return news, nil
}

// sameEnds says whether two flows differ in the source port at most, which is what changes with a
// path.
func sameEnds(a, b api.Flow) bool {
	return a.Source.Addr() == b.Source.Addr() && a.Destination == b.Destination &&
		a.Protocol == b.Protocol
}

// admit places new flows, and returns the names of others that moved. A flow that comes with the
// fields of a path keeps it, as after a restart of the controller.
func (e *elephants) admit(list []Placement, news []*placed) (moved map[string]bool, err error) {
	moved = map[string]bool{}
	var done []*placed
	undo := func() {
		for _, p := range done {
			e.release(p)
		}
	}
	for by := range elephant.Coloring + 1 {
		var batch []*placed
		var ends []elephant.Ends
		for _, p := range news {
			switch path, has := e.has(p); {
			case p.by != by:
			case has && by != elephant.Coloring:
				e.enter(p, e.fabric.paths.Put(by, p.ends, path))
				done = append(done, p)
			default:
				batch, ends = append(batch, p), append(ends, p.ends)
			}
		}
		if len(batch) == 0 {
			continue
		}
		placed, err := e.fabric.paths.Place(by, ends...)
		if err != nil {
			undo()
			return nil, conflict("%v", err)
		}
		others := slices.Clone(e.fabric.paths.Moved())
		for i, f := range placed {
			e.enter(batch[i], f)
			done = append(done, batch[i])
		}
		for _, f := range others {
			if p := e.flows[f]; p != nil {
				moved[p.name] = true
			}
		}
	}
	for name := range moved {
		_ = e.refresh(e.named[name]) // says so with the flow
	}
	for _, p := range done {
		if err := e.refresh(p); err != nil {
			undo()
			return nil, err
		}
	}
	return moved, nil
}

// has is the path that a new flow takes already.
func (e *elephants) has(p *placed) ([]topology.Edge, bool) {
	fields := e.fabric.codecs[p.steered.Flow.Source.Addr().Is6()].Parts().Fields
	if fields.HasLabel() && p.steered.FlowLabel == nil ||
		fields != cflb.FlowLabel && p.steered.Flow.Source.Port() == 0 {
		return nil, false
	}
	s, path, err := e.fabric.follow(p.steered.Flow, p.steered.FlowLabel)
	return path, err == nil && s.Problem == "" && s.controlled()
}

func (e *elephants) enter(p *placed, f elephant.Flow) {
	p.flow = f
	e.named[p.name], e.flows[f] = p, p
}

// refresh gives a flow what takes its path, if that has changed or routers count their next hops
// anew.
func (e *elephants) refresh(p *placed) error {
	path := e.fabric.paths.Path(p.flow)
	s, err := e.steer(p.name, p.steered.Flow, p.steered.FlowLabel, path, p.ends)
	if err != nil {
		p.steered.Problem = err.Error()
		return err
	}
	if e.uses[p.steered.Flow] == p.name {
		delete(e.uses, p.steered.Flow)
	}
	p.steered = s
	e.uses[s.Flow] = p.name
	return nil
}

func (e *elephants) release(p *placed) {
	e.fabric.paths.Remove(p.flow)
	delete(e.named, p.name)
	delete(e.flows, p.flow)
	if e.uses[p.steered.Flow] == p.name {
		delete(e.uses, p.steered.Flow)
	}
}

// expire releases those whose time is over.
func (e *elephants) expire(now time.Time) {
	if e == nil {
		return
	}
	for _, p := range e.named {
		if now.After(p.until) {
			e.release(p)
		}
	}
}

// setUp moves flows whose paths routers do not take any more.
func (e *elephants) setUp(link topology.Edge, up bool) {
	if e == nil {
		return
	}
	e.fabric.paths.SetUp(link, up)
	for _, f := range slices.Clone(e.fabric.paths.Moved()) {
		_ = e.refresh(e.flows[f]) // says so with the flow
	}
}

func (e *elephants) answer(p *placed, now time.Time) Elephant {
	out := Elephant{Name: p.name, Steered: p.steered, By: p.by.String(),
		Seconds: max(0, p.until.Sub(now).Seconds())}
	for _, link := range e.fabric.paths.Path(p.flow) {
		out.Load = max(out.Load, e.fabric.paths.Load(link))
	}
	return out
}

// list are all elephants, by name.
func (e *elephants) list(now time.Time) []Elephant {
	list := []Elephant{}
	for _, p := range e.named {
		list = append(list, e.answer(p, now))
	}
	slices.SortFunc(list, func(a, b Elephant) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
