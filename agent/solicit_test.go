package agent_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// A router that silently has another Ethernet address is found, whether clients and backends are
// behind one interface or two: nothing in the kernel would ask, as it sees no packet that is sent
// by it.
func TestRouterWithANewAddress(t *testing.T) {
	for name, interfaces := range map[string]string{
		"one interface for both sides": "[{name: out0}]",
		"separate outer and inner": "[{name: edge0, side: external}, {name: out0, side: " +
			"internal}]",
		"the inner one runs no programs": "[{name: edge0}]",
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			router := m.behindRouter()
			must(t, router.Do(func() error { return setUp("in0", "fd00:5e:1::2/64") }))
			r := m.start(m.text(nodeText, "interfaces: [{name: edge0}]", "interfaces: "+interfaces))
			defer r.stop()
			m.awaitNeighbour("fd00:5e:1::2", nil)
			fresh := net.HardwareAddr{2, 0, 0x5e, 0, 0, 7}
			must(t, router.Do(func() error {
				device, err := netlink.LinkByName("in0")
				if err != nil {
					return err
				}
				return netlink.LinkSetHardwareAddr(device, fresh)
			}))
			began := time.Now()
			m.awaitNeighbour("fd00:5e:1::2", fresh)
			t.Logf("the new address is known after %v", time.Since(began).Round(time.Millisecond))
		})
	}
}

// behindRouter gives the machine's SIDs the gateway fd00:5e:1::2 behind out0: a network namespace
// whose in0 is to have that address.
func (m *machine) behindRouter() *linux.Netns {
	m.t.Helper()
	router, _ := linuxtest.Netns(m.t)
	must(m.t, m.ns.Do(func() error {
		return errors.Join(
			netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: "out0"}, PeerName: "in0",
				PeerNamespace: netlink.NsFd(router.FD()),
			}),
			setUp("out0", "fd00:5e:1::1/64"),
			routeVia("fcbb:bb00::/32", "out0", "fd00:5e:1::2"),
		)
	}))
	return router
}

func setUp(name, address string) error {
	device, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	parsed.Flags = 0x02 // IFA_F_NODAD: it can be used at once
	return errors.Join(netlink.LinkSetUp(device), netlink.AddrAdd(device, parsed))
}

func routeVia(destination, name, via string) error {
	device, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	_, to, err := net.ParseCIDR(destination)
	if err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: device.Attrs().Index, Dst: to,
		Gw: net.ParseIP(via)})
}

// awaitNeighbour waits until the kernel has this Ethernet address of a neighbour; nil: any. Until
// it has one, a datagram is sent now and then, as the first packet to a backend is; not later.
func (m *machine) awaitNeighbour(address string, want net.HardwareAddr) {
	m.t.Helper()
	target := netip.MustParseAddr(address)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		found := false
		must(m.t, m.ns.Do(func() error {
			entries, err := netlink.NeighList(0, netlink.FAMILY_V6)
			for _, e := range entries {
				a, _ := netip.AddrFromSlice(e.IP)
				found = found || a == target && len(e.HardwareAddr) == 6 &&
					(want == nil || bytes.Equal(e.HardwareAddr, want))
			}
			if want == nil && !found {
				if c, err := net.Dial("udp", netip.AddrPortFrom(target, 9).String()); err == nil {
					_, _ = c.Write([]byte{0}) // refused or not, the neighbour is looked for
					c.Close()
				}
			}
			return err
		}))
		if found {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("no neighbour %s with the address %v", address, want)
		}
	}
}

// A gateway is found without a packet that needs it: what is given to the kernel until then may
// meet a firewall that lets nothing be forwarded. One that goes is given up.
func TestGatewayIsLookedFor(t *testing.T) {
	m := newMachine(t)
	router := m.behindRouter()
	r := m.start(m.text(nodeText, "interfaces: [{name: edge0}]", "interfaces: [{name: out0}]"))
	defer r.stop()
	must(t, m.ns.Do(func() error {
		return errors.Join(
			linux.WriteSysctl("net.ipv6.neigh.out0.base_reachable_time_ms", "1000"),
			linux.WriteSysctl("net.ipv6.neigh.out0.delay_first_probe_time", "1"))
	}))
	m.awaitState("fd00:5e:1::2", netlink.NUD_FAILED)
	must(t, router.Do(func() error { return setUp("in0", "fd00:5e:1::2/64") }))
	m.awaitState("fd00:5e:1::2", netlink.NUD_REACHABLE)
	must(t, router.Do(func() error {
		return linuxtest.IP("-6 address del fd00:5e:1::2/64 dev in0")
	}))
	m.awaitState("fd00:5e:1::2", netlink.NUD_FAILED)
}

// awaitState waits until the kernel has a neighbour in a state. Nothing is sent to it.
func (m *machine) awaitState(address string, want int) {
	m.t.Helper()
	state := 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(
		10 * time.Millisecond) {
		must(m.t, m.ns.Do(func() error {
			entries, err := netlink.NeighList(0, netlink.FAMILY_V6)
			for _, e := range entries {
				if e.IP.Equal(net.ParseIP(address)) {
					state = e.State
				}
			}
			return err
		}))
		if state == want {
			return
		}
	}
	m.t.Fatalf("neighbour %s is in state %#x, want %#x", address, state, want)
}
