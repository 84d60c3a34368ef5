package packet

import "bytes"

// REPS (Bonato et al., "REPS: recycled entropies for packet spraying", 2024): a connection keeps
// paths whose acknowledgements came back unmarked, uses each once more, and explores at random when
// it has none. When a segment is lost it freezes: for a time it explores no more, and uses kept
// paths again and again. Here a path also leaves at once when a segment on it is lost, and
// acknowledgements return over the links of the data that they speak of.

// pathCache is what REPS keeps of a connection: at most 25 bytes, however large the fabric is.
type pathCache struct {
	until  uint32 // µs of the time at which it thaws, modulo 2^32
	lost   uint32 // bits of paths, modulo 32, that lost a segment since it froze
	good   int16  // path of the last acknowledgement; none
	path   [8]uint8
	head   uint8 // where the next entry goes
	fresh  uint8 // entries before head that were not used again yet
	filled uint8
	frozen bool
}

const defaultFreeze = 10 * Millisecond

// cachedPaths is how many paths of a table REPS uses; entries of its cache have 8 bits.
const cachedPaths = 1 << 8

func (s *Simulation) cachedPaths(f *subflow) int {
	if f.path.table == none {
		return 0
	}
	return min(len(s.paths.tables[f.path.table].fabric), cachedPaths)
}

func (k *pathCache) reset() { *k = pathCache{good: int16(none)} }

// keep adds a path to the cache; a full one forgets the oldest.
func (k *pathCache) keep(path uint8) {
	k.path[k.head] = path
	size := uint8(len(k.path))
	k.head = (k.head + 1) % size
	k.fresh = min(k.fresh+1, size)
	k.filled = min(k.filled+1, size)
}

// drop takes out a path that lost a segment.
func (k *pathCache) drop(path uint8) {
	size := uint8(len(k.path))
	old := *k
	k.head, k.fresh, k.filled = 0, 0, 0
	for back := old.filled; back > 0; back-- {
		p := old.path[(old.head-back+size)%size]
		switch {
		case p == path:
		case back > old.fresh: // used already
			k.path[k.filled] = p
			k.filled++
		default:
			k.path[k.filled] = p
			k.filled++
			k.fresh++
		}
	}
	k.head = k.filled % size
	if k.good == int16(path) {
		k.good = int16(none)
	}
}

// untried tells whether paths are left that lost nothing since the cache froze.
func (k *pathCache) untried(paths int) bool {
	all := uint32(1)<<min(paths, 32) - 1
	return k.lost&all != all
}

// avoids tells whether a frozen cache knows that a path lost a segment. When it knows that of all,
// it forgets it.
func (k *pathCache) avoids(path uint8, paths int) bool {
	if !k.frozen || !k.untried(paths) {
		k.lost = 0
	}
	return k.lost>>(path%32)&1 != 0
}

// take is the path of the next packet, and false if one is to be drawn.
func (k *pathCache) take() (path uint8, ok bool) {
	size := uint8(len(k.path))
	switch {
	case k.fresh > 0:
		path = k.path[(k.head-k.fresh+size)%size]
		k.fresh--
		return path, true
	case !k.frozen:
		return 0, false
	case k.filled > 0:
		// The oldest becomes the newest.
		path = k.path[(k.head-k.filled+size)%size]
		k.path[k.head] = path
		k.head = (k.head + 1) % size
		return path, true
	case k.good >= 0:
		return uint8(k.good), true
	}
	return 0, false
}

// freeze begins a time without exploration, unless one is under way.
func (k *pathCache) freeze(now, lasts Time) {
	if !k.frozen {
		k.frozen, k.until = true, microseconds(now+lasts)
	}
}

// thaw ends it when its time is over.
func (k *pathCache) thaw(now Time) {
	if k.frozen && int32(microseconds(now)-k.until) >= 0 {
		k.frozen, k.lost = false, 0
	}
}

func microseconds(t Time) uint32 { return uint32(t / Microsecond) }

// recycled chooses the path of the next packet.
func (s *Simulation) recycled(f *subflow, c *connection) {
	p := &f.path
	n := s.cachedPaths(f)
	if n == 0 {
		return
	}
	p.cache.thaw(s.now)
	choice, ok := p.cache.take()
	for tries := 0; !ok && tries < 64; tries++ {
		choice = uint8(s.paths.random.IntN(n))
		ok = !p.cache.avoids(choice, n)
	}
	s.use(c, p, int32(choice)%int32(n))
}

// returned takes the path of an acknowledgement into account.
func (k *pathCache) returned(path int32, clean bool) {
	k.good = int16(path)
	// Frozen, kept paths come round anyway; one that is kept more than once would crowd out others.
	if clean && !(k.frozen && bytes.IndexByte(k.path[:k.filled], uint8(path)) >= 0) {
		k.keep(uint8(path))
	}
}

// pathLost tells path selection that a segment was lost on the path that it took.
func (s *Simulation) pathLost(f *subflow, b *segment) {
	if s.paths.Scheme == REPS {
		f.path.cache.drop(b.path)
		f.path.cache.freeze(s.now, s.paths.Freeze)
		f.path.cache.lost |= 1 << (b.path % 32)
	}
}

// backRoute is the way of an acknowledgement back over the links of a path.
func (s *Simulation) backRoute(c *connection, p *pathState, choice int32) int32 {
	t := &s.paths.tables[p.table]
	choice %= int32(len(t.fabric))
	if t.back == nil {
		t.back = make([]int32, len(t.fabric))
		for i := range t.back {
			t.back[i] = none
		}
	}
	if t.back[choice] == none {
		t.back[choice] = s.intern(s.between(c.dst, c.src, s.network.reversed(t.fabric[choice])))
	}
	return t.back[choice]
}
