package datapath

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
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

// newTable makes a table of the generation's chains.
func (b *chainBlocks) newTable(g *pool.Generation) (*chainTable, error) {
	t, err := b.takeTable(g.Buckets())
	if err != nil {
		return nil, err
	}
	if err := b.make(); err != nil {
		t.close()
		return nil, err
	}
	t.fill(g)
	return t, nil
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
	wire := t.chains()
	for b := range wire {
		wire[b] = chainOf(g.Chain(b))
	}
}

// hold makes the chains those of a generation, of as many buckets. Only where it differs from the
// one before is anything written.
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
	blocks      *chainBlocks
	live, spare *chainTable
}

// largeTable is from how many buckets on a service keeps a pair of tables. A smaller table is
// written anew for each change, which takes some 0.1 ms, and no second one is kept.
const largeTable = 1 << 14

// set makes the generation live. name makes the program look at the table that holds it, and
// returns when no packet is forwarded by the one before any more.
func (p *tablePair) set(g *pool.Generation, name func(*chainTable) error) (err error) {
	if err := p.prepare(g); err != nil {
		return err
	}
	if err := name(p.spare); err != nil {
		// Whichever of them packets are forwarded by, it is not written.
		p.live, p.spare = p.spare, nil
		return err
	}
	p.live, p.spare = p.spare, p.live
	if g.Buckets() < largeTable {
		p.dropSpare()
		return nil
	}
	return p.prepare(g) // ahead of the next change
}

func (p *tablePair) dropSpare() {
	p.spare.close()
	p.spare = nil
}

// prepare makes the spare table hold the generation.
func (p *tablePair) prepare(g *pool.Generation) (err error) {
	if p.spare != nil && p.spare.holds != nil && p.spare.holds.Buckets() == g.Buckets() {
		p.spare.hold(g)
		return nil
	}
	p.dropSpare()
	p.spare, err = p.blocks.newTable(g)
	return err
}

// close gives both tables back.
func (p *tablePair) close() {
	if p == nil {
		return
	}
	p.live.close()
	p.dropSpare()
	p.live = nil
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
		pairs[i] = &tablePair{blocks: e.blocks, live: t}
		e.chains[s.Index] = pairs[i]
	}
	if err := e.blocks.make(); err != nil {
		return err
	}
	fillAll(pairs, all)
	return e.makeSpares(pairs)
}

// fillAll writes the live tables of pairs, on all processors.
func fillAll(pairs []*tablePair, all []ServiceChains) {
	var next atomic.Int64
	var filling sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)) {
		filling.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				pairs[i].live.fill(all[i].Generation)
			}
		})
	}
	filling.Wait()
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
	for _, p := range large {
		p.spare.fill(p.live.holds)
	}
	return nil
}

// SetChains replaces all chains of a service in one step: a packet sees the old ones or the new
// ones. A service that [Edge.SetService] has announced keeps its number of buckets.
func (e *Edge) SetChains(index uint32, g *pool.Generation) error {
	if buckets, known := e.buckets[index]; known && buckets != g.Buckets() {
		return fmt.Errorf("set chains of service %d: a table of %d buckets for a service of %d",
			index, g.Buckets(), buckets)
	}
	return e.setTable(index, g)
}

// setTable replaces the table of a number: that of a service, or its former one.
func (e *Edge) setTable(number uint32, g *pool.Generation) error {
	if e.found != nil {
		return e.compareChains([]ServiceChains{{number, g}})
	}
	if e.chains[number] == nil {
		e.chains[number] = &tablePair{blocks: e.blocks}
	}
	name := func(t *chainTable) error { return e.name(number, t.tablePlace) }
	if err := e.chains[number].set(g, name); err != nil {
		return fmt.Errorf("set chains of service %d: %w", number%formerTables, err)
	}
	return nil
}

// name makes a service's entries lead to a table, its own or the former one, and waits until no
// packet is under way to the one before.
func (e *Edge) name(number uint32, at tablePlace) error {
	leads, err := e.lead(number, at)
	if err != nil || !leads {
		return err
	}
	return e.await(awaitPackets)
}

// lead makes a service's entries lead to a table, its own or the former one. Packets may be under
// way to the one before if it says so.
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
	if changed {
		return true, e.ForgetNextHops() // and the services that CPUs have cached
	}
	// Even if no entry led to the table before any more, packets may be on their way to it.
	return e.live(number) != nil, nil
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
		if err := e.await(awaitPackets); err != nil {
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
