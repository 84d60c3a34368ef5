package datapath

import (
	"fmt"
	"net/netip"
	"testing"

	"sextant/datapath/packettest"
)

// TestHostSendsStraysBack compares the whole frame, for each way out.
func TestHostSendsStraysBack(t *testing.T) {
	w := newWorld(t)
	h, host := tableHost(t, w)
	for _, out := range []way{wayBack, wayElsewhere, wayUnknown} {
		out.lead(t, h)
		for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("PA"),
			packettest.Web6("R")} {
			packet.TrafficClass, packet.Payload = 0x2b, []byte("payload")
			ip := packet.Bytes(t)
			packet.HopLimit = 56 // one less
			left := packet.Bytes(t)
			for name, outers := range packettest.StrayCases(ip) {
				w.run(t, fmt.Sprintf("%s/%v %s/%s", out.outcome, packet.Dst, packet.Flags, name),
					func(t *testing.T) {
						checkLeaves(t, host, outers, ip, left, out, out.outcome)
					})
			}
		}
	}
}

// TestHostConditionalTakes: what opens a connection, or is no TCP, is no stray.
func TestHostConditionalTakes(t *testing.T) {
	w := newWorld(t)
	_, host := tableHost(t, w)
	for _, packet := range []packettest.Packet{packettest.Web4("S"), packettest.Web6("SA"),
		packettest.Web6("").Of(17, 1, 2, 3)} {
		ip := packet.Bytes(t)
		outcome, after := host.process(t,
			packettest.FromClient().Frame(t, packettest.To(packettest.CondSID).Around(t, ip)))
		if outcome != "taken" {
			t.Fatalf("%v %s: %s, want taken", packet.Dst, packet.Flags, outcome)
		}
		packettest.WantFrame(t, after, packettest.FromClient().Frame(t, ip))
	}
}

// TestEdgeShadow compares the whole frame: a stray goes to the previous owner, or to the present
// one if there was none, with each encapsulation and each way out.
func TestEdgeShadow(t *testing.T) {
	w := newWorld(t)
	for encapsulation, name := range encapsulationNames {
		e := tableEdge(t, w, encapsulation)
		edge := w.edgeSubject(e, Mixed)
		for _, shadow := range []uint16{0x2b, 0} {
			serveAllWithShadow(t, e, shadow, 1, 0x1a)
			for _, out := range []way{wayBack, wayElsewhere, wayUnknown} {
				out.lead(t, e)
				for _, packet := range []packettest.Packet{packettest.Web4("A"),
					packettest.Web6("PA")} {
					w.run(t, fmt.Sprintf("%s/%x/%s/%v", name, shadow, out.outcome, packet.Dst),
						func(t *testing.T) {
							checkShadow(t, edge, lastOffers[encapsulation != Carrier][shadow],
								packet,
								out)
						})
				}
			}
		}
	}
}

// lastOffers are the destinations, by whether SIDs are whole addresses and by the previous owner.
var lastOffers = map[bool]map[uint16]string{
	false: {0x2b: "fcbb:bb00:2b:e046::", 0: "fcbb:bb00:1a:e046::"},
	true:  {0x2b: "fd00:c0de:0:e046::2b", 0: "fd00:c0de:0:e046::1a"},
}

func checkShadow(t *testing.T, edge subject, destination string, packet packettest.Packet,
	out way) {
	t.Helper()
	packet.Payload = []byte("payload")
	for _, ecn := range []struct{ outer, inner, want uint8 }{{0xb8, 0xb8, 0xb8}, {0xb9, 0xba, 0xb9},
		{0xbb, 0xba, 0xbb}} {
		packet.TrafficClass = ecn.want
		left := packet.Bytes(t)
		packet.TrafficClass = ecn.inner
		ip := packet.Bytes(t)
		want := packettest.Outer{
			Src: packettest.EdgeAddr, Dst: netip.MustParseAddr(destination), TrafficClass: ecn.want,
			HopLimit: 58, FlowLabel: label(packet.Flow()),
		}
		for name, stray := range packettest.ShadowCases(ip) {
			stray.TrafficClass = ecn.outer
			for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
				in := packettest.FromClient(vlans...)
				in.Padding = []byte("padding")
				outcome, after := edge.process(t, in.Frame(t, stray.Around(t, ip)))
				if outcome != out.outcome {
					t.Fatalf("%s: %s, want %s", name, outcome, out.outcome)
				}
				packettest.WantFrame(t, after,
					out.out(in).Frame(t, want.Around(t, packettest.Forwarded(left))))
			}
		}
	}
}
