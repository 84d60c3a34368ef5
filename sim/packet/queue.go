package packet

import "unsafe"

// queued is a packet that waits before a link, or is on it: what the next hops need to know of it.
// It lies in the queue itself, so that packets that pass many hops are not looked at.
type queued struct {
	at  Time  // when it arrives at the other end
	id  int32 // of packets
	way way
}

// way is where in routes a packet's link lies, or chosen if a switch chose it, and in the lowest
// bits the class of its size.
type way uint32

const (
	classBits     = 2
	chosen    way = 1<<(32-classBits) - 1
)

// Classes of sizes: most packets are full or without data; of others, the packet itself knows.
const (
	anySize way = iota
	fullSize
	emptySize
	classes = 1 << classBits
)

// place is the link's place in routes, or chosen.
func (w way) place() way { return w >> classBits }

// next is the way over the following link of the route.
func (w way) next() way { return w + 1<<classBits }

// wayOf is the way of a packet of a size whose link has a place in routes.
func (s *Simulation) wayOf(place way, size int32) way {
	class := anySize
	switch size {
	case s.sizeOf[fullSize]:
		class = fullSize
	case s.sizeOf[emptySize]:
		class = emptySize
	}
	return place<<classBits | class
}

// fifo is the packets before and on a link, in the order in which they arrive. They lie in chunks
// that all queues share; a chunk that was emptied last is used first, so that as much memory is in
// use as there are packets.
type fifo struct {
	head, tail  int32 // chunks
	first, last uint8 // of the first packet in head, and behind the last in tail
	count       int32
}

// chunkSize is such that a chunk fills a cache line.
const chunkSize = 4

// chunks are the memory of all queues.
type chunks struct {
	slab [][chunkSize]queued
	next []int32 // the chunk that follows in a queue, or in the list of free ones
	free int32
}

func (k *chunks) take() int32 {
	if c := k.free; c != none {
		k.free = k.next[c]
		return c
	}
	k.slab = append(k.slab, [chunkSize]queued{})
	k.next = append(k.next, none)
	return int32(len(k.slab) - 1)
}

func (k *chunks) release(c int32) {
	k.next[c] = k.free
	k.free = c
}

// first is the packet of a queue that arrives next.
func (k *chunks) first(q *fifo) *queued { return &k.slab[q.head][q.first%chunkSize] }

// pop removes the first packet of a queue.
func (k *chunks) pop(q *fifo) queued {
	x := k.slab[q.head][q.first%chunkSize]
	q.first++
	if q.count--; q.count == 0 || q.first >= chunkSize-1 {
		k.popped(q)
	}
	return x
}

// popped gives the first chunk of a queue back if it is empty.
func (k *chunks) popped(q *fifo) {
	switch {
	case q.count == 0:
		k.release(q.head)
	case q.first == chunkSize:
		emptied := q.head
		q.head, q.first = k.next[emptied], 0
		k.release(emptied)
	case q.head != q.tail:
		// The caller looks at the last packet of this chunk next, and soon at the next chunk.
		prefetch(unsafe.Pointer(&k.slab[k.next[q.head]]))
	}
}

// push adds a packet to a queue.
func (k *chunks) push(q *fifo, x queued) {
	if q.count == 0 || q.last == chunkSize {
		k.extend(q)
	}
	k.slab[q.tail][q.last%chunkSize] = x
	q.last++
	q.count++
}

// each calls a function for all packets of a queue, in their order.
func (k *chunks) each(q fifo, do func(queued)) {
	for at, c := q.first, q.head; q.count > 0; q.count-- {
		if at == chunkSize {
			at, c = 0, k.next[c]
		}
		do(k.slab[c][at])
		at++
	}
}

// extend gives a queue that is empty, or whose last chunk is full, another one.
func (k *chunks) extend(q *fifo) {
	c := k.take()
	if q.count == 0 {
		q.head, q.first = c, 0
	} else {
		k.next[q.tail] = c
	}
	q.tail, q.last = c, 0
}
