package packet

// queued is what a queue knows of a packet that waits before a link, or is on it. Packets that pass
// many hops are not looked at themselves.
type queued struct {
	way       way
	following int32 // the link that comes next on its way; none: a host, or chosen by a switch
	next      int32 // the packet behind; none
	nextAt    Time  // when that one arrives at the other end
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

// following is the link that comes next on a way; none behind the last one, and if switches choose.
func (s *Simulation) following(w way) int32 {
	if w.place() == chosen {
		return none
	}
	return s.routes[w.place()+1]
}

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

// fifo is the packets before and on a link, in the order in which they arrive: a list of them.
type fifo struct{ head, tail int32 }

// empty is a queue without packets.
func empty() fifo { return fifo{none, none} }

func (q *fifo) empty() bool { return q.head == none }

// push puts a packet that arrives at a time behind the others of a queue.
func (p *packets) push(q *fifo, id int32, w way, following int32, at Time) {
	if q.empty() {
		q.head = id
	} else {
		last := &p.queued[q.tail]
		last.next, last.nextAt = id, at
	}
	q.tail = id
	x := &p.queued[id]
	x.way, x.following, x.next = w, following, none
}

// pop removes the first packet of a queue.
func (p *packets) pop(q *fifo) (id int32, x queued) {
	id = q.head
	x = p.queued[id]
	q.head = x.next
	return id, x
}

// each calls a function for all packets of a queue, in their order.
func (p *packets) each(q fifo, do func(id int32, w way)) {
	for id := q.head; id != none; id = p.queued[id].next {
		do(id, p.queued[id].way)
	}
}
