package hunting

import (
	"math"
	"time"
)

// never is later than all times.
const never = time.Duration(math.MaxInt64)

// tournament finds the earliest of many times: a binary tree whose leaves are the times, and where
// each inner node holds the leaf that wins below it. A change costs one match per floor, and no
// branch depends on where the leaf is.
type tournament struct {
	times  []time.Duration // by leaf; a power of two of them
	winner []int32         // by node, 1 is the root
}

func newTournament(n int) *tournament {
	leaves := 2
	for leaves < n {
		leaves *= 2
	}
	t := &tournament{times: make([]time.Duration, leaves), winner: make([]int32, leaves)}
	for i := range t.times {
		t.times[i] = never
	}
	for i := leaves - 1; i > 0; i-- {
		t.play(i)
	}
	return t
}

// set gives a leaf its time.
func (t *tournament) set(leaf int, at time.Duration) {
	t.times[leaf] = at
	for node := (leaf + len(t.times)) / 2; node > 0; node /= 2 {
		t.play(node)
	}
}

// play lets the winners of both sides of a node meet.
func (t *tournament) play(node int) {
	left, right := t.at(2*node), t.at(2*node+1)
	if t.times[right] < t.times[left] {
		left = right
	}
	t.winner[node] = left
}

// at returns the winner of a node, which may be a leaf.
func (t *tournament) at(node int) int32 {
	if node >= len(t.times) {
		return int32(node - len(t.times))
	}
	return t.winner[node]
}

// first returns the leaf with the earliest time.
func (t *tournament) first() (leaf int, at time.Duration) {
	leaf = int(t.winner[1])
	return leaf, t.times[leaf]
}
