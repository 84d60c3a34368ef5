package forward_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/layers"

	"sextant/forward"
	"sextant/pool"
)

// edgeCase is a frame, and what becomes of it.
type edgeCase struct {
	name    string
	ingress uint32 // external unless set
	ip      []byte // in an Ethernet frame
	frame   []byte // instead of ip
	verdict forward.Verdict
	reason  forward.Reason
}

// runEdge gives each frame to an edge with routes by another interface.
func runEdge(t *testing.T, cases []edgeCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			frame, ingress, egress := test.frame, test.ingress, uint32(internal)
			if frame == nil {
				frame = fromClient().Frame(t, test.ip)
			}
			switch ingress {
			case 0:
				ingress = external
			case internal:
				egress = external
			}
			got := checkEdge(t, newEdge(t, chain(2, 1, 2, 3), egress), ingress, frame)
			if got.Verdict != test.verdict || got.Reason != test.reason {
				t.Fatalf("got %v, %v; want %v, %v", got.Verdict, got.Reason, test.verdict, test.reason)
			}
		})
	}
}

// TestEdgeFrame: what is decided before there is an IP packet.
func TestEdgeFrame(t *testing.T) {
	syn4, wire := web4("S").Bytes(t), fromClient()
	runEdge(t, []edgeCase{
		{name: "foreign interface", ingress: foreign, ip: syn4, verdict: forward.Pass},
		{name: "no Ethernet header", frame: make([]byte, 13), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "nothing", frame: []byte{}, verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "ARP", frame: wire.FrameOf(t, layers.EthernetTypeARP, make([]byte, 28)), verdict: forward.Pass},
		{name: "tag cut off", frame: fromClient(7).Frame(t, syn4)[:17], verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "second tag cut off", frame: fromClient(7, 8).Frame(t, syn4)[:21], verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "tagged ARP without its payload", frame: fromClient(7).FrameOf(t, layers.EthernetTypeARP, nil), verdict: forward.Pass},
		{name: "three tags", frame: fromClient(7, 8, 9).Frame(t, syn4), verdict: forward.Pass},
		{name: "no network header", frame: wire.Frame(t, syn4)[:14], verdict: forward.Drop, reason: forward.ReasonTruncated},
	})
}

// TestEdgeIPv4: IPv4 headers.
func TestEdgeIPv4(t *testing.T) {
	syn4, wire := web4("S").Bytes(t), fromClient()
	runEdge(t, []edgeCase{
		{name: "IPv4", ip: syn4, verdict: forward.Redirect},
		{name: "IPv4 of version 6", frame: patched(wire.Frame(t, syn4), 14, 0x65), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "IHL 4", frame: patched(wire.Frame(t, syn4), 14, 0x44), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "IHL behind the frame", frame: patched(wire.Frame(t, syn4), 14, 0x4b), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "total length less than the header", frame: patched(wire.Frame(t, syn4), 16, 0, 19), verdict: forward.Drop, reason: forward.ReasonBadLength},
		{name: "total length behind the frame", frame: patched(wire.Frame(t, syn4), 16, 0, 41), verdict: forward.Drop, reason: forward.ReasonBadLength},
		{name: "no room for TCP", frame: patched(wire.Frame(t, syn4), 16, 0, 39), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "IPv4 fragment of a VIP", frame: patched(wire.Frame(t, syn4), 20, 0x20), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "IPv4 last fragment of a VIP", frame: patched(wire.Frame(t, syn4), 21, 1), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "IPv4 fragment with a bad header", frame: patched(patched(wire.Frame(t, syn4), 20, 0x20), 46, 0), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "IPv4 DF and the reserved bit", frame: patched(wire.Frame(t, syn4), 20, 0xc0), verdict: forward.Redirect},
		{name: "IPv4 fragment of another", frame: patched(wire.Frame(t, web4("S").To(addr("192.0.2.1"), 80).Bytes(t)), 20, 0x20), verdict: forward.Pass},
	})
}

// TestEdgeIPv6: IPv6 headers and the chains behind them.
func TestEdgeIPv6(t *testing.T) {
	syn6, other6, wire := web6("S").Bytes(t), addr("2001:db8:99::1"), fromClient()
	runEdge(t, []edgeCase{
		{name: "IPv6", ip: syn6, verdict: forward.Redirect},
		{name: "IPv6 of version 4", frame: patched(wire.Frame(t, syn6), 14, 0x45), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "payload length behind the frame", frame: patched(wire.Frame(t, syn6), 18, 0, 21), verdict: forward.Drop, reason: forward.ReasonBadLength},
		{name: "payload length 0", frame: patched(wire.Frame(t, syn6), 18, 0, 0), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "eight extension headers", ip: web6("S").Behind(dst, chainOf(8, tcp)).Bytes(t), verdict: forward.Redirect},
		{name: "nine extension headers", ip: web6("S").Behind(dst, chainOf(9, tcp)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "nine to another destination", ip: web6("S").To(other6, 80).Behind(dst, chainOf(9, tcp)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "a ninth that is ESP", ip: web6("S").Behind(dst, chainOf(8, layers.IPProtocolESP)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "a ninth that is cut off", ip: inner{Src: client6, Dst: vip6, Protocol: 59}.Behind(dst, chainOf(8, hop)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "extension header of 7 bytes", ip: inner{Src: client6, Dst: vip6, Protocol: dst, Payload: make([]byte, 7)}.Bytes(t), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "extension header behind the packet", ip: inner{Src: client6, Dst: other6, Protocol: dst, Payload: patched(make([]byte, 8), 1, 1)}.Bytes(t), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "every kind of extension header", ip: web6("S").Behind(hop, ext(dst, 2), ext(rout, 0), routing(rout, 0, 0, 1), routing(rout, 2, 0, 1), routing(frag, 3, 0, 0), fragment(tcp, 0)).Bytes(t), verdict: forward.Redirect},
		{name: "atomic fragment with reserved bits", ip: web6("S").Behind(frag, fragment(tcp, 6)).Bytes(t), verdict: forward.Redirect},
		{name: "first fragment", ip: web6("S").Behind(frag, fragment(tcp, 1)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "last fragment", ip: web6("S").Behind(frag, fragment(tcp, 8)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "fragment ends the walk", ip: inner{Src: client6, Dst: vip6, Protocol: 59}.Behind(frag, fragment(dst, 8), make([]byte, 7)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "fragment of another", ip: web6("S").To(other6, 80).Behind(frag, fragment(tcp, 8)).Bytes(t), verdict: forward.Pass},
		{name: "routing header with segments left", ip: web6("S").Behind(rout, routing(tcp, 0, 1, 1)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
		{name: "routing header of another", ip: web6("S").To(other6, 80).Behind(rout, routing(tcp, 3, 1, 1)).Bytes(t), verdict: forward.Pass},
		{name: "routing header before a fragment", ip: web6("S").Behind(rout, routing(frag, 2, 1, 1), fragment(tcp, 8)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
		{name: "fragment behind a routing header", ip: web6("S").Behind(rout, routing(frag, 2, 0, 1), fragment(tcp, 8)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "truncated behind a routing header", ip: inner{Src: client6, Dst: other6, Protocol: 59}.Behind(rout, routing(dst, 2, 1, 0), make([]byte, 7)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonTruncated},
	})
}

// TestEdgeTransport: TCP and UDP headers.
func TestEdgeTransport(t *testing.T) {
	syn4, syn6, wire := web4("S").Bytes(t), web6("S").Bytes(t), fromClient()
	runEdge(t, []edgeCase{
		{name: "data offset 4", frame: patched(wire.Frame(t, syn4), 46, 0x40), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "data offset behind the packet", frame: patched(wire.Frame(t, syn6), 66, 0x60), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "bad TCP of another", frame: patched(wire.Frame(t, web4("S").To(addr("192.0.2.1"), 80).Bytes(t)), 46, 0x40), verdict: forward.Pass},
		{name: "UDP length 7", frame: patched(wire.Frame(t, web4("").To(vip4, 53).Of(udp, 1, 2).Bytes(t)), 38, 0, 7), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "UDP length behind the packet", frame: patched(wire.Frame(t, web4("").To(vip4, 53).Of(udp, 1, 2).Bytes(t)), 38, 0, 11), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "UDP length less than the packet", frame: patched(wire.Frame(t, web4("").To(vip4, 53).Of(udp, 1, 2).Bytes(t)), 38, 0, 8), verdict: forward.Redirect},
		{name: "UDP of 7 bytes", frame: patched(wire.Frame(t, web4("").To(vip4, 53).Of(udp).Bytes(t)), 16, 0, 27), verdict: forward.Drop, reason: forward.ReasonBadTransport},
	})
}

// TestEdgeService: what is addressed to a VIP and what is not.
func TestEdgeService(t *testing.T) {
	other6 := addr("2001:db8:99::1")
	runEdge(t, []edgeCase{
		{name: "another port", ip: web4("S").To(vip4, 81).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "any port", ip: web6("").To(vip6, 4433).Of(udp).Bytes(t), verdict: forward.Redirect},
		{name: "port 0 of any port", ip: web6("").To(vip6, 0).Of(udp).Bytes(t), verdict: forward.Redirect},
		{name: "port 0", ip: web6("S").To(vip6, 0).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "TCP to a UDP service", ip: web4("S").To(vip4, 53).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "IPv4 ping", ip: web4("").Of(layers.IPProtocolICMPv4, 8, 0).Bytes(t), verdict: forward.Pass},
		{name: "IPv6 ping", ip: web6("").Of(layers.IPProtocolICMPv6, 128, 0).Bytes(t), verdict: forward.Pass},
		{name: "ICMPv6 in IPv4", ip: web4("").Of(layers.IPProtocolICMPv6, 128, 0).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "ICMPv4 in IPv6", ip: web6("").Of(layers.IPProtocolICMPv4, 8, 0).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "fragmented ping", ip: web6("").Of(layers.IPProtocolICMPv6, 128, 0).Behind(frag, fragment(layers.IPProtocolICMPv6, 1)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "AH", ip: web6("").Of(layers.IPProtocolAH, make([]byte, 24)...).Bytes(t), verdict: forward.Drop, reason: forward.ReasonNoService},
		{name: "not a VIP", ip: web6("S").To(other6, 80).Bytes(t), verdict: forward.Pass},
		{name: "an IPv4 VIP mapped to IPv6", ip: web6("S").To(netip.AddrFrom16(vip4.As16()), 80).Bytes(t), verdict: forward.Pass},
	})
}

// TestEdgeGuard: what may not come from outside of the SR domain (RFC 8754 section 5.1).
func TestEdgeGuard(t *testing.T) {
	other6, segment := addr("2001:db8:99::1"), addr("fcbb:bb00:1::")
	runEdge(t, []edgeCase{
		{name: "to a SID from outside", ip: web6("S").To(segment, 80).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "to a SID from an unknown source", ingress: mixed, ip: web6("S").To(segment, 80).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "to a SID from the domain", ingress: mixed, ip: web6("S").From(edgeAddr).To(segment, 80).Bytes(t), verdict: forward.Pass},
		{name: "to a SID from inside", ingress: internal, ip: web6("S").To(segment, 80).Bytes(t), verdict: forward.Pass},
		{name: "from a SID", ip: web6("S").From(segment).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSpoofedSource},
		{name: "from a SID, mixed", ingress: mixed, ip: web6("S").From(segment).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSpoofedSource},
		{name: "from a SID, inside", ingress: internal, ip: web6("S").From(segment).Bytes(t), verdict: forward.Redirect},
		{name: "from the infrastructure", ip: web6("S").From(edgeAddr).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSpoofedSource},
		{name: "from the infrastructure to a SID", ip: web6("S").From(edgeAddr).To(segment, 80).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "from the infrastructure, mixed", ingress: mixed, ip: web6("S").From(edgeAddr).Bytes(t), verdict: forward.Redirect},
		{name: "guard before the walk", ip: web6("S").To(segment, 80).Behind(dst, chainOf(9, tcp)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "SRH from outside", ip: web6("S").To(other6, 80).Behind(rout, srh(tcp, 0, 0, segment)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "SRH without segments from outside", ip: web6("S").Behind(rout, srh(tcp, 7, 9)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "SRH from outside behind a routing header", ip: web6("S").Behind(rout, routing(rout, 0, 1, 1), srh(tcp, 0, 0, segment)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonSRv6FromOutside},
		{name: "SRH from outside, cut off", ip: inner{Src: client6, Dst: other6, Protocol: rout, Payload: srh(tcp, 1, 0, segment)[:23]}.Bytes(t), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "SRH as the ninth", ip: web6("S").Behind(dst, chainOf(8, rout), srh(tcp, 0, 0, segment)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "SRH from inside", ingress: internal, ip: web6("S").Behind(rout, srh(tcp, 0, 0, segment)).Bytes(t), verdict: forward.Redirect},
		{name: "SRH from inside with segments left", ingress: internal, ip: web6("S").Behind(rout, srh(tcp, 1, 0, segment)).Bytes(t), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
		{name: "SRH from inside to another", ingress: internal, ip: web6("S").To(other6, 80).Behind(rout, srh(tcp, 1, 0, segment)).Bytes(t), verdict: forward.Pass},
	})
}

// TestEdgeChain shows to whom of a chain a packet is offered.
func TestEdgeChain(t *testing.T) {
	six := chain(2, 11, 12, 13, 14, 15, 16)
	datagram := web6("")
	datagram.Protocol = udp
	for _, test := range []struct {
		name   string
		chain  pool.Chain
		packet inner
		want   []uint16
		reason forward.Reason
	}{
		{name: "SYN", chain: six, packet: web4("S"), want: []uint16{11, 12}},
		{name: "SYN and FIN", chain: six, packet: web6("SF"), want: []uint16{11, 12}},
		{name: "SYN-ACK", chain: six, packet: web4("SA"), want: six.IDs[:]},
		{name: "ACK", chain: six, packet: web6("A"), want: six.IDs[:]},
		{name: "RST", chain: six, packet: web6("R"), want: six.IDs[:]},
		{name: "no flags", chain: six, packet: web6(""), want: six.IDs[:]},
		{name: "UDP", chain: six, packet: datagram, want: []uint16{11}},
		{name: "nobody", packet: web4("A"), reason: forward.ReasonNoBackend},
		{name: "nobody for UDP", packet: datagram, reason: forward.ReasonNoBackend},
		{name: "SYN without a candidate", chain: chain(0, 15), packet: web4("S"), reason: forward.ReasonNoBackend},
		{name: "ACK without a candidate", chain: chain(0, 15), packet: web4("A"), want: []uint16{15}},
		{name: "UDP without a candidate", chain: chain(0, 15), packet: datagram, want: []uint16{15}},
	} {
		t.Run(test.name, func(t *testing.T) {
			edge := newEdge(t, test.chain, internal)
			got := edge.Process(external, fromClient().Frame(t, test.packet.Bytes(t)))
			if got.Reason != test.reason {
				t.Errorf("reason %v, want %v", got.Reason, test.reason)
			}
			if diff := cmp.Diff(test.want, got.Chain); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEdgeAsks shows that the tables are asked for the right things.
func TestEdgeAsks(t *testing.T) {
	edge := newEdge(t, pool.Chain{}, internal)
	packet := web6("A")
	hash := edge.Secret.Hash(packet.Flow())
	var asked, hops []any
	edge.Chains = func(service, bucket uint32) pool.Chain {
		asked = append(asked, service, bucket)
		return chain(1, 5, 6)
	}
	nextHop := edge.NextHop
	edge.NextHop = func(dst netip.Addr, choice uint8) forward.NextHop {
		hops = append(hops, dst, choice)
		return nextHop(dst, choice)
	}
	got := edge.Process(mixed, fromClient().Frame(t, packet.Bytes(t)))
	bucket := uint32((hash >> 32) * 65537 >> 32)
	if diff := cmp.Diff([]any{uint32(webV6), bucket}, asked); diff != "" {
		t.Errorf("asked for a chain (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{addr("fcbb:bb00:5:6::"), uint8(hash & 7)}, hops, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("asked for a next hop (-want +got):\n%s", diff)
	}
	want := forward.Result{
		Verdict: forward.Redirect, Interface: internal, Frame: got.Frame, Flow: packet.Flow(),
		Service: forward.ServiceKey{Addr: vip6, Port: 80, Protocol: 6},
		Hash:    hash, Bucket: bucket, Chain: []uint16{5, 6},
	}
	equal := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, equal, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// TestEdgeNextHop shows what becomes of a packet by what routing knows.
func TestEdgeNextHop(t *testing.T) {
	ip := web4("S").Bytes(t) // 40 bytes, and as many around it
	for _, test := range []struct {
		name    string
		hop     forward.NextHop
		verdict forward.Verdict
		reason  forward.Reason
		egress  uint32
	}{
		{name: "out by the way it came", hop: forward.NextHop{Interface: external}, verdict: forward.Transmit, egress: external},
		{name: "out by another", hop: forward.NextHop{Interface: mixed}, verdict: forward.Redirect, egress: mixed},
		{name: "out by a foreign interface", hop: forward.NextHop{Interface: foreign}, verdict: forward.HandToKernel},
		{name: "neighbour not resolved", hop: forward.NextHop{Status: forward.NextHopKernel, Interface: internal}, verdict: forward.HandToKernel},
		{name: "no route", hop: forward.NextHop{Status: forward.NextHopNoRoute, MTU: 20}, verdict: forward.Drop, reason: forward.ReasonNoRoute},
		{name: "just fits", hop: forward.NextHop{Interface: internal, MTU: 80}, verdict: forward.Redirect, egress: internal},
		{name: "too big", hop: forward.NextHop{Interface: internal, MTU: 79}, verdict: forward.Drop, reason: forward.ReasonPacketTooBig},
		{name: "too big for the kernel's way", hop: forward.NextHop{Status: forward.NextHopKernel, MTU: 79}, verdict: forward.Drop, reason: forward.ReasonPacketTooBig},
	} {
		t.Run(test.name, func(t *testing.T) {
			edge := newEdge(t, chain(1, 1), internal)
			edge.NextHop = func(netip.Addr, uint8) forward.NextHop { return test.hop }
			wire := fromClient()
			wire.Padding = make([]byte, 20) // does not count
			got := edge.Process(external, wire.Frame(t, ip))
			if got.Verdict != test.verdict || got.Reason != test.reason || got.Interface != test.egress {
				t.Errorf("got %v, %v by %d; want %v, %v by %d",
					got.Verdict, got.Reason, got.Interface, test.verdict, test.reason, test.egress)
			}
		})
	}
}

// TestEdgeJumbo shows that no payload length is written that does not fit its field.
func TestEdgeJumbo(t *testing.T) {
	for _, test := range []struct {
		payload int
		reason  forward.Reason
	}{
		{payload: 65535 - 40 - 20, reason: forward.ReasonNone},
		{payload: 65535 - 40 - 20 + 1, reason: forward.ReasonPacketTooBig},
	} {
		packet := web6("A")
		packet.Payload = make([]byte, test.payload)
		edge := newEdge(t, chain(1, 1), internal)
		edge.NextHop = func(netip.Addr, uint8) forward.NextHop { return forward.NextHop{Interface: internal} }
		got := edge.Process(external, fromClient().Frame(t, packet.Bytes(t)))
		if got.Reason != test.reason {
			t.Errorf("payload of %d bytes: %v, want %v", test.payload, got.Reason, test.reason)
		}
	}
}

// TestEdgeUnknownBackend shows that an id without a SID is no backend.
func TestEdgeUnknownBackend(t *testing.T) {
	edge := newEdge(t, chain(2, 1, 2), internal)
	edge.Encapsulation = forward.EncapsulationSRH
	edge.SID = func(id uint16) netip.Addr {
		if id == 2 {
			return netip.Addr{}
		}
		return sid(id)
	}
	got := edge.Process(external, fromClient().Frame(t, web4("S").Bytes(t)))
	if got.Verdict != forward.Drop || got.Reason != forward.ReasonNoBackend {
		t.Errorf("got %v, %v; want a drop for no_backend", got.Verdict, got.Reason)
	}
}
