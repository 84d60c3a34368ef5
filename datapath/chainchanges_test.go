package datapath

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/lb/pool"
)

// together is an edge with services small and large, each with a former table.
type together struct {
	*Edge
	t        *testing.T
	services int
	waits    int
}

func keyOf(index uint32) ServiceKey {
	return ServiceKey{VIP: hostVIPv6, Port: uint16(index), Protocol: 6}
}

func bucketsOfMany(i int) int {
	if i%17 == 3 {
		return largeTable + i
	}
	return 500 + i
}

func openTogether(t *testing.T, services int) *together {
	t.Helper()
	w := newWorld(t)
	config := edgeConfig(t)
	config.Former = FormerFlows{Known: true, Secret: formerSecret}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(e.Close)
	x := &together{e, t, services, 0}
	_, err = e.ChangeChains(x.generation(0, func(int) bool { return true }))
	must(t, err)
	for i := range services {
		must(t, e.SetService(keyOf(uint32(i)), uint32(i), bucketsOfMany(i)))
	}
	e.Await = func(slow func() error) error {
		x.waits++
		return slow()
	}
	return x
}

// generation is the n-th one of services.
func (x *together) generation(n int, of func(int) bool) (all []ServiceChains) {
	for i := range x.services {
		if !of(i) {
			continue
		}
		first := uint16(1 + (i+n)%200)
		all = append(all, ServiceChains{uint32(i), testPool(x.t, bucketsOfMany(i), 2, first,
			first+1, first+2)}, FormerChains(uint32(i), testPool(x.t, 300+i, 2, first+3, first+1)))
	}
	return all
}

// wants sees that the entries lead to these chains.
func (x *together) wants(all []ServiceChains) {
	x.t.Helper()
	for _, s := range all {
		index := s.Index % formerTables
		var entry service
		must(x.t, x.maps["services"].Lookup(keyOf(index).key(), &entry))
		at := entry.table()
		if s.Index != index {
			at = entry.formerTable()
		}
		block, err := openChains(x.maps["tables"], uint32(at.block), 1)
		must(x.t, err)
		sameChains(x.t, inHostOrder(block.of(at)), s.Generation)
		must(x.t, block.unmap())
	}
	wantPlaces(x.t, x.Edge)
}

// Tables that change together have afterwards the chains that they have one by one, whichever
// services change, and the edge waits a few times instead of once for each.
func TestChainsChangeTogether(t *testing.T) {
	const services = 120
	batch, single := openTogether(t, services), openTogether(t, services)
	random := rand.New(rand.NewPCG(1, 2))
	is := batch.generation(0, func(int) bool { return true })
	for n := 1; n < 6; n++ {
		some := batch.generation(n, func(int) bool { return random.IntN(n) == 0 })
		random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		batch.waits = 0
		changed, err := batch.ChangeChains(some)
		must(t, err)
		if changed != len(some) {
			t.Fatalf("%d of %d changed", changed, len(some))
		}
		if batch.waits > 4 {
			t.Errorf("the edge waited %d times for %d tables", batch.waits, len(some))
		}
		for _, s := range some {
			_, err := single.ChangeChains([]ServiceChains{s})
			must(t, err)
			i := slices.IndexFunc(is, func(of ServiceChains) bool { return of.Index == s.Index })
			is[i] = s
		}
		batch.wants(is)
		single.wants(is)
	}
}

// A list that wants more memory than a batch may have is changed in parts: a few blocks are there
// beside those of the live tables.
func TestBatchesAreBounded(t *testing.T) {
	const services, buckets = 100, largeTable - 1
	w := newWorld(t)
	e, err := OpenEdge(w.dir, edgeConfig(t))
	must(t, err)
	t.Cleanup(e.Close)
	change := func(g *pool.Generation) (blocks int) {
		var all []ServiceChains
		for i := range services {
			all = append(all, ServiceChains{uint32(i), g})
		}
		_, err := e.ChangeChains(all)
		must(t, err)
		wantPlaces(t, e)
		blocks, err = countEntries(e.maps["tables"])
		must(t, err)
		return blocks
	}
	first, then := testPool(t, buckets, 2, 1, 2, 3), testPool(t, buckets, 2, 2, 3, 4)
	before := change(first)
	for i := range services {
		must(t, e.SetService(keyOf(uint32(i)), uint32(i), buckets))
	}
	after := change(then)
	if more := after - before; more < 1 || more > batchPlaces/leastBlock+1 {
		t.Errorf("%d blocks hold %d tables, and %d do after a change", before, services, after)
	}
	for i := range services {
		sameChains(t, chainsIn(t, e, keyOf(uint32(i))), then)
	}
}

// Whatever fails in the middle, no table changes, none is lost, and the same works once it can.
func TestChainsThatCanNotChange(t *testing.T) {
	errWait := errors.New("no wait")
	for name, fault := range map[string]func(x *together) (mend func()){
		"an entry can't be written": func(x *together) func() {
			index := uint32(x.services / 2)
			ghost := keyOf(60000).key() // of which the kernel has no entry, and no room for one
			x.keys[index] = append(x.keys[index], ghost)
			x.entries[ghost] = service{Index: index}
			var filled []serviceKey
			for i := 0; ; i++ {
				key := ServiceKey{VIP: hostVIPv6, Port: uint16(i), Protocol: 200}.key()
				if x.maps["services"].Put(key, service{}) != nil {
					break
				}
				filled = append(filled, key)
			}
			return func() {
				x.keys[index] = x.keys[index][:1]
				delete(x.entries, ghost)
				for _, key := range filled {
					must(x.t, x.maps["services"].Delete(key))
				}
			}
		},
		"the wait fails": func(x *together) func() {
			before := x.Await
			x.Await = func(slow func() error) error {
				entry := x.entries[keyOf(0).key()]
				if entry.table() != x.live(0).tablePlace { // all lead to others
					return errWait
				}
				return slow()
			}
			return func() { x.Await = before }
		},
		"there is no room": func(x *together) func() {
			most := x.blocks.most
			x.blocks.most = len(x.blocks.blocks)
			var taken []*chainTable
			for _, length := range []int{30000, 1000, 100} {
				for {
					table, err := x.blocks.takeTable(length)
					if err != nil {
						break
					}
					taken = append(taken, table)
				}
			}
			return func() {
				x.blocks.most = most
				for _, table := range taken {
					table.close()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := openTogether(t, 40)
			all := func(int) bool { return true }
			before, next := x.generation(0, all), x.generation(1, all)
			mend := fault(x)
			for range 2 {
				if changed, err := x.ChangeChains(next); err == nil || changed != 0 {
					t.Fatalf("%d tables changed, error %v", changed, err)
				}
			}
			mend()
			x.wants(before)
			_, err := x.ChangeChains(next)
			must(t, err)
			x.wants(next)
			for number, pair := range x.chains {
				if len(pair.left) > 0 {
					t.Errorf("table %d: %d tables of failed changes are kept", number,
						len(pair.left))
				}
			}
		})
	}
}
