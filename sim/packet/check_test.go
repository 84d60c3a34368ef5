package packet

import (
	"testing"

	"sextant/te/topology"
)

// checked lets a run be checked again and again: no packet or byte is made or vanishes, what a
// sender believes of its segments agrees with its counts, and a receiver has what was sent.
func checked(t *testing.T, s *Simulation) {
	t.Helper()
	const often = 7 // packets are looked for after each seventh event, which takes long
	events := 0
	s.observe = func(int32) {
		all, in := s.totals, s.inFlight
		if all.Sent.Packets != all.Delivered.Packets+all.Dropped.Packets+all.Lost.Packets+
			in.Packets ||
			all.Sent.Bytes != all.Delivered.Bytes+all.Dropped.Bytes+all.Lost.Bytes+in.Bytes {
			t.Fatalf("at %d ps: %+v, and %+v under way", s.now, all, in)
		}
		if events++; events%often != 0 {
			return
		}
		packets := countPackets(s)
		if packets != in {
			t.Fatalf("at %d ps: %+v lie in queues and on links, but %+v are counted", s.now,
				packets, in)
		}
		checkBuffers(t, s)
		for i := range s.subflows {
			checkSubflow(t, s, &s.subflows[i])
		}
	}
}

// countPackets finds all packets by their links, not by counts.
func countPackets(s *Simulation) (found Count) {
	c := &s.calendar
	scheduled := func(id int32) {
		if e := &c.slab[id]; e.kind == vanish {
			found.add(s.packets.slab[e.flow].size)
		}
	}
	for _, d := range c.ready[c.pos:] {
		scheduled(d.id)
	}
	for i, d := range c.lanes.heads {
		if d.at != never {
			scheduled(d.id)
		}
		b := c.lanes.behind[i]
		for k := range b.count {
			scheduled(b.ring[(b.head+k)%uint32(len(b.ring))].id)
		}
	}
	for l := range c.wheel {
		for _, id := range c.wheel[l].head {
			for ; id != none; id = c.slab[id].next {
				scheduled(id)
			}
		}
	}
	for i := range s.links {
		s.packets.each(s.links[i].queue,
			func(id int32, _ way) { found.add(s.packets.slab[id].size) })
	}
	if s.lossless != nil {
		for i := range s.lossless.ports {
			s.packets.each(s.lossless.ports[i].waiting,
				func(id int32, _ way) { found.add(s.packets.slab[id].size) })
		}
	}
	for i := range s.paths.weaves { // held back by ConWeave
		for _, id := range s.paths.weaves[i].held {
			found.add(s.packets.slab[id].size)
		}
	}
	return found
}

// checkBuffers compares the bytes that are counted behind each link with the packets that came by
// it and wait or are being sent.
func checkBuffers(t *testing.T, s *Simulation) {
	t.Helper()
	if s.lossless == nil {
		return
	}
	ports := s.lossless.ports
	held, backlog := make([]int64, len(ports)), make([]int64, len(ports))
	for i := range ports {
		if ports[i].from != none {
			held[ports[i].from] += int64(ports[i].size)
		}
		s.packets.each(ports[i].waiting, func(id int32, w way) {
			e := &s.packets.slab[id]
			backlog[i] += int64(e.size)
			if e.flags&hopped == 0 {
				return
			}
			from := s.lossless.came[id]
			if s.links[from].to != Node(s.network.Graph.From(edgeOf(int32(i)))) {
				t.Fatalf("a packet that came by link %d waits for link %d", from, i)
			}
			held[from] += int64(e.size)
		})
	}
	for i := range ports {
		if p := &ports[i]; p.held != held[i] || p.backlog != backlog[i] || p.held > p.room {
			t.Fatalf("at %d ps: %d bytes behind link %d and %d before it are counted, which are "+
				"%d and %d; there is room for %d", s.now, p.held, i, p.backlog, held[i],
				backlog[i], p.room)
		}
	}
}

func checkSubflow(t *testing.T, s *Simulation, f *subflow) {
	t.Helper()
	if f.state != open {
		return
	}
	flight, missing := int32(0), int32(0)
	for seq := f.una; seq != f.nxt; seq++ {
		state := f.at(seq).state
		if state&inNetwork != 0 {
			flight++
		}
		if state&lost != 0 {
			missing++
			if int32(seq-f.lostFrom) < 0 {
				t.Fatalf("segment %d is lost, but lost ones are looked for from %d on", seq,
					f.lostFrom)
			}
		}
		if state&sacked != 0 && state&(inNetwork|lost) != 0 || state&inNetwork != 0 &&
			state&lost != 0 {
			t.Fatalf("segment %d has the state %b", seq, state)
		}
	}
	if flight != f.flight || missing != f.lostCount {
		t.Fatalf("at %d ps: %d segments are under way and %d lost, but %d and %d are counted",
			s.now, flight, missing, f.flight,
			f.lostCount)
	}
	r, beyond := &f.receiver, uint32(0)
	for i, b := range r.blocks {
		beyond += b.to - b.from
		if int32(b.from-r.next) <= 0 || int32(f.nxt-b.to) < 0 {
			t.Fatalf("block %d to %d, with %d missing and %d sent", b.from, b.to, r.next, f.nxt)
		}
		for _, o := range r.blocks[i+1:] {
			if int32(o.from-b.to) <= 0 && int32(b.from-o.to) <= 0 {
				t.Fatalf("blocks %v and %v touch", b, o)
			}
		}
	}
	if r.next+beyond != r.total || int32(r.next-f.una) < 0 || int32(f.nxt-r.next) < 0 {
		t.Fatalf("%d arrived, %d in order and %d beyond; %d are acknowledged and %d sent", r.total,
			r.next, beyond, f.una, f.nxt)
	}
	c := &s.connections[f.connection]
	if c.delivered > c.size-c.unassigned {
		t.Fatalf("%d bytes arrived of %d that were sent", c.delivered, c.size-c.unassigned)
	}
}

// line makes a network of hosts on both sides of one link: hosts 0 to n-1 on the left, n to 2n-1 on
// the right. Links of hosts are ten times as fast.
func dumbbell(t testing.TB, n int, rate int64, delay Time, q Queue) *Network {
	t.Helper()
	b := topology.NewBuilder("dumbbell", 1000)
	node := func(name string) topology.Node {
		v, err := b.AddNode(topology.NodeSpec{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	join := func(u, v topology.Node, kbps int64) {
		for range 2 {
			if _, err := b.AddEdge(topology.EdgeSpec{From: u, To: v, Weight: 1,
				CapacityKbps: kbps}); err != nil {
				t.Fatal(err)
			}
			u, v = v, u
		}
	}
	left, right := node("left"), node("right")
	join(left, right, rate/1000)
	for side, at := range []topology.Node{left, right} {
		for i := range n {
			join(node(string(rune('a'+side))+string(rune('0'+i/10))+string(rune('0'+i%10))), at,
				rate/100)
		}
	}
	network, err := NewNetwork(b.Build(),
		NetworkConfig{Delay: delay, Queue: q, HostQueue: &Queue{}})
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func begin(t testing.TB, c Config) *Simulation {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t testing.TB, s *Simulation, f Flow) int {
	t.Helper()
	h, err := s.Add(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}
