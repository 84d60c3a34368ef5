package proof

import (
	"slices"

	"sextant/te/topology"
)

// prices is a bound that is easy to check: every route takes resources worth at least Least, and
// all resources together are worth Total.
type prices struct {
	of    []int64 // of each resource, at least 1 for those with a price
	total int64
	least int64
}

// bound is the most disjoint routes that the prices allow.
func (y prices) bound() int { return int(y.total / y.least) }

// pricing finds prices by multiplicative weights: what the cheapest route takes becomes dearer.
type pricing struct {
	*Prover
	s, t   topology.Node
	ours   []bool // the resources that a route can take
	weight []float64
	off    []bool // nothing
}

const (
	priceScale = 1 << 20 // of the dearest resource
	priceStep  = 0.15
)

func (p *Prover) newPricing(s, t topology.Node) *pricing {
	y := &pricing{
		Prover: p, s: s, t: t, ours: make([]bool, p.shared.count),
		weight: make([]float64, p.shared.count),
		off:    slices.Clone(p.avoid),
	}
	for e, usable := range p.canUse {
		if !usable {
			continue
		}
		for _, i := range p.shared.takes[e] {
			if int(i) < p.shared.priced && !p.shared.isEnd(i, s, t) {
				y.ours[i], y.weight[i] = true, 1
			}
		}
	}
	return y
}

// round takes the prices as they are, in whole numbers, and raises those of the cheapest route; ok
// is false if there is none.
func (y *pricing) round() (now prices, cheapest route, ok bool) {
	most := 0.0
	for _, w := range y.weight {
		most = max(most, w)
	}
	now.of = make([]int64, len(y.weight))
	for i, w := range y.weight {
		if y.ours[i] {
			now.of[i] = 1 + int64(w/most*priceScale)
			now.total += now.of[i]
		}
	}
	cheapest, ok = y.relax.cheapest(y.s, y.t, y.shared.costs(now.of, y.s, y.t), y.off)
	now.least = cheapest.cost
	for _, i := range y.shared.of(cheapest, y.s, y.t) {
		y.weight[i] *= 1 + priceStep
	}
	return now, cheapest, ok
}
