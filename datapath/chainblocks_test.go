package datapath

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// placesOracle are the places of blocks, each by itself: true is taken.
type placesOracle [][]bool

// first are the first free places that are enough, in the first block that has such.
func (o placesOracle) first(length uint32) (block, at uint32, ok bool) {
	for n, places := range o {
		run := uint32(0)
		for i, taken := range places {
			if run++; taken {
				run = 0
			}
			if run == length {
				return uint32(n), uint32(i) + 1 - length, true
			}
		}
	}
	return 0, 0, false
}

func (o placesOracle) mark(block uint32, s stretch, taken bool) {
	for i := s.at; i < s.end(); i++ {
		o[block][i] = taken
	}
}

// TestPlacesOfTables: tables of random sizes come and go until blocks are full and until they are
// empty; each gets the places that looking at each place finds. A next agent, which knows the
// tables alone, in any order, has the same places free.
func TestPlacesOfTables(t *testing.T) {
	const size, most = 64, 5
	random := rand.New(rand.NewPCG(1, 2))
	b := &chainBlocks{size: size, most: most}
	oracle := make(placesOracle, most)
	for n := range oracle {
		oracle[n] = make([]bool, size)
	}
	oracle[0][0] = true
	type table struct {
		block uint32
		stretch
	}
	var tables []table
	full := 0
	for step := range 20_000 {
		if grows := step/500%2 == 0; len(tables) > 0 && (random.IntN(3) == 0) == grows {
			i := random.IntN(len(tables))
			gone := tables[i]
			b.blocks[gone.block].give(gone.stretch)
			oracle.mark(gone.block, gone.stretch, false)
			tables = slices.Delete(tables, i, i+1)
			continue
		}
		length := 1 + random.Uint32N(size+2)>>random.IntN(6)
		block, at, err := b.take(length)
		wantBlock, wantAt, ok := oracle.first(length)
		if ok != (err == nil) || ok && (block != wantBlock || at != wantAt) {
			t.Fatalf("step %d: %d places at %d in block %d (%v), want %d in %d (%t)", step, length,
				at, block, err, wantAt, wantBlock, ok)
		}
		if !ok {
			full++
			continue
		}
		tables = append(tables, table{block, stretch{at, length}})
		oracle.mark(block, stretch{at, length}, true)
		if step%100 == 0 {
			next := &chainBlocks{size: size, most: most}
			for n := range b.blocks {
				next.put(uint32(n), next.emptyBlock(uint32(n)))
			}
			for _, i := range random.Perm(len(tables)) {
				if !next.blocks[tables[i].block].claim(tables[i].stretch) {
					t.Fatalf("step %d: places of a table are not free for the next agent", step)
				}
			}
			for n, block := range next.blocks {
				if !slices.Equal(block.free, b.blocks[n].free) {
					t.Fatalf("step %d, block %d: %v are free for the next agent, not %v", step, n,
						block.free, b.blocks[n].free)
				}
			}
			if next.blocks[block].claim(stretch{at, 1}) {
				t.Fatalf("step %d: a place is taken twice", step)
			}
		}
	}
	if full < 100 {
		t.Errorf("blocks were full %d times", full)
	}
}
