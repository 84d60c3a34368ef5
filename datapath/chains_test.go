package datapath

import (
	"cmp"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/lb/pool"
)

// putChains gives a service chains that no generation has.
func putChains(e *Edge, index uint32, chains []chain) error {
	t, err := e.blocks.takeTable(len(chains))
	if err == nil {
		err = e.blocks.make()
	}
	if err != nil {
		return err
	}
	copy(t.chains(), chains)
	e.chains[index] = &tablePair{live: t}
	if _, err := e.lead(index, t.tablePlace); err != nil {
		return err
	}
	return e.letPass()
}

// chainsIn are those that the program finds for the service of a key.
func chainsIn(t testing.TB, e *Edge, key ServiceKey) []pool.Chain {
	t.Helper()
	var s service
	must(t, e.maps["services"].Lookup(key.key(), &s))
	block, err := openChains(e.maps["tables"], uint32(s.Block), unix.PROT_READ)
	must(t, err)
	defer block.unmap()
	return inHostOrder(block.of(s.table()))
}

// Whatever the order of generations, what is live is the one that was set last, and what packets
// under way may look at is not written: large tables take turns, small ones are written anew.
// Nothing else is kept.
func TestTablesTakeTurns(t *testing.T) {
	w := newWorld(t)
	e, err := OpenEdge(w.dir, edgeConfig(t))
	must(t, err)
	t.Cleanup(e.Close)
	for i, buckets := range []int{testBuckets, largeTable, leastBlock/2 - tableSlack} {
		generations, index := testGenerations(t, buckets), uint32(i)
		e.Await = nil
		must(t, e.SetService(edgeServices[i], index, buckets))
		must(t, e.SetChains(index, generations[7]))
		for _, turn := range []int{0, 1, 2, 3, 4, 5, 6, 7, 0, 4, 3, 3} {
			g, live := generations[turn], e.live(index)
			under := slices.Clone(live.chains())
			e.Await = func(slow func() error) error {
				if !slices.Equal(live.chains(), under) {
					t.Fatal("the live table was written")
				}
				return slow()
			}
			must(t, e.SetChains(index, g))
			sameChains(t, chainsIn(t, e, edgeServices[i]), g)
			if kept := e.chains[index].spare != nil; kept != (buckets >= largeTable) {
				t.Errorf("of %d buckets a second table is kept: %t", buckets, kept)
			}
		}
	}
	wantPlaces(t, e)
}

// wantPlaces sees that no place is taken but those of tables, each once.
func wantPlaces(t *testing.T, e *Edge) {
	t.Helper()
	taken := map[*chainBlock][]stretch{}
	for _, pair := range e.chains {
		for _, table := range append(pair.left, pair.live, pair.spare) {
			if table != nil {
				taken[table.in] = append(taken[table.in], table.all())
			}
		}
	}
	for n, block := range e.blocks.blocks {
		if block == nil {
			continue
		}
		all := append(taken[block], block.free...)
		slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.at, b.at) })
		end := e.blocks.all(uint32(n)).at
		for _, s := range all {
			if s.at != end {
				t.Fatalf("block %d: places from %d to %d are lost, or taken twice", n, end, s.at)
			}
			end = s.end()
		}
		if end != e.blocks.size {
			t.Fatalf("block %d has %d places", n, end)
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

func sameChains(t *testing.T, chains []pool.Chain, g *pool.Generation) {
	t.Helper()
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
	const services = 513
	w := newWorld(t)
	e, err := OpenEdge(w.dir, edgeConfig(t))
	must(t, err)
	t.Cleanup(e.Close)
	var all []ServiceChains
	for i := range services {
		buckets := 7 + i
		if i == services/2 {
			buckets = largeTable + 1
		}
		all = append(all, ServiceChains{uint32(1 + i), testPool(t, buckets, 2, 1, 2, uint16(3+i))})
	}
	must(t, e.FillChains(all))
	key := func(index uint32) ServiceKey {
		return ServiceKey{VIP: hostVIPv6, Port: uint16(index), Protocol: 6}
	}
	for _, s := range all {
		must(t, e.SetService(key(s.Index), s.Index, s.Generation.Buckets()))
		sameChains(t, chainsIn(t, e, key(s.Index)), s.Generation)
	}
	wantPlaces(t, e)
	for _, i := range []int{0, services / 2, services - 1} {
		s := all[i]
		next := testPool(t, s.Generation.Buckets(), 1, 9, 10)
		must(t, e.SetChains(s.Index, next))
		sameChains(t, chainsIn(t, e, key(s.Index)), next)
		if err := e.SetChains(s.Index, testPool(t, 5, 1, 1)); err == nil {
			t.Error("chains of another number of buckets than the service's were set")
		}
		sameChains(t, chainsIn(t, e, key(s.Index)), next)
		must(t, e.DeleteService(key(s.Index), false))
		must(t, e.DeleteChains(s.Index))
		wantPlaces(t, e)
		must(t, e.SetChains(s.Index, testPool(t, 5, 1, 1)))
	}
	var gone []uint32
	for i, s := range all {
		must(t, e.DeleteService(key(s.Index), false))
		if i < services/2 {
			must(t, e.DeleteChains(s.Index))
		} else {
			gone = append(gone, s.Index)
		}
	}
	wantPlaces(t, e)
	must(t, e.DeleteChains(gone...))
	wantPlaces(t, e)
	if left, err := countEntries(e.maps["tables"]); left != 0 || err != nil {
		t.Errorf("without a service there are %d blocks (%v)", left, err)
	}
}
