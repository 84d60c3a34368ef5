package datapath

import (
	"encoding/binary"
	"flag"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/lb/pool"
	"sextant/linux"
	"sextant/packet/flow"
	"sextant/packet/quiclb"
	"sextant/packet/srv6"
)

// The bench's world: one VIP per family, 100 backends behind one router, clients by the million.
const (
	ethernetHeader = 14
	ipv4Header     = 20
	ipv6Header     = 40

	benchBuckets   = 65537
	benchBackends  = 100
	benchFirstPort = 0x4000 // of each client address, which has 4096
	benchOpen      = 10_000 // connections that are open on the host
	benchQUIC      = 3      // the first service of QUIC

	portsPerClient = 4096 // 1 << PORTS_LOG2 of bpf/bench.c
)

var benchFlowHash = flag.String("flowhash", "nh", "flow hash of the bench's edges")

var (
	benchClientV6   = netip.MustParseAddr("2001:db8:c1::100") // and 255 more
	benchClientV4   = netip.MustParseAddr("198.18.0.0")
	benchStrangerV6 = netip.MustParseAddr("2001:db8:c2::100") // has no connection

	benchOptions = []layers.TCPOption{
		packettest.Option(layers.TCPOptionKindNop), packettest.Option(layers.TCPOptionKindNop),
		packettest.Option(layers.TCPOptionKindTimestamps, make([]byte, 8)...),
	}
	benchSYNOptions = []layers.TCPOption{
		packettest.MSS(1440), packettest.Option(layers.TCPOptionKindSACKPermitted),
		packettest.Option(layers.TCPOptionKindTimestamps, make([]byte, 8)...),
		packettest.Option(layers.TCPOptionKindNop),
		packettest.Option(layers.TCPOptionKindWindowScale, 7),
	}
)

// benchRow is a line of the table: a program, the packets that it gets, and how it has to answer
// each of them.
type benchRow struct {
	name    string
	program *ebpf.Program
	frame   benchFrame
	verdict uint32
	// packets that went the way that is measured, since the program was loaded
	counted func() uint64
}

// benchPacket is a client's packet, with a payload that makes it end on a word of the driver.
func benchPacket(t testing.TB, p packettest.Packet) []byte {
	t.Helper()
	for len(p.Bytes(t))%8 != 0 {
		p.Payload = append(p.Payload, 0)
	}
	return p.Bytes(t)
}

func benchACK(client, vip netip.Addr) packettest.Packet {
	return packettest.Packet{Src: client, Dst: vip, SrcPort: benchFirstPort, DstPort: hostPort,
		Flags: "A", Seq: 1, Ack: 1, TCPOptions: benchOptions}
}

func benchSYN(client, vip netip.Addr) packettest.Packet {
	p := benchACK(client, vip)
	p.Flags, p.Ack, p.TCPOptions = "S", 0, benchSYNOptions
	return p
}

var benchLink = packettest.Link{Src: routerMAC, Dst: nearMAC}

// benchArriving is a packet as it comes from the client.
func benchArriving(t testing.TB, p packettest.Packet, flows int) benchFrame {
	t.Helper()
	header := ipv6Header
	if p.Src.Is4() {
		header = ipv4Header
	}
	source := map[int]int{ipv4Header: 16, ipv6Header: 24}[header] - 4
	return benchFrame{
		octets: benchLink.Frame(t, benchPacket(t, p)), source: ethernetHeader + source,
		ports: ethernetHeader + header, flows: flows,
	}
}

// benchOffered is the packet as the edge sends it to a host, with one more candidate to go.
func benchOffered(t testing.TB, p packettest.Packet, flows int) benchFrame {
	t.Helper()
	outer := packettest.Outer{HopLimit: 64, Src: netip.MustParseAddr("fd00:5e::e1"),
		Dst: netip.MustParseAddr("fcbb:bb00:1:2::")}
	f := benchArriving(t, p, flows)
	f.octets = benchLink.Frame(t, outer.Around(t, f.octets[ethernetHeader:]))
	f.source += ipv6Header
	f.ports += ipv6Header
	return f
}

// benchError is what a router says about a packet of the flow's server.
func benchError(t testing.TB, flows int) benchFrame {
	t.Helper()
	about := packettest.Packet{Src: hostVIPv6, Dst: benchClientV6, SrcPort: hostPort,
		DstPort: benchFirstPort, Flags: "A", Payload: make([]byte, 4)}
	quote := ethernetHeader + ipv6Header + 8
	return benchFrame{
		octets: benchLink.Frame(t, packettest.Unreachable(t, about.Bytes(t), 1280)),
		source: quote + ipv6Header - 4, ports: quote + ipv6Header + 2, flows: flows,
	}
}

// benchFragment is a later fragment of a packet whose first the edge has seen. Its identification
// stands in for a port.
func benchFragment(t testing.TB, w *world, e *Edge) benchFrame {
	t.Helper()
	packet := benchACK(benchClientV6, hostVIPv6)
	packet.Payload = make([]byte, 96)
	ip := packet.Bytes(t)
	newRunner(e.programs[External], w.near).run(t,
		benchLink.Frame(t, packettest.Part(ip, 7, 0, 64)))
	return benchFrame{
		octets: benchLink.Frame(t, packettest.Part(ip, 7, 64, 112)), source: ethernetHeader + 20,
		ports: ethernetHeader + ipv6Header + 6, flows: 1,
	}
}

// benchEcho is an echo request. It has no port: a byte of its content stands in for one.
func benchEcho(t testing.TB) benchFrame {
	t.Helper()
	request := packettest.ICMP(t, benchClientV6, hostVIPv6, 128, 0, 1, make([]byte, 56))
	return benchFrame{octets: benchLink.Frame(t, request), source: ethernetHeader + 20,
		ports: ethernetHeader + ipv6Header + 8, flows: 1}
}

// benchOfferedError is the same as the edge sends it to a host, with one more candidate to go.
func benchOfferedError(t testing.TB, flows int) benchFrame {
	t.Helper()
	outer := packettest.Outer{HopLimit: 64, Src: netip.MustParseAddr("fd00:5e::e1"),
		Dst: netip.MustParseAddr("fcbb:bb00:1:2::")}
	f := benchError(t, flows)
	f.octets = benchLink.Frame(t, outer.Around(t, f.octets[ethernetHeader:]))
	f.source += ipv6Header
	f.ports += ipv6Header
	return f
}

// newBenchEdge is an edge whose services have full tables of two candidates and some past.
func newBenchEdge(t testing.TB, w *world, encapsulation Encapsulation,
	changes ...func(*EdgeConfig)) *Edge {
	t.Helper()
	config := edgeConfig(t)
	config.Encapsulation, config.Locators = encapsulation, nil
	function, err := flow.ParseFunction(*benchFlowHash)
	must(t, err)
	config.FlowHash = function
	for _, change := range changes {
		change(&config)
	}
	e, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(e.Close)
	for id := uint16(1); id <= benchBackends; id++ {
		must(t, e.SetSID(id, sidOf(t, config.Block, id)))
	}
	generation := benchGeneration(t)
	for i := range uint32(3) {
		must(t, e.SetChains(benchQUIC+i, generation))
	}
	for i, key := range []ServiceKey{
		{VIP: hostVIPv6, Port: hostPort, Protocol: 6}, {VIP: hostVIPv4, Port: hostPort,
			Protocol: 6}, {VIP: hostVIPv6, Port: hostPort, Protocol: 17},
	} {
		must(t, e.SetService(key, uint32(i), benchBuckets))
		must(t, e.SetChains(uint32(i), generation))
	}
	return e
}

// benchGeneration is the pool of each of its services.
func benchGeneration(t testing.TB) *pool.Generation {
	t.Helper()
	ids := make([]uint16, benchBackends)
	var later []pool.Backend
	for i := range ids {
		ids[i] = uint16(i + 1)
		later = append(later, pool.Backend{ID: ids[i], Weight: 1})
	}
	later[0].State = pool.Draining
	generation, err := testPool(t, benchBuckets, 2, ids...).Next(later, 0)
	must(t, err)
	return generation
}

func edgeRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	addRoute(t, "fcbb:bb00::/32", "fd00:5e:1::2", 0)
	carrier, srh := newBenchEdge(t, w, Carrier), newBenchEdge(t, w, SRHReduced)
	of := func(name string, e *Edge, p packettest.Packet, flows int) benchRow {
		return benchRow{name: name, program: e.programs[External], frame: benchArriving(t, p,
			flows), verdict: xdpTransmit, counted: benchOutcome(t, e.collection, "transmitted")}
	}
	udp := packettest.Packet{Src: benchClientV6, Dst: hostVIPv6, SrcPort: benchFirstPort,
		DstPort: hostPort, Protocol: layers.IPProtocolUDP, Payload: make([]byte, 24)}
	quic := func(name string, c quiclb.Config) benchRow {
		must(t, carrier.SetQUIC(benchQUIC+uint32(c.Rotation), []quiclb.Config{c}, []uint16{1}))
		key := ServiceKey{VIP: hostVIPv6, Port: quicPort + uint16(c.Rotation), Protocol: 17}
		must(t, carrier.SetService(key, benchQUIC+uint32(c.Rotation), benchBuckets))
		p := udp
		p.DstPort, p.Payload = key.Port,
			packettest.QUICShort(packettest.ServerConnectionID(t, c, 1))
		return of("edge, QUIC, connection ID "+name+", 131,072 flows", carrier, p, 1<<17)
	}
	key := make([]byte, quiclb.KeyLength)
	return []benchRow{
		of("edge, IPv6, 1 flow", carrier, benchACK(benchClientV6, hostVIPv6), 1),
		of("edge, IPv6, 16,384 flows", carrier, benchACK(benchClientV6, hostVIPv6), 1<<14),
		of("edge, IPv6, 131,072 flows", carrier, benchACK(benchClientV6, hostVIPv6), 1<<17),
		of("edge, IPv6, 1,048,576 flows", carrier, benchACK(benchClientV6, hostVIPv6), 1<<20),
		of("edge, IPv4, 1 flow", carrier, benchACK(benchClientV4, hostVIPv4), 1),
		of("edge, IPv4, 16,384 flows", carrier, benchACK(benchClientV4, hostVIPv4), 1<<14),
		of("edge, IPv4, 131,072 flows", carrier, benchACK(benchClientV4, hostVIPv4), 1<<17),
		of("edge, IPv4, 1,048,576 flows", carrier, benchACK(benchClientV4, hostVIPv4), 1<<20),
		of("edge, new flow (SYN, 2 candidates), IPv6", carrier, benchSYN(benchClientV6, hostVIPv6),
			1<<20),
		of("edge, new flow (SYN, 2 candidates), IPv4", carrier, benchSYN(benchClientV4, hostVIPv4),
			1<<20),
		of("edge, SRH, 131,072 flows", srh, benchACK(benchClientV6, hostVIPv6), 1<<17),
		of("edge, SRH, new flow", srh, benchSYN(benchClientV6, hostVIPv6), 1<<20),
		of("edge, UDP, 131,072 flows", carrier, udp, 1<<17),
		quic("in clear", quiclb.Config{Rotation: 0, ServerIDLength: 2, NonceLength: 6}),
		quic("in a single pass", quiclb.Config{Rotation: 1, ServerIDLength: 4, NonceLength: 12,
			Key: key}),
		quic("in four passes", quiclb.Config{Rotation: 2, ServerIDLength: 2, NonceLength: 6,
			Key: key}),
		{
			name:    "edge, ICMP error about a flow, 131,072 flows",
			program: carrier.programs[External], frame: benchError(t, 1<<17),
			verdict: xdpTransmit, counted: benchOutcome(t, carrier.collection, "transmitted"),
		},
		{
			name: "edge, later fragment", program: carrier.programs[External],
			frame:   benchFragment(t, w, carrier),
			verdict: xdpTransmit, counted: benchOutcome(t, carrier.collection, "transmitted"),
		},
		{
			name: "edge, echo request", program: carrier.programs[External], frame: benchEcho(t),
			verdict: xdpTransmit, counted: benchOutcome(t, carrier.collection, "echoed"),
		},
	}
}

func hostRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	benchConnections(t, benchOpen, "")
	config := hostConfig(t)
	config.SIDs = []LocalSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"),
		Behavior: srv6.EndOFFER}}
	taking := newBenchHost(t, w, config, acceptance.Policy{Kind: acceptance.Static, Threshold: 4})
	refusing := newBenchHost(t, w, config, acceptance.Policy{Kind: acceptance.Static, Threshold: 0})
	of := func(name string, h *Host, p packettest.Packet, flows int, verdict uint32,
		counted func() uint64) benchRow {
		return benchRow{name: name, program: h.programs["host"], frame: benchOffered(t, p, flows),
			verdict: verdict, counted: counted}
	}
	taken, transmitted := benchOutcome(t, taking.collection, "taken"),
		benchOutcome(t, taking.collection, "transmitted")
	return []benchRow{
		of("host, takes: 1 connection of 10,000", taking, benchACK(benchClientV6, hostVIPv6), 1,
			xdpPass, taken),
		of("host, takes: 1,000 connections of 10,000", taking, benchACK(benchClientV6, hostVIPv6),
			1000, xdpPass, taken),
		of("host, takes: 10,000 connections", taking, benchACK(benchClientV6, hostVIPv6), benchOpen,
			xdpPass, taken),
		of("host, passes on a flow of another host", taking, benchACK(benchStrangerV6, hostVIPv6),
			1<<17, xdpTransmit, transmitted),
		{
			name:    "host, takes an ICMP error about 1 connection of 10,000",
			program: taking.programs["host"],
			frame:   benchOfferedError(t, 1), verdict: xdpPass, counted: taken,
		},
		of("host, takes a SYN", taking, benchSYN(benchStrangerV6, hostVIPv6), 1<<17, xdpPass,
			taken),
		of("host, passes on a SYN", refusing, benchSYN(benchStrangerV6, hostVIPv6), 1<<17,
			xdpTransmit, benchOutcome(t, refusing.collection, "transmitted")),
	}
}

func newBenchHost(t testing.TB, w *world, config HostConfig, policy acceptance.Policy) *Host {
	t.Helper()
	h, err := OpenHost(w.dir, config)
	must(t, err)
	t.Cleanup(h.Close)
	must(t, h.SetService(ServiceKey{VIP: hostVIPv6, Port: hostPort, Protocol: 6}, 1, policy))
	return h
}

// benchOutcome reads one of a collection's counters.
func benchOutcome(t testing.TB, c *collection, name string) func() uint64 {
	return func() uint64 {
		outcomes, err := c.Outcomes()
		must(t, err)
		i := slices.IndexFunc(outcomes, func(o Counter) bool { return o.Name == name })
		return outcomes[i].Packets
	}
}

// benchConnections opens n connections to the VIP, in the order in which the driver visits flows.
// The clients' ends vanish without a word, as if they were on other machines; the server's stay in
// the accept queue, as established as any. All are bound to the VRF device, if there is one.
func benchConnections(t testing.TB, n int, vrf string) {
	t.Helper()
	benchAddress(t, vrf, hostVIPv6)
	must(t, linux.WriteSysctl("net.core.somaxconn", strconv.Itoa(n)))
	listener := benchListen(t, vrf)
	benchControl(t, listener, func(fd int) error { return unix.Listen(fd, n) })
	for i := range n {
		client := benchClient(i / portsPerClient)
		if i%portsPerClient == 0 {
			benchAddress(t, vrf, client)
		}
		source := netip.AddrPortFrom(client, uint16(benchFirstPort+i%portsPerClient))
		dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(source), Control: boundTo(vrf)}
		peer, err := dialer.Dial("tcp", listener.Addr().String())
		must(t, err)
		benchControl(t, peer.(*net.TCPConn), func(fd int) error {
			return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1)
		})
		must(t, peer.Close())
	}
}

func benchControl(t testing.TB, conn syscall.Conn, do func(fd int) error) {
	t.Helper()
	raw, err := conn.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { err = do(int(fd)) }))
	must(t, err)
}

func benchClient(i int) netip.Addr {
	a := benchClientV6.As16()
	binary.BigEndian.PutUint32(a[12:], binary.BigEndian.Uint32(a[12:])+uint32(i))
	return netip.AddrFrom16(a)
}
