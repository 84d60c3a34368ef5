package packet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"sextant/te/topology"
	"sextant/te/topology/generate"
)

const mtu = 1500

// wires makes a topology of links like "a b", which have the rate in bit/s of each.
func wires(t *testing.T, rate int64, links ...[2]string) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("wires", 1000)
	nodes := map[string]topology.Node{}
	for _, l := range links {
		for _, name := range l {
			if _, known := nodes[name]; known {
				continue
			}
			v, err := b.AddNode(topology.NodeSpec{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			nodes[name] = v
		}
		for i := range 2 {
			if _, err := b.AddEdge(topology.EdgeSpec{From: nodes[l[i]], To: nodes[l[1-i]],
				Weight: 1, CapacityKbps: rate / 1000}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// stream is a host that sends full packets to another without heed, at about a rate: the time from
// one to the next varies by a tenth.
type stream struct {
	from, to string
	rate     float64 // bit/s
	start    Time
}

func streams(t *testing.T, n *Network, all ...stream) *Simulation {
	t.Helper()
	s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: 1})
	random := rand.New(rand.NewPCG(1, 2))
	host := func(name string) int {
		v, ok := n.Graph.Lookup(name)
		if !ok || n.host[v] == none {
			t.Fatalf("%s is no host", name)
		}
		return int(n.host[v])
	}
	for _, x := range all {
		if _, err := s.AddSource(Source{Src: host(x.from), Dst: host(x.to), Start: x.start,
			Next: func() (Time, int32) {
				return Time((0.9 + random.Float64()/5) * mtu * 8 / x.rate * float64(Second)), mtu
			}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// lostInside is how many packets nodes that forward dropped; hosts drop what they cannot send.
func lostInside(s *Simulation) (packets uint64) {
	for l := range s.links {
		if s.network.host[s.network.Graph.From(edgeOf(int32(l)))] == none {
			packets += s.links[l].stats.Drops
		}
	}
	return packets
}

func linkNamed(t *testing.T, n *Network, from, to string) int {
	t.Helper()
	u, _ := n.Graph.Lookup(from)
	v, _ := n.Graph.Lookup(to)
	for _, e := range n.Graph.Out(u) {
		if n.Graph.To(e) == v {
			return int(e)
		}
	}
	t.Fatalf("no link from %s to %s", from, to)
	return 0
}

// Hosts send to one host at the full rate of their links, each of which carries other packets the
// other way, so that pause frames wait. With twice the delay, two frames and a pause frame as
// headroom nothing is lost; with one frame less, something is.
func TestIncastHeadroom(t *testing.T) {
	for _, c := range []struct {
		senders int
		rate    float64
		delay   Time
	}{{2, 10e9, Microsecond}, {5, 10e9, 300 * Nanosecond}, {16, 100e9, 2020 * Nanosecond},
		{3, 1e9, 5 * Microsecond}} {
		var links [][2]string
		var all []stream
		for i := range c.senders {
			sender, other := fmt.Sprintf("s%02d", i), fmt.Sprintf("o%02d", i)
			links = append(links, [2]string{sender, "switch"}, [2]string{other, "switch"})
			all = append(all, stream{from: sender, to: "receiver", rate: c.rate},
				stream{from: other, to: sender, rate: 0.93 * c.rate,
					start: Time(i) * 77 * Nanosecond})
		}
		links = append(links, [2]string{"receiver", "switch"})
		exact := 2*c.delay.Seconds()*c.rate/8 + 2*mtu + 64
		lost := map[bool]uint64{}
		for _, less := range []bool{false, true} {
			headroom := int(math.Ceil(exact))
			if less {
				headroom -= mtu
			}
			n, err := NewNetwork(wires(t, int64(c.rate), links...), NetworkConfig{Delay: c.delay,
				HostQueue: &Queue{Bytes: 40 * mtu}, Lossless: &Lossless{XOFF: 8 * mtu, XON: 6 * mtu,
					Headroom: headroom, Frame: mtu}})
			if err != nil {
				t.Fatal(err)
			}
			s := streams(t, n, all...)
			checked(t, s)
			packet := Time(mtu * 8 / c.rate * float64(Second))
			s.Run(300 * packet)
			s.observe = nil // which takes long
			s.Run(30_000 * packet)
			lost[less] = lostInside(s)
			if computed := n.headroom(0, mtu); math.Abs(float64(computed)-exact) > 2 {
				t.Errorf("%+v: headroom %d bytes, want %g", c, computed, exact)
			}
			if s.totals.Delivered.Packets < 2000 || s.Pauses(0).Pauses < 10 {
				t.Errorf("%+v: %+v, %+v", c, s.totals, s.Pauses(0))
			}
		}
		if lost[false] != 0 || lost[true] == 0 {
			t.Errorf("%+v: %d packets are lost, and %d with a frame less", c, lost[false],
				lost[true])
		}
	}
}

// Behind the decision to pause come exactly the packets that begin until the frame has come: it
// takes 64 bytes and the delay, and what it is about has been under way for the delay, 10 packets.
// The receiver's link is so slow that nothing leaves meanwhile.
func TestPauseExact(t *testing.T) {
	const rate, packet = 1e9, mtu * 8 * Nanosecond
	n, err := NewNetwork(wires(t, rate, [2]string{"a", "switch"}, [2]string{"b", "switch"}),
		NetworkConfig{Delay: 10 * packet, HostQueue: &Queue{Bytes: 40 * mtu},
			Lossless: &Lossless{XOFF: 7 * mtu, XON: 3 * mtu, Headroom: -1, Frame: mtu},
			Scale: func(e topology.Edge) float64 {
				if e == 3 { // from the switch to b
					return 1e-3
				}
				return 1
			}})
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: 1})
	if _, err := s.AddSource(Source{Src: 0, Dst: 1, Next: ConstantRate(rate, mtu)}); err != nil {
		t.Fatal(err)
	}
	checked(t, s)
	s.Run(500 * packet)
	if p := s.Pauses(0); p.Peak != (7+21)*mtu || p.Pauses != 1 {
		t.Errorf("%d bytes and %d pauses, want 28 packets and one", p.Peak, p.Pauses)
	}
	// The seventh packet has come after 17 packets; the frame comes 10 and 64 bytes later.
	begins := 27*packet + 64*8*Nanosecond
	if p := s.Pauses(0); p.Paused != 500*packet-Time(begins) {
		t.Errorf("paused for %d ps, want from %d on", p.Paused, begins)
	}
	// All but three must leave; the first began after 11 packets.
	s.Run(40_000 * packet)
	leaves := (11+25*1000)*packet + 64*8*Nanosecond + 10*packet
	if p := s.Pauses(0); p.Pauses != 2 || p.Peak > (7+21)*mtu ||
		s.lossless.ports[0].since <= Time(leaves) {
		t.Errorf("%+v; the first pause ends after %d ps, and the second begins at %d", p, leaves,
			s.lossless.ports[0].since)
	}
}

// A flow to an idle host shares a link with one of N+1 flows to another: pauses spread, so that it
// gets as much as these, a part of 1/(N+1) of the rate, though it could have half of it as where
// full queues drop.
func TestVictimFlow(t *testing.T) {
	const rate = 1e9
	for _, local := range []int{2, 4, 9} {
		links := [][2]string{{"left", "right"}, {"a", "left"}, {"v", "left"}, {"r", "right"},
			{"w", "right"}}
		all := []stream{{from: "a", to: "r", rate: 0.97 * rate},
			{from: "v", to: "w", rate: 0.97 * rate}}
		for i := range local {
			name := fmt.Sprintf("l%d", i)
			links = append(links, [2]string{name, "right"})
			all = append(all, stream{from: name, to: "r", rate: 0.97 * rate})
		}
		for _, paused := range []bool{true, false} {
			c := NetworkConfig{Delay: Microsecond, HostQueue: &Queue{Bytes: 40 * mtu},
				Queue: Queue{Bytes: 50 * mtu}}
			if paused {
				c.Lossless = &Lossless{XOFF: 60 * mtu, XON: 58 * mtu, Headroom: -1, Frame: mtu}
			}
			n, err := NewNetwork(wires(t, rate, links...), c)
			if err != nil {
				t.Fatal(err)
			}
			s := streams(t, n, all...)
			checked(t, s)
			s.Run(2 * Millisecond)
			s.observe = nil
			s.Run(300 * Millisecond)
			got := float64(s.sources[1].got.Bytes) * 8 / rate / 0.3
			want := 0.5
			if paused {
				want = 1 / float64(local+1)
			}
			t.Logf("%d flows, paused %v: the victim has %.3f of the rate, want %.3f; %d victims",
				local, paused, got, want, s.VictimFlows())
			if math.Abs(got/want-1) > 0.05 {
				t.Errorf("%d flows, paused %v: the victim has %.3f of the rate, want %.3f", local,
					paused, got, want)
			}
			if p := s.Pauses(linkNamed(t, n, "left", "right")); paused &&
				(p.Victims == 0 || s.VictimFlows() != 1 || lostInside(s) > 0) ||
				!paused && p != (PauseStats{}) {
				t.Errorf("paused %v: %+v, %d flows delayed, %+v", paused, p, s.VictimFlows(),
					s.totals)
			}
		}
	}
}

// Five switches in a ring: flows over two links each make a cycle of buffers, which stops for
// ever; flows over one link each do not.
func TestDeadlock(t *testing.T) {
	const rate, around = 1e9, 5
	for over := 1; over <= 2; over++ {
		var links [][2]string
		var all []stream
		for i := range around {
			name := func(kind string, i int) string { return fmt.Sprint(kind, i%around) }
			links = append(links, [2]string{name("ring", i), name("ring", i+1)},
				[2]string{name("host", i), name("ring", i)})
			all = append(all, stream{from: name("host", i), to: name("host", i+over), rate: rate})
		}
		n, err := NewNetwork(wires(t, rate, links...), NetworkConfig{Delay: Microsecond,
			HostQueue: &Queue{Bytes: 40 * mtu},
			Lossless:  &Lossless{XOFF: 10 * mtu, XON: 8 * mtu, Headroom: -1, Frame: mtu}})
		if err != nil {
			t.Fatal(err)
		}
		s := streams(t, n, all...)
		checked(t, s)
		s.Run(5 * Millisecond)
		s.observe = nil
		s.Run(100 * Millisecond)
		before := s.totals
		stuck := s.Deadlocked()
		s.Run(200 * Millisecond)
		moved := s.totals.Delivered.Packets > before.Delivered.Packets ||
			lostInside(s) > 0
		if (over == 2) == moved || (len(stuck) >= around) == moved || moved && len(stuck) > 0 {
			t.Errorf("flows over %d links: %v are taken for deadlocked; after 100 ms %+v, after "+
				"200 ms %+v", over, stuck, before, s.totals)
		}
	}
}

// TCP over a fabric whose links fail: no full queue loses a packet, everything arrives, and buffers
// are empty in the end.
func TestLosslessTransport(t *testing.T) {
	g, err := generate.SpineLeaf(3, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9, Delay: Microsecond,
		Queue: Queue{Bytes: 6 * mtu, Mark: 4 * mtu}, HostQueue: &Queue{},
		Lossless: &Lossless{XOFF: 6 * mtu, XON: 4 * mtu, Headroom: -1, Frame: mtu}})
	if err != nil {
		t.Fatal(err)
	}
	for i, scheme := range packetSchemes {
		if scheme == Colored {
			continue // of fat trees alone
		}
		transport := DefaultTransport()
		transport.Control = []Control{Reno, Cubic, DCTCP}[i%3]
		transport.ECN = transport.Control == DCTCP
		done := 0
		s := begin(t, Config{Network: n, Transport: transport, Seed: uint64(i),
			Paths: Paths{Scheme: scheme, FlowletGap: 20 * Microsecond, Convergence: Millisecond,
				Controller: &Controller{Settings: prompt(), Sample: 0.2,
					Pause: 50 * Microsecond, Prompt: true, ReportDelay: 20 * Microsecond,
					ControlDelay: 50 * Microsecond}},
			Done: func(Completed) { done++ }})
		checked(t, s)
		const flows = 60
		for k := range flows {
			add(t, s, Flow{Src: k % 16, Dst: (k%16 + 4 + 4*(k%3)) % 16, Bytes: 60_000,
				Start: Time(k%8) * 100 * Microsecond})
		}
		spine, _ := g.Lookup("spine0")
		for _, link := range []int32{s.network.out[spine][0],
			s.network.reverse(s.network.out[spine][0])} {
			for up, at := range map[bool]Time{false: 600 * Microsecond, true: 5 * Millisecond} {
				if err := s.Schedule(Change{At: at, Link: int(link), Up: up}); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.Run(20 * Second)
		if done != flows || s.inFlight != (Count{}) || s.totals.Dropped.Packets != 0 {
			t.Errorf("scheme %d: %d of %d flows are done, %+v under way, %+v", scheme, done, flows,
				s.inFlight, s.totals)
		}
		pauses := uint64(0)
		for l := range s.links {
			pauses += s.Pauses(l).Pauses
			if s.lossless.ports[l].paused {
				t.Errorf("scheme %d: link %d is paused in the end", scheme, l)
			}
		}
		if pauses == 0 {
			t.Errorf("scheme %d: no pauses", scheme)
		}
	}
}

// What does not fit is refused.
func TestLosslessRefused(t *testing.T) {
	g := wires(t, 1e9, [2]string{"a", "switch"}, [2]string{"b", "switch"})
	for _, c := range []Lossless{{XOFF: 3000, XON: 3000, Frame: 1500},
		{XOFF: 3000, XON: -1, Frame: 1500}, {XOFF: 1000, XON: 500, Frame: 1500},
		{XOFF: 1000, XON: 500}} {
		if _, err := NewNetwork(g, NetworkConfig{Lossless: &c}); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	b := topology.NewBuilder("one way", 1000)
	for _, name := range []string{"a", "b"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.AddEdge(topology.EdgeSpec{From: 0, To: 1, Weight: 1,
		CapacityKbps: 1e6}); err != nil {
		t.Fatal(err)
	}
	if _, err := NewNetwork(b.Build(), NetworkConfig{Lossless: &Lossless{XOFF: 3000, XON: 1500,
		Frame: 1500}}); err == nil {
		t.Error("a link without a way back is taken")
	}
}
