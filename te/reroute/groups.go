package reroute

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/te/topology"
)

// Group is shortest paths between two routers with their weights, by which a head-end spreads flows
// that begin (weighted-cost multipath: Zhou et al., "WCMP", EuroSys 2014).
type Group struct {
	From, To topology.Node
	Paths    [][]topology.Edge
	Weights  []uint32 // of each path, relative to the others; 0: it is down
}

const (
	// GroupPaths bounds the paths of a group.
	GroupPaths = 16
	// weightMost is the weight of the best path of a group.
	weightMost = 1 << 16
	// contrast is the power of what a flow would get on a path with which its weight grows: with 1,
	// a path of half the rate would get half as many flows; if the best one got all of them, those
	// that begin before its reports show them would meet there.
	contrast = 8
)

// Spreads tells whether the policy has flows spread when they begin, by Weigh.
func (p Policy) Spreads() bool { return p == Sextant || p == CloveINT || p == LetFlow }

// Group returns the paths between two routers without their weights: all of them, or, where there
// are more than GroupPaths, some at random, the same ones whenever the topology is. They are no
// longer the shortest when a link fails or returns.
func (d *Decider) Group(from, to topology.Node) Group {
	g := Group{From: from, To: to}
	if from == to {
		return g
	}
	if d.paths.Count(from, to) <= GroupPaths {
		g.Paths = d.paths.all(g.Paths, nil, from, to)
		return g
	}
	random := rand.NewPCG(uint64(from), uint64(to))
	for range GroupPaths * (1 + redraws) {
		path, _ := d.paths.Draw(nil, from, to, random)
		if len(g.Paths) < GroupPaths && !slices.ContainsFunc(g.Paths,
			func(p []topology.Edge) bool { return slices.Equal(p, path) }) {
			g.Paths = append(g.Paths, path)
		}
	}
	return g
}

// Up returns the paths that are not down, and their weights.
func (g *Group) Up() (paths [][]topology.Edge, weights []uint32) {
	for i, w := range g.Weights {
		if w > 0 {
			paths, weights = append(paths, g.Paths[i]), append(weights, w)
		}
	}
	return paths, weights
}

// Weigh gives the paths of groups their weights at a time: by Sextant from how much of the links is
// used, where telemetry tells that, or from the rate that a flow that begins would get there, or,
// if rates are not known, from the free part of queues; by CloveINT all to the path whose fullest
// queue is the least full; by LetFlow alike. Weights are made anew.
func (d *Decider) Weigh(groups []Group, at time.Duration) {
	var values []float64
	for i := range groups {
		g := &groups[i]
		values, g.Weights = values[:0], make([]uint32, len(g.Paths))
		most := 0.0
		for _, path := range g.Paths {
			values = append(values, d.worth(path, at))
			most = max(most, values[len(values)-1])
		}
		for j, value := range values {
			if value > 0 {
				g.Weights[j] = relative(d.settings.Policy, value/most)
			}
		}
	}
}

// relative is the weight of a path that is worth a part of the best one, above 0 to 1.
func relative(p Policy, part float64) uint32 {
	switch {
	case p == CloveINT && part < 1:
		return 1
	case p == LetFlow:
		return weightMost
	}
	return max(1, uint32(weightMost*math.Pow(part, contrast)))
}

// worth is what a path is worth to a flow that begins; 0 if it is down.
func (d *Decider) worth(path []topology.Edge, at time.Duration) float64 {
	least := math.Inf(1)
	for _, e := range path {
		link, w := &d.weights.links[e], d.weights.Of(e, at)
		switch {
		case link.down:
			return 0
		case d.weights.metered && d.settings.Policy == Sextant:
			least = min(least, 1/(link.scale*max(idle, d.used(e, w.Peak, at))))
		case d.rates != nil:
			least = min(least, d.rates.shareOfNext(e, w.Peak, at))
		case d.settings.Policy == Sextant:
			least = min(least, (1-w.Peak)/link.scale)
		default:
			least = min(least, 1-w.Peak)
		}
	}
	return max(least, tiny) // it is up
}

// used is the part of a link's rate that is used: what telemetry said last, of which less is left
// the longer nothing came, since packets of a link that is used would tell; or what the rates of
// flows leave.
func (d *Decider) used(e topology.Edge, queue float64, at time.Duration) float64 {
	link := &d.weights.links[e]
	if !link.meters {
		if d.rates == nil {
			return queue
		}
		return 1 - d.rates.shareOfNext(e, queue, at)*link.scale
	}
	age := float64(at-link.usedAt) / float64(d.settings.Window)
	return link.used / (1 + age + age*age/2) // about exp(-age)
}

// idle is the used part of a link up to which a flow is taken to get the same there.
const idle = 0.25

// tiny is what a full path is worth, so that it differs from one that is down.
const tiny = 1e-6
