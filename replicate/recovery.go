package replicate

import "time"

// Verdict is what becomes of a numbered packet.
type Verdict uint8

// The verdicts.
const (
	Pass      Verdict = iota // the first copy
	Duplicate                // another copy came before
	Rogue                    // too far from the numbers that are remembered
	OldEpoch                 // of the sender's earlier life
)

// Counters count what a recovery decided.
type Counters struct {
	Passed     uint64
	Duplicate  uint64
	Rogue      uint64
	OldEpoch   uint64
	OutOfOrder uint64 // of the passed, those that did not follow the one before
	Expected   uint64 // numbers that the sender has used, as far as one can know
	Resets     uint64
}

// Missing returns how many packets the sender has numbered of which no copy has come, or not yet.
func (c Counters) Missing() uint64 { return c.Expected - c.Passed }

// Recovery eliminates duplicates of one flow. It is not safe for concurrent use; its twin in the data plane is.
type Recovery struct {
	settings Settings
	history  int32
	ring     []word

	valid      bool
	generation uint8 // of blocks; a reset begins another
	epoch      uint8
	highest    uint32
	first      uint32 // accepted after the latest reset
	accepted   time.Duration
	counters   Counters
}

// word is a block of the ring.
type word struct {
	generation uint8
	block      uint32 // its number, 24 bits of it
	seen       uint32 // which of its numbers; 0: never used
}

const blockMask = 1<<24 - 1

// NewRecovery returns a recovery that accepts whatever comes first.
func NewRecovery(s Settings) *Recovery { return newRecovery(s, s.History()) }

func newRecovery(s Settings, history int) *Recovery {
	return &Recovery{settings: s, history: int32(history), ring: make([]word, blocks(history))}
}

// Counters returns what was counted so far.
func (r *Recovery) Counters() Counters { return r.counters }

// Receive decides at the time now about a packet with a number of an epoch. Time is measured from any fixed moment.
func (r *Recovery) Receive(number uint32, epoch uint8, now time.Duration) Verdict {
	if r.isOver(epoch, now) {
		r.reset(number, epoch, now)
	}
	if int8(epoch-r.epoch) < 0 {
		r.counters.OldEpoch++
		return OldEpoch
	}
	ahead := distance(r.highest, number, r.settings.Bits)
	if ahead > r.history || ahead <= -r.history {
		r.counters.Rogue++
		return Rogue
	}
	number = r.highest + uint32(ahead)
	switch verdict := r.enter(number); verdict {
	case Duplicate:
		r.counters.Duplicate++
		return verdict
	case Rogue:
		r.counters.Rogue++
		return verdict
	}
	r.counters.Passed++
	r.accepted = now
	r.advance(number, ahead)
	return Pass
}

// isOver reports whether all is forgotten before a packet is looked at.
func (r *Recovery) isOver(epoch uint8, now time.Duration) bool {
	return !r.valid || int8(epoch-r.epoch) > 0 || now-r.accepted > r.settings.Reset
}

func (r *Recovery) reset(number uint32, epoch uint8, now time.Duration) {
	r.valid, r.epoch, r.highest, r.first, r.accepted = true, epoch, number, number, now
	r.generation++
	r.counters.Resets++
	r.counters.Expected++
}

// distance returns how far it is from one number to another in the circle of numbers of so many bits.
func distance(from, to uint32, bits int) int32 {
	unused := 32 - bits
	return int32((to-from)<<unused) >> unused
}

// enter puts a number into the history: Pass if it is the first of its kind, Rogue if its block has been replaced by a later one.
func (r *Recovery) enter(number uint32) Verdict {
	block, bit := number/blockNumbers, uint32(1)<<(number%blockNumbers)
	w := &r.ring[int(block)%len(r.ring)]
	fresh := word{generation: r.generation, block: block & blockMask, seen: bit}
	switch {
	case w.seen != 0 && w.generation == fresh.generation && w.block == fresh.block:
		if w.seen&bit != 0 {
			return Duplicate
		}
		w.seen |= bit
	case w.seen != 0 && w.isLater(fresh):
		return Rogue
	default:
		*w = fresh
	}
	return Pass
}

// isLater reports whether the block is later than another.
func (w *word) isLater(other word) bool {
	if generations := int8(w.generation - other.generation); generations != 0 {
		return generations > 0
	}
	return int32((w.block-other.block)<<8) > 0
}

// advance counts a passed number, which was so far ahead of the highest.
func (r *Recovery) advance(number uint32, ahead int32) {
	if ahead > 0 {
		if ahead != 1 {
			r.counters.OutOfOrder++
		}
		r.counters.Expected += uint64(ahead)
		r.highest = number
		return
	}
	if number == r.first {
		return
	}
	r.counters.OutOfOrder++
	if int32(number-r.first) < 0 {
		r.counters.Expected++ // it was numbered before the first one that came
	}
}
