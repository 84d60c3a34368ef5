package datapath

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
)

//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-suffix _test benchTC ../bpf/bench_tc.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3
//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-suffix _test benchVRF ../bpf/bench_vrf.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3

// vrfFlavours are the two kinds of VRF.
var vrfFlavours = []struct {
	name string
	of   func(testing.TB, *strayRouter) StrayVRF
}{{"VRF device", ofDevice}, {"namespace", ofNamespace}}

// BenchmarkVRFSockets prints what it costs to find the connection of a packet to a VRF, by each
// way: the question alone, and the path of the packet. Method and figures: docs/howto/routers.md,
// "What each way costs".
func BenchmarkVRFSockets(b *testing.B) {
	for _, flavour := range vrfFlavours {
		b.Run(flavour.name, func(b *testing.B) {
			w := newVRFBench(b, flavour.of)
			cpu := oneCPU(b)
			w.printQuestions(b)
			w.printPaths(b, cpu)
		})
	}
}

// vrfBench is a router whose VRF has open connections, with the programs that ask for them.
type vrfBench struct {
	*strayRouter
	vrf    StrayVRF
	ways   *ebpf.Collection // found or not, packets pass
	strict *ebpf.Collection // packets whose connection is not found are dropped
}

// vrfWays is struct ways of bpf/bench_vrf.c.
type vrfWays struct {
	Cookie  uint64
	Netns   uint32
	Device  uint32
	Nowhere uint32
	_       uint32
}

func newVRFBench(t testing.TB, of func(testing.TB, *strayRouter) StrayVRF) *vrfBench {
	t.Helper()
	w := &vrfBench{strayRouter: newStrayRouter(t)}
	w.vrf = of(t, w.strayRouter)
	settings := vrfWays{Cookie: w.cookie(t), Nowhere: xdpPass}
	if w.vrf.Device == "" {
		id, err := namespaceID(w.vrf.Namespace)
		must(t, err)
		settings.Netns = uint32(id)
	} else {
		device, err := net.InterfaceByName(w.vrf.Device)
		must(t, err)
		settings.Device = uint32(device.Index)
	}
	w.ways = loadWays(t, settings, nil)
	settings.Nowhere = xdpDrop
	w.strict = loadWays(t, settings, w.ways.Maps)
	w.connect(t)
	return w
}

func loadWays(t testing.TB, settings vrfWays, shared map[string]*ebpf.Map) *ebpf.Collection {
	t.Helper()
	spec, err := loadBenchVRF()
	must(t, err)
	must(t, spec.Variables["settings"].Set(settings))
	options := ebpf.CollectionOptions{}
	if shared != nil {
		options.MapReplacements = map[string]*ebpf.Map{"connections": shared["connections"]}
	}
	ways, err := ebpf.NewCollectionWithOptions(spec, options)
	must(t, err)
	t.Cleanup(ways.Close)
	return ways
}

// inside runs f in the namespace with the sockets.
func (w *vrfBench) inside(t testing.TB, f func() error) {
	t.Helper()
	if w.web == nil {
		must(t, f())
		return
	}
	must(t, w.web.Do(f))
}

func (w *vrfBench) cookie(t testing.TB) (cookie uint64) {
	t.Helper()
	w.inside(t, func() (err error) {
		cookie, err = netnsCookie()
		return err
	})
	return cookie
}

// connect opens the connections; a table of them is kept from before the first one.
func (w *vrfBench) connect(t testing.TB) {
	t.Helper()
	root, _, err := linux.CgroupRoot()
	must(t, err)
	keep := w.ways.Programs["keep"]
	kept, err := link.AttachCgroup(link.CgroupOptions{Path: root, Attach: ebpf.AttachCGroupSockOps,
		Program: keep})
	must(t, err)
	t.Cleanup(func() { kept.Close() })
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	must(t, err)
	w.inside(t, func() error {
		benchConnections(t, benchOpen, w.vrf.Device)
		return nil
	})
	spent, err := keep.Stats()
	must(t, err)
	must(t, stats.Close())
	fmt.Printf("\nkeeping the table: sockops was called %.1f times per connection (both ends), "+
		"for %.0f ns in all\n",
		float64(spent.RunCount)/benchOpen, float64(spent.Runtime.Nanoseconds())/benchOpen)
	var key [40]byte
	var there uint32
	n := 0
	for entries := w.ways.Maps["connections"].Iterate(); entries.Next(&key, &there); {
		n++
	}
	if n != benchOpen {
		t.Fatalf("the table that sockops keeps has %d connections, want %d", n, benchOpen)
	}
}

// boundTo binds a socket to a device; "" is none.
func boundTo(device string) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) (err error) {
		if device != "" {
			c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
		}
		return err
	}
}

// benchListen listens on the VIP in a VRF.
func benchListen(t testing.TB, device string) *net.TCPListener {
	t.Helper()
	config := net.ListenConfig{Control: boundTo(device)}
	l, err := config.Listen(context.Background(), "tcp",
		netip.AddrPortFrom(hostVIPv6, hostPort).String())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// benchAddress gives an address to a device; "" is the loopback interface.
func benchAddress(t testing.TB, device string, a netip.Addr) {
	t.Helper()
	if device == "" {
		addAddresses(t, a)
		return
	}
	ip(t, "", "-6 addr add "+a.String()+"/128 dev "+device+" nodad")
}

// frame is a packet of the first of the flows, as it comes to the router: to a SID of the kernel.
func (w *vrfBench) frame(t testing.TB, client netip.Addr, flows int) benchFrame {
	t.Helper()
	f := benchArriving(t, benchACK(client, hostVIPv6), flows)
	inner := f.octets[ethernetHeader:]
	inner[ipv6Header+16] ^= 0x80 // TCP's checksum is wrong for all flows
	f.octets = benchLink.Frame(t, packettest.To(w.sid(hostVIPv6)).Around(t, inner))
	f.source += ipv6Header
	f.ports += ipv6Header
	return f
}

// questions are the rows of both flavours, and those of the one at hand.
func (w *vrfBench) questions(t testing.TB, strays *Strays) []benchRow {
	t.Helper()
	one := w.frame(t, benchClientV6, 1)
	rows := []benchRow{{name: "parse alone", program: w.strict.Programs["parse_alone"], frame: one,
		verdict: xdpPass}}
	add := func(name string, program *ebpf.Program, verdict, otherwise uint32,
		form func(benchFrame) benchFrame) {
		for _, r := range []struct {
			name    string
			client  netip.Addr
			flows   int
			verdict uint32
		}{
			{"1 connection", benchClientV6, 1, verdict}, {"1,000 connections", benchClientV6, 1000,
				verdict},
			{"10,000 connections", benchClientV6, benchOpen, verdict},
			{"10,000 strays", benchStrangerV6, benchOpen, otherwise},
		} {
			rows = append(rows, benchRow{name: name + r.name, program: program,
				frame: form(w.frame(t, r.client, r.flows)), verdict: r.verdict})
		}
	}
	as := func(f benchFrame) benchFrame { return f }
	add("XDP, own namespace (finds none): ", w.strict.Programs["ask_here"], xdpDrop, xdpDrop, as)
	if w.vrf.Device == "" {
		add("XDP, by namespace id: ", w.strict.Programs["ask_netns"], xdpPass, xdpDrop, as)
	} else {
		add(l3mdev, w.strict.Programs["ask_here"], xdpDrop, xdpDrop, as)
		add("TC of the VRF device (vrf_ask): ", strays.programs["vrf_ask"], tcUnspec, tcRedirect,
			decapsulated)
	}
	add("table kept by sockops: ", w.strict.Programs["ask_table"], xdpPass, xdpDrop, as)
	add("chosen, on the interface (stray): ", strays.programs["stray"], xdpPass, xdpPass, as)
	return rows
}

// l3mdev is a way with a setting of the machine.
const l3mdev = "XDP, tcp_l3mdev_accept (finds none): "

// decapsulated is a frame without its outer header.
func decapsulated(f benchFrame) benchFrame {
	f.octets = append(append([]byte{}, f.octets[:ethernetHeader]...),
		f.octets[ethernetHeader+ipv6Header:]...)
	f.source -= ipv6Header
	f.ports -= ipv6Header
	return f
}

// printQuestions prints what the programs cost that ask.
func (w *vrfBench) printQuestions(t testing.TB) {
	t.Helper()
	strays := w.open(t)
	defer strays.Close()
	must(t, strays.Follow())
	near, tc := newNotedDriver(t, w.near), newTCDriver(t, w.vrf.Device)
	rows := w.questions(t, strays)
	bare := benchRow{name: "bare encapsulation", program: near.Programs[benchProgBare],
		frame: rows[0].frame, verdict: xdpTransmit}
	rows = append([]benchRow{bare}, chosenRows(t, rows)...)
	costs := make([][]cost, len(rows))
	for range *benchPasses {
		for i, r := range rows {
			accept := map[bool]string{true: "1", false: "0"}[strings.HasPrefix(r.name, l3mdev)]
			must(t, linux.WriteSysctl("net.ipv4.tcp_l3mdev_accept", accept))
			driver := near
			if r.program.Type() == ebpf.SchedCLS {
				driver = tc
			}
			costs[i] = append(costs[i], driver.measure(t, r))
		}
	}
	must(t, linux.WriteSysctl("net.ipv4.tcp_l3mdev_accept", "0"))
	printRows(rows, costs)
}

// open loads the programs of the way that was chosen.
func (w *vrfBench) open(t testing.TB) *Strays {
	t.Helper()
	strays, err := OpenStrays(w.dir, StraysConfig{
		Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")},
		Interfaces:     []StrayInterface{{Name: "near"}}, VRFs: []StrayVRF{w.vrf},
	})
	must(t, err)
	return strays
}

// newNotedDriver is a driver for programs that leave notes in front of the packet.
func newNotedDriver(t testing.TB, ingress int) *benchDriver {
	t.Helper()
	spec, err := loadBench()
	must(t, err)
	must(t, spec.Variables["leaves_notes"].Set(true))
	return openDriver(t, spec, ingress)
}

// newTCDriver is a driver for programs on the ingress of a device; none if there is no device.
func newTCDriver(t testing.TB, device string) *benchDriver {
	t.Helper()
	if device == "" {
		return nil
	}
	spec, err := loadBenchTC()
	must(t, err)
	ingress, err := net.InterfaceByName(device)
	must(t, err)
	return openDriver(t, spec, ingress.Index)
}

func openDriver(t testing.TB, spec *ebpf.CollectionSpec, ingress int) *benchDriver {
	t.Helper()
	collection, err := ebpf.NewCollection(spec)
	must(t, err)
	t.Cleanup(collection.Close)
	return &benchDriver{Collection: collection, ingress: ingress}
}
