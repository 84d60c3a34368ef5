package datapath

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/linux/linuxtest"
)

var _ = fuzzes(FuzzCheckPath, "check_path")

// checkMarks are the marks that the program knows, from 1 on.
const checkMarks = 3

var (
	checkSource = netip.MustParseAddr("fd00:5e:1::1")
	checkVIPs   = [...]netip.Addr{netip.MustParseAddr("2001:db8:80::80"),
		netip.MustParseAddr("198.51.100.80")}
)

// checkSID is where packets of a mark go.
func checkSID(mark uint8) netip.Addr {
	sid := netip.MustParseAddr("fcbb:bb00::").As16()
	sid[5], sid[15] = mark, 0x80+mark
	return netip.AddrFrom16(sid)
}

// FuzzCheckPath sends packets of any content to VIPs whose routes name the program: those with a
// mark that it knows leave inside a header to the SID of the mark, as they are, and no others do.
// The kernel's test run has no route, which the encapsulation needs, so the packets are real ones.
func FuzzCheckPath(f *testing.F) {
	newWorld(f)
	program, err := NewCheckPaths(checkMarks)
	must(f, err)
	f.Cleanup(program.Close)
	for mark := range uint8(checkMarks) {
		must(f, program.Set(uint32(mark+1), checkSource, checkSID(mark+1)))
	}
	routeChecks(f, program)
	wire := openWire(f)
	sockets := [...]int{rawSocket(f, unix.AF_INET6), rawSocket(f, unix.AF_INET)}
	f.Add(uint8(1), false, uint8(64), uint32(0x12345), uint8(6), []byte("check"))
	f.Add(uint8(2), true, uint8(1), uint32(0xffffffff), uint8(17), []byte{})
	f.Add(uint8(0), false, uint8(0), uint32(0), uint8(253), bytes.Repeat([]byte{7}, 1300))
	f.Add(uint8(9), true, uint8(255), uint32(1), uint8(0), []byte{0})
	f.Fuzz(func(t *testing.T, mark uint8, ipv4 bool, hops uint8, flow uint32, protocol uint8,
		content []byte) {
		inner := innerOf(t, ipv4, hops, flow, protocol, content[:min(len(content), 1300)])
		end := innerOf(t, false, 64, 0, 253, []byte("the end"))
		family := map[bool]int{false: 0, true: 1}[ipv4]
		want := [][]byte{outerOf(t, 1, 64, 0, end)}
		err := sendMarked(t, sockets[family], mark, checkVIPs[family], inner)
		if mark >= 1 && mark <= checkMarks {
			must(t, err)
			want = slices.Insert(want, 0, outerOf(t, mark, hops, flow, inner))
		} else if !errors.Is(err, unix.EPERM) {
			t.Fatalf("mark %d is not known, the kernel says %v", mark, err)
		}
		must(t, sendMarked(t, sockets[0], 1, checkVIPs[0], end))
		for _, frame := range want {
			if got := wire.encapsulated(t); !bytes.Equal(got, frame) {
				t.Fatalf("mark %d: the frame that leaves is\n%x, want\n%x", mark, got, frame)
			}
		}
	})
}

// routeChecks leads packets for the VIPs through the program, and those for the SIDs to the wire.
func routeChecks(f testing.TB, program *CheckPaths) {
	near := setUp(f, "near")
	for _, vip := range checkVIPs {
		encap := &netlink.BpfEncap{}
		must(f, encap.SetProg(nl.LWT_BPF_XMIT, program.Program(), "check_path"))
		must(f, encap.SetXmitHeadroom(40))
		must(f, netlink.RouteAdd(&netlink.Route{LinkIndex: near.Attrs().Index, Encap: encap,
			Dst: ipNet(netip.PrefixFrom(vip, vip.BitLen()))}))
	}
	must(f, netlink.RouteAdd(&netlink.Route{LinkIndex: near.Attrs().Index,
		Gw:  net.ParseIP("fd00:5e:1::2"),
		Dst: ipNet(netip.MustParsePrefix("fcbb:bb00::/32"))}))
}

// rawSocket sends packets with their IP header.
func rawSocket(f testing.TB, family int) int {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	must(f, err)
	f.Cleanup(func() { unix.Close(fd) })
	return fd
}

func sendMarked(t *testing.T, socket int, mark uint8, to netip.Addr,
	packet []byte) error {
	t.Helper()
	must(t, unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_MARK, int(mark)))
	var address unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if to.Is4() {
		address = &unix.SockaddrInet4{Addr: to.As4()}
	}
	return unix.Sendto(socket, packet, 0, address)
}

// innerOf is a packet to a VIP. flow is traffic class and flow label, or what IPv4 has of it.
func innerOf(t *testing.T, ipv4 bool, hops uint8, flow uint32, protocol uint8,
	content []byte) []byte {
	var header gopacket.SerializableLayer = &layers.IPv6{Version: 6,
		TrafficClass: uint8(flow >> 20), FlowLabel: flow & 0xfffff, HopLimit: hops,
		NextHeader: layers.IPProtocol(protocol), SrcIP: checkSource.AsSlice(),
		DstIP: checkVIPs[0].AsSlice()}
	if ipv4 {
		header = &layers.IPv4{Version: 4, IHL: 5, TOS: uint8(flow >> 20), Id: uint16(flow) | 1,
			TTL: hops, Protocol: layers.IPProtocol(protocol), SrcIP: net.IPv4(198, 51, 100, 1),
			DstIP: checkVIPs[1].AsSlice()}
	}
	return serialized(t, header, gopacket.Payload(content))
}

// outerOf is the frame that has a packet inside a header to the SID of a mark.
func outerOf(t *testing.T, mark, hops uint8, flow uint32, inner []byte) []byte {
	outer := &layers.IPv6{Version: 6, HopLimit: hops, NextHeader: layers.IPProtocolIPv4,
		SrcIP: checkSource.AsSlice(), DstIP: checkSID(mark).AsSlice()}
	if inner[0]>>4 == 6 {
		outer.NextHeader = layers.IPProtocolIPv6
		outer.TrafficClass, outer.FlowLabel = uint8(flow>>20), flow&0xff
	}
	return serialized(t, &layers.Ethernet{SrcMAC: nearMAC, DstMAC: routerMAC,
		EthernetType: layers.EthernetTypeIPv6}, outer, gopacket.Payload(inner))
}

func serialized(t *testing.T, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buffer := gopacket.NewSerializeBuffer()
	must(t, gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true,
		ComputeChecksums: true}, all...))
	return buffer.Bytes()
}

// encapsulated waits for a frame to a SID, or to a VIP.
func (w wire) encapsulated(t *testing.T) []byte {
	t.Helper()
	buffer := make([]byte, 2048)
	for {
		n, _, err := linuxtest.Receive(w.fd, buffer)
		must(t, err)
		packet := gopacket.NewPacket(buffer[:n], layers.LayerTypeEthernet, gopacket.Lazy)
		switch ip := packet.NetworkLayer().(type) {
		case *layers.IPv4:
			return buffer[:n]
		case *layers.IPv6:
			if !ip.DstIP.IsMulticast() && !ip.DstIP.IsLinkLocalUnicast() {
				return buffer[:n]
			}
		}
	}
}
