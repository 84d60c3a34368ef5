package packettest

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// EdgeCases are frames to a edge that has web services (UDP on any port of [VIP6] and on port 53 of
// [VIP4] besides), in the block fcbb:bb00::/32 with the infrastructure fd00:5e::/48.
func EdgeCases(t testing.TB) []Case {
	t.Helper()
	return slices.Concat(edgeFrames(t), edgeIPv4(t), edgeIPv6(t), edgeTransport(t), edgeServices(t),
		edgeGuard(t), from(External, forgedErrors(t, "pass")), from(Mixed, forgedErrors(t, "pass")),
		edgeICMP(t), edgeForwarding(t))
}

// edgeFrames: what is decided before there is an IP packet.
func edgeFrames(t testing.TB) []Case {
	t.Helper()
	syn4, on, wire := Web4("S").Bytes(t), FromClient().onto(t), FromClient()
	return from(External, []row{
		{"no Ethernet header", make([]byte, 13), "truncated"},
		{"nothing", []byte{}, "truncated"},
		{"ARP", wire.FrameOf(t, layers.EthernetTypeARP, make([]byte, 28)), "pass"},
		{"tag cut off", FromClient(7).Frame(t, syn4)[:17], "truncated"},
		{"second tag cut off", FromClient(7, 8).Frame(t, syn4)[:21], "truncated"},
		{"tagged ARP without its payload", FromClient(7).FrameOf(t, layers.EthernetTypeARP, nil),
			"pass"},
		{"three tags", FromClient(7, 8, 9).Frame(t, syn4), "pass"},
		{"no network header", on(syn4)[:14], "truncated"},
	})
}

// edgeIPv4: IPv4 headers.
func edgeIPv4(t testing.TB) []Case {
	t.Helper()
	syn4, on := Web4("S").Bytes(t), FromClient().onto(t)
	return from(External, []row{
		{"IPv4", on(syn4), "redirect"},
		{"IPv4 of version 6", Patched(on(syn4), 14, 0x65), "bad_ip_header"},
		{"IHL 4", Patched(on(syn4), 14, 0x44), "bad_ip_header"},
		{"IHL behind the frame", Patched(on(syn4), 14, 0x4b), "truncated"},
		{"total length less than the header", Patched(on(syn4), 16, 0, 19), "bad_length"},
		{"total length behind the frame", Patched(on(syn4), 16, 0, 41), "bad_length"},
		{"no room for TCP", on(Summed(Patched(syn4, 2, 0, 39))), "bad_transport"},
		{"IPv4 DF and the reserved bit", on(Summed(Patched(syn4, 6, 0xc0))), "redirect"},
		{
			"IPv4 fragment of another",
			on(Summed(Patched(Web4("S").To(addr("192.0.2.1"), 80).Bytes(t), 6, 0x20))), "pass",
		},
	})
}

// edgeIPv6: IPv6 headers and the chains behind them.
func edgeIPv6(t testing.TB) []Case {
	t.Helper()
	syn6, other6, on := Web6("S").Bytes(t), addr("2001:db8:99::1"), FromClient().onto(t)
	return from(External, []row{
		{"IPv6", on(syn6), "redirect"},
		{"IPv6 of version 4", Patched(on(syn6), 14, 0x45), "bad_ip_header"},
		{"payload length behind the frame", Patched(on(syn6), 18, 0, 21), "bad_length"},
		{"payload length 0", Patched(on(syn6), 18, 0, 0), "bad_transport"},
		{"eight extension headers", on(Web6("S").Behind(dst, Extensions(8, tcp)).Bytes(t)),
			"redirect"},
		{"nine extension headers", on(Web6("S").Behind(dst, Extensions(9, tcp)).Bytes(t)),
			"extension_chain"},
		{"nine to another destination",
			on(Web6("S").To(other6, 80).Behind(dst, Extensions(9, tcp)).Bytes(t)),
			"extension_chain"},
		{"a ninth that is ESP", on(Web6("S").Behind(dst,
			Extensions(8, layers.IPProtocolESP)).Bytes(t)), "no_service"},
		{
			"a ninth that is cut off",
			on(Packet{Src: Client6, Dst: VIP6, Protocol: 59}.Behind(dst,
				Extensions(8, hop)).Bytes(t)),
			"extension_chain",
		},
		{"extension header of 7 bytes", on(Packet{Src: Client6, Dst: VIP6, Protocol: dst,
			Payload: make([]byte, 7)}.Bytes(t)), "truncated"},
		{
			"extension header behind the packet",
			on(Packet{Src: Client6, Dst: other6, Protocol: dst, Payload: Patched(make([]byte, 8), 1,
				1)}.Bytes(t)),
			"truncated",
		},
		{
			"every kind of extension header",
			on(Web6("S").Behind(hop, Extension(dst, 2), Extension(rout, 0), Routing(rout, 0, 0, 1),
				Routing(rout, 2, 0, 1),
				Routing(frag, 3, 0, 0), Fragment(tcp, 0)).Bytes(t)),
			"redirect",
		},
		{"atomic fragment with reserved bits",
			on(Web6("S").Behind(frag, Fragment(tcp, 6)).Bytes(t)), "redirect"},
		{
			"fragment ends the walk",
			on(Packet{Src: Client6, Dst: VIP6, Protocol: 59}.Behind(frag, Fragment(dst, 8),
				make([]byte, 7)).Bytes(t)),
			"fragment_without_first",
		},
		{"fragment of another", on(Web6("S").To(other6, 80).Behind(frag,
			Fragment(tcp, 8)).Bytes(t)), "pass"},
		{"routing header with segments left",
			on(Web6("S").Behind(rout, Routing(tcp, 0, 1, 1)).Bytes(t)), "routing_header"},
		{"routing header of another", on(Web6("S").To(other6, 80).Behind(rout,
			Routing(tcp, 3, 1, 1)).Bytes(t)), "pass"},
		{
			"routing header before a fragment",
			on(Web6("S").Behind(rout, Routing(frag, 2, 1, 1), Fragment(tcp, 8)).Bytes(t)),
			"routing_header",
		},
		{
			"fragment behind a routing header",
			on(Web6("S").Behind(rout, Routing(frag, 2, 0, 1), Fragment(tcp, 8)).Bytes(t)),
			"tiny_fragment",
		},
		{
			"truncated behind a routing header",
			on(Packet{Src: Client6, Dst: other6, Protocol: 59}.Behind(rout, Routing(dst, 2, 1, 0),
				make([]byte, 7)).Bytes(t)),
			"truncated",
		},
	})
}

// edgeTransport: TCP and UDP headers.
func edgeTransport(t testing.TB) []Case {
	t.Helper()
	syn4, syn6, on := Web4("S").Bytes(t), Web6("S").Bytes(t), FromClient().onto(t)
	return from(External, []row{
		{"data offset 4", Patched(on(syn4), 46, 0x40), "bad_transport"},
		{"data offset behind the packet", Patched(on(syn6), 66, 0x60), "bad_transport"},
		{"bad TCP of another", Patched(on(Web4("S").To(addr("192.0.2.1"), 80).Bytes(t)), 46, 0x40),
			"pass"},
		{"UDP length 7", Patched(on(Web4("").To(VIP4, 53).Of(udp, 1, 2).Bytes(t)), 38, 0, 7),
			"bad_transport"},
		{"UDP length behind the packet", Patched(on(Web4("").To(VIP4, 53).Of(udp, 1, 2).Bytes(t)),
			38, 0, 11), "bad_transport"},
		{"UDP length less than the packet",
			Patched(on(Web4("").To(VIP4, 53).Of(udp, 1, 2).Bytes(t)), 38, 0, 8), "redirect"},
		{
			"UDP of 7 bytes",
			on(Summed(Patched(Web4("").To(VIP4, 53).Of(udp).Bytes(t), 2, 0, 27))), "bad_transport",
		},
	})
}

// edgeServices: what is addressed to a VIP and what is not.
func edgeServices(t testing.TB) []Case {
	t.Helper()
	other6, on := addr("2001:db8:99::1"), FromClient().onto(t)
	return from(External, []row{
		{"another port", on(Web4("S").To(VIP4, 81).Bytes(t)), "no_service"},
		{"any port", on(Web6("").To(VIP6, 4433).Of(udp).Bytes(t)), "redirect"},
		{"port 0 of any port", on(Web6("").To(VIP6, 0).Of(udp).Bytes(t)), "redirect"},
		{"port 0", on(Web6("S").To(VIP6, 0).Bytes(t)), "no_service"},
		{"TCP to a UDP service", on(Web4("S").To(VIP4, 53).Bytes(t)), "no_service"},
		{"ICMPv6 in IPv4", on(Web4("").Of(layers.IPProtocolICMPv6, 128, 0).Bytes(t)), "no_service"},
		{"ICMPv4 in IPv6", on(Web6("").Of(layers.IPProtocolICMPv4, 8, 0).Bytes(t)), "no_service"},
		{
			"fragmented ping",
			on(Web6("").Of(layers.IPProtocolICMPv6, 128, 0).Behind(frag,
				Fragment(layers.IPProtocolICMPv6, 1)).Bytes(t)),
			"fragment",
		},
		{"AH", on(Web6("").Of(layers.IPProtocolAH, make([]byte, 24)...).Bytes(t)), "no_service"},
		{"not a VIP", on(Web6("S").To(other6, 80).Bytes(t)), "pass"},
		{"an IPv4 VIP mapped to IPv6", on(Web6("S").To(netip.AddrFrom16(VIP4.As16()), 80).Bytes(t)),
			"pass"},
	})
}

// edgeGuard: what may not come from outside of the SR domain (RFC 8754 section 5.1).
func edgeGuard(t testing.TB) []Case {
	t.Helper()
	segment, other6, on := addr("fcbb:bb00:1::"), addr("2001:db8:99::1"), FromClient().onto(t)
	return slices.Concat(from(External, []row{
		{"to a SID from outside", on(Web6("S").To(segment, 80).Bytes(t)), "srv6_from_outside"},
		{"to a SID outside the block", on(Web6("S").To(SID(2), 80).Bytes(t)), "srv6_from_outside"},
		{"from a SID outside the block", on(Web6("S").From(SID(2)).Bytes(t)), "spoofed_source"},
		{"from a SID", on(Web6("S").From(segment).Bytes(t)), "spoofed_source"},
		{"from the infrastructure", on(Web6("S").From(EdgeAddr).Bytes(t)), "spoofed_source"},
		{"from the infrastructure to a SID", on(Web6("S").From(EdgeAddr).To(segment, 80).Bytes(t)),
			"srv6_from_outside"},
		{"guard before the walk", on(Web6("S").To(segment, 80).Behind(dst,
			Extensions(9, tcp)).Bytes(t)), "srv6_from_outside"},
		{"SRH from outside", on(Web6("S").To(other6, 80).Behind(rout,
			SRH(tcp, 0, 0, segment)).Bytes(t)), "srv6_from_outside"},
		{"SRH without segments from outside", on(Web6("S").Behind(rout, SRH(tcp, 7, 9)).Bytes(t)),
			"srv6_from_outside"},
		{
			"SRH from outside behind a routing header",
			on(Web6("S").Behind(rout, Routing(rout, 0, 1, 1), SRH(tcp, 0, 0, segment)).Bytes(t)),
			"srv6_from_outside",
		},
		{
			"SRH from outside, cut off",
			on(Packet{Src: Client6, Dst: other6, Protocol: rout,
				Payload: SRH(tcp, 1, 0, segment)[:23]}.Bytes(t)),
			"truncated",
		},
		{"SRH as the ninth", on(Web6("S").Behind(dst, Extensions(8, rout),
			SRH(tcp, 0, 0, segment)).Bytes(t)), "extension_chain"},
	}), from(Mixed, []row{
		{"to a SID from an unknown source", on(Web6("S").To(segment, 80).Bytes(t)),
			"srv6_from_outside"},
		{"to a SID outside the block from an unknown source", on(Web6("S").To(SID(2), 80).Bytes(t)),
			"srv6_from_outside"},
		{"to a SID outside the block from the domain",
			on(Web6("S").From(EdgeAddr).To(SID(2), 80).Bytes(t)), "pass"},
		{"to a SID from the domain", on(Web6("S").From(EdgeAddr).To(segment, 80).Bytes(t)), "pass"},
		{"from a SID, mixed", on(Web6("S").From(segment).Bytes(t)), "spoofed_source"},
		{"from the infrastructure, mixed", on(Web6("S").From(EdgeAddr).Bytes(t)), "redirect"},
	}), from(Internal, []row{
		{"to a SID from inside", on(Web6("S").To(segment, 80).Bytes(t)), "pass"},
		{"from a SID, inside", on(Web6("S").From(segment).Bytes(t)), "redirect"},
		{"SRH from inside", on(Web6("S").Behind(rout, SRH(tcp, 0, 0, segment)).Bytes(t)),
			"redirect"},
		{"SRH from inside with segments left",
			on(Web6("S").Behind(rout, SRH(tcp, 1, 0, segment)).Bytes(t)), "routing_header"},
		{"SRH from inside to another",
			on(Web6("S").To(other6, 80).Behind(rout, SRH(tcp, 1, 0, segment)).Bytes(t)), "pass"},
	}))
}
