package datapath

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Where all tables have as many buckets, finding a chain calls no function of the kernel; tables
// of that size, small and large, take turns as others do, and no other is taken.
func TestTablesAlike(t *testing.T) {
	w := newWorld(t)
	calls := map[int]int{}
	for _, buckets := range []int{0, testBuckets, largeTable} {
		config := edgeConfig(t)
		config.Buckets = buckets
		e, err := OpenEdge(w.dir, config)
		must(t, err)
		t.Cleanup(e.Close)
		calls[buckets] = callsOf(t, e.programs[External])
		if buckets == 0 {
			continue
		}
		for first := range uint16(3) {
			g := testPool(t, buckets, 2, first+1, first+2)
			must(t, e.SetChains(1, g))
			var table *ebpf.Map
			must(t, e.maps["tables"].Lookup(uint32(1), &table))
			sameChains(t, table, g)
			must(t, table.Close())
		}
		if err := e.SetChains(2, testPool(t, buckets+1, 1, 1)); err == nil {
			t.Errorf("a table of %d buckets was set beside those of %d", buckets+1, buckets)
		}
	}
	if calls[0]-calls[testBuckets] < 1 || calls[testBuckets] != calls[largeTable] {
		t.Errorf("the program has %v calls by the number of buckets of all tables", calls)
	}
}

// callsOf counts the calls of the kernel's functions in a program, as the kernel runs it.
func callsOf(t *testing.T, p *ebpf.Program) (calls int) {
	t.Helper()
	info, err := p.Info()
	must(t, err)
	instructions, err := info.Instructions()
	must(t, err)
	for _, i := range instructions {
		if i.OpCode.JumpOp() == asm.Call && !i.IsFunctionCall() {
			calls++
		}
	}
	return calls
}
