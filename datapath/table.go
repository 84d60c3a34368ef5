package datapath

import (
	"errors"
	"fmt"
	"unsafe"

	"sextant/lb/pool"
)

// chainTable is a table of a service: one chain per bucket, behind a header.
type chainTable struct {
	tablePlace
	in    *chainBlock
	holds *pool.Generation // nil: the table is small, and will hold nothing else
}

// tablePlace is where a table is.
type tablePlace struct {
	block   uint16
	at      uint32 // of the first chain
	buckets uint32
}

// all are the places of the table and its header.
func (p tablePlace) all() stretch { return stretch{p.at - 1, p.buckets + 1} }

// isIn tells whether they are in a block of so many chains.
func (p tablePlace) isIn(size int) bool {
	return p.at > 0 && uint64(p.at)+uint64(p.buckets) <= uint64(size)
}

// table and formerTable are those of a service; the zero value: it has none.
func (s service) table() tablePlace { return tablePlace{s.Block, s.Table, s.Buckets} }

func (s service) formerTable() tablePlace {
	return tablePlace{s.FormerBlock, s.FormerTable, s.FormerBuckets}
}

func (s *service) setTable(p tablePlace) { s.Block, s.Table, s.Buckets = p.block, p.at, p.buckets }

func (s *service) setFormerTable(p tablePlace) {
	s.FormerBlock, s.FormerTable, s.FormerBuckets = p.block, p.at, p.buckets
}

// tableHeader lies before a table, as large as a chain. The mark is the one that the chains were
// made with, if they never change: mark and chains are named by one entry, whatever happens to an
// agent.
type tableHeader struct {
	mark     pool.Mark
	reserved [8]byte
}

// header is that of the table at a place.
func (m mappedChains) header(p tablePlace) *tableHeader {
	return (*tableHeader)(unsafe.Pointer(&m.chains[p.at-1]))
}

// of are the chains of the table at a place.
func (m mappedChains) of(p tablePlace) []chain { return m.chains[p.at : p.at+p.buckets] }

func (t *chainTable) chains() []chain { return t.in.of(t.tablePlace) }

// takeTable takes places for a table. They can be written when their block is made.
func (b *chainBlocks) takeTable(buckets int) (*chainTable, error) {
	number, at, err := b.take(uint32(buckets) + 1)
	if err != nil {
		return nil, err
	}
	return &chainTable{tablePlace: tablePlace{uint16(number), at + 1, uint32(buckets)},
		in: b.blocks[number]}, nil
}

// fill writes all chains of a generation.
func (t *chainTable) fill(g *pool.Generation) {
	header := t.in.header(t.tablePlace)
	*header = tableHeader{}
	if g.Buckets() < largeTable { // a larger one will hold other chains some day
		header.mark = g.Mark()
	} else {
		t.holds = g
	}
	writeChains(t.chains(), g)
}

// write makes the chains those of a generation, of as many buckets.
func (t *chainTable) write(g *pool.Generation) {
	if t.holds == nil {
		t.fill(g)
		return
	}
	t.hold(g)
}

// hold is write where it is known what the table holds: only where that differs is anything
// written.
func (t *chainTable) hold(g *pool.Generation) {
	wire := t.chains()
	for first, last := range g.Differing(t.holds) {
		for b := first; b < last; b++ {
			if c := g.Chain(b); c != t.holds.Chain(b) {
				wire[b] = chainOf(c)
			}
		}
	}
	t.holds = g
}

// close gives the table's places back: no packet may be under way to it any more.
func (t *chainTable) close() {
	if t != nil {
		t.in.give(t.all())
	}
}

// TableBytes is how much memory of the kernel the chains of so many buckets take. Tables share
// blocks ([Capacity.BlockBytes]), which are not full.
func TableBytes(buckets int) int {
	table := (buckets + 1) * chainBytes
	if buckets < largeTable {
		return table
	}
	return 2 * table
}

// tablePair are the tables of a service: one that packets are forwarded by, and one that is written
// meanwhile, which was the other one a change ago and has caught up since. So a change writes what
// it changes.
type tablePair struct {
	live, spare *chainTable
	left        []*chainTable // of changes that failed: an entry may still lead to them
}

// largeTable is from how many buckets on a service keeps a pair of tables. A smaller table is
// written anew for each change, which takes some 0.1 ms, and no second one is kept.
const largeTable = 1 << 14

// catchesUp reports whether the spare table differs from a generation by what has changed.
func (p *tablePair) catchesUp(g *pool.Generation) bool {
	return p.spare != nil && p.spare.holds != nil && p.spare.holds.Buckets() == g.Buckets()
}

// turn makes the spare table the live one, to which all entries lead: no packet is under way to any
// other. What was live is kept if it can catch up.
func (p *tablePair) turn(g *pool.Generation) {
	p.live, p.spare = p.spare, p.live
	p.freeLeft()
	if !p.catchesUp(g) {
		p.dropSpare()
	}
}

// leave gives the spare table up, to which entries may lead.
func (p *tablePair) leave() { p.left, p.spare = append(p.left, p.spare), nil }

func (p *tablePair) freeLeft() {
	for _, t := range p.left {
		t.close()
	}
	p.left = nil
}

func (p *tablePair) dropSpare() {
	p.spare.close()
	p.spare = nil
}

// close gives all tables back.
func (p *tablePair) close() {
	if p == nil {
		return
	}
	p.live.close()
	p.live = nil
	p.dropSpare()
	p.freeLeft()
}

// ServiceChains are the chains of the service of an index.
type ServiceChains struct {
	Index      uint32
	Generation *pool.Generation
}

// formerTables is what the numbers of services' former tables are above their own.
const formerTables = MaxServices

// FillChains sets the chains of many services, of which each has none yet, many at once.
func (e *Edge) FillChains(all []ServiceChains) error {
	if e.found != nil {
		return e.compareChains(all)
	}
	if err := e.fillChains(all); err != nil {
		return fmt.Errorf("set chains of %d services: %w", len(all), err)
	}
	return nil
}

func (e *Edge) fillChains(all []ServiceChains) error {
	pairs := make([]*tablePair, len(all))
	for i, s := range all {
		t, err := e.blocks.takeTable(s.Generation.Buckets())
		if err != nil {
			return err
		}
		e.chains[s.Index].close()
		pairs[i] = &tablePair{live: t}
		e.chains[s.Index] = pairs[i]
	}
	if err := e.blocks.make(); err != nil {
		return err
	}
	onAllProcessors(len(all), func(i int) { pairs[i].live.fill(all[i].Generation) })
	return e.makeSpares(pairs)
}

// makeSpares makes the second tables of large services, all at once.
func (e *Edge) makeSpares(pairs []*tablePair) (err error) {
	var large []*tablePair
	for _, p := range pairs {
		if p.live.holds == nil || p.spare != nil {
			continue
		}
		if p.spare, err = e.blocks.takeTable(p.live.holds.Buckets()); err != nil {
			return err
		}
		large = append(large, p)
	}
	if err := e.blocks.make(); err != nil {
		return err
	}
	onAllProcessors(len(large), func(i int) { large[i].spare.fill(large[i].live.holds) })
	return nil
}

// lead makes a service's entries lead to a table, its own or the former one, when next hops are
// forgotten, and with them the services that CPUs have cached. Packets may be under way to the one
// before if it says so.
func (e *Edge) lead(number uint32, at tablePlace) (packets bool, err error) {
	index, changed := number%formerTables, false
	for _, key := range e.keys[index] {
		s := e.entries[key]
		if number == index {
			s.setTable(at)
		} else if s.FormerBuckets > 0 {
			s.setFormerTable(at)
		}
		if s == e.entries[key] {
			continue
		}
		if err := e.maps["services"].Put(key, s); err != nil {
			return false, err
		}
		e.entries[key], changed = s, true
	}
	// Even if no entry led to the table before any more, packets may be on their way to it.
	return changed || e.live(number) != nil, nil
}

// live is the table of a number that packets are forwarded by; nil: there is none.
func (e *Edge) live(number uint32) *chainTable {
	if pair := e.chains[number]; pair != nil {
		return pair.live
	}
	return nil
}

// DeleteChains frees the tables of services that were deleted, once no packet is under way to any
// of them.
func (e *Edge) DeleteChains(indexes ...uint32) error {
	waits := false
	for _, index := range indexes {
		for _, number := range tablesOf(index) {
			leads, err := e.lead(number, tablePlace{})
			if err != nil {
				return fmt.Errorf("delete chains of service %d: %w", index, err)
			}
			waits = waits || leads
		}
	}
	if waits {
		if err := e.letPass(); err != nil {
			return fmt.Errorf("delete chains of %d services: %w", len(indexes), err)
		}
	}
	var failed []error
	for _, index := range indexes {
		for _, number := range tablesOf(index) {
			e.chains[number].close()
			delete(e.chains, number)
		}
		delete(e.buckets, index)
		delete(e.former, index)
		failed = append(failed, e.SetPaths(index, nil))
		e.paths.came(index)
	}
	return errors.Join(append(failed, e.blocks.trim())...)
}

// tablesOf are the numbers of the tables that a service can have.
func tablesOf(index uint32) [2]uint32 { return [2]uint32{index, formerTables + index} }
