package datapath

import (
	"fmt"
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
		chains[b].Length, chains[b].Candidates = c.Length, c.Candidates
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
