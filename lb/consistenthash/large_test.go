package consistenthash_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/lb/consistenthash"
)

// preferenceBits is how many bits the slots of a table need.
func preferenceBits(slots int) (bits int) {
	for 1<<bits < slots {
		bits++
	}
	return bits
}

// mixed is the output function of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// drawsByHand are a member's in all slots of a large table, as docs/explanation/hash.md has them.
func drawsByHand(slots int, seed uint64, id uint16) []uint64 {
	seed = mixed(seed)
	bits := preferenceBits(slots)
	half := bits / 2
	draws := make([]uint64, slots)
	key := mixed(seed ^ uint64(id))
	for slot := range draws {
		halves := [2]uint64{uint64(slot) >> half, uint64(slot) % (1 << half)}
		sizes := [2]uint64{1 << (bits - half), 1 << half}
		for round := range uint64(4) {
			to, from := round%2, 1-round%2
			halves[to] ^= mixed(key^round<<32^halves[from]) % sizes[to]
		}
		preference := halves[0]<<half + halves[1]
		plain := mixed(seed ^ mixed(uint64(slot)<<16^uint64(id)))
		draws[slot] = (1<<bits-1-preference)<<(64-bits) + plain>>bits
	}
	return draws
}

// The draws of each member of a large table have each value of their highest bits once, so its
// slots are those of a permutation; and the orders are those of the scores.
func TestLargeRankingByHand(t *testing.T) {
	for _, slots := range []int{consistenthash.LargeTable, 1<<17 + 29} {
		for _, many := range []int{1, 9, 14, 100} {
			members := equalMembers(many)
			for i := range members {
				members[i].Weight += uint32(i % 3 * 5 * (many % 2))
			}
			scores := make([][]float64, many) // by member
			for i, m := range members {
				seen := make([]bool, 1<<preferenceBits(slots))
				scores[i] = make([]float64, slots)
				for slot, draw := range drawsByHand(slots, 99, m.ID) {
					place := draw >> (64 - preferenceBits(slots))
					if seen[place] {
						t.Fatalf("%d slots: member %d prefers two the same", slots, m.ID)
					}
					seen[place] = true
					scores[i][slot] = (64 - math.Log2(float64(draw)+1)) / float64(m.Weight)
				}
			}
			sameOrders(t, rank(t, slots, 99, members), members, scores)
		}
	}
}

// sameOrders compares a ranking with scores by member and slot, as far as these are apart.
func sameOrders(t *testing.T, r *consistenthash.Ranking, members []consistenthash.Member,
	scores [][]float64) {
	t.Helper()
	const apart = 1e-6
	order := make([]int, len(members))
	for i := range order {
		order[i] = i
	}
	unsure := 0
	for slot := 0; slot < len(scores[0]); slot += 1 + slot%7 {
		slices.SortFunc(order, func(a, b int) int {
			if scores[a][slot] < scores[b][slot] {
				return -1
			}
			return 1
		})
		first := r.First(slot)
		if len(first) < min(len(members), 8) {
			t.Fatalf("slot %d: %d of %d members are known", slot, len(first), len(members))
		}
		for place, id := range first {
			if i := order[place]; members[i].ID != id {
				j := slices.IndexFunc(members,
					func(m consistenthash.Member) bool { return m.ID == id })
				if j < 0 || math.Abs(scores[i][slot]-scores[j][slot]) > apart {
					t.Fatalf("slot %d, place %d: member %d, want %d", slot, place, id,
						members[i].ID)
				}
				unsure++
			}
		}
	}
	if unsure > len(scores[0])/100 {
		t.Errorf("in %d of %d places scores are too close", unsure, len(scores[0]))
	}
}

// The orders of a large table after any changes are those that its members would have at once.
func TestLargeRankingForgetsThePast(t *testing.T) {
	const slots = consistenthash.LargeTable + 3
	r := rand.New(rand.NewPCG(4, 4))
	for range 2 {
		members := equalMembers(40 + r.IntN(200))
		ranking := rank(t, slots, 8, members)
		for range 5 {
			members = changedMembers(r, members)
			before := ranking
			var changed []int32
			var err error
			if ranking, changed, err = ranking.Update(members); err != nil {
				t.Fatal(err)
			}
			told := map[int32]bool{}
			for _, slot := range changed {
				told[slot] = true
			}
			fresh := rank(t, slots, 8, members)
			for slot := range slots {
				is, want := ranking.First(slot), fresh.First(slot)
				n := min(len(is), len(want))
				if !slices.Equal(want[:n], is[:n]) || n < min(8, len(members)) {
					t.Fatalf("slot %d: %v after changes, %v at once", slot, is, want)
				}
				if changed != nil && !told[int32(slot)] && !slices.Equal(is, before.First(slot)) {
					t.Fatalf("slot %d changed untold", slot)
				}
			}
			id := members[r.IntN(len(members))].ID
			holding := map[int32]bool{}
			for _, slot := range ranking.Holding(id) {
				holding[slot] = true
			}
			for slot := range slots {
				if slices.Contains(ranking.First(slot), id) != holding[int32(slot)] {
					t.Fatalf("slot %d and member %d: held %t", slot, id, holding[int32(slot)])
				}
			}
		}
	}
}

// changedMembers drops some, adds some and gives some another weight.
func changedMembers(r *rand.Rand, members []consistenthash.Member) []consistenthash.Member {
	next := slices.Clone(members)
	switch change := r.IntN(4); change {
	case 0:
		at := r.IntN(len(next))
		next = slices.Delete(next, at, min(len(next), at+1+r.IntN(30)))
	case 1:
		for range 1 + r.IntN(30) {
			next[r.IntN(len(next))].Weight = 1 + r.Uint32N(100)*r.Uint32N(2)
		}
	default:
		last := next[len(next)-1].ID
		for i := range 1 + r.IntN(30) {
			next = append(next, consistenthash.Member{ID: last + uint16(i) + 1,
				Weight: 1 + r.Uint32N(3)})
		}
	}
	return next
}

// Shares of members of a large table are closer to their weights than by chance, and those that
// leave give their slots to all others alike.
func TestLargeRankingShares(t *testing.T) {
	const slots, many = 100_003, 1000
	r := rank(t, slots, 6, equalMembers(many))
	first, heirs := map[uint16]float64{}, map[uint16]float64{}
	rising := 0.0 // slots in which the id of the first is lower
	for slot := range slots {
		order := r.First(slot)
		first[order[0]]++
		if order[0]%2 == 0 {
			heirs[order[1]]++
		}
		if order[0] < order[1] {
			rising++
		}
	}
	// The variance in parts of that of chance, which is known to within sqrt(2/many).
	variance := func(counts map[uint16]float64, total float64) (sum float64) {
		mean := total / many
		for id := range uint16(many) {
			d := counts[id+1] - mean
			sum += d * d / mean / (many - 1)
		}
		return sum
	}
	if v := variance(first, slots); v < 0.35 || v > 0.65 {
		t.Errorf("shares have %.2f of the variance of chance, want some 0.50", v)
	}
	if v := variance(heirs, slots/2); v < 0.7 || v > 1.1 {
		t.Errorf("heirs of slots have %.2f of the variance of chance, want some 0.88", v)
	}
	if off := (2*rising - slots) / math.Sqrt(slots); math.Abs(off) > 5 {
		t.Errorf("the first is below the second %.1f standard deviations too often", off)
	}
}
