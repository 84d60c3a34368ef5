package collector

// bounded is a map of at most a number of entries. Entries never move, so a pointer to one is good
// until the next call of find.
type bounded[K comparable, V any] struct {
	most  int
	hash  func(K) uint64
	index map[K]int32
	slots []*slot[K, V]
	hand  int
	// recent are entries that were found, by the hash's highest bits: it spares most searches of
	// the map, as one report after the other is about the same. An entry that was replaced has
	// another key.
	recent [recent]*slot[K, V]
	// replaced is how many entries gave way to others.
	replaced uint64
}

type slot[K comparable, V any] struct {
	key    K
	seenNS int64
	value  V
}

const (
	recentBits = 12
	recent     = 1 << recentBits
	golden     = 0x9e3779b97f4a7c15 // spreads numbers that are close to each other
)

func newBounded[K comparable, V any](most int, hash func(K) uint64) bounded[K, V] {
	return bounded[K, V]{most: most, hash: hash, index: map[K]int32{}}
}

// looks is how many entries a full table considers for one to replace.
const looks = 8

// find returns the entry of a key, and makes one if there is room, or if one that is idle for
// idleNS can be replaced among the few that it looks at. Else it returns nil.
func (b *bounded[K, V]) find(key K, nowNS, idleNS int64) *slot[K, V] {
	place := &b.recent[b.hash(key)>>(64-recentBits)]
	if s := *place; s != nil && s.key == key {
		s.seenNS = nowNS
		return s
	}
	if i, ok := b.index[key]; ok {
		s := b.slots[i]
		s.seenNS, *place = nowNS, s
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
	b.index[key], *place = int32(at), s
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
