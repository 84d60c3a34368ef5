package pool

import (
	"slices"
	"time"
)

// patience is how long those who left a bucket may keep others from it if no drain time is set.
// Most connections end sooner, and it is how long at most a backend that drains waits for its last
// new one.
const patience = time.Minute

// admits reports whether candidates wait for room: where the ranking says who they are. An exact
// table has to give each its share at once, and where a chain has no place behind the candidates
// nobody would ever get one.
func (g *Generation) admits() bool {
	return g.spec.Policy == Offer && g.spec.Method == Rendezvous && g.spec.Depth > g.spec.Candidates
}

// admit returns those of the wanted candidates for whom the chain has room, and whether one must
// wait. A backend that had the bucket a moment ago, since the time given, keeps its place in the
// chain, or its connections would be cut. If nobody else has room, new connections go to an owner
// that is up and no suspect; else they stay with those who had the bucket last, although they are
// to leave. Wanted has the capacity for them.
func admit(
	c *Chain, p *past, wanted []uint16, is *transition, depth int, since uint32,
) (candidates []uint16, waits bool) {
	var space [MaxChain]uint16
	owners, present := space[:0], 0
	for place, id := range c.IDs[:c.Candidates+p.seen] {
		current := place < int(c.Candidates)
		if is.alive.has(id) && (current || p.left[place] >= since) {
			owners = append(owners, id)
			if current {
				present++
			}
		}
	}
	room := depth - len(owners)
	candidates = wanted[:0]
	for _, id := range wanted {
		if !slices.Contains(owners, id) {
			if room <= 0 {
				waits = true
				continue
			}
			room--
		}
		candidates = append(candidates, id)
	}
	if waits && len(candidates) == 0 {
		candidates = append(candidates, stayers(owners, present, is)...)
	}
	return candidates, waits
}

// stayers returns who goes on with new connections where nobody else has room: the present
// candidates, or the latest owners; of them those that are up and no suspects, if there are any, or
// those that are no suspects.
func stayers(owners []uint16, present int, is *transition) []uint16 {
	suspect := func(id uint16) bool { return is.suspects != nil && is.suspects.has(id) }
	leaves := func(id uint16) bool { return suspect(id) || !is.up.has(id) }
	for _, unfit := range []func(uint16) bool{leaves, suspect} {
		for _, count := range []int{present, len(owners)} {
			fit := slices.DeleteFunc(slices.Clone(owners[:count]), unfit)
			if len(fit) > 0 {
				return fit[:max(1, min(present, len(fit)))]
			}
		}
	}
	return owners[:max(1, present)]
}

// firstSeen is when the one left who left first of those that admit looks at; false if there is
// none.
func (p *past) firstSeen(c *Chain) (at uint32, ok bool) {
	for place := int(c.Candidates); place < int(c.Candidates+p.seen); place++ {
		if !ok || p.left[place] < at {
			at, ok = p.left[place], true
		}
	}
	return at, ok
}
