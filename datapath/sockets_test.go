package datapath

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/flow"
)

// Sockets of the host under test, real ones, in the test's namespace.

var (
	hostVIPv6 = netip.MustParseAddr("2001:db8:80::80")
	hostVIPv4 = netip.MustParseAddr("198.51.100.80")
	clientV6  = netip.MustParseAddr("2001:db8:c1::4")
	clientV4  = netip.MustParseAddr("203.0.113.4")
)

const hostPort = 80

// addAddresses puts VIPs on lo, and clients too when they are to connect from this namespace.
func addAddresses(t testing.TB, addrs ...netip.Addr) {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	for _, a := range addrs {
		must(t, netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(a, a.BitLen())),
			Flags: unix.IFA_F_NODAD}))
		eventually(t, "a local route to "+a.String(),
			func() bool { // the kernel adds it a moment later
				routes, err := netlink.RouteGet(a.AsSlice())
				return err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL
			})
	}
}

func listen(t testing.TB, vip netip.Addr) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(vip, hostPort)))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// established opens a connection and keeps it.
func established(t testing.TB, l *net.TCPListener, client netip.Addr) flow.Tuple {
	t.Helper()
	tuple, server, peer := connect(t, l, client)
	t.Cleanup(func() { server.Close(); peer.Close() })
	return tuple
}

func connect(t testing.TB, l *net.TCPListener, client netip.Addr) (flow.Tuple, net.Conn, net.Conn) {
	t.Helper()
	return connectBy(t, &net.Dialer{}, l, client)
}

func connectBy(t testing.TB, dialer *net.Dialer, l *net.TCPListener,
	client netip.Addr) (flow.Tuple, net.Conn, net.Conn) {
	t.Helper()
	if dialer.LocalAddr == nil {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 0))
	}
	peer, err := dialer.Dial("tcp", l.Addr().String())
	must(t, err)
	server, err := l.Accept()
	must(t, err)
	source := peer.LocalAddr().(*net.TCPAddr).AddrPort()
	return tupleOf(source.Addr(), l.Addr().(*net.TCPAddr).AddrPort().Addr(), source.Port()), server,
		peer
}

func tupleOf(client, vip netip.Addr, port uint16) flow.Tuple {
	return flow.Tuple{Src: client.Unmap(), Dst: vip.Unmap(), SrcPort: port, DstPort: hostPort,
		Protocol: 6}
}

// wirePatience is when a test that waits for the kernel gives up.
const wirePatience = 30 * time.Second

// wire sends frames to the interface "near" and sees what the kernel sends there.
type wire struct{ fd int }

func openWire(t testing.TB) wire { return openWireOn(t, "nearpeer") }

func openWireOn(t testing.TB, iface string) wire {
	t.Helper()
	peer, err := net.InterfaceByName(iface)
	must(t, err)
	const allProtocols = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, allProtocols)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allProtocols, Ifindex: peer.Index}))
	must(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Sec: int64(wirePatience / time.Second)}))
	return wire{fd: fd}
}

// halfOpen sends a SYN of a client beyond the interface, and returns the sequence number of the
// SYN-ACK.
func (w wire) halfOpen(t testing.TB, tuple flow.Tuple, sequence uint32) (synAck uint32) {
	t.Helper()
	w.send(t, tcpFrame(t, tuple, &layers.TCP{Seq: sequence, SYN: true, Window: 1000}))
	return w.hear(t, func(tcp *layers.TCP) bool {
		return tcp.SYN && tcp.ACK && uint16(tcp.DstPort) == tuple.SrcPort
	}).Seq
}

// hear waits for a TCP segment of the kernel's.
func (w wire) hear(t testing.TB, what func(*layers.TCP) bool) *layers.TCP {
	t.Helper()
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); {
		n, _, err := linuxtest.Receive(w.fd, buffer)
		must(t, err)
		packet := gopacket.NewPacket(buffer[:n], layers.LayerTypeEthernet, gopacket.Default)
		tcp, ok := packet.Layer(layers.LayerTypeTCP).(*layers.TCP)
		if ok && what(tcp) {
			return tcp
		}
	}
	t.Fatalf("not what was waited for within %v", wirePatience)
	return nil
}

func (w wire) index(t testing.TB) int {
	peer, err := net.InterfaceByName("nearpeer")
	must(t, err)
	return peer.Index
}

// tcpFrame builds a client's frame with the independent packet library.
func tcpFrame(t testing.TB, tuple flow.Tuple, tcp *layers.TCP, data ...byte) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: routerMAC, DstMAC: nearMAC,
		EthernetType: layers.EthernetTypeIPv6}
	var ip gopacket.SerializableLayer = &layers.IPv6{
		Version: 6, HopLimit: 60, NextHeader: layers.IPProtocolTCP, SrcIP: tuple.Src.AsSlice(),
		DstIP: tuple.Dst.AsSlice(),
	}
	if tuple.Src.Is4() {
		eth.EthernetType = layers.EthernetTypeIPv4
		ip = &layers.IPv4{
			Version: 4, TTL: 60, Protocol: layers.IPProtocolTCP, SrcIP: tuple.Src.AsSlice(),
			DstIP: tuple.Dst.AsSlice(),
		}
	}
	tcp.SrcPort, tcp.DstPort = layers.TCPPort(tuple.SrcPort), layers.TCPPort(tuple.DstPort)
	must(t, tcp.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)))
	buffer := gopacket.NewSerializeBuffer()
	must(t, gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true,
		ComputeChecksums: true},
		eth, ip, tcp, gopacket.Payload(data)))
	return buffer.Bytes()
}

// farClients adds the VIPs, clients in this namespace, and routes to clients beyond the interface,
// whose addresses by "is IPv4" are returned.
func farClients(t testing.TB, w *world) map[bool]netip.Addr {
	t.Helper()
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	must(t, netlink.AddrAdd(mustLink(t, "near"),
		&netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("192.0.2.1/24"))}))
	must(t, netlink.NeighSet(&netlink.Neigh{LinkIndex: w.near, IP: net.IPv4(192, 0, 2, 2),
		State: netlink.NUD_PERMANENT, HardwareAddr: routerMAC}))
	addRoute(t, "2001:db8:c2::/64", "fd00:5e:1::2", 0)
	addRoute(t, "203.0.114.0/24", "192.0.2.2", 0)
	return map[bool]netip.Addr{true: netip.MustParseAddr("203.0.114.4"),
		false: netip.MustParseAddr("2001:db8:c2::4")}
}

// timeWaitLasts is well below the minute for which the kernel remembers a connection in TIME_WAIT.
const timeWaitLasts = 20 * time.Second

// hostSockets makes one socket of each kind per family; the model is told what the kernel has.
// Whoever uses them for long calls keep before each frame, which reminds the kernel in time of what
// it is about to forget.
func hostSockets(t testing.TB,
	w *world) (
	sockets map[flow.Tuple]model.Socket, connections []packetgen.Connection,
	keep func(testing.TB)) {
	// 5 would keep a half-open connection for a minute
	must(t, linux.WriteSysctl("net.ipv4.tcp_synack_retries", "100"))
	far := farClients(t, w)
	sockets = map[flow.Tuple]model.Socket{}
	line := openWire(t)
	made, again := time.Now(), []func(testing.TB){}
	remember := func(tuple flow.Tuple, socket model.Socket, sent, received uint32) {
		sockets[tuple] = socket
		connections = append(connections, packetgen.Connection{Flow: tuple, SndISN: sent,
			RcvISN: received})
	}
	for vip, client := range map[netip.Addr]netip.Addr{hostVIPv6: clientV6, hostVIPv4: clientV4} {
		l := listen(t, vip)
		remember(established(t, l, client), model.Socket{State: model.SocketOther}, 0, 0)
		// its number wraps
		first := rawClient{tuple: tupleOf(far[vip.Is4()], vip, 4001), next: 0xfffffffe}
		past := lastAck(t, line, l, first)
		remember(past.tuple, past.socket(), past.acked-1, past.next-1)
		again = append(again, past.again)
		half := tupleOf(far[vip.Is4()], vip, 4000)
		request := model.Socket{State: model.SocketNewSynRecv, RcvISN: 1000}
		request.SndISN = line.halfOpen(t, half, request.RcvISN)
		remember(half, request, request.SndISN, request.RcvISN)
	}
	return sockets, connections, func(t testing.TB) {
		if time.Since(made) < timeWaitLasts {
			return
		}
		for _, remind := range again {
			remind(t)
		}
		made = time.Now()
	}
}

func mustLink(t testing.TB, name string) netlink.Link {
	t.Helper()
	link, err := netlink.LinkByName(name)
	must(t, err)
	return link
}
