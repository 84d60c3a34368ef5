package forward_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/forward"
	"sextant/pool"
)

// expectedOuter returns the outer packet around ip, for a chain of ids.
func expectedOuter(t testing.TB, encapsulation forward.Encapsulation, ids []uint16, label uint32, class uint8, ip []byte) []byte {
	t.Helper()
	o := outer{src: edgeAddr, flowLabel: label, trafficClass: class, hopLimit: 63}
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
		o.dst = netip.AddrFrom16(carrier)
	case forward.EncapsulationSRH:
		o.dst = sid(ids[0])
		o.extensions = srh(next, uint8(n-1), uint8(n-1), wire...)
	case forward.EncapsulationSRHReduced:
		o.dst = sid(ids[0])
		if n > 1 {
			o.extensions = srh(next, uint8(n-1), uint8(n-2), wire[:n-1]...)
		}
	}
	return o.around(t, ip)
}

// packets returns a packet of each kind that the edge encapsulates.
func packets() map[string]inner {
	all := map[string]inner{"IPv4": web4("A"), "IPv6": web6("A")}
	p := web4("PA")
	p.ipv4Options = []layers.IPv4Option{
		{OptionType: 7, OptionLength: 7, OptionData: []byte{4, 0, 0, 0, 0}}, {OptionType: 1},
	}
	p.payload, p.trafficClass = []byte("GET / HTTP/1.1\r\n\r\n"), 0xb9
	all["IPv4 with options"] = p
	p = web4("A")
	for range 40 {
		p.ipv4Options = append(p.ipv4Options, layers.IPv4Option{OptionType: 1})
	}
	all["IPv4 with 40 bytes of options"] = p
	p = web6("A").behind(hop, ext(dst, 1), ext(rout, 0), routing(frag, 0, 0, 1), fragment(tcp, 0))
	p.payload, p.trafficClass, p.flowLabel = []byte("odd"), 0x2a, 0xabcde
	all["IPv6 with extension headers"] = p
	p = web4("A")
	p.tcpOptions = []layers.TCPOption{option(8, 1, 2, 3, 4, 5, 6, 7, 8)}
	all["IPv4 with TCP options"] = p
	p = web6("")
	p.protocol, p.dstPort, p.payload = udp, 4433, make([]byte, 1200)
	all["UDP over IPv6"] = p
	p = web4("")
	p.protocol, p.dstPort, p.payload = udp, 53, []byte{1}
	all["UDP over IPv4"] = p
	return all
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
		for kind, packet := range packets() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				ip := packet.bytes(t)
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
	if packet.protocol == udp {
		ids = ids[:1]
	}
	in := fromClient(vlans...)
	in.padding = []byte("padding")[:padding]
	for _, test := range []struct {
		verdict forward.Verdict
		egress  uint32
		out     link
	}{
		{verdict: forward.Transmit, egress: external, out: link{src: egressMAC, dst: gatewayMAC, vlans: vlans, padding: in.padding}},
		{verdict: forward.Redirect, egress: internal, out: link{src: egressMAC, dst: gatewayMAC, padding: in.padding}},
		{verdict: forward.HandToKernel, egress: foreign, out: in},
	} {
		edge := newEdge(t, c, test.egress)
		edge.Encapsulation = encapsulation
		label := uint32(edge.Secret.Hash(packet.tuple()) & 0xfffff)
		got := edge.Process(external, in.frame(t, ip))
		if got.Verdict != test.verdict {
			t.Fatalf("%v, %v; want %v", got.Verdict, got.Reason, test.verdict)
		}
		want := expectedOuter(t, encapsulation, ids, label, packet.trafficClass, ip)
		wantFrame(t, got.Frame, test.out.frame(t, want))
	}
}

// TestEncapsulationTrafficClass: the outer traffic class is the inner one, ECN included.
func TestEncapsulationTrafficClass(t *testing.T) {
	for class := range 256 {
		for _, packet := range []inner{web4("S"), web6("S")} {
			packet.trafficClass = uint8(class)
			ip := packet.bytes(t)
			edge := newEdge(t, chain(1, 9), internal)
			got := edge.Process(external, fromClient().frame(t, ip))
			label := uint32(edge.Secret.Hash(packet.tuple()) & 0xfffff)
			want := expectedOuter(t, forward.EncapsulationCarrier, []uint16{9}, label, uint8(class), ip)
			wantFrame(t, got.Frame, link{src: egressMAC, dst: gatewayMAC}.frame(t, want))
		}
	}
}

// TestEncapsulationLabelZero: a flow whose hash ends with 20 zero bits gets the label 1,
// as 0 would mean that there is none (RFC 6437 section 2).
func TestEncapsulationLabelZero(t *testing.T) {
	edge := newEdge(t, chain(1, 9), internal)
	packet := web4("S")
	for i := uint32(0); edge.Secret.Hash(packet.tuple())&0xfffff != 0; i++ {
		packet.srcPort = uint16(i)
		packet.src = netip.AddrFrom4([4]byte{198, 51, byte(i >> 16), byte(i >> 24)})
	}
	ip := packet.bytes(t)
	got := edge.Process(external, fromClient().frame(t, ip))
	want := expectedOuter(t, forward.EncapsulationCarrier, []uint16{9}, 1, 0, ip)
	wantFrame(t, got.Frame, link{src: egressMAC, dst: gatewayMAC}.frame(t, want))
}

// TestEdgeCut cuts packets everywhere: a cut frame lies about its length; with IP lengths
// that agree, the header that is cut is missed.
func TestEdgeCut(t *testing.T) {
	for kind, packet := range packets() {
		t.Run(kind, func(t *testing.T) {
			ip := packet.bytes(t)
			frame := fromClient(100, 200).frame(t, ip)
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
	transport := len(ip) - len(packet.payload) - 8
	if packet.protocol != udp {
		transport = len(ip) - len(packet.payload) - 20 - 12*len(packet.tcpOptions)
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
		if len(packet.extensions) == 0 {
			want = forward.ReasonBadTransport
		}
	case packet.protocol == udp, n < len(ip)-len(packet.payload):
		want = forward.ReasonBadTransport
	}
	if got := edge.Process(external, fromClient().frame(t, short)); got.Reason != want {
		t.Errorf("packet of %d, not %d bytes: %v, want %v", n, len(ip), got.Reason, want)
	}
}
