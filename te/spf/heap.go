package spf

import "sextant/te/topology"

// Item is a node in a queue with the cost it is ordered by.
type Item struct {
	Cost uint64
	Node topology.Node
}

func (a Item) before(b Item) bool {
	return a.Cost < b.Cost || a.Cost == b.Cost && a.Node < b.Node
}

// Heap is a priority queue of nodes: lowest cost first, then lowest number. A node may be in it
// several times; who lowers a cost pushes again and skips what is out of date when it comes. The
// zero Heap is empty.
type Heap []Item

// Push adds an item.
func (h *Heap) Push(it Item) {
	items := append(*h, it)
	i := len(items) - 1
	for i > 0 {
		parent := (i - 1) / heapArity
		if !it.before(items[parent]) {
			break
		}
		items[i] = items[parent]
		i = parent
	}
	items[i] = it
	*h = items
}

// heapArity: four children share a cache line, and most pushes end after one comparison.
const heapArity = 4

// Pop removes the first item. The heap must not be empty.
func (h *Heap) Pop() Item {
	items := *h
	first, last := items[0], items[len(items)-1]
	items = items[:len(items)-1]
	*h = items
	if len(items) == 0 {
		return first
	}
	i := 0
	for {
		least, child := -1, heapArity*i+1
		for c := child; c < min(child+heapArity, len(items)); c++ {
			if least < 0 || items[c].before(items[least]) {
				least = c
			}
		}
		if least < 0 || !items[least].before(last) {
			break
		}
		items[i] = items[least]
		i = least
	}
	items[i] = last
	return first
}
