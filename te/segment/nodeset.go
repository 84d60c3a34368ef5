package segment

import (
	"math/bits"

	"sextant/te/topology"
)

// nodeSet is a set of nodes that is quick to go through in ascending order.
type nodeSet struct{ words []uint64 }

func newNodeSet(nodes int) nodeSet { return nodeSet{make([]uint64, (nodes+63)/64)} }

func (s nodeSet) add(v topology.Node) { s.words[v>>6] |= 1 << (uint(v) & 63) }

func (s nodeSet) clear() { clear(s.words) }

// all goes through the nodes that are there when it comes by.
func (s nodeSet) all(yield func(topology.Node) bool) {
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			if !yield(topology.Node(64*i + bits.TrailingZeros64(word))) {
				return
			}
		}
	}
}
