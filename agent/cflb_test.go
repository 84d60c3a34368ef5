package agent_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

const cflbText = `
node: router1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
cflb:
  interfaces: [{name: edge0}]
  router: 9
  keyFile: DIR/cflb.key
  ipv4: {fields: source-port, radix: 4}
  ipv6: {fields: flow-label, radix: 4}
`

// A controlledRouter is a machine with three links out, on each of which a router of the next
// tier has an address, and routes with equal next hops.
type controlledRouter struct {
	*machine
	in     int            // a socket from which packets come in by edge0
	inMAC  []byte         // of edge0
	taps   map[int]string // what leaves, by socket
	codecs map[bool]*cflb.Codec
}

func newControlledRouter(t *testing.T) *controlledRouter {
	r := &controlledRouter{machine: newMachine(t), taps: map[int]string{},
		codecs: map[bool]*cflb.Codec{}}
	key := [cflb.KeyLength]byte{7}
	must(t, os.WriteFile(r.dir+"/cflb.key", fmt.Appendf(nil, "%x\n", key[:]), 0o600))
	for ipv6, fields := range map[bool]cflb.Fields{false: cflb.SourcePort, true: cflb.FlowLabel} {
		codec, err := cflb.New(cflb.Parameters{Fields: fields, Radix: 4, Key: key})
		must(t, err)
		r.codecs[ipv6] = codec
	}
	must(t, r.ns.Do(func() error {
		for name, value := range map[string]string{
			"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1",
			"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.edge0.rp_filter": "0",
			"net.ipv6.conf.all.accept_dad": "0",
		} {
			must(t, linux.WriteSysctl(name, value))
		}
		commands := "link set edge0-peer up\n"
		for i := 1; i <= 3; i++ {
			commands += fmt.Sprintf(`link add v%[1]d type veth peer name v%[1]d-peer
link set v%[1]d up
link set v%[1]d-peer up
addr add 10.0.%[1]d.1/24 dev v%[1]d
addr add fd00:0:0:%[1]d::1/64 dev v%[1]d nodad
neigh add 10.0.%[1]d.2 lladdr 02:00:00:00:09:0%[1]d dev v%[1]d nud permanent
neigh add fd00:0:0:%[1]d::2 lladdr 02:00:00:00:09:0%[1]d dev v%[1]d nud permanent
`, i)
		}
		must(t, linuxtest.IP(commands))
		in, err := net.InterfaceByName("edge0")
		must(t, err)
		r.inMAC = in.HardwareAddr
		r.in = r.socket("edge0-peer", 0)
		for i := 1; i <= 3; i++ {
			r.taps[r.socket(fmt.Sprintf("v%d-peer", i), unix.ETH_P_ALL)] = fmt.Sprintf("v%d", i)
		}
		return nil
	}))
	return r
}

// socket opens a packet socket on an interface.
func (r *controlledRouter) socket(name string, protocol uint16) int {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	must(r.t, err)
	r.t.Cleanup(func() { unix.Close(fd) })
	i, err := net.InterfaceByName(name)
	must(r.t, err)
	must(r.t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8,
		Ifindex: i.Index}))
	return fd
}

// ip runs commands of ip(8).
func (r *controlledRouter) ip(commands ...string) {
	r.t.Helper()
	must(r.t, r.ns.Do(func() error { return linuxtest.IP(strings.Join(commands, "\n")) }))
}

// packetOfFlow is the packet of a flow.
func packetOfFlow(to string) cflb.Packet {
	p := cflb.Packet{Src: netip.MustParseAddr("198.51.100.7"), Dst: netip.MustParseAddr(to),
		Protocol: unix.IPPROTO_UDP, HasPorts: true, SrcPort: 7, DstPort: 4789, HopLimit: 64}
	if p.Dst.Is6() {
		p.Src = netip.MustParseAddr("2001:db8:f::7")
	}
	return p
}

// leaves sends packets that choose an index in, each of another flow, and says where each left.
func (r *controlledRouter) leaves(p cflb.Packet, index int) (by map[string]int) {
	r.t.Helper()
	const count = 16
	packets, err := r.codecs[p.Dst.Is6()].Selectors(p, []cflb.Hop{{HopLimit: 64, Index: index}}, 0)
	must(r.t, err)
	sent := 0
	for steered := range packets {
		if sent++; sent > count {
			break
		}
		frame := append(append(append([]byte{}, r.inMAC...), 2, 0, 0, 0, 0, 1),
			packetBytes(steered)...)
		_, err := unix.Write(r.in, frame)
		must(r.t, err)
	}
	by = map[string]int{}
	end := time.Now().Add(20 * time.Second)
	for total := 0; total < count; {
		if time.Now().After(end) {
			r.t.Fatalf("of %d packets to %s left by now: %v", count, p.Dst, by)
		}
		for fd, name := range r.taps {
			buffer := make([]byte, 2048)
			n, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
			if err == nil && n > 50 && string(buffer[n-8:n]) == "selector" {
				by[name]++
				total++
			}
		}
	}
	return by
}

// packetBytes is a UDP packet of a flow without a UDP checksum, from the Ethernet type on.
func packetBytes(p cflb.Packet) []byte {
	udp := binary.BigEndian.AppendUint16(nil, p.SrcPort)
	udp = binary.BigEndian.AppendUint16(udp, p.DstPort)
	udp = append(udp, 0, 24, 0, 0)
	udp = append(udp, "padding selector"...)
	if p.Dst.Is6() {
		b := append([]byte{0x86, 0xdd}, binary.BigEndian.AppendUint32(nil, 6<<28|p.FlowLabel)...)
		b = append(b, 0, 24, p.Protocol, p.HopLimit)
		return append(append(append(b, p.Src.AsSlice()...), p.Dst.AsSlice()...), udp...)
	}
	ip := []byte{0x45, 0, 0, 44, 0, 0, 0, 0, p.HopLimit, p.Protocol, 0, 0}
	ip = append(append(ip, p.Src.AsSlice()...), p.Dst.AsSlice()...)
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	return append(append([]byte{8, 0}, ip...), udp...)
}

// await asks until the next hops of a destination are these.
func (r *running) awaitNextHops(prefix, want string) {
	r.t.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		list, err := r.NextHops(r.t.Context())
		must(r.t, err)
		got = "none"
		for _, n := range list {
			if n.Prefix.String() != prefix {
				continue
			}
			got = ""
			for _, hop := range n.Hops {
				got += fmt.Sprintf("%s*%d ", hop.Interface, hop.Weight)
				if hop.Down {
					got += "down "
				}
			}
			got += n.Left
		}
		if got == want {
			return
		}
	}
	r.t.Fatalf("next hops of %s are %q, never %q", prefix, got, want)
}

// A router follows the kernel's routes, whoever makes them: packets leave by the next hop that
// their source chose, in the order that all tools share, for IPv4 by source port and for IPv6 by
// flow label; a link that goes down keeps its index, a next hop that is withdrawn renumbers.
func TestControlledRouter(t *testing.T) {
	r := newControlledRouter(t)
	r.ip("route add 203.0.113.0/24 nexthop via 10.0.3.2 weight 3 nexthop via 10.0.1.2"+
		" nexthop via 10.0.2.2", "-6 nexthop add id 1 via fd00:0:0:2::2 dev v2",
		"-6 nexthop add id 2 via fd00:0:0:1::2 dev v1", "nexthop add id 9 group 1,7/2",
		"-6 route add 2001:db8:2::/48 nhid 9")
	agent := r.start(cflbText)
	const prefix4, prefix6 = "203.0.113.0/24", "2001:db8:2::/48"
	agent.awaitNextHops(prefix4, "v1*1 v2*1 v3*3 ")
	agent.awaitNextHops(prefix6, "v1*1 v2*7 ")
	to4, to6 := packetOfFlow("203.0.113.9"), packetOfFlow("2001:db8:2::9")
	expect := func(p cflb.Packet, links ...string) {
		t.Helper()
		for index, link := range links {
			if by := r.leaves(p, index); by[link] != 16 {
				t.Errorf("packets to %s that chose %d left by %v, want all by %s", p.Dst, index, by,
					link)
			}
		}
	}
	expect(to4, "v1", "v2", "v3")
	expect(to6, "v1", "v2")
	choices := func(want map[string]uint64) {
		t.Helper()
		counters, err := agent.Counters(t.Context())
		must(t, err)
		c := counters[0].CFLB
		for _, one := range c.Choices {
			if n := want[one.Choice]; one.Packets != n {
				t.Errorf("%d packets %s, want %d", one.Packets, one.Choice, n)
			}
		}
		if c.Renumbered != want["renumbered"] || c.Destinations != int(want["destinations"]) {
			t.Errorf("%+v, want %d renumbered of %d destinations", c, want["renumbered"],
				want["destinations"])
		}
	}
	choices(map[string]uint64{"controlled": 5 * 16, "destinations": 2})

	r.ip("link set v2 down")
	agent.awaitNextHops(prefix4, "v1*1 v2*1 down v3*3 ")
	if by := r.leaves(to4, 1); by["v2"] != 0 || by["v1"]+by["v3"] != 16 {
		t.Errorf("packets that chose a link that is down left by %v", by)
	}
	// the kernel takes next hops out of a group when their link goes
	choices(map[string]uint64{"controlled": 5 * 16, "beyond": 16, "destinations": 1})
	r.ip("link set v2 up", "neigh replace 10.0.2.2 lladdr 02:00:00:00:09:02 dev v2 nud permanent",
		"route replace 203.0.113.0/24 nexthop via 10.0.3.2 nexthop via 10.0.2.2")
	agent.awaitNextHops(prefix4, "v2*1 v3*1 ")
	expect(to4, "v2", "v3")
	if got := agent.metric("sextant_cflb_renumbered_total"); got != "1" {
		t.Errorf("%s renumbered, want 1", got)
	}
}

// What sources can't choose is named: more next hops than selectors name, resilient groups; and a
// restarted agent goes on with the counters.
func TestControlledRouterWarnings(t *testing.T) {
	r := newControlledRouter(t)
	r.ip("route add 203.0.113.0/24 nexthop via 10.0.1.2 nexthop via 10.0.2.2 nexthop via 10.0.3.2",
		"nexthop add id 1 via 10.0.1.2 dev v1", "nexthop add id 2 via 10.0.2.2 dev v2",
		"nexthop add id 9 group 1/2 type resilient buckets 32", "route add 192.0.2.0/24 nhid 9")
	agent := r.start(strings.Replace(cflbText, "source-port, radix: 4", "source-port, radix: 2", 1))
	warned := func(wants ...string) {
		t.Helper()
		agent.awaitNextHops("192.0.2.0/24", "its next hop group is resilient: make it of type "+
			"hash-threshold (mpath)")
		var status api.Status
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			var err error
			status, err = agent.Status(t.Context())
			must(t, err)
			text := strings.Join(status.Warnings, "\n")
			missing := false
			for _, want := range wants {
				missing = missing || !strings.Contains(text, want)
			}
			if !missing {
				return
			}
		}
		t.Errorf("warnings %q lack one of %q", status.Warnings, wants)
	}
	warned("203.0.113.0/24: it has 3 next hops, and selectors name 2", "resilient")
	must(t, r.ns.Do(func() error {
		return linux.WriteSysctl("net.ipv4.fib_multipath_hash_policy", "0")
	}))
	warned("fib_multipath_hash_policy is 0", "sysctl -w net.ipv4.fib_multipath_hash_policy=1")
	agent.stop()
	r.ip("route replace 203.0.113.0/24 nexthop via 10.0.1.2 nexthop via 10.0.2.2")
	agent = r.start(cflbText)
	agent.awaitNextHops("203.0.113.0/24", "v1*1 v2*1 ")
	if by := r.leaves(packetOfFlow("203.0.113.9"), 1); by["v2"] != 16 {
		t.Errorf("packets that chose 1 left by %v", by)
	}
	agent.stop()
	agent = r.start(cflbText)
	if got := agent.metric(`sextant_cflb_packets_total{choice="controlled"}`); got != "16" {
		t.Errorf("%s packets controlled after a restart, want 16", got)
	}
}

// With the program at XDP, both programs run on each interface, and what XDP leaves alone takes the
// chosen next hop too: by the kernel.
func TestControlledRouterXDP(t *testing.T) {
	r := newControlledRouter(t)
	r.ip("route add 203.0.113.0/24 nexthop via 10.0.1.2 nexthop via 10.0.2.2 nexthop via 10.0.3.2")
	agent := r.start(strings.Replace(cflbText, "  router: 9", "  router: 9\n  forwarding: xdp", 1))
	agent.awaitNextHops("203.0.113.0/24", "v1*1 v2*1 v3*1 ")
	status, err := agent.Status(t.Context())
	must(t, err)
	if len(status.Programs) != 2 {
		t.Errorf("programs %+v, want one at XDP and one at TC", status.Programs)
	}
	for index, link := range []string{"v1", "v2", "v3"} {
		if by := r.leaves(packetOfFlow("203.0.113.9"), index); by[link] != 16 {
			t.Errorf("packets that chose %d left by %v", index, by)
		}
	}
}
