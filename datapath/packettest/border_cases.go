package packettest

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
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
		from(External, forgedErrors(t, "redirect")), from(Mixed, forgedErrors(t, "redirect")),
		from(Internal, inside(EdgeAddr)), from(Internal, inside(Client6)), from(External, []row{
			{"from the infrastructure", on(Web6("S").From(EdgeAddr).Bytes(t)), "spoofed_source"},
			{"from the infrastructure to a SID",
				on(Web6("S").From(EdgeAddr).To(segment, 80).Bytes(t)), "srv6_from_outside"},
		}))
}

// forgedErrors are what a stranger says about packets that do not leave the domain, to a VIP and to
// another address, and what is like that but is none; other becomes of that to the other address.
func forgedErrors(t testing.TB, other string) (rows []row) {
	t.Helper()
	const forged = "srv6_from_outside"
	segment, other6, on := addr("fcbb:bb00:1::"), addr("2001:db8:99::1"), FromClient().onto(t)
	about := func(to netip.Addr) []byte { return Web6("S").From(other6).To(to, 80).Bytes(t) }
	says := func(kind uint8, body []byte) []byte {
		return ICMP(t, Client6, other6, kind, 0, 1280, body)
	}
	for _, kind := range []uint8{0, 1, 2, 3, 4, 5, 100, 127, 128, 138} {
		want := forged
		if kind >= 128 {
			want = other
		}
		rows = append(rows, row{fmt.Sprintf("type %d about a SID", kind),
			on(says(kind, about(segment))), want})
	}
	error := says(2, about(segment))
	behind := func(first layers.IPProtocol, headers ...[]byte) []byte {
		return on(Packet{Src: Client6, Dst: other6, Protocol: first,
			Payload: slices.Concat(append(headers, error[40:])...)}.Bytes(t))
	}
	cut := func(quoted int) []byte { return on(says(2, about(segment)[:quoted])) }
	return append(rows,
		row{"about a SID outside the block", on(says(2, about(SID(2)))), forged},
		row{"about the infrastructure", on(says(1, about(EdgeAddr))), other},
		row{"about another", on(says(2, about(Client6))), other},
		row{"about an echo to a SID", on(says(2, ICMP(t, other6, segment, 128, 0, 1, nil))),
			forged},
		row{"about a SID to a VIP", on(Unreachable(t,
			Web6("").Reply("A").To(segment, 80).Bytes(t), 1280)), forged},
		row{"about a SID and no more", cut(40), forged},
		row{"about less than a header", cut(39), other},
		row{"about a SID, behind options", behind(dst, Extension(icmp6, 1)), forged},
		row{"about a SID, in an atomic fragment", behind(frag, Fragment(icmp6, 0)), forged},
		row{"about a SID, in a first fragment", behind(frag, Fragment(icmp6, 1)), "fragment"},
		row{"in a later fragment", behind(frag, Fragment(icmp6, 8)), other},
	)
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
