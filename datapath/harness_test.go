package datapath

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The world in which the programs are tested: a network namespace with two interfaces, "near" where
// packets arrive and "far" which leads elsewhere, and a resolved neighbour on each.
var (
	nearMAC      = net.HardwareAddr{2, 0, 0, 0, 1, 1}
	farMAC       = net.HardwareAddr{2, 0, 0, 0, 2, 1}
	routerMAC    = net.HardwareAddr{2, 0, 0, 0, 1, 2} // neighbour on near
	farRouterMAC = net.HardwareAddr{2, 0, 0, 0, 2, 2} // neighbour on far
)

type world struct {
	dir       string // for pins
	near, far int    // interface indexes
	netns     int    // file descriptor
}

// run is t.Run in the world's namespace, where a subtest's own thread is not.
func (w *world) run(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		runtime.LockOSThread()
		must(t, unix.Setns(w.netns, unix.CLONE_NEWNET))
		f(t)
	})
}

// newWorld moves the test into a namespace of its own, which ends with the test's thread.
func newWorld(t testing.TB) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("missing privilege: loading eBPF programs needs root")
	}
	// never unlocked: the thread, and with it the namespace, ends with the test
	runtime.LockOSThread()
	must(t, unix.Unshare(unix.CLONE_NEWNET))
	bpffs, _, err := linux.BPFFS()
	must(t, err)
	dir, err := os.MkdirTemp(bpffs, "sextant-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	netns, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(netns) })
	w := &world{dir: filepath.Join(dir, "node"), netns: netns}
	setUp(t, "lo")
	must(t, linux.WriteSysctl("net.ipv6.conf.all.forwarding", "1"))
	w.near = addInterface(t, "near", nearMAC, netip.MustParsePrefix("fd00:5e:1::1/64"),
		netip.MustParseAddr("fd00:5e:1::2"), routerMAC)
	w.far = addInterface(t, "far", farMAC, netip.MustParsePrefix("fd00:5e:2::1/64"),
		netip.MustParseAddr("fd00:5e:2::2"), farRouterMAC)
	return w
}

func addInterface(t testing.TB, name string, mac net.HardwareAddr, address netip.Prefix,
	neighbour netip.Addr, neighbourMAC net.HardwareAddr) int {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = name, mac
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name + "peer"}))
	setUp(t, name+"peer")
	return equip(t, name, address, neighbour, neighbourMAC)
}

// equip gives an interface an address and a resolved neighbour, and returns its index.
func equip(t testing.TB, name string, address netip.Prefix, neighbour netip.Addr,
	neighbourMAC net.HardwareAddr) int {
	t.Helper()
	link := setUp(t, name)
	must(t, linux.WriteSysctl("net.ipv6.conf."+name+".accept_dad", "0"))
	must(t, netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address), Flags: unix.IFA_F_NODAD}))
	must(t, netlink.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET6, State: netlink.NUD_PERMANENT,
		IP: neighbour.AsSlice(), HardwareAddr: neighbourMAC,
	}))
	return link.Attrs().Index
}

func setUp(t testing.TB, name string) netlink.Link {
	t.Helper()
	link, err := netlink.LinkByName(name)
	must(t, err)
	must(t, netlink.LinkSetUp(link))
	return link
}

// addRoute sends a prefix via a neighbour, or with gateway "" makes it a route of the given type.
func addRoute(t testing.TB, to string, via string, kind int) {
	t.Helper()
	route := &netlink.Route{Dst: ipNet(netip.MustParsePrefix(to)), Type: kind}
	if via != "" {
		route.Gw = netip.MustParseAddr(via).AsSlice()
	}
	must(t, netlink.RouteReplace(route))
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper() // it takes a while
		t.Fatalf("%v\n%s", err, VerifierLog(err))
	}
}

func block(t testing.TB) srv6.Block {
	t.Helper()
	b, err := srv6.ParseBlock("fcbb:bb00::/32")
	must(t, err)
	return b
}

var testSecret = flow.Secret{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// testHash is the flow hash of the tests' programs, unless their settings say otherwise.
func testHash(t flow.Tuple) uint64 { return testSecret.Hash(t) }

var testLocators = []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")}

// testBuckets is how many buckets services have if a test does not care.
const testBuckets = 1021

func edgeConfig(t testing.TB) EdgeConfig {
	return EdgeConfig{
		Domain: Domain{
			Secret:         testSecret,
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")},
			Source:         netip.MustParseAddr("fd00:5e::e1"),
		},
		EdgeOuter:  packettest.EdgeOuter(t, 64),
		Shadow:     netip.MustParseAddr("fcbb:bb00:d0::"),
		LastOffer:  0xe046,
		AnswerRate: 1e9,
		Interfaces: []EdgeInterface{{Name: "near", Side: External}},
	}
}

func hostConfig(t testing.TB) HostConfig {
	root, _, err := linux.CgroupRoot()
	must(t, err)
	return HostConfig{
		Domain: Domain{
			Secret:         testSecret,
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")},
		},
		SIDs: []LocalSID{
			{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"), Behavior: srv6.EndOFFER},
			{Prefix: netip.MustParsePrefix("fcbb:bb00:1:d46::/64"), Behavior: srv6.EndDT46},
		},
		TunnelMTU:  1460,
		Refusal:    10e9,
		Cgroup:     root,
		Interfaces: []HostInterface{{Name: "near"}},
	}
}
