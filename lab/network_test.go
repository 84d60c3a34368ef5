package lab_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"sextant/lab"
	"sextant/linux"
)

const line = `
name: NAME
topology:
  nodes:
    client:
      addresses: ["fd00::1", "192.0.2.1"]
      announce: ["2001:db8:c::/112", "203.0.113.0/24"]
      local: ["2001:db8:c::/112", "203.0.113.0/24"]
    router: {count: 2, addresses: ["fd00::ff:{i}"]}
    server:
      addresses: ["fd00::2", "192.0.2.2"]
      vips: ["2001:db8:80::80"]
      processes:
        - {name: v6, command: ["{self}", helper, tcp, "[fd00::2]:80"], ready: "tcp://[fd00::2]:80"}
        - {name: v4, command: ["{self}", helper, tcp, "192.0.2.2:80"], ready: "tcp://192.0.2.2:80"}
  links:
    - endpoints: ["client:eth0", "router1:left"]
    - endpoints: ["router1:right", "router2:left"]
      mtu: 9000
    - endpoints: ["router2:right", "server:eth0"]
`

func TestConnectionsThroughTwoRouters(t *testing.T) {
	l := up(t, line)
	for _, test := range []struct {
		to   string
		from string
	}{
		{to: "[fd00::2]:80"},
		{to: "192.0.2.2:80"},
		{to: "[fd00::2]:80", from: "2001:db8:c::"},
		{to: "[fd00::2]:80", from: "2001:db8:c::ffff"},
		{to: "192.0.2.2:80", from: "203.0.113.0"},
		{to: "192.0.2.2:80", from: "203.0.113.255"},
	} {
		var from netip.Addr
		if test.from != "" {
			from = netip.MustParseAddr(test.from)
		}
		if answer, err := ask(l, "client", from, test.to); answer != "server" || err != nil {
			t.Errorf("from %q to %s: answer %q, %v", test.from, test.to, answer, err)
		}
	}
}

func TestVIPIsNotAnnounced(t *testing.T) {
	l := up(t, line)
	inside(t, l, "client", func() error {
		if routes, err := netlink.RouteGet(net.ParseIP("2001:db8:80::80")); err == nil {
			t.Errorf("the client has a route to the server's VIP: %v", routes)
		}
		return nil
	})
	inside(t, l, "server", func() error {
		listener, err := net.Listen("tcp", "[2001:db8:80::80]:80")
		if err == nil {
			listener.Close()
		}
		return err
	})
}

func TestPorts(t *testing.T) {
	l := up(t, line)
	inside(t, l, "router1", func() error {
		for name, want := range map[string]struct {
			mac, linkLocal string
			mtu            int
		}{
			"left":  {"02:5e:00:02:00:01", "fe80::5e:ff:fe02:1/64", 1500},
			"right": {"02:5e:00:02:00:02", "fe80::5e:ff:fe02:2/64", 9000},
		} {
			var link netlink.Link
			var err error
			eventually(t, "port "+name+" is up",
				func() bool { // the kernel looks at carriers in its own time
					link, err = netlink.LinkByName(name)
					return err != nil || link.Attrs().OperState == netlink.OperUp
				})
			if err != nil {
				return err
			}
			addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
			if err != nil {
				return err
			}
			attrs := link.Attrs()
			if attrs.HardwareAddr.String() != want.mac || attrs.MTU != want.mtu {
				t.Errorf("port %s = %v, MTU %d; want %s, %d", name, attrs.HardwareAddr, attrs.MTU,
					want.mac, want.mtu)
			}
			if attrs.Xdp == nil || attrs.Xdp.AttachMode != nl.XDP_ATTACHED_DRV {
				t.Errorf("port %s has XDP %+v, want a native program", name, attrs.Xdp)
			}
			if len(addresses) != 1 || addresses[0].IPNet.String() != want.linkLocal {
				t.Errorf("port %s has addresses %v, want %s alone", name, addresses, want.linkLocal)
			}
		}
		return nil
	})
}

func TestSysctls(t *testing.T) {
	l := up(t, `
name: NAME
defaults:
  sysctls: {net.ipv4.tcp_congestion_control: reno, net.ipv4.ip_default_ttl: 77}
topology:
  nodes:
    a:
      sysctls: {net.ipv4.ip_default_ttl: 88, net.ipv4.conf.eth0.log_martians: 1}
    b:
  links:
    - endpoints: ["a:eth0", "b:eth.1"]
`)
	want := map[string]map[string]string{
		"a": {
			"net.ipv4.tcp_congestion_control":    "reno",
			"net.ipv4.ip_default_ttl":            "88",
			"net.ipv4.conf.eth0.log_martians":    "1",
			"net.ipv4.ip_forward":                "1",
			"net.ipv4.conf.eth0.rp_filter":       "0",
			"net.ipv6.conf.eth0.forwarding":      "1",
			"net.ipv6.conf.all.seg6_enabled":     "1",
			"net.ipv6.conf.default.seg6_enabled": "1",
			"net.ipv6.conf.eth0.seg6_enabled":    "1",
			"net.ipv6.fib_multipath_hash_policy": "0",
		},
		"b": {
			"net.ipv4.ip_default_ttl":          "77",
			"net/ipv6/conf/eth.1/seg6_enabled": "1",
			"net/ipv6/conf/eth.1/accept_ra":    "0",
		},
	}
	for node, sysctls := range want {
		inside(t, l, node, func() error {
			for name, value := range sysctls {
				if got, err := linux.ReadSysctl(name); got != value || err != nil {
					t.Errorf("%s on %s = %q (%v), want %q", name, node, got, err, value)
				}
			}
			return nil
		})
	}
}

func TestEqualPathsShareTheFlows(t *testing.T) {
	l := up(t, `
name: NAME
topology:
  nodes:
    client:
      addresses: ["fd00::1", "192.0.2.1"]
      announce: ["2001:db8:c::/112", "203.0.113.0/24"]
      local: ["2001:db8:c::/112", "203.0.113.0/24"]
    router: {count: 2}
    server:
      addresses: ["fd00::2", "192.0.2.2"]
      processes:
        - {name: v6, command: ["{self}", helper, tcp, "[fd00::2]:80"], ready: "tcp://[fd00::2]:80"}
        - {name: v4, command: ["{self}", helper, tcp, "192.0.2.2:80"], ready: "tcp://192.0.2.2:80"}
  links:
    - endpoints: ["client:r{i}", "router{i}:left"]
    - endpoints: ["router{i}:right", "server:r{i}"]
`)
	const flows = 64
	for _, test := range []struct{ to, from string }{
		{"[fd00::2]:80", "2001:db8:c::1"},
		{"192.0.2.2:80", "203.0.113.1"},
	} {
		before := packetsByRouter(t, l)
		from := netip.MustParseAddr(test.from)
		for range flows {
			if _, err := ask(l, "client", from, test.to); err != nil {
				t.Fatal(err)
			}
			from = from.Next()
		}
		// A flow has four packets or more from the client. By chance alone, less
		// than an eighth of the flows on one path happens once in 10^10 runs.
		for router, packets := range packetsByRouter(t, l) {
			if packets -= before[router]; packets < flows/8*4 {
				t.Errorf("to %s: router%d got %d packets of %d flows", test.to, router+1, packets,
					flows)
			}
		}
	}
}

// packetsByRouter counts what the two routers received from the client.
func packetsByRouter(t *testing.T, l *lab.Lab) (packets [2]uint64) {
	t.Helper()
	for i := range packets {
		inside(t, l, fmt.Sprint("router", i+1), func() error {
			link, err := netlink.LinkByName("left")
			if err == nil {
				packets[i] = link.Attrs().Statistics.RxPackets
			}
			return err
		})
	}
	return packets
}

func TestRateLimits(t *testing.T) {
	l := up(t, `
name: NAME
topology:
  nodes: {a: , b: }
  links:
    - {endpoints: ["a:plain", "b:plain"]}
    - {endpoints: ["a:slow", "b:slow"], rate: 8mbit, latency: 100ms, burst: 4kb}
    - {endpoints: ["a:fast", "b:fast"], rate: 40gbit}
`)
	type bucket struct {
		Rate         uint64
		Limit, Burst uint32
	}
	want := map[string]bucket{
		"slow": {1_000_000, 104_096, 4096},
		"fast": {5_000_000_000, 255_000_000, 5_000_000},
	}
	for _, node := range []string{"a", "b"} {
		got := map[string]bucket{}
		inside(t, l, node, func() error {
			qdiscs, err := netlink.QdiscList(nil)
			if err != nil {
				return err
			}
			for _, qdisc := range qdiscs {
				tbf, ok := qdisc.(*netlink.Tbf)
				if !ok {
					continue
				}
				link, err := netlink.LinkByIndex(tbf.LinkIndex)
				if err != nil {
					return err
				}
				got[link.Attrs().Name] = bucket{tbf.Rate, tbf.Limit,
					netlink.Xmitsize(tbf.Rate, tbf.Buffer)}
			}
			return nil
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("token buckets of node %s (-want +got):\n%s", node, diff)
		}
	}
}
