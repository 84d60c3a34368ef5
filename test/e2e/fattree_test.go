package e2e_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// A fatTree is a fat tree of 4-port routers, each in a network namespace: 8 edge, 8 aggregation and
// 4 core routers, and one namespace with the ends of 16 hosts. The routers are programs of
// controllable load balancing, in front of the kernel's forwarding.
type fatTree struct {
	t        *testing.T
	names    map[string]string // of namespaces, by router
	ns       map[string]*linux.Netns
	commands map[string]*strings.Builder // of ip(8), by router
	codecs   map[bool]*cflb.Codec        // by whether of IPv6
	xdp      bool
	taps     map[bool]int // packet sockets of the hosts, by whether of IPv6
	hosts    [16]int      // indexes of the hosts' interfaces
	cflb     []*datapath.CFLB
	dirs     []string // of their pins
}

const (
	treePorts = 4 // k
	treeKey   = "07000000000000000000000000000000"
)

// The links, each with a number: interface uN leads up by it, dN down.
func edgeLink(edge, aggregation int) int      { return edge*2 + aggregation }
func coreLink(pod, aggregation, core int) int { return 16 + pod*4 + aggregation*2 + core }
func edgeName(edge int) string                { return fmt.Sprintf("edge%d", edge) }
func aggregationName(pod, number int) string  { return fmt.Sprintf("agg%d.%d", pod, number) }
func coreName(aggregation, number int) string {
	return fmt.Sprintf("core%d.%d", aggregation, number)
}
func hostsOfEdge(edge int) []int { return []int{edge * 2, edge*2 + 1} }
func hostsOfPod(pod int) []int   { return []int{pod * 4, pod*4 + 1, pod*4 + 2, pod*4 + 3} }

func hostAddress(host int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, byte(host), 1}) }
func hostAddress6(host int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 2: 0x02, 5: byte(host), 15: 1})
}
func hostPrefixes(host int) []netip.Prefix {
	return []netip.Prefix{netip.PrefixFrom(hostAddress(host), 24).Masked(),
		netip.PrefixFrom(hostAddress6(host), 48).Masked()}
}

// macOf is the address of an interface: side 1 is uN, 2 is dN, 3 and 4 hN of router and host.
func macOf(side, number int) net.HardwareAddr {
	return net.HardwareAddr{2, byte(side), 0, 0, 0, byte(number)}
}

// newFatTree makes the network. The fields of IPv4 and IPv6 are what sources control, at all
// routers except some.
func newFatTree(t *testing.T, ipv4, ipv6 cflb.Fields, xdp bool, except ...string) *fatTree {
	t.Helper()
	needsRoot(t)
	f := &fatTree{t: t, xdp: xdp, names: map[string]string{}, ns: map[string]*linux.Netns{},
		commands: map[string]*strings.Builder{}, codecs: map[bool]*cflb.Codec{},
		taps: map[bool]int{}}
	for of6, fields := range map[bool]cflb.Fields{false: ipv4, true: ipv6} {
		codec, err := cflb.New(cflb.Defaults(fields, treePorts/2, [cflb.KeyLength]byte{7}))
		must(t, err)
		f.codecs[of6] = codec
	}
	routers := []string{"hosts"}
	for i := range 8 {
		routers = append(routers, edgeName(i), aggregationName(i/2, i%2))
	}
	for i := range 4 {
		routers = append(routers, coreName(i/2, i%2))
	}
	for _, router := range routers {
		f.ns[router], f.names[router] = linuxtest.Netns(t)
		must(t, f.ns[router].Do(prepareRouter))
		f.commands[router] = &strings.Builder{}
	}
	f.link()
	f.run(routers...)
	f.address()
	f.route()
	f.run(routers...)
	for i := range 8 {
		if !slices.Contains(except, edgeName(i)) {
			f.control(edgeName(i), []int{edgeLink(i, 0), edgeLink(i, 1)}, hostsOfEdge(i))
		}
		if !slices.Contains(except, aggregationName(i/2, i%2)) {
			f.controlAggregation(i/2, i%2)
		}
	}
	for i := range 4 {
		f.control(coreName(i/2, i%2), nil, nil)
	}
	must(t, f.ns["hosts"].Do(f.tap))
	return f
}

func (f *fatTree) controlAggregation(pod, number int) {
	f.control(aggregationName(pod, number),
		[]int{coreLink(pod, number, 0), coreLink(pod, number, 1)}, hostsOfPod(pod))
}

func prepareRouter() error {
	return errors.Join(
		linux.WriteSysctl("net.ipv4.ip_forward", "1"),
		linux.WriteSysctl("net.ipv4.fib_multipath_hash_policy", "1"),
		linux.WriteSysctl("net.ipv4.conf.all.rp_filter", "0"),
		linux.WriteSysctl("net.ipv4.conf.default.rp_filter", "0"),
		linux.WriteSysctl("net.ipv6.conf.all.forwarding", "1"),
		linux.WriteSysctl("net.ipv6.conf.default.forwarding", "1"),
		linux.WriteSysctl("net.ipv6.fib_multipath_hash_policy", "1"),
		linux.WriteSysctl("net.ipv6.conf.default.accept_dad", "0"),
	)
}

// ip keeps a command of ip(8) for a router until run.
func (f *fatTree) ip(router, format string, as ...any) {
	fmt.Fprintf(f.commands[router], "-n %s "+format+"\n",
		append([]any{f.names[router]}, as...)...)
}

func (f *fatTree) run(routers ...string) {
	for _, router := range routers {
		must(f.t, linuxtest.IP(f.commands[router].String()))
		f.commands[router].Reset()
	}
}

// pair makes a link of two interfaces.
func (f *fatTree) pair(near, nearName string, nearMAC net.HardwareAddr, far, farName string,
	farMAC net.HardwareAddr) {
	f.ip(near, "link add %s address %s type veth peer name %s address %s netns %s", nearName,
		nearMAC, farName, farMAC, f.names[far])
}

// eachLink names the two ends of each link between routers.
func eachLink(do func(lower, upper string, number int)) {
	for i := range 16 {
		do(edgeName(i/2), aggregationName(i/4, i%2), edgeLink(i/2, i%2))
		pod, aggregation, core := i/4, i/2%2, i%2
		do(aggregationName(pod, aggregation), coreName(aggregation, core),
			coreLink(pod, aggregation, core))
	}
}

// link connects the routers, and the hosts to their edge routers.
func (f *fatTree) link() {
	eachLink(func(lower, upper string, number int) {
		f.pair(lower, fmt.Sprintf("u%d", number), macOf(1, number), upper,
			fmt.Sprintf("d%d", number), macOf(2, number))
	})
	for host := range 16 {
		name := fmt.Sprintf("h%d", host)
		f.pair(edgeName(host/2), name, macOf(3, host), "hosts", name, macOf(4, host))
	}
}

// address gives the interfaces addresses, and tells each those of its neighbour.
func (f *fatTree) address() {
	one := func(router, name string, own, peer []string, mac net.HardwareAddr) {
		f.ip(router, "link set %s up", name)
		for _, address := range own {
			f.ip(router, "addr add %s dev %s", address, name)
		}
		for _, address := range peer {
			f.ip(router, "neigh add %s lladdr %s dev %s nud permanent", address, mac, name)
		}
	}
	eachLink(func(lower, upper string, number int) {
		one(lower, fmt.Sprintf("u%d", number), linkAddresses(number, 0, "/31", "/127"),
			linkAddresses(number, 1, "", ""), macOf(2, number))
		one(upper, fmt.Sprintf("d%d", number), linkAddresses(number, 1, "/31", "/127"),
			linkAddresses(number, 0, "", ""), macOf(1, number))
	})
	for host := range 16 {
		name := fmt.Sprintf("h%d", host)
		one(edgeName(host/2), name, []string{fmt.Sprintf("10.200.%d.254/24", host),
			fmt.Sprintf("fd00:200:%x::fe/48", host)},
			[]string{hostAddress(host).String(), hostAddress6(host).String()}, macOf(4, host))
		one("hosts", name, nil, nil, nil)
	}
}

func linkAddresses(number, end int, bits4, bits6 string) []string {
	return []string{fmt.Sprintf("10.0.%d.%d%s", number, end, bits4),
		fmt.Sprintf("fd00:100:%x::%x%s", number, end, bits6)}
}

// route gives each router its routes: down by prefix, up by two equal next hops.
func (f *fatTree) route() {
	up := func(router string, first, second int) {
		firsts, seconds := linkAddresses(first, 1, "", ""), linkAddresses(second, 1, "", "")
		for i, to := range []string{"0.0.0.0/0", "::/0"} {
			f.ip(router, "route add %s nexthop via %s dev u%d nexthop via %s dev u%d", to,
				firsts[i], first, seconds[i], second)
		}
	}
	down := func(router string, hosts []int, number int) {
		for _, host := range hosts {
			for i, to := range hostPrefixes(host) {
				f.ip(router, "route add %s via %s dev d%d", to,
					linkAddresses(number, 0, "", "")[i], number)
			}
		}
	}
	for i := range 8 {
		pod, number := i/2, i%2
		up(edgeName(i), edgeLink(i, 0), edgeLink(i, 1))
		up(aggregationName(pod, number), coreLink(pod, number, 0), coreLink(pod, number, 1))
		for edge := pod * 2; edge < pod*2+2; edge++ {
			down(aggregationName(pod, number), hostsOfEdge(edge), edgeLink(edge, number))
		}
	}
	for i := range 16 {
		pod, aggregation, core := i/4, i/2%2, i%2
		down(coreName(aggregation, core), hostsOfPod(pod), coreLink(pod, aggregation, core))
	}
}

// control lets sources choose between a router's two links up, for all but the hosts below it. A
// router without links up has no choice.
func (f *fatTree) control(router string, links, below []int) {
	f.t.Helper()
	table := model.CFLBTable{Routes: map[netip.Prefix]int{}}
	config := datapath.CFLBConfig{IPv4: f.codecs[false], IPv6: f.codecs[true],
		Router: uint32(len(f.cflb) + 1), Kernel: !f.xdp}
	must(f.t, f.ns[router].Do(func() error {
		interfaces, err := net.Interfaces()
		if err != nil {
			return err
		}
		indexes := map[string]uint32{}
		for _, i := range interfaces {
			indexes[i.Name] = uint32(i.Index)
			if i.Flags&net.FlagLoopback == 0 {
				config.Interfaces = append(config.Interfaces, datapath.CFLBInterface{Name: i.Name})
			}
		}
		if links != nil {
			hops := make([]model.CFLBNextHop, len(links))
			for i, hash := range model.CFLBKernelHashes([]uint32{1, 1}) {
				hops[i] = model.CFLBNextHop{Weight: 1, KernelHash: hash, MTU: 1500, Ready: f.xdp,
					Interface:   indexes[fmt.Sprintf("u%d", links[i])],
					Source:      [6]byte(macOf(1, links[i])),
					Destination: [6]byte(macOf(2, links[i]))}
			}
			table.Groups = [][]model.CFLBNextHop{hops, hops}
			table.Routes[netip.MustParsePrefix("0.0.0.0/0")] = 0
			table.Routes[netip.MustParsePrefix("::/0")] = 1
		}
		for _, host := range below {
			for _, prefix := range hostPrefixes(host) {
				table.Routes[prefix] = model.CFLBKernel
			}
		}
		return f.open(config, table)
	}))
}

// pins makes a directory on the bpf file system, which goes with the test.
func (f *fatTree) pins() (string, error) {
	bpffs, _, err := linux.BPFFS()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(bpffs, "sextant-test-")
	f.t.Cleanup(func() { os.RemoveAll(dir) })
	return dir, err
}

func (f *fatTree) open(config datapath.CFLBConfig, table model.CFLBTable) error {
	dir, err := f.pins()
	if err != nil {
		return err
	}
	r, err := datapath.OpenCFLB(filepath.Join(dir, "cflb"), config)
	if err != nil {
		return err
	}
	f.t.Cleanup(r.Close)
	f.cflb, f.dirs = append(f.cflb, r), append(f.dirs, dir)
	if err := r.SetTable(table); err != nil {
		return err
	}
	_, err = r.Commit()
	return err
}

// octets reads how many octets came in at each interface of the network.
func (f *fatTree) octets() map[string]int {
	f.t.Helper()
	octets := map[string]int{}
	for router, ns := range f.ns {
		must(f.t, ns.Do(func() error {
			links, err := netlink.LinkList()
			for _, link := range links {
				octets[router+" "+link.Attrs().Name] = int(link.Attrs().Statistics.RxBytes)
			}
			return err
		}))
	}
	return octets
}
