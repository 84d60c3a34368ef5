package pool

import (
	"cmp"
	"slices"
	"time"
)

// Role is why a backend is in a chain.
type Role string

// The roles.
const (
	Candidate Role = "candidate" // new connections are offered to it
	PastOwner Role = "past"      // it was a candidate before, and may have connections from then
	// it would be a candidate if others were up or down, and may have connections of another edge's
	// past
	Reserve Role = "reserve"
	// it may have connections from before another secret, or fewer buckets: see [Join]
	Former Role = "former"
)

// Place is a backend in a chain.
type Place struct {
	ID   uint16
	Role Role
	Left time.Duration // PastOwner: when it left, on the clock of Next, to the second
}

// Remembered returns the chains of all buckets without those who are in reserve: what another past
// is to come behind.
func (g *Generation) Remembered() []Chain {
	chains := make([]Chain, g.Buckets())
	for bucket := range chains {
		c, p := g.at(bucket)
		c.Length = uint8(p.end(&c))
		clear(c.IDs[c.Length:])
		chains[bucket] = c
	}
	return chains
}

// Places explains the chain of a bucket, in the order of Chain.
func (g *Generation) Places(bucket int) []Place {
	c, p := g.at(bucket)
	places := make([]Place, c.Length)
	for i, id := range c.ids() {
		places[i] = Place{ID: id, Role: Reserve}
		switch {
		case i < int(c.Candidates):
			places[i].Role = Candidate
		case i < p.end(&c):
			places[i].Role, places[i].Left = PastOwner, time.Duration(p.left[i])*time.Second
		}
	}
	slices.SortStableFunc(places[:c.Candidates],
		func(a, b Place) int { return cmp.Compare(g.order[a.ID], g.order[b.ID]) })
	if g.suspects != nil {
		slices.SortStableFunc(places[c.Candidates:], func(a, b Place) int {
			return cmp.Compare(order(g.suspects.has(a.ID)), order(g.suspects.has(b.ID)))
		})
	}
	return places
}
