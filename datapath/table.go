package datapath

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/lb/pool"
)

// tableSpec is the inner map of "tables": one chain per bucket, as many as the service has buckets
// (BPF_F_INNER_MAP: the tables of one map may differ in size). It can be mapped into memory, so
// that it is written in one copy instead of as many system calls.
//
// Where all tables are of one size, the verifier knows it and puts the look-up of a chain in line;
// else it is a call, which takes an eighth of a packet's time on a processor whose returns are
// slow by a mitigation.
func (c EdgeConfig) tableSpec(buckets int) *ebpf.MapSpec {
	spec := tableSpec(buckets)
	if c.Buckets > 0 {
		spec.Flags &^= unix.BPF_F_INNER_MAP
	}
	return spec
}

func tableSpec(buckets int) *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name:       tableName,
		Type:       ebpf.Array,
		KeySize:    4,
		ValueSize:  uint32(unsafe.Sizeof(chain{})),
		MaxEntries: uint32(buckets),
		Flags:      unix.BPF_F_MMAPABLE | unix.BPF_F_INNER_MAP,
	}
}

// chainTable is an inner map, mapped into memory for as long as it may be written.
type chainTable struct {
	inner  *ebpf.Map
	memory []byte
	holds  *pool.Generation
}

// newTable makes a map of the generation's chains.
func (c EdgeConfig) newTable(g *pool.Generation) (*chainTable, error) {
	spec := c.tableSpec(g.Buckets())
	if g.Buckets() < largeTable { // a larger one will hold other chains some day
		spec.Name = nameOfTable(g.Mark())
	}
	inner, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, err
	}
	memory, err := mapChains(inner, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		inner.Close()
		return nil, err
	}
	t := &chainTable{inner: inner, memory: memory, holds: g}
	wire := chainsIn(memory)
	for b := range wire {
		wire[b] = chainOf(g.Chain(b))
	}
	return t, nil
}

// hold makes the chains those of a generation, of as many buckets. Only where it differs from the
// one before is anything written.
func (t *chainTable) hold(g *pool.Generation) {
	wire := chainsIn(t.memory)
	for first, last := range g.Differing(t.holds) {
		for b := first; b < last; b++ {
			if c := g.Chain(b); c != t.holds.Chain(b) {
				wire[b] = chainOf(c)
			}
		}
	}
	t.holds = g
}

// TableBytes is how much memory of the kernel the chains of so many buckets take.
func TableBytes(buckets int) int {
	page := os.Getpagesize()
	chains := buckets * int(unsafe.Sizeof(chain{}))
	table := (chains+page-1)/page*page + page // and what the kernel keeps about it
	if buckets < largeTable {
		return table
	}
	return 2 * table
}

// chainOf is a chain as the programs read it.
func chainOf(c pool.Chain) chain {
	w := chain{Length: c.Length, Candidates: c.Candidates, Shadow: bigEndian(c.Shadow)}
	for i, id := range c.IDs[:c.Length] {
		w.IDs[i] = bigEndian(id)
	}
	return w
}

func (t *chainTable) close() {
	if t != nil {
		unix.Munmap(t.memory)
		t.inner.Close()
	}
}

// mapChains maps a table into memory.
func mapChains(table *ebpf.Map, protection int) ([]byte, error) {
	buckets := int(table.MaxEntries())
	memory, err := unix.Mmap(table.FD(), 0, buckets*int(unsafe.Sizeof(chain{})), protection,
		unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map table of %d chains into memory: %w", buckets, err)
	}
	return memory, nil
}

// chainsIn is mapped memory as what lies there.
func chainsIn(memory []byte) []chain {
	return unsafe.Slice((*chain)(unsafe.Pointer(&memory[0])),
		len(memory)/int(unsafe.Sizeof(chain{})))
}

// tablePair are the tables of a service: one that packets are forwarded by, and one that is written
// meanwhile, which was the other one a change ago and has caught up since. So a change writes what
// it changes, and no map is made for it.
type tablePair struct {
	of          *EdgeConfig
	live, spare *chainTable
}

func (e *Edge) newPair() *tablePair { return &tablePair{of: &e.config} }

// largeTable is from how many buckets on a service keeps a pair of tables. A smaller table is made
// anew for each change, which takes some 0.1 ms, and nothing of it is kept: no second table, no
// descriptor, no mapping.
const largeTable = 1 << 14

// set makes the generation live, by putting the table that holds it where the program looks.
func (p *tablePair) set(g *pool.Generation, put func(*ebpf.Map) error) (err error) {
	if g.Buckets() < largeTable {
		t, err := p.of.newTable(g)
		if err != nil {
			return err
		}
		defer t.close()
		if err := put(t.inner); err != nil {
			return err
		}
		p.close()
		return nil
	}
	if err := p.prepare(g); err != nil {
		return err
	}
	// When put returns, no packet is forwarded by the previous table any more: the kernel waits
	// for those that were.
	if err := put(p.spare.inner); err != nil {
		return err
	}
	p.live, p.spare = p.spare, p.live
	return p.prepare(g) // ahead of the next change
}

// prepare makes the spare table hold the generation.
func (p *tablePair) prepare(g *pool.Generation) (err error) {
	if p.spare != nil && p.spare.holds.Buckets() == g.Buckets() {
		p.spare.hold(g)
		return nil
	}
	p.spare.close()
	p.spare, err = p.of.newTable(g)
	return err
}

// adopt takes a table that has become the live one.
func (p *tablePair) adopt(t *chainTable) error {
	if t.holds.Buckets() < largeTable {
		t.close()
		return nil
	}
	p.live = t
	return p.prepare(t.holds)
}

// close releases the tables; what the program looks at stays.
func (p *tablePair) close() {
	if p == nil {
		return
	}
	p.live.close()
	p.spare.close()
	p.live, p.spare = nil, nil
}

// ServiceChains are the chains of the service of an index.
type ServiceChains struct {
	Index      uint32
	Generation *pool.Generation
}

// tableBatch is how many tables are put at once: after each request the kernel waits for the
// packets under way, some 10 ms.
const tableBatch = 256

// FillChains sets the chains of many services, of which each has none yet, many at once.
func (e *Edge) FillChains(all []ServiceChains) error {
	if e.found != nil {
		return e.compareChains(all)
	}
	for some := range slices.Chunk(all, tableBatch) {
		if err := e.fillChains(some); err != nil {
			return fmt.Errorf("set chains of %d services: %w", len(some), err)
		}
	}
	return nil
}

func (e *Edge) fillChains(some []ServiceChains) (err error) {
	indexes, descriptors := make([]uint32, len(some)), make([]uint32, len(some))
	tables := make([]*chainTable, len(some))
	defer func() {
		for _, t := range tables {
			t.close()
		}
	}()
	for i, s := range some {
		if tables[i], err = e.config.newTable(s.Generation); err != nil {
			return err
		}
		indexes[i], descriptors[i] = s.Index, uint32(tables[i].inner.FD())
	}
	if err := e.await(func() error {
		_, err := e.maps["tables"].BatchUpdate(indexes, descriptors, nil)
		return err
	}); err != nil {
		return err
	}
	for i, s := range some {
		e.chains[s.Index].close()
		e.chains[s.Index] = e.newPair()
		t := tables[i]
		tables[i] = nil
		if err := e.chains[s.Index].adopt(t); err != nil {
			return err
		}
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
	if e.found != nil {
		return e.compareChains([]ServiceChains{{index, g}})
	}
	if e.chains[index] == nil {
		e.chains[index] = e.newPair()
	}
	put := func(inner *ebpf.Map) error {
		return e.await(func() error { return e.maps["tables"].Put(index, inner) })
	}
	if err := e.chains[index].set(g, put); err != nil {
		return fmt.Errorf("set chains of service %d: %w", index, err)
	}
	return nil
}

// DeleteChains frees the tables of a service that was deleted.
func (e *Edge) DeleteChains(index uint32) error {
	err := e.await(func() error { return e.maps["tables"].Delete(index) })
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("delete chains of service %d: %w", index, err)
	}
	e.chains[index].close()
	delete(e.chains, index)
	delete(e.buckets, index)
	err = e.SetPaths(index, nil)
	e.paths.came(index)
	return errors.Join(err, e.deleteFormerChains(index))
}
