package doctor_test

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"sextant/config"
	"sextant/linux"
	"sextant/linux/facts"
	"sextant/linux/linuxtest"
)

// patientStraysText is a node beside whose router strays are taken away; VRFS stands for the VRFs.
const patientStraysText = `
node: patient
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
strays:
  interfaces: [{name: near}]
  vrfs: [VRFS]
`

// beside is what both kinds of VRF need: strays to the SID of the shadow leave by the interface
// near.
const beside = `
addr add fd00:5e::51/64 dev near nodad
sr tunsrc set fd00:5e::51
route add default encap seg6 mode encap segs fcbb:bb00:d0:: dev near table 20
-6 route add fcbb:bb00:d0::/48 via fd00:5e::1 dev near
-6 rule add to fcbb:bb00::/32 lookup main priority 90
-6 route add default encap seg6 mode encap segs fcbb:bb00:d0:: dev near table 20
`

const besideDevice = `
link add green type vrf table 20
link set blue up
link set green up
addr add 127.0.0.1/8 dev blue
addr add 10.80.0.1/32 dev blue
addr add 2001:db8:80::1/128 dev blue nodad
route add 203.0.113.0/24 via 10.1.0.2 dev near onlink table 10
-6 route add fcbb:bb00:1:46::/128 encap seg6local action End.DT46 vrftable 10 dev blue
-6 route add fcbb:bb00:1:e046::/128 encap seg6local action End.DT46 vrftable 10 dev blue
`

func newBeside(t *testing.T, vrfs string) *patient {
	t.Helper()
	p := newMachine(t, strings.Replace(patientStraysText, "VRFS", vrfs, 1))
	must(t, linux.WriteSysctl("net.ipv4.ip_forward", "1"))
	must(t, linuxtest.IP(beside))
	p.neighbour("fd00:5e::1", netlink.NUD_PERMANENT)
	return p
}

// newBesideNamespace is a machine whose VRF is a network namespace, and where nothing is wrong.
func newBesideNamespace(t *testing.T) *patient {
	t.Helper()
	_, web := linuxtest.Netns(t) // before the test leaves for a mount namespace of its own
	p := newBeside(t, `{namespace: `+linux.NetnsPath(web)+
		`, sids: ["fcbb:bb00:1:4::/64", "fcbb:bb00:1:6::/64"], backup: back}`)
	must(t, linuxtest.NamespaceVRF(web))
	p.settled()
	return p
}

// newBesideDevice is a machine whose VRF is a device, and where nothing is wrong.
func newBesideDevice(t *testing.T) *patient {
	t.Helper()
	p := newBeside(t, `{vrf: blue, backup: green, except: ["fcbb:bb00:1:e046::/128"]}`)
	if err := linuxtest.IP("link add blue type vrf table 10"); err != nil {
		t.Skipf("missing kernel feature: VRF devices: %v", err)
	}
	must(t, linux.WriteSysctl("net.vrf.strict_mode", "1"))
	must(t, linuxtest.IP(besideDevice))
	p.settled()
	return p
}

// settled waits for the routes of the VRF's IPv6 addresses.
func (p *patient) settled() {
	p.t.Helper()
	p.await("the VRF has no IPv6 address", func(f facts.Facts) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(f.VRFs)), func(v facts.VRF) bool {
			return slices.Contains(v.Addresses, netip.MustParseAddr("2001:db8:80::1"))
		})
	})
}

// inside runs commands of ip in the namespace that is the VRF.
func (p *patient) inside(command string) error {
	name := strings.TrimPrefix(p.node.Strays.VRFs[0].Namespace, linux.NetnsDir+"/")
	return linuxtest.IP("-n " + name + " " + command)
}

// Faults of a machine whose VRF is a namespace.
func TestFaultsBesideRouterAreNamed(t *testing.T) {
	for _, f := range []fault{
		{"nothing", does(""), nil},
		{"interface missing", func(p *patient) error {
			p.node.Strays.Interfaces[0].Name = "none"
			return nil
		}, []string{"interface_missing"}},
		{"namespace missing", func(p *patient) error {
			p.node.Strays.VRFs[0].Namespace = "/run/netns/none"
			return nil
		}, []string{"namespace_missing"}},
		{"no namespace", func(p *patient) error {
			p.node.Strays.VRFs[0].Namespace = "/proc/self/status"
			return nil
		}, []string{"namespace_missing"}},
		{"no VRF device", func(p *patient) error {
			p.node.Strays.VRFs[0] = config.StrayVRF{VRF: "blue", Backup: "back"}
			return nil
		}, []string{"interface_missing"}},
		{"no VRF but a bridge", func(p *patient) error {
			p.node.Strays.VRFs[0] = config.StrayVRF{VRF: "blue", Backup: "back"}
			return linuxtest.IP("link add blue type bridge\nlink set blue up")
		}, []string{"vrf_kind"}},
		{"backup device missing", does("link del back"), []string{"interface_missing"}},
		{"backup device down", does("link set back down"), []string{"interface_down"}},
		{"no route for IPv4 strays", does("route del default table 20"), []string{"backup_route"}},
		{"no route for IPv6 strays", does("-6 route del default table 20"),
			[]string{"backup_route"}},
		{"a black hole for strays", does("route replace blackhole default table 20"),
			[]string{"backup_route"}},
		{"an unreachable route for strays", does("-6 route del default table 20\n-6 route add " +
			"unreachable default table 20"), []string{"backup_route"}},
		{"strays are delivered", does("addr add 10.80.0.1/32 dev lo"), []string{"backup_route"}},
		{"one address that is not shadowed", func(p *patient) error {
			return errors.Join(p.inside("addr add 10.80.0.2/32 dev lo"),
				linuxtest.IP("route add blackhole 10.80.0.2/32 table 20"))
		}, nil},
		{"IPv4 is not forwarded", sets("net.ipv4.ip_forward", "0"), []string{"sysctl_forwarding"}},
		{"IPv6 is not forwarded", sets("net.ipv6.conf.all.forwarding", "0"),
			[]string{"sysctl_forwarding"}},
		{"strict reverse path filter", sets("net.ipv4.conf.back.rp_filter", "1"),
			[]string{"rp_filter"}},
		{"loose reverse path filter, without a route back",
			sets("net.ipv4.conf.all.rp_filter", "2"), []string{"rp_filter"}},
		{"loose reverse path filter, with one, but no address of the backup device",
			func(p *patient) error {
				return errors.Join(sets("net.ipv4.conf.all.rp_filter", "2")(p),
					linuxtest.IP("route add default via 10.99.0.2"))
			}, []string{"rp_filter"}},
		{"loose reverse path filter, with both", func(p *patient) error {
			return errors.Join(sets("net.ipv4.conf.all.rp_filter", "2")(p),
				linuxtest.IP("route add default via 10.99.0.2\naddr add 10.99.9.1/32 dev back"))
		}, nil},
		{"SID missing", does("-6 route del fcbb:bb00:1:4::/128"), []string{"vrf_sid"}},
		{"SID missing, behind the router's blackhole",
			does("-6 route add blackhole fcbb:bb00:1::/48\n-6 route del fcbb:bb00:1:6::/128"),
			[]string{"vrf_sid"}},
		{"no address", func(p *patient) error {
			return errors.Join(p.inside("addr flush dev lo"), p.inside("addr flush dev eth0"))
		}, []string{"vip_missing"}},
		{"seg6", sets("net.ipv6.conf.near.seg6_enabled", "0"), []string{"sysctl_seg6"}},
		{"source of strays outside of the domain", does("sr tunsrc set fd00:99::1"),
			[]string{"stray_source"}},
		{"source of strays is the interface's, inside", does("sr tunsrc set ::"), nil},
		{"source of strays is the interface's, outside", does("sr tunsrc set ::\naddr add " +
			"fd00:99::1/64 dev near nodad\naddr del fd00:5e::51/64 dev near\n" +
			"-6 route add fd00:5e::/64 dev near\n-6 route replace fcbb:bb00:d0::/48 via " +
			"fd00:5e::1 dev near"), []string{"stray_source"}},
	} {
		f.isNamed(t, newBesideNamespace)
	}
}

// Faults of a machine whose VRF is a device.
func TestFaultsOfVRFDeviceAreNamed(t *testing.T) {
	for _, f := range []fault{
		{"nothing", does(""), nil},
		{"VRF device missing", does("link del blue"), []string{"interface_missing"}},
		{"VRF device down, and its SIDs with it", does("link set blue down"),
			[]string{"interface_down", "vrf_sid"}},
		{"backup device missing", does("link del green"), []string{"interface_missing"}},
		{"no SID but the excepted", does("-6 route del fcbb:bb00:1:46::/128"), []string{"vrf_sid"}},
		{"SID of another table", does("-6 route replace fcbb:bb00:1:46::/128 encap seg6local " +
			"action End.DT6 table 30 dev near"), []string{"vrf_sid"}},
		{"SID by table", does("-6 route add fcbb:bb00:1:6::/128 encap seg6local action End.DT6 " +
			"table 10 dev near"), []string{"vrf_sid"}},
		{"not strict", sets("net.vrf.strict_mode", "0"), []string{"sysctl_vrf_strict"}},
		{"no address", does("addr del 10.80.0.1/32 dev blue\naddr del 2001:db8:80::1/128 dev blue"),
			[]string{"vip_missing"}},
		{"no route for strays", does("route del default table 20"), []string{"backup_route"}},
		{"IPv4 is not forwarded", sets("net.ipv4.ip_forward", "0"), []string{"sysctl_forwarding"}},
		{"IPv6 is not forwarded", sets("net.ipv6.conf.all.forwarding", "0"),
			[]string{"sysctl_forwarding"}},
		{"reverse path filter on the backup device", sets("net.ipv4.conf.green.rp_filter", "1"),
			[]string{"rp_filter"}},
		{"reverse path filter on the VRF device", sets("net.ipv4.conf.blue.rp_filter", "1"),
			[]string{"rp_filter"}},
	} {
		f.isNamed(t, newBesideDevice)
	}
}

// Faults of an edge whose flow cache gets SYN-ACKs: what its kernel does with them.
func TestFaultsOfFlowCacheAreNamed(t *testing.T) {
	learning := func(t *testing.T) *patient {
		p := newPatient(t)
		e := p.node.Edge
		e.FlowCache = config.FlowCache{SID: netip.MustParseAddr("fd00:5e:0:1ea::1"), Entries: 64}
		e.Services = append(e.Services, e.Services[0])
		e.Services[1].VIP = netip.MustParseAddr("192.0.2.80")
		p.node.Host.Learners = []netip.Prefix{netip.MustParsePrefix("fd00:5e:0:1ea::/64")}
		must(t, linux.WriteSysctl("net.ipv4.ip_forward", "1"))
		must(t, linuxtest.IP("-6 route add default via fd00:5e::1"))
		return p
	}
	for _, f := range []fault{
		{"nothing", does(""), nil},
		{"IPv4 is not forwarded", sets("net.ipv4.ip_forward", "0"), []string{"sysctl_forwarding"}},
		{"IPv6 is not forwarded", sets("net.ipv6.conf.all.forwarding", "0"),
			[]string{"sysctl_forwarding", "sysctl_forwarding", "sysctl_forwarding"}},
		{"strict reverse path filter", sets("net.ipv4.conf.near.rp_filter", "1"),
			[]string{"rp_filter"}},
		{"loose reverse path filter, where VIPs end in a black hole", func(p *patient) error {
			return errors.Join(sets("net.ipv4.conf.near.rp_filter", "2")(p),
				linuxtest.IP("route add blackhole 192.0.2.80/32"))
		}, []string{"rp_filter"}},
		{"no route to IPv4 clients", does("route del default"), []string{"client_route"}},
		{"no route to IPv6 clients", does("-6 route del default"), []string{"client_route"}},
		{"the VIP is this machine's own", does("addr add 192.0.2.80/32 dev lo"),
			[]string{"client_route"}},
		{"learners without the edge's SID", func(p *patient) error {
			p.node.Host.Learners = nil
			return nil
		}, []string{"learner_missing"}},
	} {
		f.isNamed(t, learning)
	}
}

// What the kernel does with a stray is what it says that it would do.
func TestPassage(t *testing.T) {
	newBesideNamespace(t)
	client, vip := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("10.80.0.1")
	want := facts.Passage{
		Fate: facts.Forwarded, Interface: "near",
		Segments: []netip.Addr{netip.MustParseAddr("fcbb:bb00:d0::")},
		Source:   netip.MustParseAddr("fd00:5e::51"),
	}
	if got := linux.Passage("back", client, vip); !cmp.Equal(got, want,
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
		t.Errorf("a stray: %+v, want %+v", got, want)
	}
	must(t, linuxtest.IP("route replace default encap seg6 mode encap segs "+
		"fcbb:bb00:d1::,fcbb:bb00:d0:: dev near table 20"))
	if got := linux.Passage("back", client, vip); len(got.Segments) != 2 ||
		got.Segments[0] != netip.MustParseAddr("fcbb:bb00:d1::") {
		t.Errorf("a stray by two segments: %+v", got)
	}
	if got := linux.Passage("none", client, vip); got.Fate != "" {
		t.Errorf("an interface that is not there: %+v", got)
	}
	if got := linux.Passage("back", client,
		netip.MustParseAddr("10.99.0.1")); got.Fate != facts.Delivered {
		t.Errorf("an address of this machine: %+v", got)
	}
}
