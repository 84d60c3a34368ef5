package model_test

import (
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
)

var encapsulations = map[string]model.Encapsulation{
	packettest.Carrier:    model.EncapsulationCarrier,
	packettest.FullSRH:    model.EncapsulationSRH,
	packettest.ReducedSRH: model.EncapsulationSRHReduced,
}

// TestEncapsulation compares the whole frame: every encapsulation with one to six ids,
// every kind of packet, no to two VLAN tags, with and without padding, and every way out.
func TestEncapsulation(t *testing.T) {
	for name := range encapsulations {
		for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				ip := packet.Bytes(t)
				for n := 1; n <= pool.MaxChain; n++ {
					for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
						for _, padding := range []int{0, 7} {
							checkEncapsulation(t, name, packet, ip, n, vlans, padding)
						}
					}
				}
			})
		}
	}
}

func checkEncapsulation(t *testing.T, encapsulation string, packet inner, ip []byte, n int,
	vlans []uint16, padding int) {
	ids := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}[:n]
	c := chain(1, ids...)
	if packet.Protocol == udp {
		ids = ids[:1]
	}
	in := fromClient(vlans...)
	in.Padding = []byte("padding")[:padding]
	for _, test := range []struct {
		verdict model.Verdict
		egress  uint32
		out     link
	}{
		{verdict: model.Transmit, egress: external, out: link{Src: egressMAC, Dst: gatewayMAC,
			VLANs: vlans, Padding: in.Padding}},
		{verdict: model.Redirect, egress: internal, out: link{Src: egressMAC, Dst: gatewayMAC,
			Padding: in.Padding}},
		{verdict: model.HandToKernel, egress: foreign, out: in},
	} {
		edge := newEdge(t, c, test.egress)
		edge.Encapsulation = encapsulations[encapsulation]
		label := uint32(edge.FlowHash.Hash(edge.Secret, packet.Flow()) & 0xfffff)
		got := edge.Process(external, in.Frame(t, ip))
		if got.Verdict != test.verdict {
			t.Fatalf("%v, %v; want %v", got.Verdict, got.Reason, test.verdict)
		}
		want := packettest.Encapsulated(t, encapsulation, ids, label, packet.TrafficClass, ip)
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
			label := uint32(edge.FlowHash.Hash(edge.Secret, packet.Flow()) & 0xfffff)
			want := packettest.Encapsulated(t, packettest.Carrier, []uint16{9}, label, uint8(class),
				ip)
			wantFrame(t, got.Frame, link{Src: egressMAC, Dst: gatewayMAC}.Frame(t, want))
		}
	}
}

// TestEncapsulationLabelZero: a flow whose hash ends with 20 zero bits gets the label 1,
// as 0 would mean that there is none (RFC 6437 section 2).
func TestEncapsulationLabelZero(t *testing.T) {
	edge := newEdge(t, chain(1, 9), internal)
	packet := web4("S")
	for i := uint32(0); edge.FlowHash.Hash(edge.Secret, packet.Flow())&0xfffff != 0; i++ {
		packet.SrcPort = uint16(i)
		packet.Src = netip.AddrFrom4([4]byte{198, 51, byte(i >> 16), byte(i >> 24)})
	}
	ip := packet.Bytes(t)
	got := edge.Process(external, fromClient().Frame(t, ip))
	want := packettest.Encapsulated(t, packettest.Carrier, []uint16{9}, 1, 0, ip)
	wantFrame(t, got.Frame, link{Src: egressMAC, Dst: gatewayMAC}.Frame(t, want))
}

// TestEdgeCut cuts packets everywhere.
func TestEdgeCut(t *testing.T) {
	for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
		t.Run(kind, func(t *testing.T) {
			edge := newEdge(t, chain(1, 1), internal)
			for _, test := range packettest.EdgeCuts(t, packet) {
				if got := outcome(edge.Process(external, test.Frame)); got != test.Want {
					t.Errorf("%s: %s, want %s", test.Name, got, test.Want)
				}
			}
		})
	}
}
