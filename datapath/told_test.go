package datapath

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/datapath/packettest"
)

// TestEdgeTimeExceeded compares the whole frame with which a client is told that its packet has no
// hop left.
func TestEdgeTimeExceeded(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 9)
	for _, packet := range []packettest.Packet{
		packettest.Web4("S"), packettest.Web6("S"), packettest.Web4("A"), packettest.Web6("A"),
		packettest.Web6("").Of(17),
	} {
		packet.Payload = make([]byte, 1300)
		for _, hops := range []uint8{0, 1} {
			for _, vlans := range [][]uint16{nil, {100}} {
				ip := packettest.WithHopLimit(packet.Bytes(t), hops)
				in := packettest.FromClient(vlans...)
				outcome, after := w.edgeSubject(e, External).process(t, in.Frame(t, ip))
				if outcome != "hop_limit" {
					t.Fatalf("%d hops left, %v: %s", hops, packet.Dst, outcome)
				}
				packettest.WantFrame(t, after,
					turned(in).Frame(t, packettest.ToldExceeded(t, ip, 63)))
			}
		}
	}
}

// TestEdgeBelowMinMTU compares the whole frame: no IPv6 client is told less than 1,280 bytes,
// neither by the edge nor for a
// router.
func TestEdgeBelowMinMTU(t *testing.T) {
	w := newWorld(t)
	must(t, netlink.RouteReplace(&netlink.Route{
		Dst: ipNet(netip.MustParsePrefix("fcbb:bb00::/32")),
		Gw:  netip.MustParseAddr(wayElsewhere.gateway).AsSlice(), MTU: narrowMTU, MTULock: true,
	}))
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 9)
	for _, test := range packettest.NarrowCases(t) {
		in := packettest.FromClient()
		outcome, after := w.edgeSubject(e, External).process(t, in.Frame(t, test.Packet))
		if outcome != test.Want {
			t.Errorf("%s: %s, want %s", test.Name, outcome, test.Want)
		}
		if test.Told == nil {
			continue
		}
		packettest.WantFrame(t, after, turned(in).Frame(t, test.Told))
		outcome, after = w.edgeSubject(e, Internal).process(t,
			in.Frame(t, packettest.RouterSays(t, test.Packet, narrowMTU)))
		if outcome != "translated" && outcome != test.Want {
			t.Errorf("%s, by a router: %s", test.Name, outcome)
		}
		packettest.WantFrame(t, after, in.Frame(t, packettest.ToldAsQuoted(t, test.Told)))
	}
}

// TestHeadendIsAHop: what a policy takes loses a hop, and what has none left is the kernel's to
// answer; but not what
// comes out of the loop, as it starts here.
func TestHeadendIsAHop(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, External)
	arrival := newRunner(ends.program.programs[External], w.near)
	loop := newRunner(ends.program.programs[Internal], ends.program.loop.inner)
	for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A"),
		packettest.Web4("").Of(17)} {
		packet.TrafficClass = 46 << 2 // the policy of one list
		for hops, verdict := range []uint32{xdpPass, xdpPass, xdpTransmit} {
			ip := packettest.WithHopLimit(packet.Bytes(t), uint8(hops))
			frame := packettest.FromClient().Frame(t, ip)
			inside, want := frame, frame
			if verdict == xdpTransmit {
				inside, want = packettest.Forwarded(ip), nil
			}
			got, after := arrival.run(t, frame)
			if got != verdict || want != nil && string(after) != string(want) ||
				!bytes.HasSuffix(after, inside) {
				t.Errorf("%v, %d hops left: %d, %x", packet.Dst, hops, got, after)
			}
			got, after = loop.run(t, frame)
			if got == xdpPass && len(after) == len(frame) || got == xdpDrop ||
				!bytes.HasSuffix(after, ip) {
				t.Errorf("%v from here, %d hops left: %d, %x", packet.Dst, hops, got, after)
			}
		}
	}
}
