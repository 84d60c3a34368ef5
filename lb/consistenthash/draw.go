package consistenthash

import "math/bits"

// generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// 2014). It is written out here because tables must be the same in every release, which the methods
// of math/rand do not promise.
type generator struct{ state uint64 }

func newGenerator(seed, digest uint64) *generator {
	return &generator{state: mix(seed ^ mix(digest))}
}

// golden is 2^64 divided by the golden ratio, the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// mix is the output function of SplitMix64 for the state x: a bijection in which each bit of x
// flips half of the result.
func mix(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a number from 0 to n-1. The bias is under n / 2^64.
func (g *generator) below(n int) int {
	high, _ := bits.Mul64(mix(g.state), uint64(n))
	g.state += golden
	return int(high)
}

// urn is what a loser still owns in the part of the table that is not read yet, and how many of
// these slots it gives up.
type urn struct{ owned, lost int32 }

// draw returns the slots that the losers give up, in ascending order. Each loser's are a random
// sample of its slots, drawn while the table is read once (selection sampling: Knuth, The Art of
// Computer Programming, volume 2, algorithm 3.4.2 S).
func (g *generator) draw(owners []uint16, losses changes) []int32 {
	// Most slots belong to members that lose nothing. One bit per id keeps the loop over the table
	// free of cache misses and of branches that depend on how ids are ordered.
	var losing [1 << 16 / 64]uint64
	urns := make([]urn, int(losses[len(losses)-1].id)+1)
	moved := 0
	for _, loss := range losses {
		losing[loss.id/64] |= 1 << (loss.id % 64)
		urns[loss.id] = urn{owned: int32(loss.old), lost: int32(loss.old - loss.new)}
		moved += loss.old - loss.new
	}
	slots := make([]int32, 0, moved)
	for slot, owner := range owners {
		if losing[owner/64]&(1<<(owner%64)) != 0 && g.drawn(&urns[owner]) {
			slots = append(slots, int32(slot))
		}
	}
	return slots
}

// drawn decides whether the next slot of the urn's owner is one that it gives up.
func (g *generator) drawn(u *urn) bool {
	hit := u.lost > 0 && (u.lost == u.owned || g.below(int(u.owned)) < int(u.lost))
	if hit {
		u.lost--
	}
	u.owned--
	return hit
}

// shuffled returns each gainer's id as often as it gains a slot, in random order (Fisher and
// Yates).
func (g *generator) shuffled(gains changes) []uint16 {
	moved := 0
	for _, gain := range gains {
		moved += gain.new - gain.old
	}
	ids := make([]uint16, 0, moved)
	for _, gain := range gains {
		for range gain.new - gain.old {
			ids = append(ids, gain.id)
		}
	}
	for i := len(ids) - 1; i > 0; i-- {
		j := g.below(i + 1)
		ids[i], ids[j] = ids[j], ids[i]
	}
	return ids
}
