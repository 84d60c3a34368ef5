package consistenthash

import "math/bits"

// LargeTable is from how many slots on each member prefers them in an order of its own, as in
// Maglev (Eisenbud et al., NSDI 2016). So the slots in which it scores best are known without
// looking at all, and its share is closer to its weight: its draws are spread evenly over the
// slots, no longer by chance.
const LargeTable = 100_000

// preferences tells how much members prefer the slots of a large table: 0 is the slot that a member
// likes best. They are a permutation of as many bits as slots need, a Feistel network of four
// rounds (Luby and Rackoff, SIAM J. Comput. 17, 1988) whose function is mix: slots beyond the table
// have one, too. The zero value is that of a table that is not large.
type preferences struct{ low, high uint } // bits of the halves

func preferencesOf(slots int) preferences {
	if slots < LargeTable {
		return preferences{}
	}
	all := uint(bits.Len(uint(slots - 1)))
	return preferences{low: all / 2, high: all - all/2}
}

// large says whether there are any.
func (p preferences) large() bool { return p.low > 0 }

// many is how many there are: a member's lowest is 0.
func (p preferences) many() uint64 { return 1 << (p.low + p.high) }

// of is how much the member with this key prefers a slot.
func (p preferences) of(key uint64, slot int) uint64 {
	low, high := uint64(slot)&(1<<p.low-1), uint64(slot)>>p.low
	high ^= p.round(key, 0, low) & (1<<p.high - 1)
	low ^= p.round(key, 1, high) & (1<<p.low - 1)
	high ^= p.round(key, 2, low) & (1<<p.high - 1)
	low ^= p.round(key, 3, high) & (1<<p.low - 1)
	return high<<p.low | low
}

// slot is the one that the member with this key prefers so much; it may lie beyond the table.
func (p preferences) slot(key, preference uint64) int {
	low, high := preference&(1<<p.low-1), preference>>p.low
	low ^= p.round(key, 3, high) & (1<<p.low - 1)
	high ^= p.round(key, 2, low) & (1<<p.high - 1)
	low ^= p.round(key, 1, high) & (1<<p.low - 1)
	high ^= p.round(key, 0, low) & (1<<p.high - 1)
	return int(high<<p.low | low)
}

func (preferences) round(key, number, half uint64) uint64 { return mix(key ^ number<<32 ^ half) }

// draw is a member's draw with its preference in place of the highest bits: the more a slot is
// preferred, the higher.
func (p preferences) draw(draw, preference uint64) uint64 {
	all := p.low + p.high
	return ^preference<<(64-all) | draw>>all
}
