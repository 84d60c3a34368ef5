package packettest

import (
	"fmt"
	"net/netip"
	"testing"
)

// EchoPair is a request, and the reply to it with a hop limit of 63.
type EchoPair struct{ Request, Reply []byte }

// EchoPairs returns echo requests to the VIPs of which one word has the given value, and all others
// are 0.
func EchoPairs(t testing.TB, word uint32) map[string]EchoPair {
	t.Helper()
	pair := func(client, vip netip.Addr, request, reply uint8, rest uint32, data ...byte) EchoPair {
		return EchoPair{
			ICMP(t, client, vip, request, 0, rest, data),
			WithHopLimit(ICMP(t, vip, client, reply, 0, rest, data), 63),
		}
	}
	return map[string]EchoPair{
		"IPv4 sequence":   pair(Client4, VIP4, 8, 0, word),
		"IPv4 identifier": pair(Client4, VIP4, 8, 0, word<<16),
		"IPv4 data":       pair(Client4, VIP4, 8, 0, 1, byte(word>>8), byte(word)),
		"IPv6 sequence":   pair(Client6, VIP6, 128, 129, word),
	}
}

// edgeUnanswerable: echo requests of which the answer would go to no host, to many, or in a circle.
func edgeUnanswerable(t testing.TB) (cases []Case) {
	on := FromClient().onto(t)
	for source, want := range map[string]string{
		"0.0.0.0": "unanswerable", "0.1.2.3": "unanswerable", "127.0.0.1": "unanswerable",
		"127.255.255.254": "unanswerable", "224.0.0.1": "unanswerable", "239.1.2.3": "unanswerable",
		"240.0.0.1": "unanswerable", "255.255.255.255": "unanswerable",
		VIP4.String(): "unanswerable",
		"1.0.0.1":     "echoed", "126.0.0.1": "echoed", "128.0.0.1": "echoed",
		"223.255.255.254": "echoed",
		"10.0.0.1":        "echoed", "169.254.0.1": "echoed",
	} {
		cases = append(cases, from(External, []row{
			{"IPv4 ping from " + source, on(ICMP(t, addr(source), VIP4, 8, 0, 7, nil)), want},
		})...)
	}
	for source, want := range map[string]string{
		"::": "unanswerable", "::1": "unanswerable", "::ffff:192.0.2.1": "unanswerable",
		"ff02::1": "unanswerable", "ff0e::1": "unanswerable", VIP6.String(): "unanswerable",
		"64:ff9b::c000:201": "echoed", "fe80::1": "echoed", "2001:db8::1": "echoed",
		"fc00::1": "echoed",
	} {
		cases = append(cases, from(External, []row{
			{"IPv6 ping from " + source, on(ICMP(t, addr(source), VIP6, 128, 0, 7, nil)), want},
		})...)
	}
	for _, group := range [][]byte{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 0, 0, 1},
		{0x33, 0x33, 0, 0, 0, 1}} {
		link := FromClient()
		link.Dst = group
		for i, ping := range [][]byte{
			ICMP(t, Client4, VIP4, 8, 0, 7, nil), ICMP(t, Client6, VIP6, 128, 0, 7, nil),
		} {
			name := fmt.Sprintf("ping %d in a frame to %x", i, group)
			cases = append(cases, from(External,
				[]row{{name, link.onto(t)(ping), "unanswerable"}})...)
		}
	}
	return cases
}

// Told is an ICMP error about a packet from a client, from its destination, quoting as much as may
// be: type, code and
// the word behind the checksum.
func Told(t testing.TB, ip []byte, kind, code uint8, rest uint32, hopLimit uint8) []byte {
	t.Helper()
	if ip[0]>>4 == 4 {
		from, to := netip.AddrFrom4([4]byte(ip[16:])), netip.AddrFrom4([4]byte(ip[12:]))
		answer := ICMP(t, from, to, kind, code, rest, ip[:min(len(ip), 548)&^3])
		// Control traffic, which is not to be fragmented.
		return WithHopLimit(Patched(Patched(answer, 1, 0xc0), 6, 0x40), hopLimit)
	}
	from, to := netip.AddrFrom16([16]byte(ip[24:])), netip.AddrFrom16([16]byte(ip[8:]))
	return WithHopLimit(ICMP(t, from, to, kind, code, rest, ip[:min(len(ip), 1232)&^3]), hopLimit)
}

// ToldTooBig is the answer to a client about a packet of which mtu bytes fit.
func ToldTooBig(t testing.TB, ip []byte, mtu int, hopLimit uint8) []byte {
	t.Helper()
	if ip[0]>>4 == 4 {
		return Told(t, ip, 3, 4, uint32(mtu), hopLimit)
	}
	return Told(t, ip, 2, 0, uint32(mtu), hopLimit)
}

// ToldExceeded is the answer to a client about a packet that has no hop left.
func ToldExceeded(t testing.TB, ip []byte, hopLimit uint8) []byte {
	t.Helper()
	if ip[0]>>4 == 4 {
		return Told(t, ip, 11, 0, 0, hopLimit)
	}
	return Told(t, ip, 3, 0, 0, hopLimit)
}

// NarrowCase is a packet of a client's to a path that leaves less than IPv6's least MTU inside, and
// what it is told,
// by an edge whose hop limit is 63: nothing if it fits.
type NarrowCase struct {
	Name   string
	Packet []byte
	Told   []byte
	Want   string
}

// NarrowCases are for a path that leaves 1,260 bytes.
func NarrowCases(t testing.TB) (cases []NarrowCase) {
	const room = 1260
	add := func(p Packet, length int, want string, told func(ip []byte) []byte) {
		p.Payload = make([]byte, length-len(p.Bytes(t)))
		c := NarrowCase{Name: fmt.Sprintf("%d bytes from %v", length, p.Src), Packet: p.Bytes(t),
			Want: want}
		if told != nil {
			c.Told = told(c.Packet)
		}
		cases = append(cases, c)
	}
	least := func(ip []byte) []byte { return ToldTooBig(t, ip, 1280, 63) }
	unreachable := func(ip []byte) []byte { return Told(t, ip, 1, 3, 0, 63) }
	inside := func(ip []byte) []byte { return ToldTooBig(t, ip, room, 63) }
	for _, p := range []Packet{Web6("A"), Web6("").Of(udp)} {
		add(p, room, "redirected", nil)
		add(p, room+1, "below_min_mtu", unreachable)
		add(p, 1280, "below_min_mtu", unreachable)
		add(p, 1281, "too_big_answered", least)
		add(p, 1500, "too_big_answered", least)
	}
	for _, p := range []Packet{Web4("A"), Web4("").To(VIP4, 53).Of(udp)} {
		add(p, room, "redirected", nil)
		add(p, room+1, "too_big_answered", inside)
		add(p, 1280, "too_big_answered", inside)
		add(p, 1500, "too_big_answered", inside)
	}
	return cases
}

// routerQuotes is how much of the packet in an edge's outer one a router's message has: 1,280 bytes
// in all.
const routerQuotes = 1280 - 40 - 8 - 40

// RouterSays returns what a router of the SR domain says to the edge about its outer packet around
// ip: Packet Too Big.
func RouterSays(t testing.TB, ip []byte, mtu uint32) []byte {
	t.Helper()
	around := To(addr("fcbb:bb00:2:3::")).Around(t, ip)
	return ICMP(t, HostAddr, EdgeAddr, 2, 0, mtu, around[:min(len(around), 40+routerQuotes)])
}

// ToldAsQuoted returns an ICMP error of which the quotation is cut to what [RouterSays] has of the
// packet.
func ToldAsQuoted(t testing.TB, told []byte) []byte {
	t.Helper()
	header := fixedLength(told)
	if header == 20 {
		return told // quotes less anyway
	}
	most := min(len(told), header+8+routerQuotes)
	return WithHopLimit(ICMP(t, netip.AddrFrom16([16]byte(told[8:])),
		netip.AddrFrom16([16]byte(told[24:])), told[40], told[41],
		uint32(told[44])<<24|uint32(told[45])<<16|uint32(told[46])<<8|uint32(told[47]),
		told[header+8:most]), told[7])
}
