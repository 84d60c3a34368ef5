package e2e_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// A fatTree is a fat tree of 4-port routers, each in a network namespace: 8 edge, 8 aggregation and
// 4 core routers, and one namespace with the ends of 16 hosts. The kernel forwards; the programs of
// edge and aggregation routers tell it what sources chose.
type fatTree struct {
	t     *testing.T
	names map[string]string // of namespaces, by router
	ns    map[string]*linux.Netns
	taps  map[string]int // packet sockets
	codec *cflb.Codec
	cflb  []*datapath.CFLB
}

const treePorts = 4 // k

// The links, each with a number: interface uN leads up by it, dN down.
func edgeLink(edge, aggregation int) int      { return edge*2 + aggregation }
func coreLink(pod, aggregation, core int) int { return 16 + pod*4 + aggregation*2 + core }
func edgeName(edge int) string                { return fmt.Sprintf("edge%d", edge) }
func aggregationName(pod, number int) string  { return fmt.Sprintf("agg%d.%d", pod, number) }
func coreName(aggregation, number int) string {
	return fmt.Sprintf("core%d.%d", aggregation, number)
}
func hostAddress(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 200, byte(host), 1})
}
func (f *fatTree) ip(format string, as ...any) {
	must(f.t, linuxtest.IP(fmt.Sprintf(format, as...)))
}

func newFatTree(t *testing.T, parameters cflb.Parameters) *fatTree {
	t.Helper()
	needsRoot(t)
	codec, err := cflb.New(parameters)
	must(t, err)
	f := &fatTree{
		t: t, codec: codec, names: map[string]string{}, ns: map[string]*linux.Netns{},
		taps: map[string]int{},
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
		must(t, f.ns[router].Do(func() error { return prepareRouter() }))
	}
	f.link()
	f.route()
	for i := range 8 {
		f.control(edgeName(i), []int{edgeLink(i, 0), edgeLink(i, 1)}, f.hostsOfEdge(i))
		f.control(aggregationName(i/2, i%2), []int{coreLink(i/2, i%2, 0), coreLink(i/2, i%2, 1)},
			f.hostsOfPod(i/2))
	}
	for _, router := range routers {
		must(t, f.ns[router].Do(func() error { return f.tap(router) }))
	}
	return f
}

func prepareRouter() error {
	return errors.Join(
		linux.WriteSysctl("net.ipv4.ip_forward", "1"),
		linux.WriteSysctl("net.ipv4.fib_multipath_hash_policy", "1"),
		linux.WriteSysctl("net.ipv4.conf.all.rp_filter", "0"),
		linux.WriteSysctl("net.ipv4.conf.default.rp_filter", "0"),
		linux.WriteSysctl("net.ipv6.conf.default.disable_ipv6", "1"),
	)
}

func (f *fatTree) hostsOfEdge(edge int) []int { return []int{edge * 2, edge*2 + 1} }
func (f *fatTree) hostsOfPod(pod int) []int {
	return []int{pod * 4, pod*4 + 1, pod*4 + 2, pod*4 + 3}
}

func (f *fatTree) connect(lower, upper string, number int) {
	f.ip(`-n %[1]s link add u%[3]d type veth peer name d%[3]d netns %[2]s
-n %[1]s addr add 10.0.%[3]d.0/31 dev u%[3]d
-n %[1]s link set u%[3]d up
-n %[2]s addr add 10.0.%[3]d.1/31 dev d%[3]d
-n %[2]s link set d%[3]d up`, f.names[lower], f.names[upper], number)
}

// link connects the routers, and the hosts to their edge routers.
func (f *fatTree) link() {
	for edge := range 8 {
		for aggregation := range 2 {
			f.connect(edgeName(edge), aggregationName(edge/2, aggregation),
				edgeLink(edge, aggregation))
		}
		for _, host := range f.hostsOfEdge(edge) {
			f.ip(`-n %[1]s link add h%[3]d type veth peer name h%[3]d netns %[2]s
-n %[1]s addr add 10.200.%[3]d.254/24 dev h%[3]d
-n %[1]s link set h%[3]d up
-n %[2]s link set h%[3]d up
-n %[1]s neigh add 10.200.%[3]d.1 lladdr 02:00:00:00:00:%02[3]x dev h%[3]d nud permanent`,
				f.names[edgeName(edge)], f.names["hosts"], host)
		}
	}
	for i := range 16 {
		pod, aggregation, core := i/4, i/2%2, i%2
		f.connect(aggregationName(pod, aggregation), coreName(aggregation, core),
			coreLink(pod, aggregation, core))
	}
}

// route gives each router its routes: down by prefix, up by two equal next hops.
func (f *fatTree) route() {
	up := func(router string, first, second int) {
		f.ip("-n %s route add default nexthop via 10.0.%d.1 dev u%d nexthop via 10.0.%d.1 dev u%d",
			f.names[router], first, first, second, second)
	}
	down := func(router string, hosts []int, number int) {
		for _, host := range hosts {
			f.ip("-n %s route add 10.200.%d.0/24 via 10.0.%d.0 dev d%d", f.names[router], host,
				number,
				number)
		}
	}
	for i := range 8 {
		pod, number := i/2, i%2
		up(edgeName(i), edgeLink(i, 0), edgeLink(i, 1))
		up(aggregationName(pod, number), coreLink(pod, number, 0), coreLink(pod, number, 1))
		for edge := pod * 2; edge < pod*2+2; edge++ {
			down(aggregationName(pod, number), f.hostsOfEdge(edge), edgeLink(edge, number))
		}
	}
	for i := range 16 {
		pod, aggregation, core := i/4, i/2%2, i%2
		down(coreName(aggregation, core), f.hostsOfPod(pod), coreLink(pod, aggregation, core))
	}
}

// control lets sources choose between a router's two links up, for all but the hosts below it.
func (f *fatTree) control(router string, links, below []int) {
	f.t.Helper()
	hops := make([]model.CFLBNextHop, len(links))
	for i, hash := range model.CFLBKernelHashes([]uint32{1, 1}) {
		hops[i] = model.CFLBNextHop{Weight: 1, KernelHash: hash, Interface: uint32(1 + i)}
	}
	table := model.CFLBTable{
		Groups: [][]model.CFLBNextHop{hops},
		Routes: map[netip.Prefix]int{netip.MustParsePrefix("0.0.0.0/0"): 0},
	}
	for _, host := range below {
		table.Routes[netip.PrefixFrom(hostAddress(host), 24).Masked()] = model.CFLBKernel
	}
	must(f.t, f.ns[router].Do(func() error {
		config := datapath.CFLBConfig{
			IPv4: f.codec, IPv6: f.codec, Router: uint32(len(f.cflb) + 1), Kernel: true,
		}
		interfaces, err := net.Interfaces()
		for _, i := range interfaces {
			if i.Flags&net.FlagLoopback == 0 {
				config.Interfaces = append(config.Interfaces, datapath.CFLBInterface{Name: i.Name})
			}
		}
		if err != nil {
			return err
		}
		bpffs, _, err := linux.BPFFS()
		if err != nil {
			return err
		}
		dir, err := os.MkdirTemp(bpffs, "sextant-test-")
		if err != nil {
			return err
		}
		f.t.Cleanup(func() { os.RemoveAll(dir) })
		r, err := datapath.OpenCFLB(filepath.Join(dir, "cflb"), config)
		if err != nil {
			return err
		}
		f.t.Cleanup(r.Close)
		f.cflb = append(f.cflb, r)
		if err := r.SetTable(table); err != nil {
			return err
		}
		_, err = r.Commit()
		return err
	}))
}

const tapBuffer = 16 << 20 // holds all packets of the test

// tap opens a socket that sees what arrives at any interface of the namespace.
func (f *fatTree) tap(router string) error {
	const ipv4 = unix.ETH_P_IP>>8 | unix.ETH_P_IP<<8&0xff00
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, ipv4)
	if err != nil {
		return err
	}
	f.t.Cleanup(func() { unix.Close(fd) })
	f.taps[router] = fd
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer)
}

// interfaces returns the names of the interfaces of a namespace by their indexes.
func (f *fatTree) interfaces(router string) map[int]string {
	names := map[int]string{}
	must(f.t, f.ns[router].Do(func() error {
		interfaces, err := net.Interfaces()
		for _, i := range interfaces {
			names[i.Index] = i.Name
		}
		return err
	}))
	return names
}

// A treePath is a flow with the way that its packet is to take.
type treePath struct {
	src, dst, aggregation, core int
}

// paths lists every path between every two hosts.
func (f *fatTree) paths() (paths []treePath) {
	for src := range 16 {
		for dst := range 16 {
			for i := range 4 {
				sameEdge, samePod := src/2 == dst/2, src/4 == dst/4
				if src != dst && (i == 0 || i < 2 && !sameEdge || !samePod) {
					paths = append(paths, treePath{src, dst, i % 2, i / 2})
				}
			}
		}
	}
	return paths
}

// arrivals lists where the packet of a path has to arrive, and how many choices that takes.
func (p treePath) arrivals() (at []string, choices int) {
	on := func(router string, kind string, number int) {
		at = append(at, fmt.Sprintf("%s %s%d", router, kind, number))
	}
	on(edgeName(p.src/2), "h", p.src)
	defer func() { on("hosts", "h", p.dst) }()
	if p.src/2 == p.dst/2 {
		return at, 0
	}
	srcPod, dstPod := p.src/4, p.dst/4
	on(aggregationName(srcPod, p.aggregation), "d", edgeLink(p.src/2, p.aggregation))
	choices = 1
	if srcPod != dstPod {
		on(coreName(p.aggregation, p.core), "d", coreLink(srcPod, p.aggregation, p.core))
		on(aggregationName(dstPod, p.aggregation), "u", coreLink(dstPod, p.aggregation, p.core))
		choices = 2
	}
	on(edgeName(p.dst/2), "u", edgeLink(p.dst/2, p.aggregation))
	return at, choices
}

// send sends the packet of a path, with its number as payload, in at the source's edge router.
func (f *fatTree) send(number int, p treePath, to net.HardwareAddr, index int) {
	f.t.Helper()
	hops := []cflb.Hop{{HopLimit: 64, Index: p.aggregation}, {HopLimit: 63, Index: p.core}}
	packet := cflb.Packet{Src: hostAddress(p.src), Dst: hostAddress(p.dst),
		Protocol: unix.IPPROTO_UDP, DstPort: 4789}
	packets, err := f.codec.Selectors(packet, hops, uint64(number)*0x9e3779b97f4a7c15)
	must(f.t, err)
	for steered := range packets {
		frame := slices.Concat(to, []byte{2, 0, 0, 0, 0, 1, 8, 0},
			udpPacket(steered, uint32(number)))
		must(f.t, unix.Sendto(f.taps["hosts"], frame, 0, &unix.SockaddrLinklayer{Ifindex: index}))
		return
	}
	f.t.Fatalf("%+v has no selector", p)
}

// udpPacket is an IPv4 packet of UDP without a UDP checksum.
func udpPacket(p cflb.Packet, payload uint32) []byte {
	ip := make([]byte, 32)
	ip[0], ip[3], ip[8], ip[9] = 0x45, 32, 64, p.Protocol
	src, dst := p.Src.As4(), p.Dst.As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum+sum>>16))
	binary.BigEndian.PutUint16(ip[20:], p.SrcPort)
	binary.BigEndian.PutUint16(ip[22:], p.DstPort)
	ip[25] = 12
	binary.BigEndian.PutUint32(ip[28:], payload)
	return ip
}

// heard reads what arrived at a namespace: where each packet, by its number, came in. At the hosts
// it waits until as many as wanted are there.
func (f *fatTree) heard(router string, wanted int, into map[uint32][]string) {
	f.t.Helper()
	names, fd := f.interfaces(router), f.taps[router]
	flags := unix.MSG_DONTWAIT
	if wanted > 0 {
		flags = 0
		must(f.t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
			&unix.Timeval{Sec: 60}))
	}
	buffer := make([]byte, 2048)
	for read := 0; wanted == 0 || read < wanted; read++ {
		n, from, err := unix.Recvfrom(fd, buffer, flags)
		if errors.Is(err, unix.EAGAIN) {
			if wanted > 0 {
				f.t.Fatalf("%d of %d packets arrived at hosts", read, wanted)
			}
			return
		}
		must(f.t, err)
		at, ok := from.(*unix.SockaddrLinklayer)
		if !ok || n < 46 {
			f.t.Fatalf("%d bytes from %v", n, from)
		}
		number := binary.BigEndian.Uint32(buffer[42:])
		into[number] = append(into[number], router+" "+names[at.Ifindex])
	}
}

// Every path between every two hosts of a fat tree is taken exactly as asked, and no other: each
// packet arrives at the interfaces of its path and nowhere else. The kernels forward.
func TestCFLBEveryPathOfAFatTree(t *testing.T) {
	for _, fields := range []cflb.Fields{cflb.BothPorts, cflb.SourcePort} {
		t.Run(fields.String(), func(t *testing.T) {
			f := newFatTree(t, cflb.Defaults(fields, treePorts/2, [cflb.KeyLength]byte{7}))
			paths := f.paths()
			if want := 16*12*4 + 16*2*2 + 16; len(paths) != want {
				t.Fatalf("%d paths, want %d", len(paths), want)
			}
			f.sendAll(paths)
			arrived := map[uint32][]string{}
			f.heard("hosts", len(paths), arrived)
			for _, router := range slices.Sorted(maps.Keys(f.names)) {
				f.heard(router, 0, arrived)
			}
			choices := 0
			for i, p := range paths {
				want, n := p.arrivals()
				choices += n
				got := arrived[uint32(i)]
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%+v:\ntook %s\nwant %s", p, strings.Join(got, ", "),
						strings.Join(want, ", "))
				}
			}
			f.checkChoices(choices)
		})
	}
}

func (f *fatTree) sendAll(paths []treePath) {
	edges, indexes := map[int]net.HardwareAddr{}, map[string]int{}
	for edge := range 8 {
		must(f.t, f.ns[edgeName(edge)].Do(func() error {
			for _, host := range f.hostsOfEdge(edge) {
				i, err := net.InterfaceByName(fmt.Sprintf("h%d", host))
				if err != nil {
					return err
				}
				edges[host] = i.HardwareAddr
			}
			return nil
		}))
	}
	for index, name := range f.interfaces("hosts") {
		indexes[name] = index
	}
	for i, p := range paths {
		f.send(i, p, edges[p.src], indexes[fmt.Sprintf("h%d", p.src)])
	}
}

// checkChoices wants all choices to have been the sources'.
func (f *fatTree) checkChoices(want int) {
	f.t.Helper()
	total := map[cflb.Choice]uint64{}
	for _, r := range f.cflb {
		choices, err := r.Choices()
		must(f.t, err)
		for choice, n := range choices {
			total[choice] += n
		}
	}
	if total[cflb.Controlled] != uint64(want) || total[cflb.Beyond]+total[cflb.OutOfRange]+
		total[cflb.Unreadable] > 0 {
		f.t.Errorf("choices %v, want %d controlled and no other", total, want)
	}
}
