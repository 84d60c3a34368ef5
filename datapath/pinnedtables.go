package datapath

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/lb/pool"
)

// PinnedTables are the tables that an earlier agent left, from which the next one resumes, so that
// no bucket moves because of a restart. Its methods may be called at the same time. Close it.
type PinnedTables struct {
	dir     string
	tables  *ebpf.Map // nil: there are none
	entries *ebpf.Map // of services; nil: there is a table for each, as versions had before
	// services with tables, by index: read when they are first asked for, as most changes never do
	services func() (map[uint32]service, error)
	mu       sync.Mutex
	blocks   map[uint16]mappedChains
}

// MarkedChains are the chains of a service as they were found, and the mark that they were made
// with; the zero value: there are none. They can be read as long as the tables are open.
type MarkedChains struct {
	wire []chain
	Mark pool.Mark
}

// Buckets is how many chains there are.
func (m MarkedChains) Buckets() int { return len(m.wire) }

// Read returns them; nil: there are none.
func (m MarkedChains) Read() []pool.Chain {
	if m.wire == nil {
		return nil
	}
	return inHostOrder(m.wire)
}

// Continue returns the generation that had the chains, as [pool.Continue]; nil: they are to be
// taken otherwise. Of chains that are not kept no copy is made; their candidates have this order.
func (m MarkedChains) Continue(
	spec pool.Spec, backends []pool.Backend, order pool.Order,
) (*pool.Generation, error) {
	g, err := pool.ContinueFirst(spec, asInPool(m.wire), turnedID, backends, order, m.Mark)
	if g != nil || err != nil || m.Mark == 0 {
		return g, err
	}
	return pool.Continue(spec, m.Read(), backends, m.Mark)
}

// OpenPinnedTables opens what is pinned in dir. Nothing pinned: no service has chains.
func OpenPinnedTables(dir string) (*PinnedTables, error) {
	p := &PinnedTables{dir: dir, blocks: map[uint16]mappedChains{}}
	entries, err := openPinned(dir, "services")
	if entries == nil || err != nil {
		return p, err
	}
	if p.tables, err = openPinned(dir, "tables"); p.tables == nil || err != nil ||
		entries.ValueSize() != uint32(unsafe.Sizeof(service{})) {
		return p, errors.Join(err, entries.Close())
	}
	p.entries = entries
	p.services = sync.OnceValues(func() (map[uint32]service, error) {
		return servicesWithTables(entries)
	})
	return p, nil
}

// servicesWithTables are those of a map that have some, by their index.
func servicesWithTables(m *ebpf.Map) (map[uint32]service, error) {
	services := map[uint32]service{}
	var key serviceKey
	var s service
	entries := m.Iterate()
	for entries.Next(&key, &s) {
		if s.Table != 0 || s.FormerTable != 0 {
			services[s.Index] = s
		}
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read where services have their tables: %w", err)
	}
	return services, nil
}

// Close releases what was opened; what is pinned stays.
func (p *PinnedTables) Close() {
	if p.tables != nil {
		p.tables.Close()
	}
	if p.entries != nil {
		p.entries.Close()
	}
	for _, b := range p.blocks {
		b.unmap()
	}
}

// Chains finds the chains of the service of index.
func (p *PinnedTables) Chains(index uint32) (MarkedChains, error) {
	if p.tables == nil {
		return MarkedChains{}, nil
	}
	if p.entries == nil {
		return p.readTableOf(index)
	}
	services, err := p.services()
	if err != nil {
		return MarkedChains{}, err
	}
	return p.read(services[index].table())
}

// PinnedChains reads the chains of one service that is pinned in dir; nil if there are none.
func PinnedChains(dir string, index uint32) ([]pool.Chain, error) {
	p, err := OpenPinnedTables(dir)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	found, err := p.Chains(index)
	return found.Read(), err
}

// FormerChains reads those of its former table.
func (p *PinnedTables) FormerChains(index uint32) ([]pool.Chain, error) {
	if p.tables == nil {
		return nil, nil
	}
	if p.entries == nil {
		former, err := p.readTableOf(p.tables.MaxEntries()/2 + index)
		return former.Read(), err
	}
	services, err := p.services()
	if err != nil {
		return nil, err
	}
	former, err := p.read(services[index].formerTable())
	return former.Read(), err
}

// read finds the table at a place.
func (p *PinnedTables) read(at tablePlace) (found MarkedChains, err error) {
	if at == (tablePlace{}) {
		return found, nil
	}
	block, err := p.block(at.block)
	if err == nil && !at.isIn(len(block.chains)) {
		err = fmt.Errorf("a block has %d chains, and a table %+v", len(block.chains), at)
	}
	if err != nil {
		return found, fmt.Errorf("read chains that are pinned in %s: %w", p.dir, err)
	}
	return MarkedChains{block.of(at), block.header(at).mark}, nil
}

// block opens a block for reading, once.
func (p *PinnedTables) block(number uint16) (mappedChains, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, open := p.blocks[number]; open {
		return b, nil
	}
	b, err := openChains(p.tables, uint32(number), unix.PROT_READ)
	if err == nil {
		p.blocks[number] = b
	}
	return b, err
}

// readTableOf reads a table as versions left it in which each was a map of its own.
func (p *PinnedTables) readTableOf(place uint32) (found MarkedChains, err error) {
	table, err := openChains(p.tables, place, unix.PROT_READ)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("open pinned chains %d in %s: %w", place, p.dir, err)
	}
	defer table.unmap()
	return MarkedChains{wire: slices.Clone(table.chains)}, nil
}

// compareChains sees that the tables of services have their chains.
func (e *Edge) compareChains(all []ServiceChains) error {
	for _, s := range all {
		if err := e.takeChains(s.Index, s.Generation); err != nil {
			return fmt.Errorf("take over chains of service %d: %w", s.Index%formerTables, err)
		}
	}
	return nil
}

// foundTable is where the program that runs has the table of a number.
func (e *Edge) foundTable(number uint32) (*chainTable, error) {
	if e.claimed == nil {
		if err := e.blocks.adopt(); err != nil {
			return nil, errors.Join(ErrDiffers, err)
		}
		var err error
		if e.claimed, err = servicesWithTables(e.maps["services"]); err != nil {
			return nil, err
		}
	}
	at := e.claimed[number%formerTables].table()
	if number >= formerTables {
		at = e.claimed[number%formerTables].formerTable()
	}
	if int(at.block) >= len(e.blocks.blocks) || e.blocks.blocks[at.block] == nil {
		return nil, ErrDiffers
	}
	t := &chainTable{tablePlace: at, in: e.blocks.blocks[at.block]}
	if !at.isIn(len(t.in.chains)) || !t.in.claim(at.all()) {
		return nil, ErrDiffers
	}
	return t, nil
}

func (e *Edge) takeChains(number uint32, g *pool.Generation) error {
	t, err := e.foundTable(number)
	if err != nil {
		return err
	}
	if int(t.buckets) != g.Buckets() {
		return ErrDiffers
	}
	// Who has the mark was made of a table with it, by [PinnedTables.Chains].
	if mark := g.Mark(); mark == 0 || mark != t.in.header(t.tablePlace).mark {
		wire := t.chains()
		for b, c := range g.Chains() {
			if wire[b] != chainOf(c) {
				return ErrDiffers
			}
		}
	}
	if g.Buckets() >= largeTable {
		t.holds = g
	}
	e.chains[number] = &tablePair{live: t}
	return nil
}
