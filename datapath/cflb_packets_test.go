package datapath

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/cflb"
)

// Whole packets, built by an independent library, leave with one hop less, checksums that are right
// and the addresses of the next hop that they name; nothing else in them changes.
func TestCFLBPackets(t *testing.T) {
	w := newWorld(t)
	codec, err := cflb.New(cflb.Defaults(cflb.BothPorts, 2, [cflb.KeyLength]byte{5}))
	must(t, err)
	r := openCFLB(t, w, &model.CFLB{IPv4: codec, IPv6: codec, Router: 3}, false)
	hops := []model.CFLBNextHop{
		{Interface: uint32(w.far), Weight: 1, MTU: 1500, Ready: true, Source: [6]byte(farMAC),
			Destination: [6]byte(farRouterMAC)},
		{Interface: uint32(w.near), Weight: 1, MTU: 100, Ready: true, Source: [6]byte(nearMAC),
			Destination: [6]byte(routerMAC)},
	}
	must(t, r.SetTable(model.CFLBTable{Groups: [][]model.CFLBNextHop{hops, hops},
		Routes: map[netip.Prefix]int{
			netip.MustParsePrefix("203.0.113.0/24"):    0,
			netip.MustParsePrefix("2001:db8:2::/48"):   1,
			netip.MustParsePrefix("203.0.113.254/32"):  model.CFLBKernel,
			netip.MustParsePrefix("2001:db8:2::1/128"): model.CFLBKernel,
		}}))
	run := newRunner(r.programs["cflb"], w.near)
	arriving := packettest.Link{Src: routerMAC, Dst: nearMAC}
	leaving := []packettest.Link{{Src: farMAC, Dst: farRouterMAC}, {Src: nearMAC, Dst: routerMAC}}
	for _, is4 := range []bool{true, false} {
		for _, protocol := range []layers.IPProtocol{layers.IPProtocolTCP, layers.IPProtocolUDP} {
			for hopLimit := 255; hopLimit >= 1; hopLimit-- {
				index := hopLimit % 2
				p := steeredPacket(t, codec, is4, protocol, uint8(hopLimit), index)
				frame := arriving.Frame(t, p.Bytes(t))
				p.HopLimit--
				want, verdict := leaving[index].Frame(t, p.Bytes(t)),
					[]uint32{xdpRedirect, xdpTransmit}[index]
				if hopLimit == 1 {
					want, verdict = frame, xdpPass
				}
				if got, after := run.run(t, frame); got != verdict || !bytes.Equal(after, want) {
					t.Fatalf("hop limit %d, next hop %d: %d, want %d\n%x\nwant\n%x", hopLimit,
						index, got, verdict, after, want)
				}
			}
		}
	}
	for name, p := range kernelPackets(t, codec) {
		frame := arriving.Frame(t, p.Bytes(t))
		if got, after := run.run(t, frame); got != xdpPass || !bytes.Equal(after, frame) {
			t.Errorf("%s: verdict %d, want it to go to the kernel as it came", name, got)
		}
	}
}

func steeredPacket(t *testing.T, codec *cflb.Codec, is4 bool, protocol layers.IPProtocol,
	hopLimit uint8, index int) packettest.Packet {
	t.Helper()
	p := packettest.Packet{
		Src: netip.MustParseAddr("198.51.100.7"), Dst: netip.MustParseAddr("203.0.113.9"),
		Protocol: protocol, Flags: "A", HopLimit: hopLimit, TrafficClass: 0x2a, ID: 77,
	}
	if !is4 {
		p.Src, p.Dst, p.FlowLabel = netip.MustParseAddr("2001:db8:1::7"),
			netip.MustParseAddr("2001:db8:2::9"), 0x12345
	}
	packets, err := codec.Selectors(cflb.Packet{Src: p.Src, Dst: p.Dst, Protocol: uint8(protocol)},
		[]cflb.Hop{{HopLimit: hopLimit, Index: index}}, 999*uint64(hopLimit))
	must(t, err)
	for steered := range packets {
		p.SrcPort, p.DstPort = steered.SrcPort, steered.DstPort
		break
	}
	return p
}

// kernelPackets are packets that the program leaves to the kernel.
func kernelPackets(t *testing.T, codec *cflb.Codec) map[string]packettest.Packet {
	udp := layers.IPProtocolUDP
	local4, local6 := steeredPacket(t, codec, true, udp, 64, 0),
		steeredPacket(t, codec, false, udp, 64, 0)
	local4.Dst, local6.Dst = netip.MustParseAddr("203.0.113.254"),
		netip.MustParseAddr("2001:db8:2::1")
	elsewhere := steeredPacket(t, codec, true, udp, 64, 0)
	elsewhere.Dst = netip.MustParseAddr("192.0.2.1")
	large := steeredPacket(t, codec, true, udp, 64, 1)
	large.Payload = make([]byte, 100)
	options := steeredPacket(t, codec, true, udp, 64, 0)
	options.IPv4Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4,
		OptionData: []byte{0, 0}}}
	linkLocal := steeredPacket(t, codec, false, udp, 64, 0)
	linkLocal.Src = netip.MustParseAddr("fe80::1")
	return map[string]packettest.Packet{
		"a local IPv4 address": local4, "a local IPv6 address": local6, "no route": elsewhere,
		"larger than the MTU": large, "IPv4 options": options, "a link-local source": linkLocal,
	}
}
