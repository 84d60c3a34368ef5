package datapath

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/pool"
)

// writeChains fills a table with chains that no generation has.
func writeChains(table *ebpf.Map, chains []chain) error {
	memory, err := mapChains(table, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return err
	}
	copy(chainsIn(memory), chains)
	return unix.Munmap(memory)
}

// Whatever the order of generations, what is live is the one that was set last, and the tables take turns.
func TestTablesTakeTurns(t *testing.T) {
	const buckets = 1021
	spec := pool.Spec{Buckets: buckets, Candidates: 2}
	members := make([]pool.Backend, 50)
	for i := range members {
		members[i] = pool.Backend{ID: uint16(i + 1), Weight: 1}
	}
	first, err := pool.New(spec, members, 0)
	must(t, err)
	generations := []*pool.Generation{first}
	for i := range 6 {
		members = slices.Clone(members)
		members[7*i].State = pool.State(i % 3)
		g, err := generations[i].Next(members, 0)
		must(t, err)
		generations = append(generations, g)
	}
	stranger, err := pool.New(pool.Spec{Buckets: buckets, Seed: 9, Candidates: 1}, members[:3], 0)
	must(t, err)
	var live *ebpf.Map
	put := func(m *ebpf.Map) error {
		if m == live {
			t.Fatal("the live table was written")
		}
		live = m
		return nil
	}
	var pair tablePair
	t.Cleanup(func() { pair.close() })
	for _, g := range append(append(generations, stranger), generations[0], generations[4], generations[3], generations[3]) {
		must(t, pair.set(buckets, g, put))
		chains, err := readChains(live)
		must(t, err)
		for b := range buckets {
			if chains[b] != g.Chain(b) {
				t.Fatalf("bucket %d is %v, want %v", b, chains[b], g.Chain(b))
			}
		}
	}
	small, err := pool.New(pool.Spec{Buckets: 7, Candidates: 1}, members, 0)
	must(t, err)
	if err := pair.set(buckets, small, put); err == nil {
		t.Error("a generation of another size was set")
	}
}
