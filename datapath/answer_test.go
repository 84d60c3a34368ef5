package datapath

import (
	"fmt"
	"testing"

	"sextant/datapath/packettest"
)

// TestEdgeEcho compares the whole frame.
func TestEdgeEcho(t *testing.T) {
	w := newWorld(t)
	edge := w.edgeSubject(tableEdge(t, w, Carrier), External)
	for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
		for _, size := range []int{0, 1, 56, 1400} {
			for name, ip := range map[string][2][]byte{
				"IPv4": {
					packettest.ICMP(t, packettest.Client4, packettest.VIP4, 8, 0, 7,
						make([]byte, size)),
					packettest.WithHopLimit(packettest.ICMP(t, packettest.VIP4, packettest.Client4,
						0, 0, 7, make([]byte, size)), 63),
				},
				"IPv6": {
					packettest.ICMP(t, packettest.Client6, packettest.VIP6, 128, 0, 7,
						make([]byte, size)),
					packettest.WithHopLimit(packettest.ICMP(t, packettest.VIP6, packettest.Client6,
						129, 0, 7, make([]byte, size)), 63),
				},
			} {
				w.run(t, fmt.Sprintf("%s/%d/%v", name, size, vlans), func(t *testing.T) {
					in := packettest.FromClient(vlans...)
					in.Padding = []byte("padding")
					outcome, after := edge.process(t, in.Frame(t, ip[0]))
					if outcome != "echoed" {
						t.Fatal(outcome)
					}
					packettest.WantFrame(t, after, turned(in).Frame(t, ip[1]))
				})
			}
		}
	}
}

// turned is the way back.
func turned(in packettest.Link) packettest.Link {
	in.Src, in.Dst = in.Dst, in.Src
	return in
}

// TestEdgeTooBig compares the whole frame with which the client is told the MTU that is left
// inside, to the byte.
func TestEdgeTooBig(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	for encapsulation, name := range encapsulationNames {
		e := tableEdge(t, w, encapsulation)
		ids := []uint16{1, 2, 3}
		serveAll(t, e, 3, ids...)
		for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A"),
			packettest.Web6("").Of(17)} {
			visits := ids
			if packet.Protocol == 17 {
				visits = ids[:1]
			}
			for _, size := range []int{1441, 1461, 1500, 2500} {
				packet.Payload = make([]byte, size)
				ip := packet.Bytes(t)
				overhead := len(packettest.Encapsulated(t, name, visits, 1, 0, ip)) - len(ip)
				in := packettest.FromClient(100)
				in.Padding = []byte("padding")
				outcome, after := w.edgeSubject(e, External).process(t, in.Frame(t, ip))
				if outcome != "too_big_answered" {
					t.Fatalf("%s, %d bytes: %s", name, len(ip), outcome)
				}
				in.Padding = nil
				packettest.WantFrame(t, after,
					turned(in).Frame(t, packettest.ToldTooBig(t, ip, 1500-overhead, 63)))
			}
		}
	}
}

// TestEdgeAnswerRate: of many packets at once, some are answered, and all are counted. A flood of
// one kind leaves the
// other its tokens.
func TestEdgeAnswerRate(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	oneCPU(t)
	config := edgeConfig(t)
	config.AnswerRate = 1
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(e.Close)
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP6, Port: 80, Protocol: 6}, 0, testBuckets))
	must(t, e.SetChains(0, testPool(t, testBuckets, 1, 1)))
	w.openPorts(t, e.collection)
	edge := w.edgeSubject(e, External)
	packet := packettest.Web6("A")
	packet.Payload = make([]byte, 1500)
	for _, flood := range []struct {
		ip   []byte
		want string
	}{
		{packettest.ICMP(t, packettest.Client6, packettest.VIP6, 128, 0, 7, nil), "echoed"},
		{packet.Bytes(t), "too_big_answered"},
	} {
		outcomes := map[string]int{}
		for range 100 {
			outcome, _ := edge.process(t, packettest.FromClient().Frame(t, flood.ip))
			outcomes[outcome]++
		}
		if outcomes[flood.want] == 0 || outcomes["icmp_limit"] == 0 || len(outcomes) > 2 {
			t.Errorf("%v, want some %s and some not", outcomes, flood.want)
		}
	}
}

// TestEdgeTranslates compares the whole frame in which the kernel gets what a router of the SR
// domain says, for the client.
func TestEdgeTranslates(t *testing.T) {
	w := newWorld(t)
	e := tableEdge(t, w, Carrier)
	for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A")} {
		packet.Payload = make([]byte, 1400)
		ip := packet.Bytes(t)
		for name, test := range packettest.TooBigCases(t, ip, 1400) {
			w.run(t, fmt.Sprintf("%s/%v", name, packet.Dst), func(t *testing.T) {
				in := packettest.FromClient(7)
				in.Padding = []byte("padding")
				frame := in.Frame(t, test.Packet)
				outcome, after := w.edgeSubject(e, Internal).process(t, frame)
				in.Padding = nil
				switch {
				case test.MTU < 0 && outcome == "passed":
					packettest.WantFrame(t, after, frame)
				case test.MTU >= 0 && outcome == "translated":
					about := ip[:min(len(ip), 1232-40-(1400-test.MTU-40))]
					packettest.WantFrame(t, after,
						in.Frame(t, packettest.ToldTooBig(t, about, test.MTU, 63)))
				default:
					t.Error(outcome)
				}
				if outcome, _ := w.edgeSubject(e, External).process(t,
					frame); outcome != "spoofed_source" {
					t.Errorf("from outside of the domain: %s", outcome)
				}
			})
		}
	}
}

// TestEdgeQuotes: an error about a flow takes the flow's whole chain, under the flow's label.
func TestEdgeQuotes(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 2, 11, 12, 13)
	for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A"),
		packettest.Web6("").Of(17, 1, 2, 3)} {
		ids := []uint16{11, 12, 13}
		if packet.Protocol == 17 {
			ids = ids[:1]
		}
		ip := packettest.Unreachable(t, packet.Reply("SA").Bytes(t), 1280)
		in := packettest.FromClient()
		outcome, after := w.edgeSubject(e, External).process(t, in.Frame(t, ip))
		if outcome != "redirected" {
			t.Fatal(outcome)
		}
		packettest.WantFrame(t, after, wayElsewhere.out(in).Frame(t,
			packettest.Encapsulated(t, packettest.Carrier, ids, label(packet.Flow()), 0, ip)))
	}
}
