package reroute

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/packet/flow"
	"sextant/te/topology"
)

// Report is what telemetry says about one packet of a flow.
type Report struct {
	Flow     flow.Tuple
	From, To topology.Node // the routers where the flow enters and leaves the network
	// Path is how the packet went; none if it is not known: then the flow's last path counts.
	Path   []topology.Edge
	Class  int // flows of a higher class are moved first
	Queues []Queue
	// Pause says that the flow paused for longer than the sink's threshold, tau.
	Pause bool
	At    time.Duration
}

// Queue is the occupied part of the queue before a link, 0 to 1, and the part of the link's rate
// that is used, 0 to 1; 0: telemetry does not tell, as a packet uses some of it.
type Queue struct {
	Edge            topology.Edge
	Occupancy, Used float64
}

// Verdict says what becomes of a flow, and why.
type Verdict uint8

// The verdicts.
const (
	Untouched  Verdict = iota // the report asks for no decision
	Moved                     // to Decision.Path
	BackingOff                // the flow was looked at a short time ago
	NotLighter                // no candidate is lighter by the margin
	Exported                  // the head-end has this path already
	OnlyPath                  // there is no other
	NoPath                    // the network has none, or all that were drawn are down
	Pinned                    // an operator chose the path
	NoChance                  // Clove's chance was against it
	NoPolicy                  // the policy moves no flow
	verdicts
)

var verdictTexts = [verdicts]string{"untouched", "moved", "backing-off", "not-lighter",
	"already-exported", "only-path", "no-path", "pinned", "no-chance", "policy-moves-none"}

// String returns the name of a verdict.
func (v Verdict) String() string {
	if v >= verdicts {
		return fmt.Sprintf("verdict %d", uint8(v))
	}
	return verdictTexts[v]
}

// Candidate is a path that a decision weighed.
type Candidate struct {
	Path   []topology.Edge
	Weight Weight
}

// Decision is the answer to a report. The paths of Current and Candidates are valid until the next
// report.
type Decision struct {
	Flow       flow.Tuple
	From, To   topology.Node
	Class      int
	Verdict    Verdict
	At         time.Duration
	Current    Candidate // none if the path is not known
	Candidates []Candidate
	Path       []topology.Edge // where Verdict is Moved
}

// Flow is what a Decider knows of a flow that it has looked at.
type Flow struct {
	From, To topology.Node
	Path     []topology.Edge // exported last; none if none was
	Class    int
	Moves    int
	Seen     time.Duration
	Until    time.Duration // left alone until then
	Pinned   bool

	key   flow.Tuple
	place int    // among the decider's
	gone  bool   // it is forgotten
	mark  uint64 // of the last look at an edge's flows that met it
}

// FlowsMax is how many flows a Decider knows. When it is to know another one, one that was not
// heard of for long is forgotten; reports can be forged.
const FlowsMax = 1 << 18

// Decider keeps weights, paths and flows. It serves one goroutine.
type Decider struct {
	settings Settings
	graph    *topology.Graph
	weights  *Weights
	rates    *rates // nil: they are not estimated
	paths    *Paths
	flows    map[flow.Tuple]*Flow
	places   []*Flow // the same
	hand     int     // of places, where flows were looked at that may be forgotten
	replaced func(flow.Tuple)
	on       [][]*Flow // by edge: flows whose path has it, among others that have left it
	looks    uint64    // at an edge's flows
	random   *rand.PCG

	// of the last decision, with the weights of their links
	current []Weight
	drawn   [ChoicesMax]Candidate
	links   [ChoicesMax][]Weight
}

// NewDecider begins without flows. The error says what is wrong with the settings.
func NewDecider(view topology.View, s Settings, seed uint64) (*Decider, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	d := &Decider{settings: s, graph: view.Graph, weights: NewWeights(view.Graph, s),
		paths: NewPaths(view, s.Metric), flows: map[flow.Tuple]*Flow{},
		on: make([][]*Flow, view.Edges()), replaced: func(flow.Tuple) {},
		random: rand.NewPCG(seed, 0x736d6f6f74686965)}
	d.rates = newRates(view.Graph, d.weights.links, s)
	for e := range topology.Edge(view.Edges()) {
		if !view.Up(e) {
			d.weights.SetUp(e, false)
		}
	}
	return d, nil
}

// Report notes the queues of a report, and decides on its flow.
func (d *Decider) Report(r *Report) Decision {
	d.Observe(r)
	return d.answer(r)
}

// answer decides on the flow of a report whose queues are noted.
func (d *Decider) answer(r *Report) Decision {
	if !d.asks(r) {
		return Decision{}
	}
	f := d.flow(r)
	var decision Decision
	backsOff := d.decide(&decision, r, f, d.random)
	f.Seen, f.Class = r.At, r.Class
	if backsOff {
		f.Until = r.At + d.backoff(f.Moves)
	}
	if decision.Verdict == Moved {
		d.expect(decision.Current.Path, decision.Path, r.At)
		d.put(f, decision.Path)
		if d.rates != nil {
			d.rates.moved(r.Flow, decision.Path, r.At)
		}
		f.From, f.To = r.From, r.To
		f.Moves++
	}
	return decision
}

// Batch is Report for several that came together: all queues are noted first, and flows of higher
// classes are decided on first. It sorts the reports, and calls each with the decisions that were
// asked for.
func (d *Decider) Batch(reports []*Report, each func(Decision)) {
	for _, r := range reports {
		d.Observe(r)
	}
	slices.SortStableFunc(reports, func(a, b *Report) int { return cmp.Compare(b.Class, a.Class) })
	for _, r := range reports {
		if d.asks(r) {
			each(d.answer(r))
		}
	}
}

// Simulate says what Report would answer, and changes nothing.
func (d *Decider) Simulate(r *Report) Decision {
	f := Flow{From: r.From, To: r.To}
	if known := d.flows[r.Flow]; known != nil {
		f = *known
	}
	random := *d.random
	var decision Decision
	d.decide(&decision, r, &f, &random)
	return decision
}

// Observe notes the queues of a report, and decides nothing.
func (d *Decider) Observe(r *Report) {
	for _, q := range r.Queues {
		d.weights.Observe(q.Edge, q.Occupancy, r.At)
		if q.Used > 0 {
			d.weights.Use(q.Edge, q.Used, r.At)
		}
	}
	if d.rates != nil && len(r.Queues) > 0 && len(r.Path) > 0 {
		d.rates.note(r.Flow, r.Path, r.At)
	}
}

// asks tells whether a report asks for a decision.
func (d *Decider) asks(r *Report) bool {
	switch d.settings.Policy {
	case Sextant:
		if r.Pause {
			return true
		}
	case Clove:
	default:
		// Head-ends choose again by themselves, if they were given weights.
		return r.Pause && d.settings.Groups == 0 && (!d.settings.Sampled || len(r.Queues) > 0)
	}
	return slices.ContainsFunc(r.Queues, func(q Queue) bool {
		return q.Occupancy > d.settings.Threshold
	})
}

func (d *Decider) flow(r *Report) *Flow {
	f := d.flows[r.Flow]
	if f == nil {
		if len(d.places) >= FlowsMax {
			d.replace()
		}
		f = &Flow{From: r.From, To: r.To, key: r.Flow, place: len(d.places)}
		d.flows[r.Flow], d.places = f, append(d.places, f)
	}
	return f
}

// looks is how many flows are considered, of which one is forgotten.
const looks = 8

// replace forgets the flow that was not heard of for longest of the next few that are not pinned.
func (d *Decider) replace() {
	var oldest *Flow
	for looked := 0; looked < looks || oldest == nil && looked < len(d.places); looked++ {
		d.hand = (d.hand + 1) % len(d.places)
		if f := d.places[d.hand]; !f.Pinned && (oldest == nil || f.Seen < oldest.Seen) {
			oldest = f
		}
	}
	if oldest != nil { // else an operator has pinned all
		d.drop(oldest)
		d.replaced(oldest.key)
	}
}

func (d *Decider) drop(f *Flow) {
	last := len(d.places) - 1
	d.places[f.place] = d.places[last]
	d.places[f.place].place = f.place
	d.places[last] = nil
	d.places = d.places[:last]
	delete(d.flows, f.key)
	f.gone = true
}

// expect has weights foresee a move: other flows that are decided on before reports show it follow
// only as long as the new path stays lighter.
func (d *Decider) expect(old, fresh []topology.Edge, at time.Duration) {
	if d.settings.Herd == 0 {
		return
	}
	for _, e := range fresh {
		if !contains(old, e) {
			d.weights.Expect(e, d.settings.Herd, at)
		}
	}
	for _, e := range old {
		if !contains(fresh, e) {
			d.weights.Expect(e, -d.settings.Herd, at)
		}
	}
}

// put gives a flow a path. The lists of edges are rid of flows that have left before they grow, so
// that they hold at most twice as many as are there.
func (d *Decider) put(f *Flow, path []topology.Edge) {
	f.Path = path
	for _, e := range path {
		if len(d.on[e]) == cap(d.on[e]) {
			d.on[e] = slices.Grow(d.present(e), 1+len(d.on[e]))
		}
		d.on[e] = append(d.on[e], f)
	}
}

// present rids the list of an edge of flows that have left it, and of those that it has twice.
func (d *Decider) present(e topology.Edge) []*Flow {
	d.looks++
	d.on[e] = slices.DeleteFunc(d.on[e], func(f *Flow) bool {
		if f.gone || f.mark == d.looks || !contains(f.Path, e) {
			return true
		}
		f.mark = d.looks
		return false
	})
	return d.on[e]
}

// furtherBackoff is by what Sextant's back-off is longer after a flow's second move, and all that
// follow: what one move did not mend, several in a row do not.
const furtherBackoff = 100

// backoff is for how long a flow is left alone that has moved a number of times before.
func (d *Decider) backoff(moves int) time.Duration {
	s := &d.settings
	backoff := s.BackoffLeast +
		time.Duration(fraction(d.random)*float64(s.BackoffMost-s.BackoffLeast))
	if s.Policy == Sextant && moves > 0 {
		backoff *= furtherBackoff
	}
	return backoff
}
