package datapath

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/packettest"
	"sextant/lb/pool"
)

var encapsulationNames = map[Encapsulation]string{
	Carrier: packettest.Carrier, SRH: packettest.FullSRH, SRHReduced: packettest.ReducedSRH,
}

// TestEdgeCases: frames of all kinds, broken ones too, meet the fate that the shared table says,
// and no other counter rises.
func TestEdgeCases(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 2, 1, 2, 3)
	sides := map[string]Side{packettest.External: External, packettest.Internal: Internal,
		packettest.Mixed: Mixed}
	for _, test := range packettest.EdgeCases(t) {
		w.run(t, test.Name, func(t *testing.T) {
			w.edgeSubject(e, sides[test.Side]).check(t,
				test)
		})
	}
}

// TestEdgeCut: packets of all kinds, cut everywhere.
func TestEdgeCut(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 1)
	edge := w.edgeSubject(e, External)
	for kind, packet := range packettest.Kinds(packettest.Web4("A"), packettest.Web6("A")) {
		w.run(t, kind, func(t *testing.T) {
			for _, test := range packettest.EdgeCuts(t, packet) {
				edge.check(t, test)
			}
		})
	}
}

// TestEdgeEncapsulation compares the whole frame: every encapsulation with one to six ids, every
// kind of packet, no to two VLAN tags, with and without padding, and every way out.
func TestEdgeEncapsulation(t *testing.T) {
	w := newWorld(t)
	ids := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}
	for encapsulation, name := range encapsulationNames {
		e := tableEdge(t, w, encapsulation)
		edge := w.edgeSubject(e, External)
		for _, out := range []way{wayBack, wayElsewhere, wayUnknown} {
			out.lead(t, e)
			for n := 1; n <= pool.MaxChain; n++ {
				serveAll(t, e, 1, ids[:n]...)
				for kind, packet := range packettest.Kinds(packettest.Web4("A"),
					packettest.Web6("A")) {
					w.run(t, fmt.Sprintf("%s/%s/%d/%s", name, out.outcome, n, kind),
						func(t *testing.T) {
							checkEncapsulation(t, edge, name, packet, ids[:n], out)
						})
				}
			}
		}
	}
}

func checkEncapsulation(t *testing.T, edge subject, encapsulation string, packet packettest.Packet,
	ids []uint16, out way) {
	t.Helper()
	if packet.Flow().Protocol == 17 {
		ids = ids[:1]
	}
	want := packettest.Encapsulated(t, encapsulation, ids, label(packet.Flow()),
		packet.TrafficClass, packet.Bytes(t))
	checkEncapsulated(t, edge, packet, want, out)
}

// checkEncapsulated sends a packet under no to two VLAN tags, with and without padding, and
// compares the whole frame.
func checkEncapsulated(t *testing.T, edge subject, packet packettest.Packet, want []byte, out way) {
	t.Helper()
	for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
		for _, padding := range []string{"", "padding"} {
			in := packettest.FromClient(vlans...)
			in.Padding = []byte(padding)
			outcome, after := edge.process(t, in.Frame(t, packet.Bytes(t)))
			if outcome != out.outcome {
				t.Fatalf("%s, want %s", outcome, out.outcome)
			}
			packettest.WantFrame(t, after, out.out(in).Frame(t, want))
		}
	}
}

// TestEdgeTrafficClass: the outer traffic class is the inner one, ECN included.
func TestEdgeTrafficClass(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 9)
	for class := range 256 {
		for _, packet := range []packettest.Packet{packettest.Web4("S"), packettest.Web6("S")} {
			packet.TrafficClass = uint8(class)
			checkEncapsulation(t, w.edgeSubject(e, External), packettest.Carrier, packet,
				[]uint16{9}, wayElsewhere)
		}
	}
}

// TestEdgeDSCP: an edge with a DSCP of its own writes it into outer headers, beside the inner ECN;
// the packet inside stays as it is.
func TestEdgeDSCP(t *testing.T) {
	for _, dscp := range []int{0, 1, 46, 63} {
		checkOuterClass(t, func(c *EdgeConfig) { c.DSCP = dscp },
			func(class int) int { return 4*dscp + class%4 })
	}
}

// TestEdgeCompatibleECN: an edge without ECN writes Not-ECT into outer headers (RFC 6040 section
// 4.1, compatibility mode), beside the inner DSCP or its own; the packet inside stays as it is.
func TestEdgeCompatibleECN(t *testing.T) {
	checkOuterClass(t, func(c *EdgeConfig) { c.ECN = false },
		func(class int) int { return class / 4 * 4 })
	checkOuterClass(t, func(c *EdgeConfig) { c.ECN, c.DSCP = false, 46 },
		func(int) int { return 0xb8 })
}

// checkOuterClass compares packets of all traffic classes with what an edge with a setting sends.
func checkOuterClass(t *testing.T, set func(*EdgeConfig), outer func(class int) int) {
	t.Helper()
	w := newWorld(t)
	wayElsewhere.lead(t)
	names := map[Encapsulation]string{Carrier: packettest.Carrier, SRH: packettest.FullSRH}
	for encapsulation, name := range names {
		e := tableEdge(t, w, encapsulation, set)
		serveAll(t, e, 1, 9)
		for class := range 256 {
			for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("S")} {
				packet.TrafficClass = uint8(class)
				want := packettest.Encapsulated(t, name, []uint16{9}, label(packet.Flow()),
					uint8(outer(class)), packet.Bytes(t))
				checkEncapsulated(t, w.edgeSubject(e, External), packet, want, wayElsewhere)
			}
		}
	}
}

// TestEdgeLabelZero: a flow whose hash ends with 20 zero bits gets the label 1, as 0 would mean
// that there is none (RFC 6437 section 2).
func TestEdgeLabelZero(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 9)
	packet := packettest.Web4("S")
	for i := uint32(0); testHash(packet.Flow())&0xfffff != 0; i++ {
		packet.SrcPort = uint16(i)
		packet.Src = netip.AddrFrom4([4]byte{198, 51, byte(i >> 16), byte(i >> 24)})
	}
	checkEncapsulation(t, w.edgeSubject(e, External), packettest.Carrier, packet, []uint16{9},
		wayElsewhere)
}

// TestEdgeChain: a SYN is offered to the current candidates, other TCP to past ones too, UDP to
// one.
func TestEdgeChain(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	edge := w.edgeSubject(e, External)
	ids := []uint16{11, 12, 13, 14, 15, 16}
	for flags, visits := range map[string]int{"S": 2, "SF": 2, "SA": 6, "A": 6, "R": 6, "": 6} {
		serveAll(t, e, 2, ids...)
		checkEncapsulation(t, edge, packettest.Carrier, packettest.Web6(flags), ids[:visits],
			wayElsewhere)
	}
	nobody := func(name string, packet packettest.Packet, candidates int, ids ...uint16) {
		serveAll(t, e, candidates, ids...)
		edge.check(t, packettest.Case{Name: name, Frame: packettest.FromClient().Frame(t,
			packet.Bytes(t)), Want: "no_backend"})
	}
	nobody("nobody", packettest.Web4("A"), 0)
	nobody("nobody for a SYN", packettest.Web4("S"), 0)
	nobody("SYN without a candidate", packettest.Web6("S"), 0, 15)
	serveAll(t, e, 0, 15)
	checkEncapsulation(t, edge, packettest.Carrier, packettest.Web4("A"), []uint16{15},
		wayElsewhere)
}

// TestEdgeUnknownBackend: an id without a SID is no backend, wherever in the chain it is. The
// carrier needs no SID.
func TestEdgeUnknownBackend(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	frame := packettest.FromClient().Frame(t, packettest.Web4("A").Bytes(t))
	for encapsulation, want := range map[Encapsulation]string{Carrier: "redirect",
		SRH: "no_backend", SRHReduced: "no_backend"} {
		e := tableEdge(t, w, encapsulation)
		edge := w.edgeSubject(e, External)
		for _, unknown := range []uint16{1, 2, 3} {
			serveAll(t, e, 1, 1, 2, 3)
			edge.check(t, packettest.Case{Name: "all known", Frame: frame, Want: "redirect"})
			must(t, e.SetSID(unknown, netip.IPv6Unspecified()))
			edge.check(t, packettest.Case{Name: fmt.Sprintf("unknown %d", unknown), Frame: frame,
				Want: want})
		}
	}
}

// TestEdgeMTU: the outer packet fits the path MTU, to the byte. Padding does not count.
func TestEdgeMTU(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	for encapsulation, name := range encapsulationNames {
		e := tableEdge(t, w, encapsulation)
		serveAll(t, e, 3, 1, 2, 3)
		packet := packettest.Web6("A")
		around := len(packettest.Encapsulated(t, name, []uint16{1, 2, 3}, 1, 0, packet.Bytes(t)))
		packet.Payload = make([]byte, 1500-around)
		checkEncapsulation(t, w.edgeSubject(e, External), name, packet, []uint16{1, 2, 3},
			wayElsewhere)
		packet.Payload = append(packet.Payload, 0)
		outcome, _ := w.edgeSubject(e, External).process(t,
			packettest.FromClient().Frame(t, packet.Bytes(t)))
		if outcome != "too_big_answered" {
			t.Errorf("%s: a packet of 1501 bytes: %s", name, outcome)
		}
	}
}

// TestEdgeTraffic: packets and bytes of the inner packet are counted with the service and with the
// first backend.
func TestEdgeTraffic(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 2, 7, 8)
	packet := packettest.Web4("A")
	packet.Payload = bytes.Repeat([]byte("x"), 60)
	in := packettest.FromClient(100)
	in.Padding = make([]byte, 9)
	for range 3 {
		w.edgeSubject(e, External).process(t, in.Frame(t, packet.Bytes(t)))
	}
	want := Traffic{Packets: 3, Bytes: 300}
	got, err := e.ServiceTraffic(0, 7, 8)
	must(t, err)
	if diff := cmp.Diff(ServiceTraffic{All: want, Backends: []Traffic{want, {}}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
