package datapath

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// ipv6HeaderEnd is where what follows the IPv6 header begins in a frame without VLAN tags.
const ipv6HeaderEnd = 14 + 40

// TestEdgeWritesTheSRHOfTheVocabulary: what the program writes is read back, and is what package
// srv6 would have written.
func TestEdgeWritesTheSRHOfTheVocabulary(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for encapsulation, build := range map[Encapsulation]func(uint8,
		[]netip.Addr) (srv6.SRH, bool, error){
		SRH: func(next uint8, travel []netip.Addr) (srv6.SRH, bool, error) {
			h, err := srv6.NewSRH(next, travel)
			return h, true, err
		},
		SRHReduced: srv6.NewReducedSRH,
	} {
		config := edgeConfig(t)
		config.Encapsulation = encapsulation
		edges := newTwoEdges(t, w, config)
		run := newRunner(edges.program.programs[External], w.near)
		seen := 0
		for port := uint16(1000); port < 1200; port++ {
			frame := tcpFrame(t, tupleOf(clientV6, hostVIPv6, port), &layers.TCP{ACK: true})
			want := edges.model.Process(uint32(w.near), frame)
			if verdict, after := run.run(t, frame); verdict == xdpTransmit ||
				verdict == xdpRedirect {
				compareSRH(t, after, travelOf(t, config.Block,
					slices.Concat(want.Path, want.Chain)), build)
				seen++
			}
		}
		if seen < 20 {
			t.Errorf("encapsulation %d: only %d of 200 packets were forwarded", encapsulation, seen)
		}
	}
}

func travelOf(t *testing.T, block srv6.Block, ids []uint16) []netip.Addr {
	t.Helper()
	travel := make([]netip.Addr, len(ids))
	for i, id := range ids {
		travel[i] = sidOf(t, block, id)
	}
	return travel
}

func compareSRH(t *testing.T, frame []byte, travel []netip.Addr,
	build func(uint8, []netip.Addr) (srv6.SRH, bool, error)) {
	t.Helper()
	want, wanted, err := build(41, travel)
	must(t, err)
	if !wanted {
		if frame[20] != 41 {
			t.Errorf("next header %d, want none between the IPv6 headers", frame[20])
		}
		return
	}
	got, size, err := srv6.ParseSRH(frame[ipv6HeaderEnd:])
	must(t, err)
	octets, err := want.AppendBinary(nil)
	must(t, err)
	if !bytes.Equal(frame[ipv6HeaderEnd:ipv6HeaderEnd+size], octets) {
		t.Errorf("SRH %+v, want %+v", got, want)
	}
}

// TestHostWalksOverTLVs: an SRH with an HMAC TLV and padding is decapsulated like any other.
func TestHostWalksOverTLVs(t *testing.T) {
	w := newWorld(t)
	hosts := newTwoHosts(t, w, nil)
	run := newRunner(hosts.program.programs["host"], w.near)
	locator, err := block(t).Locator(1)
	must(t, err)
	hmac, err := srv6.HMAC{KeyID: 7, Digest: bytes.Repeat([]byte{0xab}, 32)}.TLV()
	must(t, err)
	header, err := srv6.NewSRH(41, []netip.Addr{locator.Addr()})
	must(t, err)
	header.TLVs = srv6.AlignTLVs([]srv6.TLV{hmac, {Type: 124, Value: []byte{1, 2, 3}}})
	octets, err := header.AppendBinary(nil)
	must(t, err)
	parsed, _, err := srv6.ParseSRH(octets)
	must(t, err)
	if read, err := srv6.ParseHMAC(parsed.TLVs[0]); err != nil || read.KeyID != 7 {
		t.Fatalf("HMAC TLV read as %+v, %v", read, err)
	}

	inner := tcpFrame(t, tupleOf(clientV6, hostVIPv6, 1000), &layers.TCP{ACK: true})
	outer := &layers.IPv6{
		Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolIPv6Routing,
		Length: uint16(len(octets) + len(inner) - 14),
		SrcIP:  netip.MustParseAddr("fd00:5e::e1").AsSlice(), DstIP: locator.Addr().AsSlice(),
	}
	frame := slices.Concat(inner[:14], ipv6Octets(outer), octets, inner[14:])
	if verdict, after := run.run(t, frame); verdict != xdpPass || !bytes.Equal(after, inner) {
		t.Errorf("verdict %d, frame %x, want %x", verdict, after, inner)
	}
}

// ipv6Octets writes a header by hand: the library would compute a length of its own.
func ipv6Octets(h *layers.IPv6) []byte {
	octets := []byte{h.Version << 4, 0, 0, 0, byte(h.Length >> 8), byte(h.Length),
		byte(h.NextHeader), h.HopLimit}
	return slices.Concat(octets, h.SrcIP, h.DstIP)
}

// TestLeaveAgreesWithModel: the MSS of a SYN-ACK, and of nothing else, is lowered on the way out.
func TestLeaveAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	hosts := newTwoHosts(t, w, nil)
	mss := layers.TCPOption{OptionType: layers.TCPOptionKindMSS, OptionLength: 4,
		OptionData: []byte{0x23, 0x28}}
	nop := layers.TCPOption{OptionType: layers.TCPOptionKindNop, OptionLength: 1}
	lowered := 0
	for _, vip := range []netip.Addr{hostVIPv6, hostVIPv4} {
		client := clientV6
		if vip.Is4() {
			client = clientV4
		}
		for _, tcp := range []layers.TCP{
			{SYN: true, ACK: true, Options: []layers.TCPOption{mss}},
			{SYN: true, ACK: true, Options: []layers.TCPOption{nop, mss}},
			{SYN: true, ACK: true},
			{SYN: true, Options: []layers.TCPOption{mss}},
			{ACK: true},
		} {
			answer := flow.Tuple{Src: vip, Dst: client, SrcPort: hostPort, DstPort: 2000,
				Protocol: 6}
			frame := tcpFrame(t, answer, &tcp)
			verdict, after, err := hosts.program.programs["host_leave"].Test(frame)
			must(t, err)
			want := hosts.model.Egress(frame, false)
			if !bytes.Equal(after, want) {
				t.Errorf("verdict %d: frame %x became %x, want %x", verdict, frame, after, want)
			}
			if !bytes.Equal(want, frame) {
				lowered++
			}
		}
	}
	if lowered != 4 {
		t.Errorf("%d SYN-ACKs were lowered, want 4", lowered)
	}
}
