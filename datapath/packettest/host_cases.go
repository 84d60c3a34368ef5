package packettest

import (
	"bytes"
	"slices"
	"testing"
)

// HostCases are frames to a host that serves the web but refuses new connections, with the
// infrastructure fd00:5e::/48.
func HostCases(t testing.TB) []Case {
	t.Helper()
	return slices.Concat(hostFrames(t), hostExtensions(t), hostSRH(t), decapsulations(t),
		offersMalformed(t))
}

// hostFrames: what is decided before the extension headers.
func hostFrames(t testing.TB) []Case {
	t.Helper()
	syn4, syn6, other, on := Web4("S").Bytes(t), Web6("S").Bytes(t), addr("fcbb:bb00:2::"),
		FromClient().onto(t)
	path := SRH(tcp, 1, 0, other)
	return from(External, []row{
		{"no Ethernet header", make([]byte, 13), "truncated"},
		{"IPv4", on(syn4), "pass"},
		{"IPv4 of version 3", Patched(on(syn4), 14, 0x35), "pass"},
		{"three tags", FromClient(1, 2, 3).Frame(t, To(OfferSID).Around(t, syn4)), "pass"},
		{"IPv6 header cut off", on(syn6)[:53], "truncated"},
		{"IPv6 of version 4", Patched(on(syn6), 14, 0x40), "bad_ip_header"},
		{"IPv6 behind the frame", Patched(on(syn6), 18, 1), "bad_length"},
		{"not a SID", on(syn6), "pass"},
		{"not a SID, with a long chain", on(Web6("S").Behind(dst, Extensions(9, tcp)).Bytes(t)),
			"pass"},
		{"SID of another", on(To(other).Around(t, syn4)), "pass"},
		{"SID of another from outside of the domain",
			on(To(other).From("2001:db8::1").Around(t, syn4)), "outside_domain"},
		{"SID of another outside the block", on(To(SID(2)).Around(t, syn4)), "pass"},
		{"SID of another outside the block, from outside",
			on(To(SID(2)).From("2001:db8::1").Around(t, syn4)), "outside_domain"},
		{"SRH of nobody", on(Web6("S").Behind(rout, SRH(tcp, 1, 0, other)).Bytes(t)),
			"srv6_from_outside"},
		{"SRH of nobody that is done", on(Web6("S").Behind(rout, SRH(tcp, 0, 0, other)).Bytes(t)),
			"srv6_from_outside"},
		{"SRH of nobody behind options",
			on(Web6("S").Behind(dst, Extension(rout, 0), path).Bytes(t)), "srv6_from_outside"},
		{"SRH of the domain to another",
			on(Web6("S").From(EdgeAddr).Behind(rout, SRH(tcp, 1, 0, other)).Bytes(t)), "pass"},
		{"SRH of nobody, cut off", on(Packet{Src: Client6, Dst: VIP6, Protocol: rout,
			Payload: path[:23]}.Bytes(t)), "pass"},
		{"SRH of nobody as the ninth",
			on(Web6("S").Behind(dst, Extensions(8, rout), SRH(tcp, 0, 0, other)).Bytes(t)), "pass"},
		{"a fragment of nobody", on(Web6("S").Behind(frag, Fragment(tcp, 1)).Bytes(t)), "pass"},
		{"a foreign routing header of nobody",
			on(Web6("S").Behind(rout, Routing(tcp, 0, 1, 1)).Bytes(t)), "pass"},
		{"from outside of the domain", on(To(OfferSID).From("2001:db8::1").Around(t, syn4)),
			"outside_domain"},
		{"from a SID", on(To(DT46SID).From("fcbb:bb00:2::").Around(t, syn4)), "outside_domain"},
		{"guard before the walk", on(To(OfferSID).From("2001:db8::1").With(dst,
			Extensions(9, ip4)).Around(t, syn4)), "outside_domain"},
	})
}

// hostExtensions: the outer extension headers.
func hostExtensions(t testing.TB) []Case {
	t.Helper()
	syn4, other, on := Web4("S").Bytes(t), addr("fcbb:bb00:2::"), FromClient().onto(t)
	return from(External, []row{
		{"eight extension headers", on(To(OfferSID).With(dst, Extensions(7, rout),
			SRH(ip4, 0, 0, other)).Around(t, syn4)), "take"},
		{
			"nine extension headers",
			on(To(OfferSID).With(dst, Extensions(8, rout), SRH(ip4, 0, 0, other)).Around(t, syn4)),
			"extension_chain",
		},
		{"nine for DT", on(To(DT46SID).With(dst, Extensions(9, ip4)).Around(t, syn4)),
			"extension_chain"},
		{"atomic fragment", on(To(OfferSID).With(frag, Fragment(ip4, 6)).Around(t, syn4)), "take"},
		{"fragment", on(To(OfferSID).With(frag, Fragment(ip4, 1)).Around(t, syn4)), "fragment"},
		{"foreign routing header", on(To(OfferSID).With(rout, Routing(ip4, 3, 0, 1)).Around(t,
			syn4)), "take"},
		{"foreign routing header with segments left",
			on(To(OfferSID).With(rout, Routing(ip4, 3, 1, 1)).Around(t, syn4)), "routing_header"},
		{"routing header before what is cut off",
			on(To(OfferSID).With(rout, Routing(dst, 0, 1, 1)).Around(t, syn4[:7])),
			"routing_header"},
	})
}

// hostSRH: the segment routing header (RFC 8754 section 4.3.1.1).
func hostSRH(t testing.TB) []Case {
	t.Helper()
	syn4, other, on := Web4("S").Bytes(t), addr("fcbb:bb00:2::"), FromClient().onto(t)
	return from(External, []row{
		{"SRH cut off", on(To(OfferSID).With(rout, SRH(ip4, 0, 0, other)[:16]).Around(t, syn4[:7])),
			"truncated"},
		{"SRH of 8 bytes", on(To(OfferSID).With(rout, SRH(ip4, 0, 0)).Around(t, syn4)), "bad_srh"},
		{
			"SRH of 16 bytes",
			on(To(OfferSID).With(rout, Patched(append(SRH(ip4, 0, 0), make([]byte, 8)...), 1,
				1)).Around(t, syn4)),
			"bad_srh",
		},
		{"last entry behind the SRH", on(To(OfferSID).With(rout, SRH(ip4, 0, 1, other)).Around(t,
			syn4)), "bad_srh"},
		{"last entry 255", on(To(OfferSID).With(rout, SRH(ip4, 0, 255, other)).Around(t, syn4)),
			"bad_srh"},
		{"segments left behind the last entry",
			on(To(OfferSID).With(rout, SRH(ip4, 3, 1, other, other)).Around(t, syn4)), "bad_srh"},
		{"a list that is reduced", on(To(OfferSID).With(rout,
			SRH(ip4, 2, 1, other, other)).Around(t, syn4)), "redirect"},
		{"segments left 255", on(To(OfferSID).With(rout, SRH(ip4, 255, 0, other)).Around(t, syn4)),
			"bad_srh"},
		{
			"TLVs behind the segments",
			on(To(OfferSID).With(rout, Patched(SRH(ip4, 1, 0, other, other), 24, 4, 14)).Around(t,
				syn4)),
			"redirect",
		},
		{"a second SRH", on(To(OfferSID).With(rout, SRH(rout, 0, 0, other),
			SRH(ip4, 0, 0, other)).Around(t, syn4)), "bad_srh"},
		{
			"a second SRH cut off",
			on(To(OfferSID).With(rout, SRH(rout, 0, 0, other), SRH(ip4, 0, 0, other)[:16]).Around(t,
				syn4[:7])),
			"truncated",
		},
	})
}

// decapsulations: End.DT4, End.DT6 and End.DT46.
func decapsulations(t testing.TB) []Case {
	t.Helper()
	syn4, syn6, other, on := Web4("S").Bytes(t), Web6("S").Bytes(t), addr("fcbb:bb00:2::"),
		FromClient().onto(t)
	return from(External, []row{
		{"DT4", on(To(DT4SID).Around(t, syn4)), "take"},
		{"DT4 of IPv6", on(To(DT4SID).Around(t, syn6)), "upper_layer"},
		{"DT6", on(To(DT6SID).Around(t, syn6)), "take"},
		{"DT6 of IPv4", on(To(DT6SID).Around(t, syn4)), "upper_layer"},
		{"DT46 of IPv4", on(To(DT46SID).Around(t, syn4)), "take"},
		{"DT46 of IPv6", on(To(DT46SID).Around(t, syn6)), "take"},
		{"DT46 of nothing", on(To(DT46SID).With(dst, Extension(59, 0)).Around(t, syn4)),
			"upper_layer"},
		{"DT46 with segments left 0", on(To(DT46SID).With(rout, SRH(ip6, 0, 0, other)).Around(t,
			syn6)), "take"},
		{"DT46 with segments left", on(To(DT46SID).With(rout, SRH(ip6, 1, 0, other)).Around(t,
			syn6)), "segments_left"},
		{"DT46 with an argument", on(To(addr("fcbb:bb00:1:d46:2::")).Around(t, syn6)),
			"segments_left"},
		{"DT46 with the last bit set", on(To(addr("fcbb:bb00:1:d46::1")).Around(t, syn6)),
			"segments_left"},
		{"segments left before the upper layer", on(To(addr("fcbb:bb00:1:d4:2::")).Around(t, syn6)),
			"segments_left"},
		{"DT46 of 19 bytes", on(To(DT46SID).Around(t, syn4[:19])), "truncated"},
		{"DT46 of 20 bytes", on(To(DT46SID).Around(t, syn4[:20])), "take"},
		{"DT46 of 39 bytes", on(To(DT46SID).Around(t, syn6[:39])), "truncated"},
		{"DT46 of IPv4 said to be IPv6",
			on(To(DT46SID).With(dst, Extension(ip6, 0)).Around(t, syn4)), "bad_ip_header"},
		{"DT46 of IPv6 said to be IPv4",
			on(To(DT46SID).With(dst, Extension(ip4, 0)).Around(t, syn6)), "bad_ip_header"},
	})
}

// offersMalformed: what End.OFFER does not look at any further, and what it only just does.
func offersMalformed(t testing.TB) []Case {
	t.Helper()
	syn4, syn6, on := Web4("S").Bytes(t), Web6("S").Bytes(t), FromClient().onto(t)
	carrier, other := addr("fcbb:bb00:1:2::"), addr("fcbb:bb00:2::")
	return from(External, []row{
		{"OFFER of nothing", on(To(OfferSID).With(dst, Extension(59, 0)).Around(t, syn4)),
			"upper_layer"},
		{"OFFER of TCP", on(To(carrier).With(dst, Extension(tcp, 0)).Around(t, syn4)),
			"upper_layer"},
		{"OFFER of 19 bytes", on(To(carrier).Around(t, syn4[:19])), "truncated"},
		{"OFFER of IPv6 said to be IPv4",
			on(To(carrier).With(dst, Extension(ip4, 0)).Around(t, syn6)), "bad_ip_header"},
		{"OFFER of IHL 4", on(To(carrier).Around(t, Patched(syn4, 0, 0x44))), "bad_ip_header"},
		{"OFFER of more than the outer packet", on(To(OfferSID).Around(t, Patched(syn4, 3, 41))),
			"bad_length"},
		{"OFFER of less than the outer packet",
			on(To(OfferSID).Around(t, append(bytes.Clone(syn4), 1, 2))), "take"},
		{"OFFER of a fragment of ICMP",
			on(To(carrier).Around(t, Patched(Patched(syn4, 6, 0x20), 9, 1))), "fragment"},
		{"OFFER of bad TCP", on(To(OfferSID).Around(t, Patched(syn4, 32, 0x40))), "bad_transport"},
		{
			"OFFER of nine extension headers",
			on(To(carrier).Around(t, Web6("S").Behind(dst, Extensions(9, tcp)).Bytes(t))),
			"extension_chain",
		},
		{
			"OFFER of eight in eight",
			on(To(OfferSID).With(dst, Extensions(8, ip6)).Around(t,
				Web6("S").Behind(dst, Extensions(8, tcp)).Bytes(t))),
			"take",
		},
		{"OFFER of an SRH that is done",
			on(To(OfferSID).Around(t, Web6("S").Behind(rout, SRH(tcp, 0, 9)).Bytes(t))), "take"},
		{
			"OFFER of an SRH with segments left",
			on(To(OfferSID).Around(t, Web6("S").Behind(rout, SRH(tcp, 1, 0, other)).Bytes(t))),
			"routing_header",
		},
		{
			"routing header before a fragment",
			on(To(OfferSID).Around(t, Web6("S").Behind(rout, Routing(frag, 0, 1, 0),
				Fragment(tcp, 1)).Bytes(t))),
			"routing_header",
		},
	})
}
