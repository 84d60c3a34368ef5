package pcc

import (
	"fmt"
	"slices"
	"strings"

	"sextant/lb/pool"
)

// steps calls do with each step that can happen in w, and the world after it. The last argument
// says that a host answered a packet of the flow with a RST although the flow's host is alive.
func (c *checker) steps(w world, do func(step, world, bool)) {
	// Of the shortest traces, the one is found whose steps come first here: the connection, then
	// changes, then a packet at one go.
	switch {
	case w.stray:
		c.straySteps(w, do)
	case w.packet.length > 0:
		c.arrivalSteps(w, do)
	case w.flow == unopened:
		c.sendSteps(w, do)
		c.synAckSteps(w, do)
	}
	c.edgeSteps(w, do)
	c.hostSteps(w, do)
	if w.ongoing() && w.packet.length == 0 && !w.stray {
		c.sendSteps(w, do)
		c.closeSteps(w, do)
	}
}

// hostSteps let a host go to another state.
func (c *checker) hostSteps(w world, do func(step, world, bool)) {
	if int(w.changes) == c.changes {
		return
	}
	away := 0
	for _, state := range w.hosts[:c.hosts] {
		if state != pool.Up {
			away++
		}
	}
	for h := range c.hosts {
		for _, to := range []pool.State{pool.Up, pool.Draining, pool.Down} {
			if to == w.hosts[h] || w.hosts[h] == pool.Up && away == c.away || !c.mayReturn(&w, h,
				to) {
				continue
			}
			next := w
			next.hosts[h] = to
			next.log[next.logged] = change{uint8(h), to}
			next.logged++
			next.changes++
			c.forget(&next) // if there is no edge
			if to == pool.Down {
				c.lose(&next, h)
			}
			do(step{what: hostChanges, host: int8(h), to: to}, next, false)
		}
	}
}

// mayReturn tells whether a host may go to a state. If it comes back known, it has been down until
// all edges knew it and no packet was on its way to it. If it comes back announced, it is draining
// first, until all edges know that.
func (c *checker) mayReturn(w *world, h int, to pool.State) bool {
	if c.comeback == "any" {
		return true
	}
	if w.hosts[h] == pool.Down {
		pending := slices.ContainsFunc(w.log[:w.logged],
			func(l change) bool { return int(l.host) == h })
		return !pending && !slices.Contains(w.packet.ids[:], uint16(h+1)) &&
			(to == pool.Draining || c.comeback != "announced")
	}
	if c.comeback != "announced" || w.hosts[h] != pool.Draining || to != pool.Up {
		return true
	}
	return !slices.ContainsFunc(w.edges[:c.edges],
		func(v view) bool { return v.up && v.hosts[h] == pool.Down })
}

// edgeSteps let an edge learn, die and start.
func (c *checker) edgeSteps(w world, do func(step, world, bool)) {
	for e := range c.edges {
		if !w.edges[e].up {
			c.startSteps(w, e, do)
			continue
		}
		c.holdSteps(w, e, do)
		for i, l := range w.log[:w.logged] {
			if w.edges[e].seen[i] {
				continue
			}
			next := w
			c.learn(&next, e, i)
			do(step{what: edgeLearns, edge: int8(e), host: int8(l.host), to: l.to}, next, false)
			if c.order == "shared" {
				break
			}
		}
		if c.restart != "never" && w.restarts == 0 {
			next := w
			next.edges[e].up = false
			if c.restart != "own" {
				next.edges[e] = view{}
			}
			next.edges[e].seen, next.edges[e].awaits = [changesMax]bool{}, [changesMax]bool{}
			if next.through == int8(e) {
				next.through = nobody
			}
			next.restarts++
			c.forget(&next)
			do(step{what: edgeDies, edge: int8(e)}, next, false)
		}
	}
}

// learn gives an edge an entry of the log. What it has not seen of the same host before is
// overtaken.
func (c *checker) learn(w *world, e, i int) {
	v := &w.edges[e]
	for j, l := range w.log[:i+1] {
		if l.host == w.log[i].host {
			v.seen[j] = true
		}
	}
	h, to := w.log[i].host, w.log[i].to
	if c.comeback == "held" {
		v.held[h] = to != pool.Down && (v.held[h] || v.hosts[h] == pool.Down)
	}
	v.hosts[h] = to
	v.generation = c.generation(onward, v.generation, c.use(v))
	c.forget(w)
}

// holdSteps let an edge end its hold of a host. It is longer than news take to reach all edges.
func (c *checker) holdSteps(w world, e int, do func(step, world, bool)) {
	for h := range c.hosts {
		pending := slices.ContainsFunc(w.log[:w.logged],
			func(l change) bool { return int(l.host) == h })
		if !w.edges[e].held[h] || pending {
			continue
		}
		next := w
		v := &next.edges[e]
		v.held[h] = false
		v.generation = c.generation(onward, v.generation, c.use(v))
		do(step{what: holdEnds, edge: int8(e), host: int8(h)}, next, false)
	}
}

// startSteps bring an edge back.
func (c *checker) startSteps(w world, e int, do func(step, world, bool)) {
	next := w
	v := &next.edges[e]
	other := w.edges[1-e]
	switch c.restart {
	case "empty":
		v.generation = c.generation(anew, 0, w.hosts)
	case "own":
		v.generation = c.generation(resumed, v.generation, w.hosts)
	case "peer":
		if !other.up {
			return
		}
		*v = view{generation: c.generation(resumed, other.generation, other.hosts),
			hosts: other.hosts, seen: other.seen}
	}
	if c.restart != "peer" {
		v.hosts = w.hosts
		for i := range w.logged {
			v.seen[i] = true
			v.awaits[i] = c.comeback == "held"
		}
	}
	v.up = true
	c.forget(&next)
	do(step{what: edgeStarts, edge: int8(e)}, next, false)
}

// sendSteps send the flow's next packet, or end it.
func (c *checker) sendSteps(w world, do func(step, world, bool)) {
	if w.flow == established {
		next := w
		next.flow = over
		do(step{what: flowEnds}, next, false)
	}
	for e := range c.edges {
		if !w.edges[e].serves() || w.begun() && !c.mayMove(&w, e) {
			continue
		}
		for _, chain := range c.arrangements(c.chain(&w.edges[e])) {
			next, what := w, dataSent
			next.packet = ongoing(c.policy, &chain)
			if w.flow == unopened {
				next.packet, next.flow, what = opening(&chain), opened, synSent
			}
			next.through = int8(e)
			if next.packet.length > 0 { // else the edge drops it
				do(step{what: what, edge: int8(e)}, next, false)
			}
			for _, id := range c.cached(&w, &chain) {
				moved, _ := chain.WithFront(id)
				next.packet = ongoing(c.policy, &moved)
				do(step{what: what, edge: int8(e)}, next, false)
			}
		}
	}
}

// arrangements are the orders that the candidates of a chain can have: edges may disagree about
// weights, and forget them.
func (c *checker) arrangements(chain pool.Chain) (all []pool.Chain) {
	if !c.orders {
		return []pool.Chain{chain}
	}
	var swap func(place int)
	swap = func(place int) {
		if place >= int(chain.Candidates) {
			all = append(all, chain)
			return
		}
		for other := place; other < int(chain.Candidates); other++ {
			chain.IDs[place], chain.IDs[other] = chain.IDs[other], chain.IDs[place]
			swap(place + 1)
			chain.IDs[place], chain.IDs[other] = chain.IDs[other], chain.IDs[place]
		}
	}
	swap(0)
	return all
}

// cached are the hosts that the edge's flow cache can name: if there is one, any, rightly or not.
func (c *checker) cached(w *world, chain *pool.Chain) []uint16 {
	if !c.cache || w.flow != established {
		return nil
	}
	return chain.IDs[:chain.Length]
}

// mayMove tells whether a packet of the flow may go through an edge.
func (c *checker) mayMove(w *world, e int) bool {
	return c.moves == "any" || int(w.through) == e || w.settled()
}

// arrivalSteps let the packet in flight arrive.
func (c *checker) arrivalSteps(w world, do func(step, world, bool)) {
	h := int8(w.packet.host()) - 1
	next := w
	next.packet = path{}
	switch {
	case w.hosts[h] == pool.Down:
		if w.flow == opened {
			next.flow = unopened // the client sends it again
		}
		do(step{what: packetLost}, next, false)
	case w.flow == opened:
		next.flow, next.owner = established, uint8(h)
		next.timeWait[h], next.halfOpen[h] = false, false
		do(step{what: synAccepted, host: h}, next, false)
		c.synAnsweredSteps(w, h, do)
		if w.packet.length > 1 && !c.matching.takes(false, w.timeWait[h]) {
			next = w
			next.packet = w.packet.rest()
			do(step{what: synPassed, host: h}, next, false)
		}
	default:
		own := int(w.owner) == int(h)
		if !own && c.matching.takes(own, w.timeWait[h]) {
			do(step{what: dataSwallowed, host: h}, next, true)
			return
		}
		on, verdict := w.packet.arrive(own)
		next.packet, next.stray = on, verdict == returned
		do(step{what: dataArrives, host: h}, next, verdict == reset)
		if w.flow == closing && verdict == taken {
			c.reuse(&next)
			do(step{what: finArrives, host: h}, next, false)
		}
	}
}

// straySteps let the stray arrive at an edge: where it came from, or where the nearest is by then.
func (c *checker) straySteps(w world, do func(step, world, bool)) {
	next := w
	next.stray = false
	if !slices.ContainsFunc(w.edges[:c.edges], func(v view) bool { return v.serves() }) {
		do(step{what: packetLost}, next, false)
	}
	for e := range c.edges {
		if !w.edges[e].serves() || !c.mayMove(&w, e) {
			continue
		}
		chain := c.chain(&w.edges[e])
		next.packet = shadowed(&chain)
		do(step{what: strayArrives, edge: int8(e)}, next, false)
	}
}

// finding is what an exploration found.
type finding struct {
	states int
	trace  []string // a shortest way to a broken connection; nil if there is none
}

// explore visits each world that can be reached, those in fewer steps first, until a connection
// breaks.
func (c *checker) explore() finding {
	type visit struct {
		world world
		from  int32
		step  step
	}
	first := c.begin()
	visited := map[world]struct{}{first: {}}
	queue := []visit{{world: first}}
	for i := 0; i < len(queue); i++ {
		broken := false
		c.steps(queue[i].world, func(s step, w world, violation bool) {
			if broken || w.flow == over {
				return // what follows does not matter
			}
			if _, known := visited[w]; known && !violation {
				return
			}
			visited[w] = struct{}{}
			queue = append(queue, visit{w, int32(i), s})
			broken = violation
		})
		if broken {
			var trace []string
			for at := int32(len(queue) - 1); at > 0; at = queue[at].from {
				trace = append(trace, c.describe(queue[at].step, &queue[at].world))
			}
			slices.Reverse(trace)
			return finding{len(visited), append(trace, queue[len(queue)-1].step.breaks())}
		}
	}
	return finding{states: len(visited)}
}

// describe writes a step, and what is new by it.
func (c *checker) describe(s step, w *world) string {
	text := s.String()
	switch s.what {
	case edgeLearns, edgeStarts:
		chain := c.chain(&w.edges[s.edge])
		text += fmt.Sprintf(": its chain is %v", chain.IDs[:chain.Length])
		if c.policy == pool.Shadow {
			text += fmt.Sprintf(", the shadow %d", chain.Shadow)
		}
	case synSent, dataSent, strayArrives:
		text += fmt.Sprintf(", for %v", w.packet.ids[:w.packet.length])
	}
	return strings.TrimSpace(text)
}
