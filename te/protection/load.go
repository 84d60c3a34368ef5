package protection

import (
	"fmt"
	"slices"
	"strings"

	"sextant/packet/lists"
	"sextant/te/topology"
)

// Loads is what protections are expected to send over each direction of links, in kbit/s. Spares
// count: they may carry at any time.
type Loads map[Link]int64

// Add adds the paths of a protection.
func (l Loads) Add(paths []Path, i Intent) {
	for _, p := range paths {
		for _, link := range p.Links {
			l[link] += i.RateKbps
		}
	}
}

// Full is the first link of a path that can't take one copy more; false: all can.
func (l Loads) Full(g *topology.Graph, p Path, i Intent) (Overload, bool) {
	for _, link := range p.Links {
		if e, ok := EdgeOf(g, link); ok && i.RateKbps > 0 {
			if o, over := l.over(g, e, i); over {
				return o, true
			}
		}
	}
	return Overload{}, false
}

// Overload is a link that a protection would load beyond its bound.
type Overload struct {
	Link         Link
	Kbps         int64 // with the protection
	CapacityKbps int64
	Permille     int // how much of the capacity may be used
}

// String says which link, and how much.
func (o Overload) String() string {
	return fmt.Sprintf("link %s would carry %s, and %d.%d %% of its %s is the bound",
		o.Link, rateText(o.Kbps), o.Permille/10, o.Permille%10, rateText(o.CapacityKbps))
}

// rateText writes a rate with its unit.
func rateText(kbps int64) string {
	if kbps >= 1000 {
		return fmt.Sprintf("%.4g Mbit/s", float64(kbps)/1000)
	}
	return fmt.Sprintf("%d kbit/s", kbps)
}

// tooFull are the edges that can't take one copy more. Those whose capacity is not known can.
func (l Loads) tooFull(g *topology.Graph, i Intent) []topology.Edge {
	var full []topology.Edge
	if i.RateKbps == 0 {
		return nil
	}
	for e := range topology.Edge(g.Edges()) {
		if _, over := l.over(g, e, i); over {
			full = append(full, e)
		}
	}
	return full
}

func (l Loads) over(g *topology.Graph, e topology.Edge, i Intent) (Overload, bool) {
	link, capacity := LinkOf(g, e), g.Edge(e).CapacityKbps
	o := Overload{Link: link, Kbps: l[link] + i.RateKbps, CapacityKbps: capacity,
		Permille: i.BoundPermille}
	// Divided first: a capacity may have 40 bits, and a bound in permille is not finer than this.
	return o, capacity > 0 && o.Kbps > capacity/1000*int64(i.BoundPermille)+
		capacity%1000*int64(i.BoundPermille)/1000
}

// overloadText lists the worst of them.
func overloadText(overloads []Overload) string {
	const most = 3
	slices.SortStableFunc(overloads,
		func(a, b Overload) int { return strings.Compare(a.Link.String(), b.Link.String()) })
	texts := lists.Map(overloads[:min(len(overloads), most)], Overload.String)
	if more := len(overloads) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more links", more))
	}
	return strings.Join(texts, "; ")
}
