package e2e_test

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/datapath/packettest"
	"sextant/lab"
)

// attempt is what somebody sends who should not, and where it is counted.
type attempt struct {
	name   string
	from   string // node
	packet []byte
	at     string // node
	role   api.Role
	reason string
}

// sendRaw lets a node's kernel send an IPv6 packet as it is.
func sendRaw(t *testing.T, l *lab.Lab, node string, ip []byte) {
	t.Helper()
	inside(t, l, node, func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, ip, 0, &unix.SockaddrInet6{Addr: [16]byte(ip[24:40])})
	})
}

// dropped is how many packets a role has dropped for a reason.
func (a *agents) dropped(node string, role api.Role, reason string) uint64 {
	a.t.Helper()
	counters, err := a.client(node).Counters(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, c := range counters {
		for _, d := range c.Drops {
			if c.Role == role && d.Reason == reason {
				return d.Packets
			}
		}
	}
	a.t.Fatalf("node %s, role %s: no counter %s", node, role, reason)
	return 0
}

// try sends each packet, and waits until it is counted where it should be.
func (a *agents) try(attempts []attempt) {
	a.t.Helper()
	for _, x := range attempts {
		before := a.dropped(x.at, x.role, x.reason)
		sendRaw(a.t, a.lab, x.from, x.packet)
		for deadline := time.Now().Add(patience); a.dropped(x.at, x.role,
			x.reason) == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				a.t.Errorf("%s: %s does not count it as %s", x.name, x.at, x.reason)
				break
			}
		}
	}
}

// withSRH are extension headers that lead on to a segment.
func withSRH(p packettest.Packet, segment string) packettest.Packet {
	return p.Behind(layers.IPProtocolIPv6Routing, packettest.SRH(layers.IPProtocolUDP, 1, 1,
		netip.MustParseAddr(segment), p.Dst))
}

func datagram(from, to string, port uint16) packettest.Packet {
	p := packettest.Packet{Src: netip.MustParseAddr(from), Dst: netip.MustParseAddr(to),
		SrcPort: 40000, DstPort: port}
	return p.Of(layers.IPProtocolUDP, []byte("let me in")...)
}

// Clients who address SIDs, bring segment routing headers, or pretend to be of the domain, are
// refused by edge and host, and counted (RFC 8754 section 5.1); others do not notice.
func TestBorder(t *testing.T) {
	a := upWithAgents(t)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	tr := startTraffic(t, a.lab)
	tr.flows("before")
	const client, vip, web1 = "2001:db8:c::1", "2001:db8:80::80", "fd00:5e::1:1"
	inner := datagram(client, vip, 7)
	outer := packettest.To(netip.MustParseAddr("fcbb:bb00:1::")).From(client)
	a.try([]attempt{
		{"SRH to a VIP", "client", withSRH(inner, "fcbb:bb00:1::").Bytes(t), "edge", api.Edge,
			"srv6_from_outside"},
		{"from a SID", "client", datagram("fcbb:bb00:1::", vip, 7).Bytes(t), "edge", api.Edge,
			"spoofed_source"},
		{"to a SID", "client", datagram(client, "fcbb:bb00:1::", 7).Bytes(t), "web1", api.Host,
			"outside_domain"},
		{"encapsulated to a SID", "client", outer.Around(t, inner.Bytes(t)), "web1", api.Host,
			"outside_domain"},
		{"too big about a SID", "client", packettest.Unreachable(t,
			datagram("fd00:5e::e1", "fcbb:bb00:1::", 7).Bytes(t), 1280), "edge", api.Edge,
			"srv6_from_outside"},
		{"SRH to a host's own address", "client", withSRH(datagram(client, web1, 7),
			"fcbb:bb00:2::").Bytes(t), "web1", api.Host, "srv6_from_outside"},
	})
	way := a.on("edge", "ip", "-6", "route", "get", "fcbb:bb00:1::")
	if bytes.Contains(way, []byte("mtu 1280")) {
		t.Errorf("the edge's kernel believes a stranger: %s", way)
	}
	tr.flows("after")
}

// The same at the head-end and the egress of protected traffic.
func TestBorderOfPolicies(t *testing.T) {
	a := upPolicies(t)
	const hosta, hostb = "2001:db8:a::1", "2001:db8:b::1"
	inner := datagram(hosta, hostb, 5000)
	to := func(sid string) packettest.Outer {
		return packettest.To(netip.MustParseAddr(sid)).From(hosta)
	}
	a.try([]attempt{
		{"to a SID", "hosta", datagram(hosta, "fcbb:bb00:2:f::", 7).Bytes(t), "ingress", "headend",
			"srv6_from_outside"},
		{"encapsulated to a SID", "hosta", to("fcbb:bb00:2:f::").Around(t, inner.Bytes(t)),
			"ingress", "headend", "srv6_from_outside"},
		{"SRH", "hosta", withSRH(inner, "fcbb:bb00:11::").Bytes(t), "ingress", "headend",
			"srv6_from_outside"},
		{"from a SID", "hosta", datagram("fcbb:bb00:1::", hostb, 7).Bytes(t), "ingress", "headend",
			"spoofed_source"},
		{"past the head-end to the egress", "p1", to("fcbb:bb00:2:f::").Around(t, inner.Bytes(t)),
			"egress", "merge", "outside_domain"},
		{"past the head-end to another SID", "p1", to("fcbb:bb00:2:e::").Around(t, inner.Bytes(t)),
			"egress", "merge", "outside_domain"},
		{"past the head-end with an SRH", "p1", withSRH(inner, "fcbb:bb00:11::").Bytes(t), "egress",
			"merge", "srv6_from_outside"},
	})
}

// Fragments that overlap, are tiny or have no first one are refused and counted; those of real
// datagrams arrive.
func TestBrokenFragments(t *testing.T) {
	a := upWithAgents(t)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	tr := startTraffic(t, a.lab)
	whole := datagram("2001:db8:c::1", "2001:db8:80::80", 7).Of(layers.IPProtocolUDP,
		slices.Repeat([]byte("0123456789abcdef"), 16)...).Bytes(t)
	segment := packettest.Packet{
		Src: netip.MustParseAddr("2001:db8:c::1"), Dst: netip.MustParseAddr("2001:db8:80::80"),
		SrcPort: 40000, DstPort: 7, Flags: "A",
		Payload: make([]byte, 200),
	}.Bytes(t)
	first := func(id uint32) { sendRaw(t, a.lab, "client", packettest.Part(whole, id, 0, 128)) }
	first(1)
	first(2)
	a.try([]attempt{
		{"overlapping", "client", packettest.Part(whole, 1, 120, 264), "edge", api.Edge,
			"overlapping_fragment"},
		{"overlapping the header", "client", packettest.Part(whole, 2, 8, 264), "edge", api.Edge,
			"overlapping_fragment"},
		{"without a first", "client", packettest.Part(whole, 3, 128, 264), "edge", api.Edge,
			"fragment_without_first"},
		{"tiny", "client", packettest.Part(segment, 4, 0, 8), "edge", api.Edge, "tiny_fragment"},
		{"into the TCP header", "client", packettest.Part(segment, 5, 16, 64), "edge", api.Edge,
			"tiny_fragment"},
	})
	before := a.packets()
	first(6)
	sendRaw(t, a.lab, "client", packettest.Part(whole, 6, 128, 264))
	tr.flows("with fragments")
	if a.packets() < before+2 {
		t.Error("the fragments of a datagram are not forwarded")
	}
}
