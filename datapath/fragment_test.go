package datapath

import (
	"net/netip"
	"testing"

	"sextant/datapath/packettest"
	"sextant/packet/flow"
)

// TestEdgeFragments: the sequences of the shared table.
func TestEdgeFragments(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 2, 1, 2, 3)
	for _, sequence := range packettest.EdgeFragments(t) {
		w.run(t, sequence.Name, func(t *testing.T) {
			for _, step := range sequence.Steps {
				w.edgeSubject(e, External).check(t, packettest.Case{
					Name: sequence.Name, Frame: packettest.FromClient().Frame(t, step.Packet),
					Want: step.Want,
				})
			}
		})
	}
}

// TestEdgeFragmentWay compares the whole frames: later fragments go to the first one's chain, under
// its flow label.
func TestEdgeFragmentWay(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 2, 11, 12, 13)
	for _, packet := range []packettest.Packet{packettest.Web4("S"), packettest.Web6("S"),
		packettest.Web4("A"), packettest.Web6("A")} {
		ids := []uint16{11, 12, 13}
		if packet.Flags == "S" {
			ids = ids[:2]
		}
		packet.Payload = make([]byte, 100)
		in := packettest.FromClient()
		for _, part := range parts(t, packet, 77) {
			outcome, after := w.edgeSubject(e, External).process(t, in.Frame(t, part))
			if outcome != "redirected" {
				t.Fatal(outcome)
			}
			packettest.WantFrame(t, after, wayElsewhere.out(in).Frame(t,
				packettest.Encapsulated(t, packettest.Carrier, ids, label(packet.Flow()), 0, part)))
		}
	}
}

// parts are the fragments of a packet with 100 bytes behind its TCP header.
func parts(t testing.TB, packet packettest.Packet, id uint32) [][]byte {
	ip := packet.Bytes(t)
	return [][]byte{packettest.Part(ip, id, 0, 40), packettest.Part(ip, id, 40, 80),
		packettest.Part(ip, id, 80, 120)}
}

// TestEdgeFragmentsForgotten: memory is bounded. What is forgotten is lost, and counted.
func TestEdgeFragmentsForgotten(t *testing.T) {
	const packets = 40_000
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 1)
	edge := w.edgeSubject(e, External)
	packet := packettest.Web6("A")
	packet.Payload = make([]byte, 100)
	ip := packet.Bytes(t)
	before := edge.counts(t)
	for id := range uint32(packets) {
		edge.run(t, packettest.FromClient().Frame(t, packettest.Part(ip, id, 0, 40)))
	}
	for id := range uint32(packets) {
		edge.run(t, packettest.FromClient().Frame(t, packettest.Part(ip, id, 40, 80)))
	}
	after := edge.counts(t)
	lost, sent := after["fragment_without_first"]-before["fragment_without_first"],
		after["redirected"]-before["redirected"]
	if lost+sent != 2*packets || lost < packets-uint64(e.maps["fragments"].MaxEntries()) {
		t.Errorf("%d of %d fragments are sent on and %d lost", sent, 2*packets, lost)
	}
	if last, _ := edge.run(t, packettest.FromClient().Frame(t,
		packettest.Part(ip, packets, 0, 40))); last != xdpRedirect {
		t.Errorf("a new first fragment: verdict %d", last)
	}
	if verdict, _ := edge.run(t, packettest.FromClient().Frame(t,
		packettest.Part(ip, packets, 40, 80))); verdict != xdpRedirect {
		t.Errorf("its second: verdict %d", verdict)
	}
}

// carrierOfTwo offers to the host of the tables, and to another one then.
var carrierOfTwo = netip.MustParseAddr("fcbb:bb00:1:2::")

// TestHostFragments: a host takes the fragments of packets of its connections, by real sockets, and
// passes the others on.
func TestHostFragments(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	_, host := tableHost(t, w)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	for _, tuple := range []flow.Tuple{
		established(t, listen(t, hostVIPv6), clientV6), established(t, listen(t, hostVIPv4),
			clientV4),
	} {
		packet := packettest.Packet{Src: tuple.Src, Dst: tuple.Dst, SrcPort: tuple.SrcPort,
			DstPort: tuple.DstPort, Flags: "A", Payload: make([]byte, 100)}
		foreign := packet
		foreign.SrcPort ^= 1
		for want, packet := range map[string]packettest.Packet{"taken": packet,
			"redirected": foreign} {
			id := uint32(packet.SrcPort)
			for i, part := range parts(t, packet, id) {
				frame := packettest.FromClient().Frame(t,
					packettest.To(carrierOfTwo).Around(t, part))
				outcome, after := host.process(t, frame)
				if outcome != want {
					t.Errorf("fragment %d of %v: %s, want %s", i, packet.Flow(), outcome, want)
				}
				if outcome == "taken" {
					packettest.WantFrame(t, after, packettest.FromClient().Frame(t, part))
				}
			}
		}
	}
}
