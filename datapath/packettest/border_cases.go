package packettest

import (
	"net/netip"
	"slices"
	"testing"
)

// HeadendCases are frames to a head-end that sends all traffic along one list, by another
// interface: what may come in on which side of the SR domain (RFC 8754 section 5.1), and what is
// broken. Block, locators and infrastructure are those of EdgeCases.
func HeadendCases(t testing.TB) []Case {
	t.Helper()
	segment, other6, on := addr("fcbb:bb00:1::"), addr("2001:db8:99::1"), FromClient().onto(t)
	path := SRH(tcp, 1, 0, segment)
	outside := func() []row {
		return []row{
			{"IPv4", on(Web4("S").Bytes(t)), "redirect"},
			{"IPv6", on(Web6("S").Bytes(t)), "redirect"},
			{"to a SID", on(Web6("S").To(segment, 80).Bytes(t)), "srv6_from_outside"},
			{"to a SID outside the block", on(Web6("S").To(SID(2), 80).Bytes(t)),
				"srv6_from_outside"},
			{"from a SID", on(Web6("S").From(segment).Bytes(t)), "spoofed_source"},
			{"from a SID outside the block", on(Web6("S").From(SID(2)).Bytes(t)), "spoofed_source"},
			{"encapsulated to a SID", on(To(segment).From("2001:db8::1").Around(t,
				Web4("S").Bytes(t))), "srv6_from_outside"},
			{"guard before the walk", on(Web6("S").To(segment, 80).Behind(dst,
				Extensions(9, tcp)).Bytes(t)), "srv6_from_outside"},
			{"SRH", on(Web6("S").Behind(rout, SRH(tcp, 1, 0, segment)).Bytes(t)),
				"srv6_from_outside"},
			{"SRH that is done", on(Web6("S").To(other6, 80).Behind(rout,
				SRH(tcp, 0, 0, segment)).Bytes(t)), "srv6_from_outside"},
			{"SRH without segments", on(Web6("S").Behind(rout, SRH(tcp, 7, 9)).Bytes(t)),
				"srv6_from_outside"},
			{"SRH behind options", on(Web6("S").Behind(dst, Extension(rout, 0),
				SRH(tcp, 1, 0, segment)).Bytes(t)), "srv6_from_outside"},
			{"SRH behind an atomic fragment",
				on(Web6("S").Behind(frag, Fragment(rout, 0), path).Bytes(t)), "srv6_from_outside"},
			{"SRH in a first fragment", on(Web6("S").Behind(frag, Fragment(rout, 1),
				path).Bytes(t)), "srv6_from_outside"},
			{"SRH cut off", on(Packet{Src: Client6, Dst: other6, Protocol: rout,
				Payload: path[:23]}.Bytes(t)), "truncated"},
			{"SRH as the ninth", on(Web6("S").Behind(dst, Extensions(8, rout),
				SRH(tcp, 0, 0, segment)).Bytes(t)), "extension_chain"},
			{"another routing header", on(Web6("S").Behind(rout, Routing(tcp, 0, 1, 1)).Bytes(t)),
				"redirect"},
			{"a VLAN tag", FromClient(7).Frame(t, Web6("S").To(segment, 80).Bytes(t)),
				"srv6_from_outside"},
			{"IPv6 of version 4", Patched(on(Web6("S").Bytes(t)), 14, 0x40), "bad_ip_header"},
			{"IPv6 behind the frame", Patched(on(Web6("S").Bytes(t)), 18, 1), "bad_length"},
			{"IPv6 header cut off", on(Web6("S").Bytes(t))[:53], "truncated"},
		}
	}
	inside := func(source netip.Addr) []row {
		return []row{
			{"to a SID, from " + source.String(),
				on(Web6("S").From(source).To(segment, 80).Bytes(t)), "redirect"},
			{"to a SID outside the block, from " + source.String(),
				on(Web6("S").From(source).To(SID(2), 80).Bytes(t)), "redirect"},
			{"SRH from " + source.String(),
				on(Web6("S").From(source).Behind(rout, SRH(tcp, 1, 0, segment)).Bytes(t)),
				"redirect"},
		}
	}
	return slices.Concat(from(External, outside()), from(Mixed, outside()),
		from(Mixed, inside(EdgeAddr)),
		from(Internal, inside(EdgeAddr)), from(Internal, inside(Client6)), from(External, []row{
			{"from the infrastructure", on(Web6("S").From(EdgeAddr).Bytes(t)), "spoofed_source"},
			{"from the infrastructure to a SID",
				on(Web6("S").From(EdgeAddr).To(segment, 80).Bytes(t)), "srv6_from_outside"},
		}))
}

// MergeCases are frames to an egress with the SID MergeSID and no protected flow.
func MergeCases(t testing.TB) []Case {
	t.Helper()
	syn4, segment, on := Web4("S").Bytes(t), addr("fcbb:bb00:2::"), FromClient().onto(t)
	return from(Internal, []row{
		{"IPv4", on(syn4), "pass"},
		{"not a SID", on(Web6("S").Bytes(t)), "pass"},
		{"for the egress", on(To(MergeSID).Around(t, syn4)), "take"},
		{"for the egress, from outside", on(To(MergeSID).From("2001:db8::1").Around(t, syn4)),
			"outside_domain"},
		{"SID of another", on(To(segment).Around(t, syn4)), "pass"},
		{"SID of another, from outside", on(To(segment).From("2001:db8::1").Around(t, syn4)),
			"outside_domain"},
		{"SID outside the block", on(To(SID(2)).Around(t, syn4)), "pass"},
		{"SID outside the block, from outside", on(To(SID(2)).From("2001:db8::1").Around(t, syn4)),
			"outside_domain"},
		{"SRH of nobody", on(Web6("S").Behind(rout, SRH(tcp, 1, 0, segment)).Bytes(t)),
			"srv6_from_outside"},
		{"SRH of the domain to another",
			on(Web6("S").From(EdgeAddr).Behind(rout, SRH(tcp, 1, 0, segment)).Bytes(t)), "pass"},
		{
			"SRH of nobody, cut off",
			on(Packet{Src: Client6, Dst: VIP6, Protocol: rout,
				Payload: SRH(tcp, 1, 0, segment)[:23]}.Bytes(t)),
			"pass",
		},
		{"segments left", on(To(MergeSID).With(rout, SRH(ip4, 1, 0, segment)).Around(t, syn4)),
			"segments_left"},
		{"a number of nobody", on(To(withArgument(MergeSID, 1<<28)).Around(t, syn4)),
			"unknown_flow"},
		{"another upper layer", on(To(MergeSID).With(dst, Extension(59, 0)).Around(t, syn4)),
			"upper_layer"},
		{"version 6 as IPv4", on(To(MergeSID).With(dst, Extension(ip4, 0)).Around(t,
			Web6("S").Bytes(t))), "bad_ip_header"},
		{"inner header cut off", on(To(MergeSID).Around(t, syn4[:19])), "truncated"},
		{"fragment", on(To(MergeSID).With(frag, Fragment(ip4, 1)).Around(t, syn4)), "fragment"},
		{"bad SRH", on(To(MergeSID).With(rout, SRH(ip4, 0, 255, segment)).Around(t, syn4)),
			"bad_srh"},
	})
}
