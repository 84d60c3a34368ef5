package datapath

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/srv6"
)

// What is rare: what is too big, first fragments, new connections under a limit, QUIC on a host.

// benchDrops reads one of a collection's reasons.
func benchDrops(t testing.TB, c *collection, name string) func() uint64 {
	return func() uint64 {
		drops, err := c.Drops()
		must(t, err)
		return drops[slices.IndexFunc(drops,
			func(d Counter) bool { return d.Name == name })].Packets
	}
}

// A backend behind a path on which nearly nothing fits, so that a short packet is too big.
const (
	benchNarrow    = 0x500
	benchNarrowMTU = 180
	benchService   = 10 // the first service of these rows
)

// benchNarrowService adds a service whose backend is there.
func benchNarrowService(t testing.TB, e *Edge, key ServiceKey, index uint32) {
	t.Helper()
	must(t, netlink.RouteReplace(&netlink.Route{
		Dst: ipNet(netip.MustParsePrefix("fcbb:bb00:500::/48")),
		Gw:  netip.MustParseAddr("fd00:5e:1::2").AsSlice(), MTU: benchNarrowMTU, MTULock: true,
	}))
	must(t, e.SetSID(benchNarrow, sidOf(t, e.config.Block, benchNarrow)))
	must(t, e.SetService(key, index, benchBuckets))
	must(t, e.SetChains(index, testPool(t, benchBuckets, 1, benchNarrow)))
}

// benchLimited adds a service with a limit of new connections.
func benchLimited(t testing.TB, e *Edge, key ServiceKey, index uint32, rate, burst int) {
	t.Helper()
	must(t, e.LimitNewConnections(index, rate, burst))
	must(t, e.SetService(key, index, benchBuckets))
	must(t, e.SetChains(index, testPool(t, benchBuckets, 2, 1, 2, 3)))
}

// benchFirst is a first fragment. Its identification stands in for a port.
func benchFirst(t testing.TB, flows int) benchFrame {
	t.Helper()
	packet := benchACK(benchClientV6, hostVIPv6)
	packet.Payload = make([]byte, 96)
	return benchFrame{
		octets: benchLink.Frame(t, packettest.Part(packet.Bytes(t), 7, 0, 64)),
		source: ethernetHeader + 20, ports: ethernetHeader + ipv6Header + 6, flows: flows,
	}
}

// benchRouterSays is a Packet Too Big of a router of the SR domain, which quotes the beginning of a
// flow's outer packet.
func benchRouterSays(t testing.TB, e *Edge, flows int) benchFrame {
	t.Helper()
	inner := benchPacket(t, benchACK(benchClientV6, hostVIPv6))
	around := packettest.Outer{HopLimit: 60, Src: e.config.Source,
		Dst: netip.MustParseAddr("fcbb:bb00:1:2::")}.Around(t, inner)
	binary.BigEndian.PutUint16(around[4:], 1460) // of a packet that was longer than what is quoted
	binary.BigEndian.PutUint16(around[ipv6Header+4:], 1420)
	message := packettest.ICMP(t, netip.MustParseAddr("fd00:5e::77"), e.config.Source, 2, 0, 1400,
		around)
	client := ethernetHeader + ipv6Header + 8 + ipv6Header
	return benchFrame{octets: benchLink.Frame(t, message), source: client + 20,
		ports: client + ipv6Header, flows: flows}
}

// rareRows are of an edge's rare packets.
func rareRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	e := newBenchEdge(t, w, Carrier)
	program, transmitted := e.programs[External], benchOutcome(t, e.collection, "transmitted")
	key := func(port uint16) ServiceKey {
		return ServiceKey{VIP: hostVIPv6, Port: port, Protocol: 6}
	}
	syn := func(port uint16) benchFrame {
		p := benchSYN(benchClientV6, hostVIPv6)
		p.DstPort = port
		return benchArriving(t, p, 1<<17)
	}
	const narrow, within, over = 5001, 5002, 5003
	benchNarrowService(t, e, key(narrow), benchService)
	benchLimited(t, e, key(within), benchService+1, 1e9, 1e9)
	benchLimited(t, e, key(over), benchService+2, 1, 1)
	// one, and no more today
	must(t, e.maps["new_connections"].Put(uint32(benchService+2),
		newConnections{Limit: limit{IntervalNs: 1e12}}))
	large := benchSYN(benchClientV6, hostVIPv6)
	large.DstPort, large.Payload = narrow, make([]byte, 120)
	config := edgeConfig(t)
	config.Interfaces[0].Side = Internal
	inside, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(inside.Close)
	must(t, inside.SetService(key(hostPort), 0, benchBuckets))
	newRunner(program, w.near).run(t, syn(over).octets) // takes the one token
	return []benchRow{
		{name: "edge, new flow within a limit", program: program, frame: syn(within),
			verdict: xdpTransmit, counted: transmitted},
		{name: "edge, new flow over the limit: dropped", program: program, frame: syn(over),
			verdict: xdpDrop, counted: benchDrops(t, e.collection, "new_connections")},
		{name: "edge, first fragment, 4,096 packets", program: program, frame: benchFirst(t, 1<<12),
			verdict: xdpTransmit, counted: transmitted},
		{name: "edge, first fragment, 131,072 packets: others are forgotten", program: program,
			frame: benchFirst(t, 1<<17), verdict: xdpTransmit, counted: transmitted},
		{
			name: "edge, too big: the client is told", program: program,
			frame: benchArriving(t, large, 1<<12),
			// The driver's frames are short: what IPv6 is told then is as long to make as a Packet
			// Too Big.
			verdict: xdpTransmit, counted: benchDrops(t, e.collection, "below_min_mtu"),
		},
		{
			name:    "edge, Packet Too Big of a router: translated",
			program: inside.programs[Internal], frame: benchRouterSays(t, inside, 1<<12),
			verdict: xdpPass, counted: benchOutcome(t, inside.collection, "translated"),
		},
	}
}

// rareHostRows are of what comes to a host besides TCP and errors about it.
func rareHostRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	config := hostConfig(t)
	config.SIDs = []LocalSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"),
		Behavior: srv6.EndOFFER}}
	h := newBenchHost(t, w, config, acceptance.Policy{Kind: acceptance.Always})
	key := ServiceKey{VIP: hostVIPv6, Port: quicPort, Protocol: 17}
	h.SetQUIC(key, true)
	must(t, h.SetService(key, 2, acceptance.Policy{Kind: acceptance.Always}))
	p := packettest.Packet{Src: benchStrangerV6, Dst: hostVIPv6, SrcPort: benchFirstPort,
		DstPort: quicPort, Protocol: layers.IPProtocolUDP}
	p.Payload = packettest.QUICShort(make([]byte, 23))
	alone := benchOffered(t, p, 1<<14)
	binary.BigEndian.PutUint16(alone.octets[ethernetHeader+24+6:], 0) // nobody is left
	return []benchRow{
		{name: "host, passes on QUIC of another host", program: h.programs["host"],
			frame: benchOffered(t, p, 1<<14), verdict: xdpTransmit,
			counted: benchOutcome(t, h.collection, "transmitted")},
		{name: "host, takes QUIC as the last", program: h.programs["host"], frame: alone,
			verdict: xdpPass, counted: benchOutcome(t, h.collection, "taken")},
	}
}
