package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/packettest"
	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// steerPorts gives the head-end rules by ports, by protocol, and for all else, of which the last
// one splits flows.
func steerPorts(t testing.TB, ends twoHeadends) {
	t.Helper()
	policy := func(name string, index uint32, lists ...srpolicy.List) srpolicy.Policy {
		path := srpolicy.CandidatePath{Name: "only", Action: srpolicy.SplitFlow, Lists: lists}
		return srpolicy.Policy{Name: name, Index: index, Paths: []srpolicy.CandidatePath{path}}
	}
	list := func(sids ...string) srpolicy.List {
		var l srpolicy.List
		for _, sid := range sids {
			l.Segments = append(l.Segments, netip.MustParseAddr(sid))
		}
		return l
	}
	near, far, last := "fcbb:bb00:1:e::", "fcbb:bb00:2:e::", "fcbb:bb00:6:f::"
	table, err := srpolicy.Compile([]srpolicy.Rule{
		{Match: srpolicy.Match{Protocol: 17, DestinationPorts: srpolicy.Ports{First: 50, Last: 60}},
			Policy: "ports"},
		{Match: srpolicy.Match{Protocol: 17}, Policy: "udp"},
		{Policy: "all"},
	}, []srpolicy.Policy{
		policy("ports", 0, list(near)), policy("udp", 1, list(far)),
		policy("all", 2, list(near, last), list(far, last), list(near, near, last)),
	}, ends.program.Source(), nil)
	must(t, err)
	must(t, ends.program.SetTable(table))
	ends.model.Table = table
}

// datagram is a packet of any protocol. Its data looks like a UDP header with port 53 wherever it
// is cut; IPv6 can have options behind the fragment header.
func datagram(random *rand.Rand) packettest.Packet {
	p := packettest.Packet{
		Src: netip.MustParseAddr("2001:db8:c1::7"), Dst: netip.MustParseAddr("2001:db8:80::80"),
		SrcPort: uint16(random.Uint32()), DstPort: uint16(40 + random.IntN(30)), Flags: "A",
		Payload: make([]byte, 64+random.IntN(2500)),
	}
	for at := 0; at+8 <= len(p.Payload); at += 8 {
		binary.BigEndian.PutUint64(p.Payload[at:], uint64(random.IntN(1<<16))<<48|53<<32|8<<16)
	}
	if random.IntN(2) == 0 {
		p.Src, p.Dst = netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("198.51.100.80")
	} else if random.IntN(2) == 0 {
		p = p.Behind(layers.IPProtocolIPv6Destination,
			packettest.Extension(layers.IPProtocolUDP, 1))
		p.Protocol = layers.IPProtocolUDP
	}
	if p.Protocol == 0 && random.IntN(3) > 0 {
		p.Protocol = layers.IPProtocolUDP
	}
	return p
}

// cut cuts a packet anywhere, and shuffles its fragments. What those of IPv6 say of the upper layer
// is looked at in the first one alone (RFC 8200 section 4.5): others say anything.
func cut(random *rand.Rand, ip []byte) (parts [][]byte) {
	data := len(ip) - 40
	if ip[0]>>4 == 4 {
		data = len(ip) - 20
	}
	id := uint32(8+random.IntN(16))<<16 | uint32(random.IntN(1<<16)) // a UDP length, read as one
	for from := 0; from < data; {
		to := min(data, from+8*(1+random.IntN(150)))
		if from == 0 {
			to = min(to, data-1) &^ 7
		}
		part := packettest.Part(ip, id, from, to)
		if part[0]>>4 == 6 && from > 0 && random.IntN(4) == 0 {
			part[40] = byte(random.Uint32())
		}
		parts, from = append(parts, part), to
	}
	random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return parts
}

// takenWay is where a steered packet goes: its outer destination and flow label.
func takenWay(after []byte) string {
	outer := after[ethernetHeader:]
	return string(outer[1:4]) + string(outer[24:40])
}

// TestHeadendFragments: all fragments of a packet, cut anywhere, take one list, whatever is in it,
// and no rule that names ports, as the model says; whole packets take the lists of their rules.
func TestHeadendFragments(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, External)
	steerPorts(t, ends)
	arrival := newRunner(ends.program.programs[External], w.near)
	random := rand.New(rand.NewPCG(5, 5))
	steered := func(ip []byte) (entry int, to string) {
		frame := packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t, ip)
		want := ends.model.Process(uint32(w.near), 0, frame)
		verdict, after := arrival.run(t, frame)
		if !agree(t, frame, verdict, after, want.Results[0]) || len(want.Lists) == 0 {
			t.Fatalf("entry %d, lists %v: %x", want.Entry, want.Lists, ip)
		}
		return want.Entry, takenWay(after)
	}
	entries, fragments := map[int]int{}, map[int]int{}
	for range 2000 {
		packet := datagram(random)
		ip := packet.Bytes(t)
		udp := packet.Protocol == layers.IPProtocolUDP
		if len(ip) < 1300 { // with the outer headers, what fits
			entry, _ := steered(ip)
			want := 2
			if udp {
				want = 1
			}
			if udp && packet.DstPort >= 50 && packet.DstPort <= 60 {
				want = 0
			}
			if entry != want {
				t.Fatalf("a packet of protocol %d to port %d met rule %d, want %d", packet.Protocol,
					packet.DstPort, entry+1, want+1)
			}
			entries[entry]++
		}
		want, first := 2, ""
		if udp && packet.Dst.Is4() {
			want = 1
		}
		for i, part := range cut(random, ip) {
			entry, to := steered(part)
			if i == 0 {
				first = to
			}
			if entry != want || to != first {
				t.Fatalf("a fragment met rule %d, want %d; the same way as another one: %t\n%x",
					entry+1, want+1, to == first, part)
			}
			fragments[entry]++
		}
	}
	if len(entries) != 3 || len(fragments) != 2 {
		t.Errorf("packets by rule %v, fragments %v: the test misses", entries, fragments)
	}
}

// TestHeadendFragmentsOfFlows: a flow's own path is for its whole packets. Its fragments, the first
// too, go with those of all flows of its addresses.
func TestHeadendFragmentsOfFlows(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, External)
	steerPorts(t, ends)
	arrival := newRunner(ends.program.programs[External], w.near)
	ends.model.Flows = map[flow.Tuple]srpolicy.Header{}
	for _, packet := range []packettest.Packet{
		packettest.Web6("A").To(netip.MustParseAddr("2001:db8:80::80"), 80),
		packettest.Web4("A").To(netip.MustParseAddr("198.51.100.80"), 80),
	} {
		packet.Payload = make([]byte, 100)
		header := flowHeaders(t, ends.program.Source())[1]
		must(t, ends.program.SetFlow(packet.Flow(), header, time.Hour))
		ends.model.Flows[packet.Flow()] = header
		for i, ip := range append(parts(t, packet, 7), packet.Bytes(t)) {
			frame := packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t, ip)
			want := ends.model.Process(uint32(w.near), 0, frame)
			verdict, after := arrival.run(t, frame)
			own := i == 3
			if want.Flow != own || !agree(t, frame, verdict, after, want.Results[0]) {
				t.Errorf("part %d of %v: by its flow %t, want %t", i, packet.Flow(), want.Flow, own)
			}
		}
	}
}
