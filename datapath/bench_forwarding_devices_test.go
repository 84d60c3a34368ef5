package datapath

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/linux/linuxtest"
)

var (
	// the real servers of IPVS: on the receiver's link, or behind its router
	ipvsNear = netip.MustParsePrefix("fd00:5e:2:0:5::/80")
	ipvsFar  = netip.MustParsePrefix("fd00:5e:7::/64")
)

const ipvsPort = 81 // of the service with tunnels; that of direct routing is hostPort

// devices are all ways to forward that there are here. The first one is the kernel's own, without
// encapsulation, which the others are compared with.
func (f *forwarding) devices(t testing.TB) []device {
	t.Helper()
	addRoute(t, "fcbb:bb00::/32", "fd00:5e:2::2", 0)
	addRoute(t, ipvsFar.String(), "fd00:5e:2::2", 0)
	all := []device{f.kernel(t, "kernel, forwards, 1 flow", 1),
		f.kernel(t, "kernel, forwards, 16,384 flows", 1<<14),
		f.kernel(t, "kernel, forwards, 1,048,576 flows", 1<<20)}
	joining := f.kernel(t, "kernel, forwards, with GRO, 16,384 flows", 1<<14)
	joining.program, joining.gro = nil, true
	all = append(all, joining)
	all = append(all, f.encapsulating(t)...)
	all = append(all, f.bare(t))
	all = append(all, f.edges(t)...)
	all = append(all, f.hosts(t)...)
	if f.hasIPVS(t) {
		all = append(all, f.balanced(t)...)
	}
	return all
}

// least is what any machine does that forwards a device's packets: a program that changes MAC
// addresses.
func (f *forwarding) least(d device) device {
	protocol := d.frame.octets[ethernetHeader+6]
	to := netip.AddrFrom16([16]byte(d.frame.octets[ethernetHeader+24:]))
	if protocol == protocolIPv6 {
		to = netip.AddrFrom16([16]byte(d.frame.octets[ethernetHeader+ipv6Header+24:]))
	}
	return device{name: "least", program: f.objects.Programs["forward_through"], frame: d.frame,
		arrives: arrivalOf(d.frame, 0, protocol, to)}
}

// toRouter is a packet as it leaves for the router.
func toRouter(t testing.TB, packet []byte) []byte {
	t.Helper()
	return packettest.Link{Src: farMAC, Dst: farRouterMAC}.Frame(t, packet)
}

// forwarded is what a router does to the packet of a frame.
func forwarded(t testing.TB, sent, got []byte) {
	t.Helper()
	packettest.WantFrame(t, got, toRouter(t, packettest.Forwarded(sent[ethernetHeader:])))
}

// polled is the program with which the kernel forwards quickest: none, but a veth takes frames of
// programs only if it has one itself, or GRO, which takes longer.
func (f *forwarding) polled() *ebpf.Program {
	if f.nics {
		return nil
	}
	return f.objects.Programs["forward_pass"]
}

func (f *forwarding) kernel(t testing.TB, name string, flows int) device {
	t.Helper()
	frame := benchArriving(t, benchACK(benchClientV6, hostVIPv6), flows)
	vip := hostVIPv6.String()
	return device{
		name: name, program: f.polled(), frame: frame,
		begin:   "-6 route add " + vip + "/128 via fd00:5e:2::2",
		end:     "-6 route del " + vip + "/128",
		arrives: arrivalOf(frame, 0, protocolTCP, hostVIPv6), want: forwarded,
	}
}

// encapsulating are the kernel's SRv6 in one header, to one segment or one of as many as the edge
// has backends. Their routes stay.
func (f *forwarding) encapsulating(t testing.TB) []device {
	t.Helper()
	of := func(name, to string, segments uint16) device {
		for id := range segments {
			f.encapsulate(t, fmt.Sprintf("-6 route append %s/128 encap seg6 mode encap.red "+
				"segs %s via fd00:5e:2::2 dev far", to, sidOf(t, block(t), id+1)))
		}
		vip := netip.MustParseAddr(to)
		frame := benchArriving(t, benchACK(benchClientV6, vip), 1<<14)
		return device{
			name: name, program: f.polled(), frame: frame,
			arrives: arrivalOf(frame, ipv6Header, protocolIPv6, vip),
			want: func(t testing.TB, sent, got []byte) {
				t.Helper()
				outerHeaders(t, got, sent[ethernetHeader:], block(t).Prefix())
			},
		}
	}
	return []device{
		of("kernel, seg6 encap.red, 1 segment, 16,384 flows", "2001:db8:80::91", 1),
		of("kernel, seg6 encap.red, 100 next hops, 16,384 flows", "2001:db8:80::92", benchBackends),
	}
}

// encapsulate adds a route with SRv6. The kernel allocates for it what there is for each processor,
// and refuses if there is none at once.
func (f *forwarding) encapsulate(t testing.TB, route string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := linuxtest.IP(route)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// outerHeaders checks a packet in one IPv6 header, with what varies from kernel to kernel left out:
// flow label, hop limit and source.
func outerHeaders(t testing.TB, got, inner []byte, to netip.Prefix) {
	t.Helper()
	want := toRouter(t, packettest.Outer{HopLimit: 64, Src: netip.IPv6Unspecified(),
		Dst: to.Addr()}.Around(t, inner))
	if len(got) != len(want) {
		t.Fatalf("%d bytes arrived, not %d: %x", len(got), len(want), got)
	}
	masked := bytes.Clone(got)
	at := masked[ethernetHeader:]
	at[1], at[2], at[3] = at[1]&0xf0, 0, 0
	at[7] = 64
	clear(at[8:24])
	if destination := netip.AddrFrom16([16]byte(at[24:])); !to.Contains(destination) {
		t.Fatalf("a packet went to %s, which is not in %s", destination, to)
	}
	copy(at[24:40], want[ethernetHeader+24:])
	masked[ethernetHeader+ipv6Header+7] = want[ethernetHeader+ipv6Header+7] // may be forwarded
	packettest.WantFrame(t, masked, want)
}

func (f *forwarding) bare(t testing.TB) device {
	t.Helper()
	d := f.kernel(t, "bare encapsulation, 1 flow", 1)
	d.begin, d.end, d.program = "", "", f.objects.Programs["forward_bare"]
	d.arrives = arrivalOf(d.frame, ipv6Header, protocolIPv6, hostVIPv6)
	d.want = func(t testing.TB, sent, got []byte) {
		t.Helper()
		outer := packettest.Outer{HopLimit: 64, Src: netip.MustParseAddr("fd00:5e::e1"),
			Dst: netip.MustParseAddr("fcbb:bb00:1:2::")}
		packettest.WantFrame(t, got, toRouter(t, outer.Around(t, sent[ethernetHeader:])))
	}
	return d
}

// edges are Sextant's edge, whose packets leave by another interface.
func (f *forwarding) edges(t testing.TB) (all []device) {
	t.Helper()
	edge := newBenchEdge(t, f.world, Carrier)
	must(t, edge.setPorts([]Attachment{{On: "far", Index: f.far, Mode: Native}}))
	twin := f.edgeModel(t, edge.config)
	of := func(name string, packet packettest.Packet, flows int) {
		frame := benchArriving(t, packet, flows)
		all = append(all, device{
			name: name, program: edge.programs[External], frame: frame,
			arrives: arrivalOf(frame, ipv6Header, protocolIPv6, hostVIPv6),
			want: func(t testing.TB, sent, got []byte) {
				t.Helper()
				packettest.WantFrame(t, got, twin.Process(uint32(f.near), sent).Frame)
			},
		})
	}
	ack := benchACK(benchClientV6, hostVIPv6)
	of("edge, 1 flow", ack, 1)
	of("edge, 16,384 flows", ack, 1<<14)
	of("edge, 1,048,576 flows", ack, 1<<20)
	return all
}

// hosts pass on what is another host's: Sextant's, and the kernel's behavior that shifts a carrier
// likewise, without a look at what is in it.
func (f *forwarding) hosts(t testing.TB) []device {
	t.Helper()
	config := hostConfig(t)
	config.SIDs = config.SIDs[:1]
	host := newBenchHost(t, f.world, config, acceptance.Policy{Kind: acceptance.Static,
		Threshold: 4})
	must(t, host.setPorts([]Attachment{{On: "far", Index: f.far, Mode: Native}}))
	frame := benchOffered(t, benchACK(benchStrangerV6, hostVIPv6), 1<<14)
	passed := func(t testing.TB, sent, got []byte) {
		t.Helper()
		outer := packettest.Outer{HopLimit: 63, Src: netip.MustParseAddr("fd00:5e::e1"),
			Dst: netip.MustParseAddr("fcbb:bb00:2::")}
		inner := sent[ethernetHeader+ipv6Header:]
		packettest.WantFrame(t, got, toRouter(t, outer.Around(t, inner)))
	}
	arrives := arrivalOf(frame, 0, protocolIPv6, hostVIPv6)
	return []device{
		{name: "host, passes on, 16,384 flows", program: host.programs["host"], frame: frame,
			arrives: arrives, want: passed},
		{
			name: "kernel, End with NEXT-CSID, 16,384 flows", program: f.polled(), frame: frame,
			begin: "-6 route add fcbb:bb00:1::/48 encap seg6local action End flavors next-csid " +
				"lblen 32 nflen 16 dev far",
			end:     "-6 route del fcbb:bb00:1::/48",
			arrives: arrives, want: passed,
		},
	}
}

// balanced are IPVS with Maglev hashing over as many real servers as the edge has backends: direct
// routing and tunnels. It keeps a table of connections, as with each of its schedulers.
func (f *forwarding) balanced(t testing.TB) (all []device) {
	t.Helper()
	neighbours := ""
	for i := range benchBackends {
		neighbours += fmt.Sprintf("-6 neigh replace %s lladdr 02:00:00:00:05:%02x dev far\n",
			ipvsServer(ipvsNear, i), i)
	}
	ip(t, "", neighbours)
	of := func(name string, port uint16, way string, servers netip.Prefix, flows int,
		arrives func(benchFrame) arrivalForm, want func(t testing.TB, sent, got []byte)) {
		packet := benchACK(benchClientV6, hostVIPv6)
		packet.DstPort = port
		frame := benchArriving(t, packet, flows)
		service := fmt.Sprintf("-t [%s]:%d", hostVIPv6, port)
		rules := "-A " + service + " -s mh -b mh-port\n"
		for i := range benchBackends {
			rules += fmt.Sprintf("-a %s -r [%s]:%d %s -w 1\n", service, ipvsServer(servers, i),
				port, way)
		}
		all = append(all, device{
			name: name, program: f.polled(), frame: frame, balance: rules,
			begin:   "-6 addr add " + hostVIPv6.String() + "/128 dev lo nodad",
			end:     "-6 addr del " + hostVIPv6.String() + "/128 dev lo",
			arrives: arrives(frame), want: want,
		})
	}
	direct := func(frame benchFrame) arrivalForm {
		return arrivalOf(frame, 0, protocolTCP, hostVIPv6)
	}
	tunnel := func(frame benchFrame) arrivalForm {
		return arrivalOf(frame, ipv6Header, protocolIPv6, hostVIPv6)
	}
	toServer := func(t testing.TB, sent, got []byte) {
		t.Helper()
		if mac := got[:6]; !bytes.Equal(mac[:5], []byte{2, 0, 0, 0, 5}) || mac[5] >= benchBackends {
			t.Fatalf("a packet went to %x, which is no server", mac)
		}
		link := packettest.Link{Src: farMAC, Dst: bytes.Clone(got[:6])}
		packettest.WantFrame(t, got, link.Frame(t, packettest.Forwarded(sent[ethernetHeader:])))
	}
	inTunnel := func(t testing.TB, sent, got []byte) {
		t.Helper()
		outerHeaders(t, got, sent[ethernetHeader:], ipvsFar)
	}
	for _, flows := range []int{1, 1 << 14, 1 << 20} {
		name := strings.TrimSuffix(grouped(flows)+" flows", "s")
		if flows > 1 {
			name += "s"
		}
		of("IPVS, direct routing, "+name, hostPort, "-g", ipvsNear, flows, direct, toServer)
		of("IPVS, tunnel, "+name, ipvsPort, "-i", ipvsFar, flows, tunnel, inTunnel)
	}
	return all
}

// ipvsServer is one of the real servers.
func ipvsServer(in netip.Prefix, i int) netip.Addr {
	a := in.Addr().As16()
	a[15] = byte(i + 1)
	return netip.AddrFrom16(a)
}

// grouped writes a number with commas.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
