package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/pool"
)

// MaxServices is how many services one node can have.
const MaxServices = servicesMax

// tableSpec is the inner map of "tables": one chain per bucket. It can be mapped into memory, so that a table of
// 65,537 chains is written in one copy instead of as many system calls.
func tableSpec(buckets int) *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name:       "chains",
		Type:       ebpf.Array,
		KeySize:    4,
		ValueSize:  uint32(unsafe.Sizeof(chain{})),
		MaxEntries: uint32(buckets),
		Flags:      unix.BPF_F_MMAPABLE,
	}
}

// chainTable is an inner map, mapped into memory for as long as it may be written.
type chainTable struct {
	inner  *ebpf.Map
	memory []byte
	holds  *pool.Generation
}

// newTable makes a map of the generation's chains.
func newTable(g *pool.Generation) (*chainTable, error) {
	inner, err := ebpf.NewMap(tableSpec(g.Buckets()))
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

// hold makes the chains those of a generation, of as many buckets. Only where it differs from the one before is anything written.
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
	memory, err := unix.Mmap(table.FD(), 0, buckets*int(unsafe.Sizeof(chain{})), protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map table of %d chains into memory: %w", buckets, err)
	}
	return memory, nil
}

// chainsIn is mapped memory as what lies there.
func chainsIn(memory []byte) []chain {
	return unsafe.Slice((*chain)(unsafe.Pointer(&memory[0])), len(memory)/int(unsafe.Sizeof(chain{})))
}

// tablePair are the tables of a service: one that packets are forwarded by, and one that is written meanwhile, which was the other one a
// change ago and has caught up since. So a change writes what it changes, and no map is made for it.
type tablePair struct{ live, spare *chainTable }

// set makes the generation live, by putting the table that holds it where the program looks.
func (p *tablePair) set(buckets int, g *pool.Generation, put func(*ebpf.Map) error) (err error) {
	if err := p.prepare(buckets, g); err != nil {
		return err
	}
	// When put returns, no packet is forwarded by the table of before any more: the kernel waits for those that were.
	if err := put(p.spare.inner); err != nil {
		return err
	}
	p.live, p.spare = p.spare, p.live
	return p.prepare(buckets, g) // ahead of the next change
}

// prepare makes the spare table hold the generation.
func (p *tablePair) prepare(buckets int, g *pool.Generation) (err error) {
	switch {
	case g.Buckets() != buckets:
		return fmt.Errorf("table has %d buckets, the program %d", g.Buckets(), buckets)
	case p.spare == nil:
		p.spare, err = newTable(g)
		return err
	}
	p.spare.hold(g)
	return nil
}

func (p *tablePair) close() {
	p.live.close()
	p.spare.close()
}

// PinnedChains reads the chains of a service that an earlier agent left in dir; nil if there are none. From them the
// next agent resumes, so that no bucket moves because of a restart.
func PinnedChains(dir string, index uint32) ([]pool.Chain, error) {
	tables, err := ebpf.LoadPinnedMap(filepath.Join(dir, "tables"), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open pinned tables in %s: %w", dir, err)
	}
	defer tables.Close()
	var table *ebpf.Map
	if err := tables.Lookup(index, &table); errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("open pinned chains of service %d in %s: %w", index, dir, err)
	}
	defer table.Close()
	return readChains(table)
}

func readChains(table *ebpf.Map) ([]pool.Chain, error) {
	memory, err := mapChains(table, unix.PROT_READ)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(memory)
	wire := chainsIn(memory)
	chains := make([]pool.Chain, len(wire))
	for b, c := range wire {
		chains[b].Length, chains[b].Candidates, chains[b].Shadow = c.Length, c.Candidates, fromBigEndian(c.Shadow)
		for i, id := range c.IDs {
			chains[b].IDs[i] = fromBigEndian(id)
		}
	}
	return chains, nil
}
