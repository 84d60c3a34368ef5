package model

import "time"

// refusals remembers the connections that a host refused of late, in a fixed
// number of slots that the low bits of the flow hash select: a newer refusal
// takes the place of an older one. The zero value remembers none.
type refusals struct {
	slots map[uint16]refusal
}

type refusal struct {
	flow uint32 // upper half of the flow hash
	at   time.Duration
}

// recent reports whether the flow of a hash was refused less than so long ago.
func (r *refusals) recent(hash uint64, now, refusal time.Duration) bool {
	last, ok := r.slots[uint16(hash)]
	return ok && last.flow == uint32(hash>>32) && now-last.at < refusal
}

// remember notes that the flow of a hash is refused now.
func (r *refusals) remember(hash uint64, now time.Duration) {
	if r.slots == nil {
		r.slots = make(map[uint16]refusal)
	}
	r.slots[uint16(hash)] = refusal{flow: uint32(hash >> 32), at: now}
}
