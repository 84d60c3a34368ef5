package consistenthash

import (
	"math"
	"math/bits"
	"sync"
)

// standing is a member's place in the order of a slot: by score, and where scores are equal by what
// all nodes know of it.
type standing struct {
	score float64
	tie   uint32 // of the member's key
	id    uint16
}

func (a standing) before(b standing) bool {
	if a.score != b.score {
		return a.score < b.score
	}
	return a.tie < b.tie || a.tie == b.tie && a.id < b.id
}

// everybody is the bound of a slot of which all members are known.
var everybody = standing{score: math.Inf(1)}

// scorer gives each member its score in a slot; the lowest is the best.
type scorer struct {
	seed    uint64
	prefers preferences
	known   []scored // by id
	logs    *[1<<logBits + 1]uint32
}

// scored is what a member's scores follow from.
type scored struct {
	key     uint64
	inverse float64 // 1 / weight
}

func (m Member) scored() scored { return scored{m.key(), 1 / float64(m.Weight)} }

func newScorer(seed uint64, slots int, members []Member) *scorer {
	s := &scorer{seed: mix(seed), prefers: preferencesOf(slots), logs: logTable()}
	if len(members) > 0 {
		s.known = make([]scored, int(members[len(members)-1].ID)+1)
	}
	for _, m := range members {
		s.known[m.ID] = m.scored()
	}
	return s
}

// standing is a member's in a slot. The score is exponentially distributed with the member's weight
// as its rate, so the lowest score of several is a member's with a probability in proportion to its
// weight. Every machine gets the same number.
func (s *scorer) standing(slot int, id uint16) standing {
	if s.prefers.large() {
		return s.preferred(slot, id, s.prefers.of(s.orderOf(id), slot))
	}
	return s.standingOf(drawOf(s.seed, slot, s.known[id].key), id)
}

// orderOf is the key of a member's preferences.
func (s *scorer) orderOf(id uint16) uint64 { return mix(s.seed ^ s.known[id].key) }

// preferred is a member's standing in a slot of a large table that it prefers so much.
func (s *scorer) preferred(slot int, id uint16, preference uint64) standing {
	draw := drawOf(s.seed, slot, s.known[id].key)
	return s.standingOf(s.prefers.draw(draw, preference), id)
}

// drawOf is the number of a member's key in a slot, uniformly distributed; the higher, the better.
func drawOf(seed uint64, slot int, key uint64) uint64 {
	return mix(seed ^ mix(uint64(slot)<<16^key))
}

func (s *scorer) standingOf(draw uint64, id uint16) standing {
	return s.known[id].standing(draw, s.logs, id)
}

func (m scored) standing(draw uint64, logs *[1<<logBits + 1]uint32, id uint16) standing {
	return standing{float64(negativeLog2(draw, logs)) * m.inverse, uint32(m.key), id}
}

// logBits is the precision of the logarithm's table: 2^12 steps, read with linear interpolation;
// logScale that of the result.
const (
	logBits  = 12
	logScale = 26
)

// negativeLog2 returns -log2((u+1) / 2^64) in units of 2^-26, from 0 to 64 * 2^26.
func negativeLog2(u uint64, logs *[1<<logBits + 1]uint32) uint64 {
	zeros := bits.LeadingZeros64(u | 1)
	mantissa := (u | 1) << zeros << 1 // the bits behind the leading one
	index := mantissa >> (64 - logBits)
	rest := mantissa << logBits >> (64 - logScale)
	low, high := uint64(logs[index]), uint64(logs[index+1])
	return uint64(zeros+1)<<logScale - (low + (high-low)*rest>>logScale)
}

// logTable holds log2(1 + i/4096) in units of 2^-26. It is found by squaring, in integers, because
// the logarithms of the standard library need not agree in the last bit on all machines.
var logTable = sync.OnceValue(func() *[1<<logBits + 1]uint32 {
	var table [1<<logBits + 1]uint32
	for i := range table {
		x := uint64(1)<<62 + uint64(i)<<(62-logBits) // 1 + i/4096, as a fraction of 2^62
		var y uint32
		if i == 1<<logBits {
			table[i] = 1 << logScale
			continue
		}
		for range logScale {
			high, low := bits.Mul64(x, x)
			x = high<<2 | low>>62
			y <<= 1
			if x >= 1<<63 {
				x >>= 1
				y |= 1
			}
		}
		table[i] = y
	}
	return &table
})
