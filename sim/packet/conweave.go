package packet

// ConWeave (Song et al., "Network load balancing with in-network reordering support for RDMA",
// SIGCOMM 2023): the first switch of a flow measures the round-trip time to its last switch, and
// moves the flow when no reply comes in time, over a path on which no packet was marked lately. It
// moves it again only when the last switch has told that the old path is empty. The last switch
// holds back packets of the new path until the last one of the old path has come, or a time is
// over. Replies and notices go ahead of other packets and are small: they take the time of the
// links, and no queue.

// weaveTag is what the first switch writes into a packet, in packet.via.
type weaveTag struct {
	path          uint16
	epoch         uint8 // counts the moves of the flow
	tail, request bool  // last packet of the old path; a reply is wanted
}

const (
	weaveTail = 1 << (iota + 24)
	weaveRequest
)

func (t weaveTag) pack() int32 {
	v := int32(t.path) | int32(t.epoch)<<16
	if t.tail {
		v |= weaveTail
	}
	if t.request {
		v |= weaveRequest
	}
	return v
}

func unpackWeave(via int32) weaveTag {
	return weaveTag{uint16(via), uint8(via >> 16), via&weaveTail != 0, via&weaveRequest != 0}
}

// weaveFlow is one direction of a subflow, at its two switches.
type weaveFlow struct {
	// The first switch.
	table  int32 // none: not known
	pair   *weavePair
	path   int32
	epoch  uint8
	moved  bool // and not known to be in order again
	asked  Time // when a reply was asked for; never: none is
	answer Time // when the reply comes
	clear  Time // when the notice comes that all packets of the old path have
	last   Time

	// The last switch.
	tail    uint8   // epoch whose packets pass
	held    []int32 // packets that are held back
	expires Time
	timer   bool
}

// weavePair is what a switch knows of the paths to another.
type weavePair struct {
	busy  []Time // by path: until when it is avoided
	delay Time   // of the links of a path, one way
}

const (
	weaveInactive = 300 * Microsecond // after which a flow begins anew
	weaveSamples  = 2                 // paths that a switch looks at
)

// weave is the state of a packet's flow in its direction; nil if it has none.
func (s *Simulation) weave(e *packet) *weaveFlow {
	if e.kind == datagram {
		return nil
	}
	return &s.paths.weaves[weaveIndex(e)]
}

func weaveIndex(e *packet) int32 {
	if e.kind == acknowledgement || e.kind == synAck {
		return 2*e.flow + 1
	}
	return 2 * e.flow
}

// weaveBegin prepares both directions of a subflow that begins, or whose paths changed.
func (s *Simulation) weaveBegin(number int32) {
	for int(2*number+1) >= len(s.paths.weaves) {
		s.paths.weaves = append(s.paths.weaves, weaveFlow{})
	}
	for i := range int32(2) {
		w := &s.paths.weaves[2*number+i]
		w.table, w.pair, w.moved, w.asked, w.last = none, nil, false, never, -never/2
		w.tail = w.epoch
	}
}

// weaveDepart lets the first switch choose the path of a packet.
func (s *Simulation) weaveDepart(e *packet, w *weaveFlow) {
	if w.table == none {
		src, dst := s.ends(e)
		w.table = s.table(src, dst)
		w.pair = s.weavePairOf(src, dst, w.table)
	}
	paths := s.paths.tables[w.table].fabric
	if len(paths) == 0 {
		return
	}
	fresh := s.now-w.last > weaveInactive
	w.last = s.now
	if fresh {
		w.path, w.moved, w.asked = int32(s.paths.random.IntN(len(paths))), false, never
		if other, ok := s.weaveIdle(w, len(paths)); ok {
			w.path = other
		}
		w.epoch++ // what may still come of the old path is not waited for
		w.tail = w.epoch
	}
	tag := weaveTag{path: uint16(w.path), epoch: w.epoch}
	if w.moved && s.now >= w.clear {
		w.moved = false
	}
	switch {
	case w.moved:
	case w.asked == never || s.now >= w.answer:
		w.asked, w.answer, tag.request = s.now, never, true
	case s.now-w.asked > s.paths.Cutoff:
		if other, ok := s.weaveIdle(w, len(paths)); ok {
			tag.tail = true
			w.path, w.moved, w.clear, w.asked = other, true, never, never
			w.epoch++
			s.totals.Reroutes++
		}
	}
	e.via = tag.pack()
}

// weaveIdle looks at a few random paths for one on which no packet was marked lately.
func (s *Simulation) weaveIdle(w *weaveFlow, paths int) (int32, bool) {
	for range weaveSamples {
		p := int32(s.paths.random.IntN(paths))
		if p != w.path && w.pair.busy[p] <= s.now {
			return p, true
		}
	}
	return 0, false
}

// weaveHop is the link that a packet's path takes from a switch; none if it does not lead on.
func (s *Simulation) weaveHop(e *packet, w *weaveFlow, candidates []int32) int32 {
	if w == nil || e.via == none || w.table == none || int(w.table) >= len(s.paths.tables) {
		return none
	}
	paths := s.paths.tables[w.table].fabric
	if p := int(uint16(e.via)); p < len(paths) && int(e.hop) < len(paths[p]) {
		l := paths[p][e.hop]
		e.hop++
		if contains(candidates, l) {
			return l
		}
	}
	return none // routing changed while the packet was under way
}

// conweave chooses the next hop.
func (s *Simulation) conweave(e *packet, v Node, candidates []int32) int32 {
	w := s.weave(e)
	if src, _ := s.ends(e); w != nil && s.network.entry[src] == v {
		s.weaveDepart(e, w)
	}
	if l := s.weaveHop(e, w, candidates); l != none {
		return l
	}
	return candidates[hashed(mix(uint64(e.flow)))(v, len(candidates))]
}

// weaveArrived takes what a packet tells its last switch, and reports whether it is held back.
func (s *Simulation) weaveArrived(id int32, e *packet) bool {
	w := s.weave(e)
	if w == nil || e.via == none || w.pair == nil {
		return false
	}
	t := unpackWeave(e.via)
	e.via = none
	if e.flags&marked != 0 && int(t.path) < len(w.pair.busy) {
		w.pair.busy[t.path] = s.now + w.pair.delay + s.paths.Busy
	}
	if t.request && t.epoch == w.epoch {
		w.answer = s.now + w.pair.delay
	}
	if int8(t.epoch-w.tail) > 0 {
		s.weaveHold(id, e, w)
		return true
	}
	if t.tail && t.epoch == w.tail {
		// The packet itself goes ahead of those that it sets free.
		s.relay(id, e, s.network.access(e.route))
		s.weaveRelease(w)
		return true
	}
	return false
}

// weaveHold holds a packet back, and lets it go when Paths.Resume is over.
func (s *Simulation) weaveHold(id int32, e *packet, w *weaveFlow) {
	if len(w.held) == 0 {
		w.expires = s.now + s.paths.Resume
	}
	w.held = append(w.held, id)
	if !w.timer {
		w.timer = true
		s.at(resume, weaveIndex(e), w.expires)
	}
}

// weaveRelease lets the packets go that are held back.
func (s *Simulation) weaveRelease(w *weaveFlow) {
	w.tail = w.epoch
	if w.pair != nil {
		w.clear = s.now + w.pair.delay
	}
	for _, id := range w.held {
		e := &s.packets.slab[id]
		s.relay(id, e, s.network.access(e.route))
	}
	w.held = w.held[:0]
}

// weaveTimer lets packets go that waited too long.
func (s *Simulation) weaveTimer(id int32) {
	w := &s.paths.weaves[s.calendar.slab[id].flow]
	if len(w.held) > 0 && w.expires > s.now {
		s.calendar.schedule(id, w.expires)
		return
	}
	w.timer = false
	s.calendar.release(id)
	if len(w.held) > 0 {
		s.weaveRelease(w)
	}
}

// weavePairOf is the state of the paths between two switches.
func (s *Simulation) weavePairOf(src, dst Node, table int32) *weavePair {
	key := [2]Node{s.network.entry[src], s.network.entry[dst]}
	p := s.paths.pairs[key]
	if p == nil {
		paths := s.paths.tables[table].fabric
		p = &weavePair{busy: make([]Time, len(paths))}
		if len(paths) > 0 {
			p.delay = s.pathDelay(paths[0])
		}
		s.paths.pairs[key] = p
	}
	return p
}

// pathDelay is how long a bit takes over the links of a path.
func (s *Simulation) pathDelay(path []int32) (sum Time) {
	for _, l := range path {
		sum += s.links[l].delay
	}
	return sum
}

// prepareWeave completes the settings: a reply is late after a round trip of the longest path, with
// one queue that marks, and what is held back waits for two such queues.
func (s *Simulation) prepareWeave() {
	s.paths.pairs = map[[2]Node]*weavePair{}
	queue, delay := Time(0), Time(0)
	for l := range s.links {
		k := &s.links[l]
		if k.relay && s.network.relay[s.network.Graph.From(edgeOf(int32(l)))] {
			delay = max(delay, k.delay)
			queue = max(queue, min(k.mark, s.network.links[l].limit/2))
		}
	}
	const hops = 4
	if s.paths.Cutoff == 0 {
		s.paths.Cutoff = 2*hops*delay + queue
	}
	if s.paths.Busy == 0 {
		s.paths.Busy = max(8*Microsecond, queue)
	}
	if s.paths.Resume == 0 {
		s.paths.Resume = max(16*Microsecond, 2*queue)
	}
}
