package reroute

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"sextant/packet/flow"
	"sextant/te/topology"
)

// Flows yields the flows that were looked at and not forgotten, in no order.
func (d *Decider) Flows() iter.Seq2[flow.Tuple, Flow] {
	return func(yield func(flow.Tuple, Flow) bool) {
		for t, f := range d.flows {
			if !yield(t, *f) {
				return
			}
		}
	}
}

// OnReplaced has a function called with each flow that is forgotten for another one.
func (d *Decider) OnReplaced(f func(flow.Tuple)) { d.replaced = f }

// Known is how many flows were looked at and not forgotten.
func (d *Decider) Known() int { return len(d.flows) }

// Flow returns what is known of a flow; false if it was not looked at.
func (d *Decider) Flow(t flow.Tuple) (Flow, bool) {
	f := d.flows[t]
	if f == nil {
		return Flow{}, false
	}
	return *f, true
}

// Link is a link with its weight.
type Link struct {
	Edge   topology.Edge
	Weight Weight
	Age    time.Duration // of the last observation
	Seen   bool          // whether there was one
}

// Links returns the weights of all links, in the order of the graph.
func (d *Decider) Links(at time.Duration) []Link {
	links := make([]Link, d.graph.Edges())
	for e := range links {
		edge := topology.Edge(e)
		age, seen := d.weights.Age(edge, at)
		links[e] = Link{edge, d.weights.Of(edge, at), age, seen}
	}
	return links
}

// Weight returns the weight of a link.
func (d *Decider) Weight(e topology.Edge, at time.Duration) Weight { return d.weights.Of(e, at) }

// Expect has weights foresee a flow on a path that another than this Decider gives it.
func (d *Decider) Expect(path []topology.Edge, at time.Duration) { d.expect(nil, path, at) }

// Pin gives a flow a path that no report changes, until Unpin. The error says what is wrong with
// the path.
func (d *Decider) Pin(t flow.Tuple, path []topology.Edge, at time.Duration) error {
	if len(path) == 0 {
		return fmt.Errorf("a path has at least one link")
	}
	for i, e := range path {
		if e < 0 || int(e) >= d.graph.Edges() {
			return fmt.Errorf("there is no link %d; the network has %d", e, d.graph.Edges())
		}
		if i > 0 && d.graph.To(path[i-1]) != d.graph.From(e) {
			return fmt.Errorf("link %d ends at %s, and the next one begins at %s", i,
				d.graph.Node(d.graph.To(path[i-1])).Name, d.graph.Node(d.graph.From(e)).Name)
		}
	}
	f := d.flow(&Report{Flow: t})
	f.From, f.To = d.graph.From(path[0]), d.graph.To(path[len(path)-1])
	f.Pinned, f.Seen = true, at
	d.put(f, slices.Clone(path))
	return nil
}

// Unpin lets reports move a flow again. It is false if the flow was not pinned.
func (d *Decider) Unpin(t flow.Tuple) bool {
	f := d.flows[t]
	if f == nil || !f.Pinned {
		return false
	}
	f.Pinned = false
	return true
}

// Adopt notes that a flow has a path already, given by another controller. It is false if the flow
// was given one here, or the path is none of the network's.
func (d *Decider) Adopt(t flow.Tuple, path []topology.Edge, at time.Duration) bool {
	if f := d.flows[t]; f != nil && (f.Pinned || len(f.Path) > 0) || d.Pin(t, path, at) != nil {
		return false
	}
	d.flows[t].Pinned = false
	return true
}

// Lose notes that a flow did not get its last path: it is where it was.
func (d *Decider) Lose(t flow.Tuple) {
	if f := d.flows[t]; f != nil {
		f.Path = nil
	}
}

// Note tells that a flow is alive: it is not forgotten. It is false if the flow is not known.
func (d *Decider) Note(t flow.Tuple, at time.Duration) bool {
	f := d.flows[t]
	if f == nil {
		return false
	}
	f.Seen = max(f.Seen, at)
	return true
}

// SetUp notes that a link came up or went down. Sextant moves the flows that it sent over a link
// that goes down, those of higher classes first; other policies wait for reports.
func (d *Decider) SetUp(e topology.Edge, up bool, at time.Duration, each func(Decision)) {
	d.weights.SetUp(e, up)
	if d.settings.Policy != Sextant {
		return // the paper's network does not change: paths over the link are drawn on
	}
	d.paths.SetUp(e, up)
	if up {
		return
	}
	var cut []*Report
	for _, f := range d.present(e) {
		if !f.Pinned {
			cut = append(cut, &Report{Flow: f.key, From: f.From, To: f.To, Class: f.Class,
				Pause: true, At: at})
		}
	}
	slices.SortFunc(cut, func(a, b *Report) int { return compareFlows(a.Flow, b.Flow) })
	d.Batch(cut, each)
}

func compareFlows(a, b flow.Tuple) int {
	return cmp.Or(a.Src.Compare(b.Src), a.Dst.Compare(b.Dst), cmp.Compare(a.SrcPort, b.SrcPort),
		cmp.Compare(a.DstPort, b.DstPort), cmp.Compare(a.Protocol, b.Protocol))
}

// Forget drops the flows that were not looked at for Settings.Forget, except for pinned ones and
// those that are left alone, and returns how many.
func (d *Decider) Forget(at time.Duration) int {
	n := 0
	for _, f := range d.flows {
		if d.settings.Forget > 0 && !f.Pinned && at-f.Seen > d.settings.Forget &&
			at >= f.Until {
			d.drop(f)
			n++
		}
	}
	return n
}
