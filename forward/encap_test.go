package forward_test

import (
	"fmt"
	"net/netip"
	"testing"

	"sextant/forward"
	"sextant/forward/packettest"
	"sextant/pool"
)

// expectedOuter returns the outer packet around ip, for a chain of ids.
func expectedOuter(t testing.TB, encapsulation forward.Encapsulation, ids []uint16, label uint32, class uint8, ip []byte) []byte {
	t.Helper()
	o := outer{Src: edgeAddr, FlowLabel: label, TrafficClass: class, HopLimit: 63}
	next, n := innerProtocol(ip), len(ids)
	var wire []netip.Addr // last segment first
	for i := n - 1; i >= 0; i-- {
		wire = append(wire, sid(ids[i]))
	}
	switch encapsulation {
	case forward.EncapsulationCarrier:
		carrier := [16]byte{0xfc, 0xbb, 0xbb, 0x00}
		for i, id := range ids {
			carrier[4+2*i], carrier[5+2*i] = byte(id>>8), byte(id)
		}
		o.Dst = netip.AddrFrom16(carrier)
	case forward.EncapsulationSRH:
		o.Dst = sid(ids[0])
		o.Extensions = srh(next, uint8(n-1), uint8(n-1), wire...)
	case forward.EncapsulationSRHReduced:
		o.Dst = sid(ids[0])
		if n > 1 {
			o.Extensions = srh(next, uint8(n-1), uint8(n-2), wire[:n-1]...)
		}
	}
	return o.Around(t, ip)
}

var encapsulations = map[string]forward.Encapsulation{
	"carrier":     forward.EncapsulationCarrier,
	"srh":         forward.EncapsulationSRH,
	"srh-reduced": forward.EncapsulationSRHReduced,
}

// TestEncapsulation compares the whole frame: every encapsulation with one to six ids,
// every kind of packet, no to two VLAN tags, with and without padding, and every way out.
func TestEncapsulation(t *testing.T) {
	for name, encapsulation := range encapsulations {
		for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				ip := packet.Bytes(t)
				for n := 1; n <= pool.MaxChain; n++ {
					for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
						for _, padding := range []int{0, 7} {
							checkEncapsulation(t, encapsulation, packet, ip, n, vlans, padding)
						}
					}
				}
			})
		}
	}
}

func checkEncapsulation(t *testing.T, encapsulation forward.Encapsulation, packet inner, ip []byte, n int, vlans []uint16, padding int) {
	ids := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}[:n]
	c := chain(1, ids...)
	if packet.Protocol == udp {
		ids = ids[:1]
	}
	in := fromClient(vlans...)
	in.Padding = []byte("padding")[:padding]
	for _, test := range []struct {
		verdict forward.Verdict
		egress  uint32
		out     link
	}{
		{verdict: forward.Transmit, egress: external, out: link{Src: egressMAC, Dst: gatewayMAC, VLANs: vlans, Padding: in.Padding}},
		{verdict: forward.Redirect, egress: internal, out: link{Src: egressMAC, Dst: gatewayMAC, Padding: in.Padding}},
		{verdict: forward.HandToKernel, egress: foreign, out: in},
	} {
		edge := newEdge(t, c, test.egress)
		edge.Encapsulation = encapsulation
		label := uint32(edge.Secret.Hash(packet.Flow()) & 0xfffff)
		got := edge.Process(external, in.Frame(t, ip))
		if got.Verdict != test.verdict {
			t.Fatalf("%v, %v; want %v", got.Verdict, got.Reason, test.verdict)
		}
		want := expectedOuter(t, encapsulation, ids, label, packet.TrafficClass, ip)
		wantFrame(t, got.Frame, test.out.Frame(t, want))
	}
}

// TestEncapsulationTrafficClass: the outer traffic class is the inner one, ECN included.
func TestEncapsulationTrafficClass(t *testing.T) {
	for class := range 256 {
		for _, packet := range []inner{web4("S"), web6("S")} {
			packet.TrafficClass = uint8(class)
			ip := packet.Bytes(t)
			edge := newEdge(t, chain(1, 9), internal)
			got := edge.Process(external, fromClient().Frame(t, ip))
			label := uint32(edge.Secret.Hash(packet.Flow()) & 0xfffff)
			want := expectedOuter(t, forward.EncapsulationCarrier, []uint16{9}, label, uint8(class), ip)
			wantFrame(t, got.Frame, link{Src: egressMAC, Dst: gatewayMAC}.Frame(t, want))
		}
	}
}

// TestEncapsulationLabelZero: a flow whose hash ends with 20 zero bits gets the label 1,
// as 0 would mean that there is none (RFC 6437 section 2).
func TestEncapsulationLabelZero(t *testing.T) {
	edge := newEdge(t, chain(1, 9), internal)
	packet := web4("S")
	for i := uint32(0); edge.Secret.Hash(packet.Flow())&0xfffff != 0; i++ {
		packet.SrcPort = uint16(i)
		packet.Src = netip.AddrFrom4([4]byte{198, 51, byte(i >> 16), byte(i >> 24)})
	}
	ip := packet.Bytes(t)
	got := edge.Process(external, fromClient().Frame(t, ip))
	want := expectedOuter(t, forward.EncapsulationCarrier, []uint16{9}, 1, 0, ip)
	wantFrame(t, got.Frame, link{Src: egressMAC, Dst: gatewayMAC}.Frame(t, want))
}

// TestEdgeCut cuts packets everywhere: a cut frame lies about its length; with IP lengths
// that agree, the header that is cut is missed.
func TestEdgeCut(t *testing.T) {
	for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
		t.Run(kind, func(t *testing.T) {
			ip := packet.Bytes(t)
			frame := fromClient(100, 200).Frame(t, ip)
			edge := newEdge(t, chain(1, 1), internal)
			const network = 22
			for n := range len(frame) {
				want := forward.ReasonBadLength
				fixed := 40
				if ip[0]>>4 == 4 {
					fixed = int(ip[0]&0xf) * 4
				}
				if n < network+fixed {
					want = forward.ReasonTruncated
				}
				if got := edge.Process(external, frame[:n]); got.Reason != want {
					t.Errorf("%d of %d bytes: %v, want %v", n, len(frame), got.Reason, want)
				}
			}
			for n := range len(ip) {
				checkShortened(t, edge, packet, ip, n)
			}
		})
	}
}

// checkShortened ends a packet after n bytes, as its IP header says too.
func checkShortened(t *testing.T, edge *forward.Edge, packet inner, ip []byte, n int) {
	transport := len(ip) - len(packet.Payload) - 8
	if packet.Protocol != udp {
		transport = len(ip) - len(packet.Payload) - 20 - 12*len(packet.TCPOptions)
	}
	short, fixed := fmt.Appendf(nil, "%s", ip[:n]), 40
	if ip[0]>>4 == 4 {
		fixed = int(ip[0]&0xf) * 4
	}
	if n < fixed {
		return
	}
	if fixed == 40 && ip[0]>>4 == 6 {
		short[4], short[5] = byte((n-40)>>8), byte(n-40)
	} else {
		short[2], short[3] = byte(n>>8), byte(n)
	}
	want := forward.ReasonNone
	switch {
	case n < transport:
		want = forward.ReasonTruncated
		if len(packet.Extensions) == 0 {
			want = forward.ReasonBadTransport
		}
	case packet.Protocol == udp, n < len(ip)-len(packet.Payload):
		want = forward.ReasonBadTransport
	}
	if got := edge.Process(external, fromClient().Frame(t, short)); got.Reason != want {
		t.Errorf("packet of %d, not %d bytes: %v, want %v", n, len(ip), got.Reason, want)
	}
}
