package frer

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
// Counters of several CPUs are not read in one moment: what seems to have passed unexpectedly is 0.
func (c Counters) Missing() uint64 { return max(c.Expected, c.Passed) - c.Passed }

// Recovery eliminates duplicates of one flow. It is not safe for concurrent use; its twin in the
// data plane is.
type Recovery struct {
	settings Settings
	history  int32
	ring     []word

	valid      bool
	generation uint16 // of words; a reset begins another
	epoch      uint8
	highest    uint32
	first      uint32 // the least number of the generation that is expected
	accepted   time.Duration
	counters   Counters
}

// word is a block of the ring. The tag says which one: its generation, and its round of the ring.
type word struct {
	generation uint16
	round      uint16
	seen       uint32 // which of its numbers
}

// NewRecovery returns a recovery that accepts whatever comes first.
func NewRecovery(s Settings) *Recovery { return newRecovery(s, s.History()) }

func newRecovery(s Settings, history int) *Recovery {
	return &Recovery{settings: s, history: int32(history), ring: make([]word, blocks(history))}
}

// Counters returns what was counted so far.
func (r *Recovery) Counters() Counters { return r.counters }

// Receive decides at the time now about a packet with a number of an epoch. Time is measured from
// any fixed moment.
func (r *Recovery) Receive(number uint32, epoch uint8, now time.Duration) Verdict {
	began := r.isOver(number, epoch, now)
	if began {
		r.reset(number, epoch)
	}
	if epoch != r.epoch {
		r.counters.OldEpoch++
		return OldEpoch
	}
	ahead := distance(r.highest, number, r.settings.Bits)
	if ahead > r.history || ahead <= -r.history {
		r.counters.Rogue++
		return Rogue
	}
	number = r.highest + uint32(ahead)
	r.raise(ahead)
	if !r.enter(number) {
		r.counters.Duplicate++
		return Duplicate
	}
	r.counters.Passed++
	r.accepted = now
	if began {
		return Pass
	}
	if ahead != 1 {
		r.counters.OutOfOrder++
	}
	if earlier := int32(r.first - number); earlier > 0 { // those between were used, too
		r.counters.Expected += uint64(earlier)
		r.first = number
	}
	return Pass
}

// isOver reports whether the sender has begun anew, or has paused and gone on elsewhere. A number
// that follows within the history is the same sender's, however long it paused.
func (r *Recovery) isOver(number uint32, epoch uint8, now time.Duration) bool {
	epochs := int8(epoch - r.epoch)
	if !r.valid || epochs > 0 {
		return true
	}
	if now-r.accepted <= r.settings.Reset {
		return false
	}
	ahead := distance(r.highest, number, r.settings.Bits)
	return epochs != 0 || ahead <= 0 || ahead > r.history
}

// reset begins a generation with a number. What the sender has used since the highest one, or since
// it was restarted, is expected.
func (r *Recovery) reset(number uint32, epoch uint8) {
	ahead := distance(r.highest, number, r.settings.Bits)
	first, expected := number, uint32(1)
	switch epochs := int8(epoch - r.epoch); {
	case r.valid && epochs == 0 && ahead > 0:
		number = r.highest + uint32(ahead)
		first, expected = number-uint32(r.history), uint32(ahead)
	case r.valid && epochs > 0 && number < uint32(r.history):
		first, expected = 0, number+1 // a sender begins an epoch with 0
	}
	r.valid, r.epoch, r.highest, r.first = true, epoch, number, first
	r.generation++
	r.counters.Resets++
	r.counters.Expected += uint64(expected)
	r.sweep(int(r.generation))
}

// distance returns how far it is from one number to another in the circle of numbers of so many
// bits.
func distance(from, to uint32, bits int) int32 {
	unused := 32 - bits
	return int32((to-from)<<unused) >> unused
}

// firstBehind bounds how far the least number expected is behind the highest, so that their
// distance does not wrap.
const firstBehind = 1 << 30

// raise moves the highest number, if a packet is ahead of it.
func (r *Recovery) raise(ahead int32) {
	if ahead <= 0 {
		return
	}
	r.highest += uint32(ahead)
	r.counters.Expected += uint64(ahead)
	if r.highest-r.first >= firstBehind {
		r.first = r.highest - firstBehind/2
	}
}

// enter puts a number into the history. It reports whether it is the first of its kind. A word with
// another tag is of numbers that are no longer told apart: it is replaced.
func (r *Recovery) enter(number uint32) bool {
	bit, round := uint32(1)<<(number%blockNumbers), r.round(number)
	w := &r.ring[int(number/blockNumbers)%len(r.ring)]
	if w.generation != r.generation || w.round != round {
		*w = word{generation: r.generation, round: round, seen: bit}
		r.sweep(int(round))
		return true
	}
	if w.seen&bit != 0 {
		return false
	}
	w.seen |= bit
	return true
}

// round returns which round of the ring a number is of, as far as a tag says it.
func (r *Recovery) round(number uint32) uint16 {
	return uint16(number>>roundShift(len(r.ring))) & roundMask(len(r.ring))
}

// sweep empties the word of a slot if it is of an earlier generation, or of a round before the last
// one: before its tag comes again.
func (r *Recovery) sweep(slot int) {
	w := &r.ring[slot%len(r.ring)]
	if w.generation == r.generation && (r.round(r.highest)-w.round)&roundMask(len(r.ring)) <= 1 {
		return
	}
	*w = word{}
}
