package reroute

import (
	"math"
	"slices"
	"time"

	"sextant/te/topology"
)

// Weights is the weight of each link of a network: the part of its queue that is occupied, over its
// share of the greatest bandwidth (SMOOTHIE, section III-B). A link of unknown bandwidth counts as
// one of the greatest.
type Weights struct {
	settings Settings
	links    []linkState
	metered  bool // telemetry tells how much of links is used
}

// linkState is what was seen of a link.
type linkState struct {
	scale     float64 // greatest bandwidth over the link's
	occupancy float64 // smoothed, 0 to 1
	variance  float64 // of the observations around it
	at        time.Duration
	seen      bool
	down      bool

	used   float64 // part of the rate
	usedAt time.Duration
	meters bool // telemetry tells of used

	expected   float64 // occupancy that flows which moved bring along, or leave behind, below 0
	expectedAt time.Duration
}

// Weight is the weight of a link or path, and how sure it is.
type Weight struct {
	Value    float64 // +Inf if the link is down
	Variance float64
	// Peak is the greatest occupied part of a queue, 0 to 1: of a link its own.
	Peak float64
}

// NewWeights returns weights of links that nothing is known of.
func NewWeights(g *topology.Graph, s Settings) *Weights {
	w := &Weights{settings: s, links: make([]linkState, g.Edges())}
	var most int64
	for e := range topology.Edge(g.Edges()) {
		most = max(most, g.Edge(e).CapacityKbps)
	}
	for e := range w.links {
		w.links[e].scale = 1
		if capacity := g.Edge(topology.Edge(e)).CapacityKbps; capacity > 0 {
			w.links[e].scale = float64(most) / float64(capacity)
		}
	}
	return w
}

// Observe notes that a part of the queue before a link is occupied, 0 to 1. An observation counts
// for Settings.Gain at least, and the more the longer ago the last one is.
func (w *Weights) Observe(e topology.Edge, occupancy float64, at time.Duration) {
	l := &w.links[e]
	if !l.seen {
		l.seen, l.at, l.occupancy, l.variance = true, at, occupancy, occupancy*occupancy/16
		return
	}
	gain := w.settings.Gain
	if age := at - l.at; age > 0 && w.settings.Memory > 0 {
		// 1-exp(-age/Memory), to first order at both ends
		gain = max(gain, float64(age)/float64(age+w.settings.Memory))
	}
	difference := occupancy - l.occupancy
	l.occupancy += gain * difference
	l.variance = (1 - gain) * (l.variance + gain*difference*difference)
	l.at = max(l.at, at)
}

// Use notes that a part of a link's rate is used, 0 to 1.
func (w *Weights) Use(e topology.Edge, used float64, at time.Duration) {
	l := &w.links[e]
	w.metered, l.meters, l.used, l.usedAt = true, true, used, at
}

// SetUp notes that a link is up or down. One that comes up is as if nothing were known of it.
func (w *Weights) SetUp(e topology.Edge, up bool) {
	if w.links[e].down == up {
		w.links[e] = linkState{scale: w.links[e].scale, down: !up}
	}
}

// Of returns the weight of a link at a time. What was seen fades until Settings.Expiry has passed,
// and then Settings.Unknown is assumed.
func (w *Weights) Of(e topology.Edge, at time.Duration) Weight {
	l := &w.links[e]
	expected := w.expected(l, at)
	switch {
	case l.down:
		return Weight{Value: math.Inf(1), Peak: 1}
	case !l.seen:
		return l.weight(w.settings.Unknown+expected, 0)
	}
	age := at - l.at
	if w.settings.Expiry <= 0 || age <= 0 {
		return l.weight(l.occupancy+expected, l.variance)
	}
	fresh := max(0, 1-float64(age)/float64(w.settings.Expiry))
	return l.weight(w.settings.Unknown+fresh*(l.occupancy-w.settings.Unknown)+expected,
		fresh*l.variance)
}

// Expect notes that flows which moved bring that much to the queue before a link, a part of it, or
// leave it behind (below 0), before reports show it.
func (w *Weights) Expect(e topology.Edge, occupancy float64, at time.Duration) {
	l := &w.links[e]
	l.expected, l.expectedAt = w.expected(l, at)+occupancy, at
}

// expected is what is left of what flows that moved bring: it fades over Settings.Settle.
func (w *Weights) expected(l *linkState, at time.Duration) float64 {
	if l.expected == 0 {
		return 0
	}
	return l.expected * max(0, 1-float64(at-l.expectedAt)/float64(w.settings.Settle))
}

func (l *linkState) weight(occupancy, variance float64) Weight {
	occupancy = max(0, occupancy)
	return Weight{Value: occupancy * l.scale, Variance: variance * l.scale * l.scale,
		Peak: occupancy}
}

// Age returns how long ago the last observation of a link is; false if there is none.
func (w *Weights) Age(e topology.Edge, at time.Duration) (time.Duration, bool) {
	return at - w.links[e].at, w.links[e].seen
}

// Links appends the weights of a path's links.
func (w *Weights) Links(links []Weight, path []topology.Edge, at time.Duration) []Weight {
	for _, e := range path {
		links = append(links, w.Of(e, at))
	}
	return links
}

// sumOf is the weight of a path whose links have these weights, those in except left out.
func sumOf(links []Weight, path, except []topology.Edge) Weight {
	var sum Weight
	for i, e := range path {
		if contains(except, e) {
			continue
		}
		link := &links[i]
		sum.Value += link.Value
		sum.Variance += link.Variance
		sum.Peak = max(sum.Peak, link.Peak)
	}
	return sum
}

// contains is for paths, which are short.
func contains(path []topology.Edge, e topology.Edge) bool {
	return slices.Contains(path, e)
}
