package kernel_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/doctor"
	"sextant/kernel"
)

// patientText is a node whose machine newPatient sets up as it should be.
const patientText = `
node: patient
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: near, side: mixed}]
  source: fd00:5e::e1
  services:
    - {name: web, vip: 2001:db8:80::80, port: 80, backends: [{name: web1, sid: "fcbb:bb00:1::"}]}
host:
  interfaces: [{name: far}]
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}]
  services:
    - {name: six, vip: 2001:db8:80::81, port: 8443}
    - {name: four, vip: 192.0.2.81, port: 8444}
    - {name: dns, vip: 192.0.2.81, port: 8453, protocol: udp}
`

// patient is a namespace of its own, in which this test's thread is, set up so that nothing is wrong.
type patient struct {
	t        *testing.T
	node     *config.Node
	near     netlink.Link
	headroom bool // is looked at
}

// newMachine makes a namespace with two interfaces that face each other, and where nothing is wrong but that it has no addresses.
func newMachine(t *testing.T, text string) *patient {
	t.Helper()
	uniqueName(t) // needs root
	node, err := config.Parse("node.yaml", []byte(text))
	must(t, err)
	runtime.LockOSThread() // never unlocked: the thread, and with it the namespaces, end with the test
	must(t, unix.Unshare(unix.CLONE_NEWNET|unix.CLONE_NEWNS|unix.CLONE_FS))
	must(t, unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	p := &patient{t: t, node: node}
	for name, value := range map[string]string{
		"net.ipv6.conf.all.accept_dad": "0", "net.ipv6.conf.default.accept_dad": "0", "net.ipv6.conf.default.forwarding": "1",
		"net.ipv6.conf.all.forwarding": "1", "net.ipv6.conf.all.seg6_enabled": "1", "net.ipv6.conf.default.seg6_enabled": "1",
		"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0",
	} {
		must(t, kernel.WriteSysctl(name, value))
	}
	must(t, link("lo", netlink.LinkSetUp))
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", MTU: 1500}, PeerName: "far"}))
	pass, err := kernel.LoadXDPPass()
	must(t, err)
	defer pass.Close()
	for _, name := range []string{"near", "far"} {
		must(t, kernel.SetOffload(name, kernel.TxChecksum, false))
		must(t, kernel.AttachXDP(name, pass))
		must(t, link(name, netlink.LinkSetUp))
	}
	p.near, err = netlink.LinkByName("near")
	must(t, err)
	must(t, over(t, clockSource, "tsc\n")) // a virtual machine may have another
	return p
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := newMachine(t, patientText)
	p.address(p.near, "fd00:5e::e1/64")
	far, err := netlink.LinkByName("far")
	must(t, err)
	p.address(far, "10.0.0.1/24")
	lo, err := netlink.LinkByName("lo")
	must(t, err)
	p.address(lo, "2001:db8:80::81/128")
	p.address(lo, "192.0.2.81/32")
	p.neighbour("fd00:5e::1", netlink.NUD_PERMANENT)
	for !kernel.Facts(kernel.Query{VIPs: []netip.Addr{netip.MustParseAddr("2001:db8:80::81")}}).Local[netip.MustParseAddr("2001:db8:80::81")] {
		runtime.Gosched() // the kernel makes the route of an IPv6 address a moment later
	}
	p.route("fcbb:bb00::/32", "fd00:5e::1")
	p.route("0.0.0.0/0", "10.0.0.2")
	p.listen("tcp", "[2001:db8:80::81]:8443")
	p.listen("tcp", ":8444")
	p.listen("udp", "192.0.2.81:8453")
	return p
}

// neighbour sets the state of a neighbour on the interface near.
func (p *patient) neighbour(address string, state int) {
	p.t.Helper()
	n := &netlink.Neigh{LinkIndex: p.near.Attrs().Index, Family: unix.AF_INET6, State: state, IP: net.ParseIP(address)}
	if state != netlink.NUD_FAILED {
		n.HardwareAddr = net.HardwareAddr{2, 0, 0, 0, 0, 9}
	}
	must(p.t, netlink.NeighSet(n))
}

const clockSource = "/sys/devices/system/clocksource/clocksource0/current_clocksource"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *patient) address(link netlink.Link, text string) {
	p.t.Helper()
	address, err := netlink.ParseAddr(text)
	must(p.t, err)
	address.Flags = unix.IFA_F_NODAD
	must(p.t, netlink.AddrAdd(link, address))
}

func (p *patient) route(to, via string) {
	p.t.Helper()
	must(p.t, netlink.RouteReplace(&netlink.Route{Dst: ipNet(to), Gw: net.ParseIP(via)}))
}

func ipNet(text string) *net.IPNet {
	prefix := netip.MustParsePrefix(text)
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

func (p *patient) listen(network, address string) {
	p.t.Helper()
	var socket interface{ Close() error }
	var err error
	if network == "udp" {
		socket, err = net.ListenPacket(network, address)
	} else {
		socket, err = net.Listen(network, address)
	}
	must(p.t, err)
	p.t.Cleanup(func() { socket.Close() })
}

// codes examines the machine, and lists what is wrong.
func (p *patient) codes() []string {
	codes := []string{}
	for _, f := range doctor.Diagnose(p.node, kernel.Facts(p.query()), "test") {
		// No agent runs here, and headroom is worth knowing on all Ethernets.
		if f.Code != "agent_down" && (f.Code != "mtu_headroom" || p.headroom) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// query asks for all that the node is made of.
func (p *patient) query() kernel.Query {
	query := kernel.Query{Slow: true}
	if e := p.node.Edge; e != nil {
		query.Interfaces = append(query.Interfaces, e.Interfaces[0].Name)
		query.SIDs = []netip.Addr{e.Services[0].Backends[0].SID}
		if e.FlowCache.Entries > 0 {
			query.Learns = []string{e.Interfaces[0].Name}
			for _, s := range e.Services {
				query.Learnt = append(query.Learnt, s.VIP)
			}
		}
	}
	if h := p.node.Host; h != nil {
		query.Interfaces = append(query.Interfaces, h.Interfaces[0].Name)
		for _, s := range h.Services {
			query.VIPs = append(query.VIPs, s.VIP)
		}
	}
	if s := p.node.Strays; s != nil {
		query.Interfaces, query.VRFs = append(query.Interfaces, s.Interfaces[0].Name), s.VRFs
	}
	return query
}

func link(name string, change func(netlink.Link) error) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return change(l)
}

func xdpOff(name string) error {
	return link(name, func(l netlink.Link) error { return netlink.LinkSetXdpFd(l, -1) })
}

// over puts a file with other content in the place of one, in this thread's mount namespace.
func over(t *testing.T, path, content string) error {
	file := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return err
	}
	return unix.Mount(file, path, "", unix.MS_BIND, "")
}

// TestFaultsAreNamed causes each fault on a machine where nothing is wrong.
func TestFaultsAreNamed(t *testing.T) {
	for _, test := range []struct {
		name  string
		cause func(p *patient) error
		want  []string
	}{
		{"nothing", func(*patient) error { return nil }, nil},
		{"interface missing", func(p *patient) error { p.node.Edge.Interfaces[0].Name = "none"; return nil }, []string{"interface_missing"}},
		{"interface down", func(*patient) error { return link("near", netlink.LinkSetDown) }, []string{"interface_down", "sid_route"}},
		{"no native XDP", func(p *patient) error {
			err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge", MTU: 1500}})
			p.node.Edge.Interfaces[0].Name = "bridge"
			return errors.Join(err, link("bridge", netlink.LinkSetUp))
		}, []string{"generic_xdp"}},
		{"generic mode", func(*patient) error { return errors.Join(xdpOff("near"), generic("near")) }, []string{"veth_peer", "generic_xdp"}},
		{"fewer receive queues than the peer sends by", func(p *patient) error {
			p.node.Edge.Interfaces[0].Name = "few"
			err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "many", NumTxQueues: 4, MTU: 1500}, PeerName: "few"})
			return errors.Join(err, link("few", netlink.LinkSetUp), link("many", netlink.LinkSetUp), kernel.SetOffload("few", kernel.TxChecksum, false))
		}, []string{"generic_xdp"}},
		{"peer without XDP", func(*patient) error { return xdpOff("far") }, []string{"veth_peer"}},
		{"checksum offload", func(*patient) error { return kernel.SetOffload("near", kernel.TxChecksum, true) }, []string{"checksum_offload"}},
		{"generic mode with GRO", func(*patient) error {
			return errors.Join(xdpOff("near"), generic("near"), kernel.SetOffload("near", kernel.GRO, true))
		}, []string{"generic_gro", "generic_xdp"}},
		{"MTU", func(*patient) error {
			return link("near", func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1400) })
		}, []string{"mtu"}},
		{"MTU headroom", func(p *patient) error {
			p.node.Edge.Interfaces[0].Side, p.headroom = config.External, true
			return nil
		}, []string{"mtu_headroom"}},
		{"MTU headroom that a larger domain has", func(p *patient) error {
			p.node.Edge.Interfaces[0].Side, p.headroom, p.node.Domain.MTU = config.External, true, 1540
			return errors.Join(link("far", func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1540) }),
				netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"), Gw: net.ParseIP("fd00:5e::1"), MTU: 1540}))
		}, nil},
		{"path MTU", func(*patient) error {
			return netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"), Gw: net.ParseIP("fd00:5e::1"), MTU: 1300})
		}, []string{"path_mtu"}},
		{"forwarding", func(*patient) error { return kernel.WriteSysctl("net.ipv6.conf.near.forwarding", "0") }, []string{"sysctl_forwarding"}},
		{"seg6", func(*patient) error { return kernel.WriteSysctl("net.ipv6.conf.far.seg6_enabled", "0") }, []string{"sysctl_seg6"}},
		{"seg6 HMAC", func(*patient) error { return kernel.WriteSysctl("net.ipv6.conf.near.seg6_require_hmac", "1") }, []string{"sysctl_seg6_hmac"}},
		{"reverse path filter", func(*patient) error {
			return errors.Join(kernel.WriteSysctl("net.ipv4.conf.far.rp_filter", "1"), netlink.RouteDel(&netlink.Route{Dst: ipNet("0.0.0.0/0")}))
		}, []string{"rp_filter"}},
		{"VIP missing", func(*patient) error {
			return link("lo", func(l netlink.Link) error {
				return netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet("2001:db8:80::81/128")})
			})
		}, []string{"vip_missing"}},
		{"no listener", func(p *patient) error { p.node.Host.Services[0].Port = 9999; return nil }, []string{"listener_missing"}},
		{"no UDP socket", func(p *patient) error { p.node.Host.Services[2].Port = 8444; return nil }, []string{"listener_missing"}},
		{"locator not routed", func(*patient) error { return netlink.RouteDel(&netlink.Route{Dst: ipNet("fcbb:bb00::/32")}) }, []string{"sid_route"}},
		{"locator in a black hole", func(*patient) error {
			return netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"), Type: unix.RTN_BLACKHOLE})
		}, []string{"sid_route"}},
		{"gateway dead", func(p *patient) error { p.neighbour("fd00:5e::1", netlink.NUD_FAILED); return nil }, []string{"sid_neighbour"}},
		{"no bpf file system", func(*patient) error { return unix.Unmount("/sys/fs/bpf", unix.MNT_DETACH) }, []string{"bpffs"}},
		{"no cgroup2 file system", func(*patient) error { return unmountAll("cgroup2") }, []string{"cgroup2"}},
		{"SIDs outside the block", func(p *patient) error {
			p.node.Host.SIDs[0].Prefix = netip.MustParsePrefix("fd00:c0de::9/128")
			return nil
		}, []string{"sid_unguarded"}},
		{"SIDs in a locator", func(p *patient) error {
			p.node.Host.SIDs[0].Prefix = netip.MustParsePrefix("fd00:c0de::9/128")
			p.node.Domain.Locators = []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")}
			return nil
		}, nil},
		{"slow clock", func(p *patient) error {
			return errors.Join(unix.Unmount(clockSource, 0), over(p.t, clockSource, "acpi_pm\n"))
		}, []string{"clock"}},
		{"two agents", func(p *patient) error { return errors.Join(p.pretend("patient"), p.pretend("patient")) }, []string{"two_agents"}},
		{"two agents of two nodes", func(p *patient) error { return errors.Join(p.pretend("patient"), p.pretend("other")) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPatient(t)
			must(t, test.cause(p))
			if got := p.codes(); !slices.Equal(got, test.want) && len(got)+len(test.want) > 0 {
				t.Errorf("diagnosed %v (-want +got):\n%s", got, cmp.Diff(test.want, got))
			}
		})
	}
}

// unmountAll hides the file systems of a kind from this thread.
func unmountAll(kind string) error {
	text, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[2] == kind {
			err = errors.Join(err, unix.Unmount(fields[1], unix.MNT_DETACH))
		}
	}
	return err
}

// generic attaches a program in generic mode.
func generic(name string) error {
	pass, err := kernel.LoadXDPPass()
	if err != nil {
		return err
	}
	defer pass.Close()
	const skbMode = 1 << 1 // XDP_FLAGS_SKB_MODE
	return link(name, func(l netlink.Link) error { return netlink.LinkSetXdpFdWithFlags(l, pass.FD(), skbMode) })
}

// pretend starts a process that looks like the agent of a node until the test ends.
func (p *patient) pretend(node string) error {
	dir := p.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte("node: "+node+"\n"), 0o644); err != nil {
		return err
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("read line\n"), 0o644); err != nil {
		return err
	}
	agent := &exec.Cmd{Path: "/bin/sh", Args: []string{"sextant", script, "agent", "-f", "node.yaml"}, Dir: dir}
	in, err := agent.StdinPipe()
	if err != nil {
		return err
	}
	p.t.Cleanup(func() { in.Close(); agent.Wait() })
	return agent.Start()
}

func TestListenersAreRead(t *testing.T) {
	p := newPatient(t)
	var got []string
	for _, l := range kernel.Facts(kernel.Query{Slow: true}).Listeners {
		got = append(got, fmt.Sprintf("%v %s", l.UDP, l.Address))
	}
	slices.Sort(got)
	want := "false [2001:db8:80::81]:8443, false [::]:8444, true 192.0.2.81:8453"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("listeners %s, want %s", text, want)
	}
	_ = p
}
