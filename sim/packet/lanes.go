package packet

// laneCount is how many times ahead have a lane: those of full packets and of acknowledgements,
// over links that are busy and that are idle.
const laneCount = 4

// lanes are queues of events that are planned the same time ahead each, which come due in the order
// in which they are scheduled.
type lanes struct {
	heads  [laneCount]due  // the first event of each lane; at never: none
	ahead  [laneCount]Time // how long ahead its events are planned
	behind [laneCount]lane // the events behind the first
	missed Time            // how long ahead the last event was planned that found no lane
}

// lane is a ring of events.
type lane struct {
	ring        []due // a power of two
	head, count uint32
}

func newLanes() (l lanes) {
	for i := range l.heads {
		l.heads[i].at, l.ahead[i] = never, -1
		l.behind[i].ring = make([]due, 64)
	}
	return l
}

// begin puts an event that has no lane into an empty one if its time ahead is used twice in a row,
// and reports whether it did.
func (l *lanes) begin(d due, ahead Time) bool {
	if ahead == l.missed {
		for i := range l.heads {
			if l.heads[i].at == never {
				l.heads[i], l.ahead[i] = d, ahead
				return true
			}
		}
	}
	l.missed = ahead
	return false
}

// first is the first event of all lanes, and its lane; at is never if there is none.
func (l *lanes) first() (due, int32) {
	best := 0
	for i := 1; i < laneCount; i++ {
		if l.heads[i].before(l.heads[best]) {
			best = i
		}
	}
	return l.heads[best], int32(best)
}

// drop removes the first event of a lane.
func (l *lanes) drop(i int32) {
	if b := &l.behind[i]; b.count > 0 {
		l.heads[i] = b.ring[b.head&uint32(len(b.ring)-1)]
		b.head++
		b.count--
	} else {
		l.heads[i].at = never
	}
}

// grow doubles a ring that is full.
func (b *lane) grow() {
	ring := make([]due, 2*len(b.ring))
	for i := range b.count {
		ring[i] = b.ring[(b.head+i)&uint32(len(b.ring)-1)]
	}
	b.ring, b.head = ring, 0
}
