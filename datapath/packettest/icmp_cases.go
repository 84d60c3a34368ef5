package packettest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// edgeICMP: errors about flows, echo requests, and the rest.
func edgeICMP(t testing.TB) []Case {
	t.Helper()
	return slices.Concat(edgeICMPErrors(t), edgeQuotes(t), edgeEcho(t), edgeUnanswerable(t))
}

func edgeICMPErrors(t testing.TB) (cases []Case) {
	on := FromClient().onto(t)
	reply4, reply6 := Web4("").Reply("A").Bytes(t), Web6("").Reply("A").Bytes(t)
	for kind := range uint8(20) {
		want := "pass"
		switch kind {
		case 3, 11, 12:
			want = "redirect"
		case 8:
			want = "echoed"
		}
		cases = append(cases, from(External, []row{{
			fmt.Sprintf("ICMP of type %d", kind), on(ICMP(t, Router4, VIP4, kind, 0, 0, reply4)),
			want,
		}})...)
	}
	for _, kind := range []uint8{0, 1, 2, 3, 4, 5, 100, 127, 128, 129, 133, 134, 135, 136, 137} {
		want := "pass"
		switch kind {
		case 1, 2, 3, 4:
			want = "redirect"
		case 128:
			want = "echoed"
		}
		cases = append(cases, from(External, []row{{
			fmt.Sprintf("ICMPv6 of type %d", kind), on(ICMP(t, Router6, VIP6, kind, 0, 0, reply6)),
			want,
		}})...)
	}
	return cases
}

// edgeQuotes: what is quoted in an error.
func edgeQuotes(t testing.TB) (cases []Case) {
	on := FromClient().onto(t)
	reply4, reply6 := Web4("").Reply("A"), Web6("").Reply("A")
	about := func(ip []byte) []byte { return on(Unreachable(t, ip, 1280)) }
	for n := range 40 {
		want := "icmp_quote"
		if n >= 20+8 {
			want = "redirect"
		}
		cases = append(cases, from(External, []row{{
			fmt.Sprintf("%d quoted bytes of IPv4", n),
			on(ICMP(t, Router4, VIP4, 3, 4, 1280, reply4.Bytes(t)[:n])), want,
		}})...)
	}
	for n := range 60 {
		want := "icmp_quote"
		if n >= 40+8 {
			want = "redirect"
		}
		cases = append(cases, from(External, []row{{
			fmt.Sprintf("%d quoted bytes of IPv6", n),
			on(ICMP(t, Router6, VIP6, 2, 0, 1280, reply6.Bytes(t)[:n])), want,
		}})...)
	}
	options := reply4
	options.IPv4Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1},
		{OptionType: 1}}
	foreign := func(p Packet, ip []byte) []byte {
		if p.Dst.Is4() {
			return on(ICMP(t, Router4, VIP4, 11, 0, 0, ip))
		}
		return on(ICMP(t, Router6, VIP6, 3, 0, 0, ip))
	}
	other := reply6
	other.SrcPort = 81
	datagram := Web6("").Of(udp, 1, 2, 3).Reply("")
	return append(cases, from(External, []row{
		{"quote with options", about(options.Bytes(t)), "redirect"},
		{"quote with options cut off",
			on(ICMP(t, Router4, VIP4, 3, 4, 1280, options.Bytes(t)[:22])), "icmp_quote"},
		{"quote with extension headers",
			about(reply6.Behind(hop, Extension(dst, 0), Extension(tcp, 1)).Bytes(t)), "redirect"},
		{"quote with nine extension headers",
			about(reply6.Behind(dst, Extensions(9, tcp)).Bytes(t)), "icmp_quote"},
		{"quote from another address", foreign(reply4, reply4.From(Client4).Bytes(t)),
			"icmp_quote"},
		{"quote from another IPv6 address", foreign(reply6, reply6.From(Client6).Bytes(t)),
			"icmp_quote"},
		{"quote to the VIP", foreign(reply6, Web6("A").Bytes(t)), "icmp_quote"},
		{"quote from another port", about(other.Bytes(t)), "no_service"},
		{"quote of UDP", about(datagram.Bytes(t)), "redirect"},
		{"quote of ICMP", foreign(reply4, ICMP(t, VIP4, Client4, 0, 0, 7, nil)), "icmp_quote"},
		{"quote of IPv6 in ICMP", foreign(reply4, reply6.Bytes(t)), "icmp_quote"},
		{"quote of IPv4 in ICMPv6", foreign(reply6, reply4.Bytes(t)), "icmp_quote"},
		{"quote of IHL 4", foreign(reply4, Patched(reply4.Bytes(t), 0, 0x44)), "icmp_quote"},
		{"quote of a total length of 19", foreign(reply4, Patched(reply4.Bytes(t), 2, 0, 19)),
			"icmp_quote"},
		{"quote of a total length of 27", foreign(reply4, Patched(reply4.Bytes(t), 2, 0, 27)),
			"icmp_quote"},
		{"quote of a payload length of 7", foreign(reply6, Patched(reply6.Bytes(t), 4, 0, 7)),
			"icmp_quote"},
		{"quote of a later fragment", foreign(reply4, Patched(reply4.Bytes(t), 6, 0, 1)),
			"icmp_quote"},
		{"quote of a first fragment", foreign(reply4, Patched(reply4.Bytes(t), 6, 0x20)),
			"redirect"},
		{"error about another destination",
			on(ICMP(t, Router4, Client4, 3, 4, 1280, reply4.Bytes(t)[:9])), "pass"},
	})...)
}

func edgeEcho(t testing.TB) []Case {
	on := FromClient().onto(t)
	ping4, ping6 := ICMP(t, Client4, VIP4, 8, 0, 7, []byte("ping")),
		ICMP(t, Client6, VIP6, 128, 0, 7, []byte("ping"))
	options := Web4("").Of(layers.IPProtocolICMPv4, ping4[20:]...)
	options.IPv4Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1},
		{OptionType: 1}}
	return from(External, []row{
		{"IPv4 ping", on(ping4), "echoed"},
		{"IPv6 ping", on(ping6), "echoed"},
		{"IPv4 ping with a code", on(ICMP(t, Client4, VIP4, 8, 1, 7, nil)), "pass"},
		{"IPv4 ping with options", on(options.Bytes(t)), "pass"},
		{
			"IPv6 ping with options",
			on(Web6("").Of(layers.IPProtocolICMPv6, ping6[40:]...).Behind(dst,
				Extension(layers.IPProtocolICMPv6, 0)).Bytes(t)),
			"pass",
		},
		{"IPv4 ping to another", on(ICMP(t, Client4, addr("192.0.2.1"), 8, 0, 7, nil)), "pass"},
		{"ICMP of 7 bytes", on(Web4("").Of(layers.IPProtocolICMPv4, 8, 0, 0, 0, 0, 0, 0).Bytes(t)),
			"bad_transport"},
		{"ICMPv6 of 7 bytes", on(Web6("").Of(layers.IPProtocolICMPv6, 128, 0, 0, 0, 0, 0,
			0).Bytes(t)), "bad_transport"},
		{
			"ICMP of 7 bytes to another",
			on(Web4("").To(addr("192.0.2.1"), 0).Of(layers.IPProtocolICMPv4, 8, 0, 0, 0, 0, 0,
				0).Bytes(t)),
			"pass",
		},
	})
}

// TooBigCases returns what routers of the SR domain say about outer packets of the edge's around
// ip, for an MTU, and what the client is told: the MTU left inside. -1: that is nothing that can be
// told.
func TooBigCases(t testing.TB, ip []byte, mtu int) map[string]struct {
	Packet []byte
	MTU    int
} {
	t.Helper()
	type told = struct {
		Packet []byte
		MTU    int
	}
	next, s := ProtocolOf(ip), addrs("fd00:c0de::d1", "fd00:c0de::d2", "fd00:c0de::d3")
	say := func(outer Outer, mtu int) []byte {
		around := outer.Around(t, ip)
		return ICMP(t, HostAddr, EdgeAddr, 2, 0, uint32(mtu), around[:min(len(around), 1232)])
	}
	carrier, foreign := To(addr("fcbb:bb00:2:3::")), To(OfferSID)
	foreign.Src = HostAddr
	srh := To(s[0]).With(rout, SRH(next, 1, 2, s...))
	reduced := To(s[0]).With(rout, SRH(next, 2, 1, s[:2]...))
	return map[string]told{
		"carrier":                 {say(carrier, mtu), mtu - 40},
		"SRH":                     {say(srh, mtu), mtu - 40 - 56},
		"reduced SRH":             {say(reduced, mtu), mtu - 40 - 40},
		"not our outer":           {say(foreign, mtu), -1},
		"less than the least MTU": {say(carrier, 1279), -1},
		"an MTU at which it fits": {say(carrier, len(ip)+40), -1},
		"time exceeded": {ICMP(t, HostAddr, EdgeAddr, 3, 0, 0,
			carrier.Around(t, ip)[:100]), -1},
		"without the client's packet": {ICMP(t, HostAddr, EdgeAddr, 2, 0, uint32(mtu),
			carrier.Around(t, ip)[:40]), -1},
		"with part of the inner header": {ICMP(t, HostAddr, EdgeAddr, 2, 0, uint32(mtu),
			carrier.Around(t, ip)[:59]), -1},
		"without all of the outer header": {ICMP(t, HostAddr, EdgeAddr, 2, 0, uint32(mtu),
			carrier.Around(t, ip)[:39]), -1},
		"without all of the SRH": {ICMP(t, HostAddr, EdgeAddr, 2, 0, uint32(mtu),
			srh.Around(t, ip)[:90]), -1},
		"nothing inside": {say(To(OfferSID).With(dst, Extension(59, 0)), mtu), -1},
	}
}

// WithHopLimit returns the packet with another hop limit, or time to live and the checksum for it.
func WithHopLimit(ip []byte, hopLimit uint8) []byte {
	if ip[0]>>4 == 6 {
		return Patched(ip, 7, hopLimit)
	}
	return Summed(Patched(ip, 8, hopLimit))
}

// Forwarded returns the packet as it is behind a router.
func Forwarded(ip []byte) []byte {
	if ip[0]>>4 == 6 {
		return WithHopLimit(ip, ip[7]-1)
	}
	return WithHopLimit(ip, ip[8]-1)
}

// Summed returns an IPv4 packet with the right header checksum.
func Summed(ip []byte) []byte {
	ip = Patched(ip, 10, 0, 0)
	sum := words(ip[:min(4*int(ip[0]&15), len(ip))])
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return Patched(ip, 10, ^byte(sum>>8), ^byte(sum))
}
