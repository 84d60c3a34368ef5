package pool

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"sync"
	"unsafe"

	"sextant/lb/consistenthash"
)

// Mark is a digest of what the chains of a generation without a past follow from: the spec, the
// backends, their order and how this program chooses among them. Its last bit says that the chains
// are those that [New] makes. 0: the chains have a past, or follow from more.
type Mark uint64

// freshMark is the bit of chains as New makes them: after a past they may name others in reserve.
const freshMark Mark = 1

// Mark returns the generation's. Chains that are kept with it need not be computed again: see
// [Continue].
func (g *Generation) Mark() Mark {
	if !g.isPlain() {
		return 0
	}
	mark := markOf(g.spec, g.backends, g.order)
	if g.fresh {
		mark |= freshMark
	}
	return mark
}

// isPlain reports whether spec, backends and order say all about g, but which chains it has. Chains
// that are kept are without the order, and do not follow from those with it.
func (g *Generation) isPlain() bool {
	s, ranked := g.selection.(*rankedSelection)
	if !ranked || s.computed == nil || g.spec.Policy == Shadow || g.next != 0 ||
		g.resumed != nil || g.suspects != nil || len(g.watched) > 0 ||
		len(g.order) > 0 && g.first == nil {
		return false
	}
	for _, page := range g.buckets.pasts {
		if page != noPast && *page != (pastPage{}) {
			return false
		}
	}
	return true
}

// Continue returns the generation that had these chains and this mark, in another process: it goes
// on as if nothing had been between. Nil: the mark is not that of spec and backends, and the chains
// are to be taken with [Resume]. The chains are its own, with what is behind them up to the
// capacity.
func Continue(spec Spec, chains []Chain, backends []Backend, mark Mark) (*Generation, error) {
	return continued(spec, chains, sameName, backends, nil, mark, func(g *Generation) bool {
		if g.first == nil {
			g.buckets = tableOf(chains)
		}
		return true
	})
}

// ContinueFirst is Continue for a service whose first chains are not kept, with the order that its
// candidates had. The chains given have other names of ids, which differ, and stay what they are.
func ContinueFirst(
	spec Spec, chains []Chain, name func(id uint16) uint16, backends []Backend, order Order,
	mark Mark,
) (*Generation, error) {
	return continued(spec, chains, name, backends, order, mark,
		func(g *Generation) bool { return g.first != nil })
}

// continued is what Continue returns, if take takes the generation: it has no chains yet, unless
// they are computed.
func continued(
	spec Spec, chains []Chain, name func(id uint16) uint16, backends []Backend, order Order,
	mark Mark, take func(*Generation) bool,
) (*Generation, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	if err := validate(backends); err != nil {
		return nil, err
	}
	listed := sorted(backends)
	g := (&Generation{spec: spec, backends: listed, fresh: mark&freshMark != 0}).Ordered(order)
	if mark == 0 || len(chains) != spec.Buckets ||
		mark&^freshMark != markOf(spec, listed, g.order) {
		return nil, nil
	}
	members := make([]consistenthash.Member, len(listed))
	for i, b := range listed {
		members[i] = b.member()
	}
	if g.selection, err = newRanked(spec, members); err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", spec.Buckets, err)
	}
	if g.fresh {
		g.first = g.computedChains()
	}
	if !take(g) {
		return nil, nil
	}
	named := new(idSet)
	for id := range alive(listed).all() {
		named.add(name(id))
	}
	var counted []uint16
	if g.first != nil {
		counted = g.first.named(name)
	}
	counting := newTally(counted)
	defer counting.end()
	for i := range chains {
		c := &chains[i]
		if c.Length > MaxChain || c.Candidates > c.Length || !c.within(named) {
			return nil, nil // whatever wrote them, it was not a generation of these backends
		}
		counting.add(c.IDs[0])
	}
	if g.first != nil {
		g.first.note(g.order, counting)
	}
	return g, nil
}

// WholePages is the capacity of as many chains that [Continue] needs no copy of.
func WholePages(chains int) int { return (chains + pageBuckets - 1) / pageBuckets * pageBuckets }

// tableOf is a table of chains without a past, which takes them over.
func tableOf(chains []Chain) table {
	if whole := WholePages(len(chains)); whole > cap(chains) {
		chains = append(make([]Chain, 0, whole), chains...)
	}
	known := len(chains)
	chains = chains[:WholePages(known)]
	clear(chains[known:])
	return table{whole: unsafe.Slice((*chainPage)(unsafe.Pointer(unsafe.SliceData(chains))),
		len(chains)/pageBuckets), name: new(tableName)}
}

// markOf digests a spec, and backends by ascending id with their order. Its last bit is 0.
func markOf(spec Spec, backends []Backend, o Order) Mark {
	digest := sha256.New()
	for _, field := range []uint64{markVersion, uint64(algorithm()), uint64(spec.Buckets),
		spec.Seed, uint64(spec.Policy), uint64(spec.Method), uint64(spec.Candidates),
		uint64(spec.Depth), uint64(spec.Drain)} {
		writeWord(digest, field)
	}
	for _, b := range backends {
		for _, field := range []uint64{uint64(b.ID), b.Key, uint64(b.Weight), uint64(b.State),
			uint64(b.Site), uint64(order(b.Suspect)), uint64(o[b.ID])} {
			writeWord(digest, field)
		}
	}
	return max(2, Mark(binary.BigEndian.Uint64(digest.Sum(nil)))&^freshMark)
}

// markVersion tells marks of another meaning of their bits apart.
const markVersion = 3

func writeWord(to hash.Hash, word uint64) {
	to.Write(binary.BigEndian.AppendUint64(nil, word)) // never fails
}

// algorithm is markOfAlgorithm, computed once.
var algorithm = sync.OnceValue(markOfAlgorithm)

// markOfAlgorithm is a digest of chains that this program makes: another release that would choose
// otherwise has another one. It panics if the program refuses its own specs.
func markOfAlgorithm() Mark {
	digest := sha256.New()
	for _, spec := range []Spec{
		{Buckets: 251, Seed: 1, Candidates: 2, Depth: MaxChain},
		{Buckets: 251, Seed: 2, Candidates: 3, Depth: 4}, {Buckets: 251, Seed: 3, Policy: ECMP},
		{Buckets: 251, Seed: 4, Candidates: 2, Depth: MaxChain},
	} {
		var backends []Backend
		for i := range 12 {
			backends = append(backends, Backend{ID: uint16(1 + 7*i), Key: uint64(i % 2 * i),
				Weight: uint32(1 + i*int(spec.Seed-1)), State: State(i / 9),
				Site: uint16(i / 5 * int(spec.Seed/4))})
		}
		g, err := New(spec, backends, 0)
		if err != nil {
			panic(err)
		}
		digest.Write(g.Record())
	}
	return Mark(binary.BigEndian.Uint64(digest.Sum(nil)))
}
