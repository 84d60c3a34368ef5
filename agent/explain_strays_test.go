package agent_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/agent/api"
	"sextant/config"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// besideText is a node beside whose router strays are taken away; its VRF is the network namespace
// WEB.
const besideText = `
node: web1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
strays:
  interfaces: [{name: edge0}]
  vrfs: [{namespace: WEB, sids: ["fcbb:bb00:1:6::/64"], backup: host0}]
`

// besides makes the machine's VRF, a namespace with an address, and starts an agent that takes
// strays away.
func (m *machine) besides() (*running, *linux.Netns) {
	m.t.Helper()
	web, name := linuxtest.Netns(m.t)
	must(m.t, web.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		vip, _ := netlink.ParseAddr("2001:db8:80::80/128")
		return errors.Join(linux.WriteSysctl("net.ipv6.conf.all.accept_dad", "0"),
			netlink.LinkSetUp(lo), netlink.AddrAdd(lo, vip))
	}))
	return m.start(m.text(besideText, "WEB", linux.NetnsPath(name))), web
}

// stray asks for a flow of a VRF, and returns what is said of the packet that opens it and of the
// one that follows.
func (r *running) stray(f *api.Flow) (opening, following api.Explanation) {
	r.t.Helper()
	list := r.explain(api.Question{Flow: f})
	if len(list) != 2 || list[0].VRF == nil || list[1].VRF == nil || list[1].SID == nil ||
		list[1].SID.Prefix.String() != "fcbb:bb00:1:6::/64" {
		r.t.Fatalf("explained %+v", list)
	}
	return list[0], list[1]
}

// What is explained beside a router: the SID, the VRF, and whether the connection is there; and
// nothing is counted.
func TestExplainStrays(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a, web := m.besides()
	defer a.stop()
	before := a.metrics()
	opening, following := a.stray(webFlow(40000))
	if opening.Verdict != "pass" || opening.VRF.Left != "continues_nothing" ||
		opening.Offer != "" || !strings.Contains(opening.Why, "can be astray") {
		t.Errorf("opening: %+v", opening)
	}
	if following.Verdict != "hand_to_kernel" || following.Offer != "stray" ||
		following.VRF.Leaves == nil || following.VRF.Leaves.Fate != "no_route" ||
		!strings.Contains(following.Why, "received on host0, where it ends (no_route)") ||
		following.Frame == "" {
		t.Errorf("following: %+v, %+v", following, following.VRF)
	}
	must(t, m.ns.Do(func() error {
		return netlink.RouteAdd(&netlink.Route{Gw: netip.MustParseAddr("fd00:5e::1").AsSlice()})
	}))
	if _, following = a.stray(webFlow(40000)); !strings.HasSuffix(following.Why,
		"from where the kernel's routes send it by edge0 as it is") {
		t.Errorf("following, with a route: %s", following.Why)
	}
	var client net.Conn
	must(t, web.Do(func() error {
		listener, err := net.Listen("tcp", "[2001:db8:80::80]:80")
		if err != nil {
			return err
		}
		t.Cleanup(func() { listener.Close() })
		client, err = net.Dial("tcp", "[2001:db8:80::80]:80")
		return err
	}))
	defer client.Close()
	connected := &api.Flow{Source: client.LocalAddr().(*net.TCPAddr).AddrPort(),
		Destination: webFlow(0).Destination, Protocol: config.TCP}
	if _, here := a.stray(connected); here.Verdict != "pass" || here.Offer != "here" ||
		!strings.Contains(here.Why, "the connection is in VRF "+linux.NetnsDir) {
		t.Errorf("following, with a connection: %+v", here)
	}
	list := a.explain(api.Question{Frames: []api.Frame{fromOutside(), syn(40000, 80)}})
	if list[0].VRF == nil || list[0].VRF.Left != "outside_domain" || !strings.Contains(list[0].Why,
		"domain.infrastructure") {
		t.Errorf("from outside: %+v", list[0])
	}
	if list[1].VRF != nil || !strings.Contains(list[1].Why, "no SID of a VRF") {
		t.Errorf("to no SID: %+v", list[1])
	}
	if after := a.metrics(); packetLines(before) != packetLines(after) {
		t.Errorf("explaining has counted packets:\n%s", packetLines(after))
	}
}

// fromOutside is a frame to the SID, with a packet that continues a connection, from an address
// outside of the domain.
func fromOutside() []byte {
	inner := syn(40000, 80)[14:]
	const flagsAt = 40 + 13
	inner[flagsAt] = 0x10 // ACK
	outer := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0,
		byte(len(inner)), 41, 64},
		netip.MustParseAddr("2001:db8:bad::1").AsSlice()...)
	return append(append(outer, netip.MustParseAddr("fcbb:bb00:1:6::").AsSlice()...), inner...)
}

// A VRF whose backup device goes is left to the kernel, which is said.
func TestExplainStraysThatAreLeft(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a, _ := m.besides()
	defer a.stop()
	must(t, m.ns.Do(func() error {
		return netlink.LinkDel(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "host0"}})
	}))
	m.await(func() bool {
		_, following := a.stray(webFlow(40000))
		return following.Verdict == "pass" && following.VRF.Left == "vrf_gone" &&
			strings.Contains(following.Why, "sextant doctor")
	})
}

// The programs copy no packets; the refusal names the devices on which tcpdump sees them.
func TestCaptureOfStraysIsRefused(t *testing.T) {
	m := newMachine(t)
	a, _ := m.besides()
	defer a.stop()
	for _, role := range []api.Role{"", api.Strays} {
		err := a.Capture(t.Context(), api.Capture{Role: role},
			func(api.CapturedPacket) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "tcpdump -n -i host0") ||
			!strings.Contains(err.Error(), "-i edge0") {
			t.Errorf("role %q: %v", role, err)
		}
	}
	if err := a.Capture(t.Context(), api.Capture{Role: api.Host},
		func(api.CapturedPacket) error { return nil }); err == nil || !strings.Contains(err.Error(),
		"no host") {
		t.Errorf("role host: %v", err)
	}
}
