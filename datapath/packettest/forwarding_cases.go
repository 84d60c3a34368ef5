package packettest

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// edgeForwarding: what a router looks at before it forwards a packet.
func edgeForwarding(t testing.TB) (cases []Case) {
	on := FromClient().onto(t)
	for _, hops := range []uint8{0, 1, 2, 255} {
		want := "redirect"
		if hops <= 1 {
			want = "hop_limit"
		}
		for _, p := range []Packet{Web4("S"), Web6("S"), Web4("A"), Web6("A"),
			Web6("").Of(udp, 1)} {
			name := fmt.Sprintf("%d hops left, %s from %v", hops, p.Flags, p.Src)
			cases = append(cases, from(External, []row{
				{name, on(WithHopLimit(p.Bytes(t), hops)), want},
				{name + " to another", on(WithHopLimit(p.To(elsewhere(p), 80).Bytes(t), hops)),
					"pass"},
			})...)
		}
		ping4, ping6 := ICMP(t, Client4, VIP4, 8, 0, 7, nil), ICMP(t, Client6, VIP6, 128, 0, 7, nil)
		about4, about6 := Unreachable(t, Web4("").Reply("A").Bytes(t), 1280),
			Unreachable(t, Web6("").Reply("A").Bytes(t), 1280)
		name := fmt.Sprintf("%d hops left", hops)
		cases = append(cases, from(External, []row{
			{name + ", IPv4 ping", on(WithHopLimit(ping4, hops)), "echoed"},
			{name + ", IPv6 ping", on(WithHopLimit(ping6, hops)), "echoed"},
			{name + ", ICMP error", on(WithHopLimit(about4, hops)), want},
			{name + ", ICMPv6 error", on(WithHopLimit(about6, hops)), want},
		})...)
	}
	syn4 := Web4("S").Bytes(t)
	for at := range 20 {
		if at == 0 || at == 2 || at == 3 {
			continue // without version and lengths, it is no IPv4 header
		}
		cases = append(cases, from(External, []row{
			{fmt.Sprintf("IPv4 header with byte %d damaged", at), on(Patched(syn4, at, syn4[at]^1)),
				"bad_checksum"},
		})...)
	}
	for at := range 4 {
		option := Web4("S")
		option.IPv4Options = []layers.IPv4Option{{OptionType: 7, OptionLength: 4,
			OptionData: []byte{4, 0}}}
		ip := option.Bytes(t)
		cases = append(cases, from(External, []row{
			{fmt.Sprintf("IPv4 option with byte %d damaged", at),
				on(Patched(ip, 20+at, ip[20+at]^1)), "bad_checksum"},
		})...)
	}
	other := Web4("S").To(elsewhere(Web4("S")), 80).Bytes(t)
	return append(append(cases, from(External, []row{
		{"wrong checksum to another", on(Patched(other, 10, other[10]^1)), "bad_checksum"},
	})...), edgeOptions(t)...)
}

// edgeOptions: the IPv4 options of RFC 791, and what can't be one.
func edgeOptions(t testing.TB) (cases []Case) {
	on := FromClient().onto(t)
	ten := func(b ...byte) []byte { return append(b, make([]byte, 40-len(b))...) }
	for name, test := range map[string]struct {
		options []byte
		want    string
	}{
		"none but the end":        {[]byte{0, 0, 0, 0}, "redirect"},
		"no operations":           {[]byte{1, 1, 1, 1}, "redirect"},
		"a record of the route":   {ten(7, 39, 4), "redirect"},
		"a timestamp":             {ten(68, 40, 5, 0), "redirect"},
		"a router alert":          {[]byte{148, 4, 0, 0}, "redirect"},
		"an unknown one":          {[]byte{30, 4, 1, 2}, "redirect"},
		"behind the end, a route": {[]byte{0, 131, 3, 4}, "redirect"},
		"a loose source route": {ten(131, 11, 4, 192, 0, 2, 1, 192, 0, 2, 2),
			"ip_options"},
		"a strict source route":     {ten(137, 7, 4, 192, 0, 2, 1), "ip_options"},
		"a source route at its end": {ten(131, 7, 8, 192, 0, 2, 1), "ip_options"},
		"a source route behind others": {ten(1, 1, 148, 4, 0, 0, 137, 7, 4, 192, 0, 2, 1),
			"ip_options"},
		"a source route as the last": {append(bytes.Repeat([]byte{1}, 37), 131, 3, 4),
			"ip_options"},
		"an option of length 0":         {[]byte{7, 0, 0, 0}, "ip_options"},
		"an option of length 1":         {[]byte{7, 1, 0, 0}, "ip_options"},
		"an option of length 2":         {[]byte{7, 2, 0, 0}, "redirect"},
		"an option that goes too far":   {[]byte{7, 5, 4, 0}, "ip_options"},
		"an option without length":      {[]byte{1, 1, 1, 7}, "ip_options"},
		"one without length, of 40":     {append(bytes.Repeat([]byte{1}, 39), 7), "ip_options"},
		"an option one byte too long":   {ten(7, 41, 4), "ip_options"},
		"an option of length 255":       {ten(7, 255, 4), "ip_options"},
		"one that goes too far, behind": {[]byte{7, 3, 4, 7}, "ip_options"},
	} {
		for _, to := range []string{"the VIP", "another"} {
			p, want := Web4("S"), test.want
			if to == "another" {
				p, want = p.To(elsewhere(p), 80), "pass"
			}
			cases = append(cases, from(External, []row{
				{fmt.Sprintf("IPv4 options to %s: %s", to, name),
					on(WithIPv4Options(p.Bytes(t), test.options)), want},
			})...)
		}
	}
	return cases
}

// elsewhere is no VIP, of the packet's family.
func elsewhere(p Packet) netip.Addr {
	if p.Src.Is4() {
		return addr("192.0.2.1")
	}
	return addr("2001:db8:99::1")
}

// WithIPv4Options returns the packet, which has none, with the bytes of its options.
func WithIPv4Options(ip, options []byte) []byte {
	b := append(append(append([]byte(nil), ip[:20]...), options...), ip[20:]...)
	b[0] = 0x45 + byte(len(options)/4)
	return Summed(Patched(b, 2, byte(len(b)>>8), byte(len(b))))
}
