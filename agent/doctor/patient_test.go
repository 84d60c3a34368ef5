package doctor_test

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/doctor"
	"sextant/config"
	"sextant/linux"
	"sextant/linux/facts"
	"sextant/linux/linuxtest"
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

// patient is a namespace of its own, in which this test's thread is, set up so that nothing is
// wrong.
type patient struct {
	t        *testing.T
	node     *config.Node
	near     netlink.Link
	headroom bool // is looked at
}

// newMachine makes a namespace with two interfaces that face each other, and where nothing is wrong
// but that it has no addresses.
func newMachine(t *testing.T, text string) *patient {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	node, err := config.Parse("node.yaml", []byte(text))
	must(t, err)
	// never unlocked: the thread, and with it the namespaces, end with the test
	runtime.LockOSThread()
	must(t, unix.Unshare(unix.CLONE_NEWNET|unix.CLONE_NEWNS|unix.CLONE_FS))
	must(t, unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	p := &patient{t: t, node: node}
	for name, value := range map[string]string{
		"net.ipv6.conf.all.accept_dad": "0", "net.ipv6.conf.default.accept_dad": "0",
		"net.ipv6.conf.default.forwarding": "1",
		"net.ipv6.conf.all.forwarding":     "1", "net.ipv6.conf.all.seg6_enabled": "1",
		"net.ipv6.conf.default.seg6_enabled": "1",
		"net.ipv4.conf.all.rp_filter":        "0", "net.ipv4.conf.default.rp_filter": "0",
	} {
		must(t, linux.WriteSysctl(name, value))
	}
	must(t, link("lo", netlink.LinkSetUp))
	must(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near", MTU: 1500},
		PeerName: "far"}))
	pass, err := linux.LoadXDPPass()
	must(t, err)
	defer pass.Close()
	for _, name := range []string{"near", "far"} {
		must(t, linux.SetOffload(name, linux.TxChecksum, false))
		must(t, linux.AttachXDP(name, pass))
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
	p.await("the IPv6 VIP is not local",
		func(f facts.Facts) bool { return f.Local[netip.MustParseAddr("2001:db8:80::81")] })
	p.route("fcbb:bb00::/32", "fd00:5e::1")
	p.route("0.0.0.0/0", "10.0.0.2")
	p.listen("tcp", "[2001:db8:80::81]:8443")
	p.listen("tcp", ":8444")
	p.listen("udp", "192.0.2.81:8453")
	return p
}

// await asks for the facts until they are so: the kernel makes the route of an IPv6 address a
// moment after the address.
func (p *patient) await(not string, so func(facts.Facts) bool) {
	p.t.Helper()
	query := p.query()
	query.Slow = false
	for deadline := time.Now().Add(10 * time.Second); !so(linux.Facts(query)); runtime.Gosched() {
		if time.Now().After(deadline) {
			p.t.Fatal(not)
		}
	}
}

// neighbour sets the state of a neighbour on the interface near.
func (p *patient) neighbour(address string, state int) {
	p.t.Helper()
	n := &netlink.Neigh{LinkIndex: p.near.Attrs().Index, Family: unix.AF_INET6, State: state,
		IP: net.ParseIP(address)}
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
	return &net.IPNet{IP: prefix.Addr().AsSlice(),
		Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
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
	for _, f := range doctor.Diagnose(p.node, linux.Facts(p.query()), "test") {
		// No agent runs here, headroom is worth knowing on all Ethernets, and clients share an
		// interface with the domain.
		if f.Code != "agent_down" && f.Code != "side_mixed" &&
			(f.Code != "mtu_headroom" || p.headroom) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// query asks for all that the node is made of.
func (p *patient) query() linux.Query {
	query := linux.Query{Slow: true, Interfaces: doctor.Interfaces(p.node),
		SIDs: doctor.Destinations(p.node)}
	if e := p.node.Edge; e != nil {
		if e.FlowCache.Entries > 0 {
			query.Learns = []string{e.Interfaces[0].Name}
			for _, s := range e.Services {
				query.Learnt = append(query.Learnt, s.VIP)
			}
		}
	}
	if h := p.node.Host; h != nil {
		for _, s := range h.Services {
			query.VIPs = append(query.VIPs, s.VIP)
		}
	}
	if s := p.node.Strays; s != nil {
		for _, v := range s.VRFs {
			query.VRFs = append(query.VRFs, linux.VRF(v))
		}
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

// over puts a file with other content in place of one, in this thread's mount namespace.
func over(t *testing.T, path, content string) error {
	file := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return err
	}
	return unix.Mount(file, path, "", unix.MS_BIND, "")
}

// fault is caused on a machine where nothing is wrong.
type fault struct {
	name  string
	cause func(p *patient) error
	want  []string
}

// isNamed causes the fault and compares what is found.
func (f fault) isNamed(t *testing.T, machine func(*testing.T) *patient) {
	t.Run(f.name, func(t *testing.T) {
		p := machine(t)
		must(t, f.cause(p))
		if got := p.codes(); !slices.Equal(got, f.want) && len(got)+len(f.want) > 0 {
			t.Errorf("diagnosed %v (-want +got):\n%s\n%+v", got, cmp.Diff(f.want, got),
				linux.Facts(p.query()).VRFs)
		}
	})
}

// does causes a fault by commands of ip.
func does(commands string) func(*patient) error {
	return func(p *patient) error { return linuxtest.IP(commands) }
}

// sets causes one by a sysctl.
func sets(name, value string) func(*patient) error {
	return func(*patient) error { return linux.WriteSysctl(name, value) }
}
