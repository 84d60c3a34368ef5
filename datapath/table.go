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

// newTable makes a map of the generation's chains.
func newTable(buckets int, g *pool.Generation) (*ebpf.Map, error) {
	if g.Buckets() != buckets {
		return nil, fmt.Errorf("table has %d buckets, the program %d", g.Buckets(), buckets)
	}
	table, err := ebpf.NewMap(tableSpec(buckets))
	if err != nil {
		return nil, err
	}
	if err := writeChains(table, encodeChains(g)); err != nil {
		table.Close()
		return nil, err
	}
	return table, nil
}

func encodeChains(g *pool.Generation) []chain {
	chains := make([]chain, g.Buckets())
	for b := range chains {
		c := g.Chain(b)
		chains[b].Length, chains[b].Candidates, chains[b].Shadow = c.Length, c.Candidates, bigEndian(c.Shadow)
		for i, id := range c.IDs[:c.Length] {
			chains[b].IDs[i] = bigEndian(id)
		}
	}
	return chains
}

func writeChains(table *ebpf.Map, chains []chain) error {
	size := len(chains) * int(unsafe.Sizeof(chain{}))
	memory, err := unix.Mmap(table.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map table of %d chains into memory: %w", len(chains), err)
	}
	copy(memory, unsafe.Slice((*byte)(unsafe.Pointer(&chains[0])), size))
	return unix.Munmap(memory)
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
	buckets := int(table.MaxEntries())
	memory, err := unix.Mmap(table.FD(), 0, buckets*int(unsafe.Sizeof(chain{})), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map table of %d chains into memory: %w", buckets, err)
	}
	defer unix.Munmap(memory)
	wire := unsafe.Slice((*chain)(unsafe.Pointer(&memory[0])), buckets)
	chains := make([]pool.Chain, buckets)
	for b, c := range wire {
		chains[b].Length, chains[b].Candidates, chains[b].Shadow = c.Length, c.Candidates, fromBigEndian(c.Shadow)
		for i, id := range c.IDs {
			chains[b].IDs[i] = fromBigEndian(id)
		}
	}
	return chains, nil
}
