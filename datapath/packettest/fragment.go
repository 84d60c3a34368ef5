package packettest

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// Part returns a fragment of an IP packet without options or extension headers: the bytes from and
// to of its payload, of which all but the last of a packet are multiples of 8.
func Part(ip []byte, id uint32, from, to int) []byte {
	if ip[0]>>4 == 4 {
		more := uint16(0)
		if 20+to < len(ip) {
			more = 0x2000
		}
		part := slices.Concat(ip[:20], ip[20+from:20+to])
		binary.BigEndian.PutUint16(part[2:], uint16(len(part)))
		binary.BigEndian.PutUint16(part[4:], uint16(id))
		binary.BigEndian.PutUint16(part[6:], more|uint16(from/8))
		return WithHopLimit(part, part[8])
	}
	header := Fragment(layers.IPProtocol(ip[6]), uint16(from))
	if 40+to < len(ip) {
		header[3] |= 1
	}
	binary.BigEndian.PutUint32(header[4:], id)
	part := slices.Concat(ip[:40], header, ip[40+from:40+to])
	part[6] = byte(frag)
	binary.BigEndian.PutUint16(part[4:], uint16(len(part)-40))
	return part
}

// Sequence is a number of packets that come one after the other, and what becomes of each.
type Sequence struct {
	Name  string
	Steps []Step
}

// Step is an IP packet, and what becomes of it: for an edge or for a host to which it is offered,
// as in [Case].
type Step struct {
	Packet []byte
	Want   string
}

// EdgeFragments are fragments to the edge of [EdgeCases].
func EdgeFragments(t testing.TB) []Sequence {
	t.Helper()
	long := make([]byte, 200)
	tcp4, tcp6 := Web4("A").Bytes(t), Web6("A").Bytes(t)
	tcp4, tcp6 = append(tcp4, long...), append(tcp6, long...)
	binary.BigEndian.PutUint16(tcp4[2:], uint16(len(tcp4)))
	binary.BigEndian.PutUint16(tcp6[4:], uint16(len(tcp6)-40))
	udp4, udp6 := Web4("").To(VIP4, 53).Of(udp, long...).Bytes(t),
		Web6("").To(VIP6, 4433).Of(udp, long...).Bytes(t)
	other := Web4("").To(addr("192.0.2.1"), 53).Of(udp, long...).Bytes(t)
	none := Web4("").To(VIP4, 54).Of(udp, long...).Bytes(t)
	ping4, ping6 := ICMP(t, Client4, VIP4, 8, 0, 7, long), ICMP(t, Client6, VIP6, 128, 0, 7, long)
	var all []Sequence
	for family, ip := range map[string][]byte{"TCP over IPv4": tcp4, "TCP over IPv6": tcp6,
		"UDP over IPv4": udp4, "UDP over IPv6": udp6} {
		id := uint32(100 * (1 + len(all)))
		all = append(all,
			Sequence{family + ": in order", []Step{
				{Part(ip, id, 0, 64), "redirect"}, {Part(ip, id, 64, 128), "redirect"},
				{Part(ip, id, 128, 200), "redirect"},
			}},
			Sequence{family + ": later ones in disorder, and the first again", []Step{
				{Part(ip, id+1, 0, 64), "redirect"}, {Part(ip, id+1, 128, 200), "redirect"},
				{Part(ip, id+1, 0, 64), "redirect"},
				{Part(ip, id+1, 64, 128), "redirect"},
			}},
			Sequence{family + ": before the first", []Step{
				{Part(ip, id+2, 64, 128), "fragment_without_first"},
				{Part(ip, id+2, 0, 64), "redirect"}, {Part(ip, id+2, 128, 200), "redirect"},
			}},
			Sequence{family + ": another packet's", []Step{
				{Part(ip, id+3, 0, 64), "redirect"},
				{Part(ip, id+4, 64, 128), "fragment_without_first"},
			}},
			Sequence{family + ": overlapping", []Step{
				{Part(ip, id+5, 0, 64), "redirect"},
				{Part(ip, id+5, 56, 128), "overlapping_fragment"},
				{Part(ip, id+5, 64, 128), "redirect"},
			}},
		)
	}
	return append(all, []Sequence{
		{"tiny TCP over IPv4", []Step{{Part(tcp4, 1, 0, 16), "tiny_fragment"},
			{Part(tcp4, 1, 16, 64), "tiny_fragment"}}},
		{"tiny TCP over IPv6", []Step{{Part(tcp6, 1, 0, 16), "tiny_fragment"},
			{Part(tcp6, 1, 8, 64), "tiny_fragment"}}},
		{"tiny UDP over IPv4", []Step{{Part(udp4, 2, 0, 0), "tiny_fragment"}}},
		{"TCP options cut off", []Step{{Patched(Part(tcp4, 3, 0, 24), 32, 0x70), "tiny_fragment"}}},
		{"data offset 4", []Step{{Patched(Part(tcp4, 3, 0, 24), 32, 0x40), "bad_transport"}}},
		{"UDP length 7", []Step{{Patched(Part(udp4, 4, 0, 16), 24, 0, 7), "bad_transport"}}},
		{"extension headers cut off", []Step{
			{Web6("A").Behind(frag, Fragment(dst, 1), Extension(tcp, 1)[:8]).Of(59).Bytes(t),
				"tiny_fragment"},
		}},
		{"extension headers behind the fragment's", []Step{
			{Web6("A").Behind(frag, Fragment(dst, 1), Extension(tcp, 1)).Bytes(t), "redirect"},
		}},
		{"two fragment headers", []Step{{Web6("A").Behind(frag, Fragment(frag, 1),
			Fragment(tcp, 1)).Bytes(t), "fragment"}}},
		{"to another destination", []Step{{Part(other, 5, 0, 64), "pass"},
			{Part(other, 5, 64, 128), "pass"}}},
		{"to no service", []Step{{Part(none, 6, 0, 64), "no_service"},
			{Part(none, 6, 64, 128), "fragment_without_first"}}},
		{"ICMP", []Step{{Part(ping4, 7, 0, 64), "fragment"},
			{Part(ping4, 7, 64, 128), "fragment"}}},
		{"ICMPv6", []Step{{Part(ping6, 7, 0, 64), "fragment"},
			{Part(ping6, 7, 64, 128), "fragment_without_first"}}},
	}...)
}
