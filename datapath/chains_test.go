package datapath

import (
	"errors"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/lb/pool"
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

// Whatever the order of generations, what is live is the one that was set last, and what is live is
// not written: large tables take turns, small ones are made anew.
func TestTablesTakeTurns(t *testing.T) {
	for _, buckets := range []int{testBuckets, largeTable} {
		generations := testGenerations(t, buckets)
		var live *ebpf.Map
		put := func(m *ebpf.Map) (err error) {
			if live != nil && m.FD() == live.FD() {
				t.Fatal("the live table was written")
			}
			live.Close()
			live, err = m.Clone()
			return err
		}
		t.Cleanup(func() { live.Close() })
		pair := (&Edge{}).newPair()
		t.Cleanup(func() { pair.close() })
		for _, turn := range []int{0, 1, 2, 3, 4, 5, 6, 7, 0, 4, 3, 3} {
			g := generations[turn]
			must(t, pair.set(g, put))
			sameChains(t, live, g)
			if kept := pair.live != nil || pair.spare != nil; kept != (buckets >= largeTable) {
				t.Errorf("of %d buckets tables are kept: %t", buckets, kept)
			}
		}
	}
}

// testGenerations follow one another; the last is a stranger.
func testGenerations(t *testing.T, buckets int) []*pool.Generation {
	t.Helper()
	members := make([]pool.Backend, 50)
	for i := range members {
		members[i] = pool.Backend{ID: uint16(i + 1), Weight: 1}
	}
	first, err := pool.New(pool.Spec{Buckets: buckets, Candidates: 2}, members, 0)
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
	return append(generations, stranger)
}

func sameChains(t *testing.T, table *ebpf.Map, g *pool.Generation) {
	t.Helper()
	chains, err := readChains(table)
	must(t, err)
	if len(chains) != g.Buckets() {
		t.Fatalf("%d chains, want %d", len(chains), g.Buckets())
	}
	for b := range chains {
		if chains[b] != g.Chain(b) {
			t.Fatalf("bucket %d is %v, want %v", b, chains[b], g.Chain(b))
		}
	}
}

// Tables of many services, small and large, are filled at once, changed one by one, and freed.
func TestFillChains(t *testing.T) {
	w := newWorld(t)
	e, err := OpenEdge(w.dir, edgeConfig(t))
	must(t, err)
	t.Cleanup(e.Close)
	var all []ServiceChains
	for i := range 2*tableBatch + 1 {
		buckets := 7 + i
		if i == tableBatch {
			buckets = largeTable + 1
		}
		all = append(all, ServiceChains{uint32(1 + i), testPool(t, buckets, 2, 1, 2, uint16(3+i))})
	}
	must(t, e.FillChains(all))
	live := func(index uint32) *ebpf.Map {
		var table *ebpf.Map
		must(t, e.maps["tables"].Lookup(index, &table))
		t.Cleanup(func() { table.Close() })
		return table
	}
	for _, s := range all {
		sameChains(t, live(s.Index), s.Generation)
	}
	for _, i := range []int{0, tableBatch, 2 * tableBatch} {
		s := all[i]
		next := testPool(t, s.Generation.Buckets(), 1, 9, 10)
		must(t, e.SetChains(s.Index, next))
		sameChains(t, live(s.Index), next)
		must(t, e.SetService(edgeServices[0], s.Index, s.Generation.Buckets()))
		if err := e.SetChains(s.Index, testPool(t, 5, 1, 1)); err == nil {
			t.Error("chains of another number of buckets than the service's were set")
		}
		sameChains(t, live(s.Index), next)
		must(t, e.DeleteService(edgeServices[0], true))
		must(t, e.DeleteChains(s.Index))
		if err := e.maps["tables"].Lookup(s.Index, new(*ebpf.Map)); !errors.Is(err,
			ebpf.ErrKeyNotExist) {
			t.Errorf("the table of a service that is gone: %v", err)
		}
		must(t, e.SetChains(s.Index, testPool(t, 5, 1, 1)))
	}
}
