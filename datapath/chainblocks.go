package datapath

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	chainBytes = int(unsafe.Sizeof(chain{}))
	leastBlock = 131328 // chains of the least block: CHAIN_BLOCK of bpf/include/chain.h
)

// chainBlocks is the memory of all services' chains, in blocks of one size that are made as they
// are needed, and given back when nothing is in them.
type chainBlocks struct {
	tables  *ebpf.Map
	most    int                           // blocks
	size    uint32                        // chains of a block
	blocks  []*chainBlock                 // by number; nil: there is none
	missing []uint32                      // those that are taken from, still to be made
	await   func(slow func() error) error // of what the kernel takes long for
}

// chainBlock is a block in memory: chains are written without system calls.
type chainBlock struct {
	mappedChains
	free []stretch // ascending, no two of which touch
}

// stretch are places of a block from one on.
type stretch struct{ at, length uint32 }

func (s stretch) end() uint32 { return s.at + s.length }

// mappedChains are chains in the kernel, mapped into memory.
type mappedChains struct {
	chains []chain
	memory []byte
}

func newChainBlocks(tables *ebpf.Map, size int, await func(func() error) error) *chainBlocks {
	return &chainBlocks{tables: tables, most: int(tables.MaxEntries()), size: uint32(size),
		await: await}
}

func mapChains(table *ebpf.Map, protection int) (m mappedChains, err error) {
	m.memory, err = unix.Mmap(table.FD(), 0, int(table.MaxEntries())*chainBytes, protection,
		unix.MAP_SHARED)
	if err != nil {
		return m, fmt.Errorf("map %d chains into memory: %w", table.MaxEntries(), err)
	}
	m.chains = unsafe.Slice((*chain)(unsafe.Pointer(&m.memory[0])), table.MaxEntries())
	return m, nil
}

func (m mappedChains) unmap() error {
	if m.memory == nil {
		return nil
	}
	return unix.Munmap(m.memory)
}

// openChains maps those of a block, or of a table, that is in the kernel.
func openChains(tables *ebpf.Map, number uint32, protection int) (m mappedChains, err error) {
	var block *ebpf.Map
	if err := tables.Lookup(number, &block); err != nil {
		return m, err
	}
	defer block.Close()
	if int(block.ValueSize()) != chainBytes {
		return m, fmt.Errorf("its chains have %d bytes", block.ValueSize())
	}
	return mapChains(block, protection)
}

// emptyBlock has no places that are taken. The very first is never: there, services without a table
// find an empty chain.
func (b *chainBlocks) emptyBlock(number uint32) *chainBlock {
	return &chainBlock{free: []stretch{b.all(number)}}
}

// all are the places that tables can have in a block.
func (b *chainBlocks) all(number uint32) stretch {
	if number == 0 {
		return stretch{1, b.size - 1}
	}
	return stretch{0, b.size}
}

// adopt opens the blocks that are in the kernel, of which no place is taken yet.
func (b *chainBlocks) adopt() error {
	return eachBatch(b.tables, func(numbers, _ []uint32) error {
		for _, n := range numbers {
			chains, err := openChains(b.tables, n, unix.PROT_READ|unix.PROT_WRITE)
			if err != nil {
				return fmt.Errorf("open block %d of chains: %w", n, err)
			}
			b.put(n, b.emptyBlock(n))
			b.blocks[n].mappedChains = chains
		}
		return nil
	})
}

func (b *chainBlocks) put(number uint32, block *chainBlock) {
	if missing := int(number) + 1 - len(b.blocks); missing > 0 {
		b.blocks = append(b.blocks, make([]*chainBlock, missing)...)
	}
	b.blocks[number] = block
}

// take takes the first free places that are enough, of a block that is there after make.
func (b *chainBlocks) take(length uint32) (number, at uint32, err error) {
	place := -1
	for n, block := range b.blocks {
		if block == nil {
			place = n
			continue
		}
		for _, s := range block.free {
			if s.length >= length {
				block.claim(stretch{s.at, length})
				return uint32(n), s.at, nil
			}
		}
	}
	if place < 0 {
		place = len(b.blocks)
	}
	number = uint32(place)
	if place >= b.most || b.all(number).length < length {
		return 0, 0, fmt.Errorf("there is no room for a table of %d chains", length)
	}
	b.put(number, b.emptyBlock(number))
	b.missing = append(b.missing, number)
	at = b.blocks[number].free[0].at
	b.blocks[number].claim(stretch{at, length})
	return number, at, nil
}

// claim takes places; false: they are not all free.
func (b *chainBlock) claim(s stretch) bool {
	i := slices.IndexFunc(b.free, func(f stretch) bool { return f.end() >= s.end() })
	if i < 0 || b.free[i].at > s.at {
		return false
	}
	f := b.free[i]
	var left []stretch
	if f.at < s.at {
		left = append(left, stretch{f.at, s.at - f.at})
	}
	if s.end() < f.end() {
		left = append(left, stretch{s.end(), f.end() - s.end()})
	}
	b.free = slices.Replace(b.free, i, i+1, left...)
	return true
}

// give gives places back. The block stays until trim.
func (b *chainBlock) give(s stretch) {
	i := slices.IndexFunc(b.free, func(f stretch) bool { return f.at > s.at })
	if i < 0 {
		i = len(b.free)
	}
	b.free = slices.Insert(b.free, i, s)
	if i+1 < len(b.free) && s.end() == b.free[i+1].at {
		b.free[i].length += b.free[i+1].length
		b.free = slices.Delete(b.free, i+1, i+2)
	}
	if i > 0 && b.free[i-1].end() == s.at {
		b.free[i-1].length += b.free[i].length
		b.free = slices.Delete(b.free, i, i+1)
	}
}

// make makes the blocks that are missing, all in one request: after each the kernel waits for the
// packets under way.
func (b *chainBlocks) make() (err error) {
	if len(b.missing) == 0 {
		return nil
	}
	descriptors, fresh := make([]uint32, len(b.missing)), make([]mappedChains, len(b.missing))
	defer func() {
		if err == nil {
			return
		}
		for _, m := range fresh {
			m.unmap()
		}
	}()
	blocks, failures := make([]*ebpf.Map, len(b.missing)), make([]error, len(b.missing))
	defer func() {
		for _, block := range blocks {
			block.Close()
		}
	}()
	onAllProcessors(len(blocks), func(i int) { // the kernel clears them
		blocks[i], fresh[i], failures[i] = newBlock(b.size)
	})
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for i, block := range blocks {
		descriptors[i] = uint32(block.FD())
	}
	if err := b.await(func() error {
		_, err := b.tables.BatchUpdate(b.missing, descriptors, nil)
		return err
	}); err != nil {
		return fmt.Errorf("set %d blocks of chains: %w", len(b.missing), err)
	}
	for i, n := range b.missing {
		b.blocks[n].mappedChains = fresh[i]
	}
	b.missing = nil
	return nil
}

// newBlock makes a block that is in no map of maps yet, and maps its chains.
func newBlock(size uint32) (block *ebpf.Map, m mappedChains, err error) {
	if block, err = ebpf.NewMap(blockSpec(size)); err != nil {
		return nil, m, fmt.Errorf("make a block of %d chains: %w", size, err)
	}
	m, err = mapChains(block, unix.PROT_READ|unix.PROT_WRITE)
	return block, m, err
}

func blockSpec(size uint32) *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "chains", Type: ebpf.Array, KeySize: 4,
		ValueSize: uint32(chainBytes), MaxEntries: size, Flags: unix.BPF_F_MMAPABLE}
}

// deletedAtOnce is how many blocks are taken out side by side. The kernel returns when no packet
// looks at the block any more, and waits for that for all of them at once.
const deletedAtOnce = 16

// trim gives the blocks back in which nothing is.
func (b *chainBlocks) trim() error {
	var empty []uint32
	for n, block := range b.blocks {
		number := uint32(n)
		if block != nil && !slices.Contains(b.missing, number) &&
			slices.Equal(block.free, []stretch{b.all(number)}) {
			empty = append(empty, number)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	failures := make([]error, len(empty))
	err := b.await(func() error {
		var group errgroup.Group
		group.SetLimit(deletedAtOnce)
		for i, number := range empty {
			group.Go(func() error {
				failures[i] = b.tables.Delete(number)
				return nil
			})
		}
		return group.Wait()
	})
	if err != nil {
		return err
	}
	for i, number := range empty {
		if failures[i] == nil {
			failures[i] = b.blocks[number].unmap()
			b.blocks[number] = nil
		}
	}
	return errors.Join(failures...)
}

func (b *chainBlocks) close() {
	if b == nil {
		return
	}
	for _, block := range b.blocks {
		if block != nil {
			block.unmap()
		}
	}
	b.blocks = nil
}
