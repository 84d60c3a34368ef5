package collector

// bounded is a map of at most a number of entries. Entries never move, so a pointer to one is good
// until the next call of find.
type bounded[K comparable, V any] struct {
	most  int
	index map[K]int32
	slots []*slot[K, V]
	hand  int
	// replaced is how many entries gave way to others.
	replaced uint64
}

type slot[K comparable, V any] struct {
	key    K
	seenNS int64
	value  V
}

func newBounded[K comparable, V any](most int) bounded[K, V] {
	return bounded[K, V]{most: most, index: map[K]int32{}}
}

// looks is how many entries a full table considers for one to replace.
const looks = 8

// find returns the entry of a key, and makes one if there is room, or if one that is idle for
// idleNS can be replaced among the few that it looks at. Else it returns nil.
func (b *bounded[K, V]) find(key K, nowNS, idleNS int64) *slot[K, V] {
	if i, ok := b.index[key]; ok {
		s := b.slots[i]
		s.seenNS = nowNS
		return s
	}
	at := len(b.slots)
	if at < b.most {
		b.slots = append(b.slots, new(slot[K, V]))
	} else if at = b.oldest(nowNS - idleNS); at < 0 {
		return nil
	} else {
		b.replaced++
	}
	s := b.slots[at]
	if old, ok := b.index[s.key]; ok && int(old) == at {
		delete(b.index, s.key)
	}
	*s = slot[K, V]{key: key, seenNS: nowNS}
	b.index[key] = int32(at)
	return s
}

// oldest returns the least recently seen of the next few entries, if that was not after a time, or
// else -1.
func (b *bounded[K, V]) oldest(notAfterNS int64) int {
	best := -1
	for range min(looks, len(b.slots)) {
		b.hand = (b.hand + 1) % len(b.slots)
		if s := b.slots[b.hand]; s.seenNS <= notAfterNS &&
			(best < 0 || s.seenNS < b.slots[best].seenNS) {
			best = b.hand
		}
	}
	return best
}
