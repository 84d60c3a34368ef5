package datapath

import (
	"flag"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

//go:generate go tool bpf2go -go-package datapath -target bpfel -cc clang-19 -strip llvm-strip-19 -no-global-types -output-suffix _test benchForwarding ../bpf/bench_forwarding.c -- -O2 -g -fno-strict-aliasing -Wall -Werror -mcpu=v3

var forwardingNICs = flag.String("nics", "", "four interfaces between which packets are "+
	"forwarded, in place of pairs of veth: the sender's, the two of the machine under test, the "+
	"receiver's; cables connect the first two and the last two")

var forwardingBurst = flag.Int("burst", 64, "packets that the sender gives to one of -nics at "+
	"once: fewer than its queue has room for")

// forwarding is a machine under test, in the test's namespace, between a sender and a receiver in
// namespaces of their own. A sender's frames arrive on near, and leave for a router by far.
type forwarding struct {
	*world
	objects          *ebpf.Collection
	sender, receiver *linux.Netns
	attached         link.Link // at near; nil: no program
	nics             bool      // real interfaces, not veth
}

// The interfaces of sender and receiver.
const (
	senderPort   = "nearpeer"
	receiverPort = "farpeer"
)

func newForwarding(t testing.TB, nics []string) *forwarding {
	t.Helper()
	f := &forwarding{nics: len(nics) > 0}
	var home *netlink.Handle
	if f.nics {
		var err error
		home, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		must(t, err)
		t.Cleanup(home.Close)
	}
	f.world = newWorld(t)
	must(t, linux.WriteSysctl("net.ipv6.fib_multipath_hash_policy", "1")) // by ports, too
	f.sender, _ = linuxtest.Netns(t)
	f.receiver, _ = linuxtest.Netns(t)
	if f.nics {
		f.plug(t, home, nics)
	} else {
		for name, to := range map[string]*linux.Netns{senderPort: f.sender,
			receiverPort: f.receiver} {
			peer, err := netlink.LinkByName(name)
			must(t, err)
			must(t, netlink.LinkSetNsFd(peer, to.FD()))
		}
	}
	spec, err := loadBenchForwarding()
	must(t, err)
	f.objects, err = ebpf.NewCollection(spec)
	must(t, err)
	t.Cleanup(f.objects.Close)
	must(t, f.objects.Variables["to_router"].Set([12]byte(append(append([]byte{},
		farRouterMAC...), farMAC...))))
	f.port(t, f.sender, senderPort, "forward_pass")
	f.port(t, f.receiver, receiverPort, "forward_receive")
	f.attach(t, "far", "forward_pass")
	must(t, f.objects.Maps["far"].Put(uint32(0), uint32(f.far)))
	t.Cleanup(func() {
		if f.attached != nil {
			f.attached.Close()
		}
	})
	return f
}

// plug puts real interfaces where the pairs of veth are. They must have the MAC addresses of the
// world.
func (f *forwarding) plug(t testing.TB, home *netlink.Handle, nics []string) {
	t.Helper()
	if len(nics) != 4 || *forwardingBurst < 1 {
		t.Fatalf("-nics names %d interfaces, and -burst is %d; name four, and choose 1 or more",
			len(nics), *forwardingBurst)
	}
	for _, name := range []string{"near", "far"} {
		pair, err := netlink.LinkByName(name)
		must(t, err)
		must(t, netlink.LinkDel(pair))
	}
	for i, to := range []struct {
		name  string
		netns int
	}{{senderPort, f.sender.FD()}, {"near", f.netns}, {"far", f.netns},
		{receiverPort, f.receiver.FD()}} {
		nic, err := home.LinkByName(nics[i])
		must(t, err)
		must(t, home.LinkSetDown(nic))
		must(t, home.LinkSetName(nic, to.name))
		must(t, home.LinkSetNsFd(nic, to.netns))
	}
	f.world.near = equip(t, "near", netip.MustParsePrefix("fd00:5e:1::1/64"),
		netip.MustParseAddr("fd00:5e:1::2"), routerMAC)
	f.world.far = equip(t, "far", netip.MustParsePrefix("fd00:5e:2::1/64"),
		netip.MustParseAddr("fd00:5e:2::2"), farRouterMAC)
	for name, want := range map[string]net.HardwareAddr{"near": nearMAC, "far": farMAC} {
		nic, err := net.InterfaceByName(name)
		must(t, err)
		if nic.HardwareAddr.String() != want.String() {
			t.Fatalf("the interface in the place of %s has the address %s; give it %s", name,
				nic.HardwareAddr, want)
		}
	}
}

// port prepares an interface of sender or receiver.
func (f *forwarding) port(t testing.TB, in *linux.Netns, name, program string) {
	t.Helper()
	must(t, in.Do(func() error {
		must(t, linux.WriteSysctl("net.ipv6.conf."+name+".disable_ipv6", "1"))
		f.attach(t, name, program)
		port := setUp(t, name)
		if name == senderPort {
			return f.objects.Variables["near_interface"].Set(uint32(port.Attrs().Index))
		}
		return netlink.SetPromiscOn(port) // servers have MAC addresses of their own
	}))
}

// attach puts a program of the bench on an interface of the thread's namespace.
func (f *forwarding) attach(t testing.TB, name, program string) {
	t.Helper()
	l, err := link.AttachXDP(link.XDPOptions{Program: f.objects.Programs[program],
		Interface: setUp(t, name).Attrs().Index, Flags: link.XDPDriverMode})
	must(t, err)
	t.Cleanup(func() { l.Close() })
}

// enter makes the machine forward as a device does.
func (f *forwarding) enter(t testing.TB, d device) {
	t.Helper()
	must(t, linux.SetOffload("near", linux.GRO, d.gro))
	switch {
	case d.program == nil && f.attached != nil:
		must(t, f.attached.Close())
		f.attached = nil
	case d.program != nil && f.attached != nil:
		must(t, f.attached.Update(d.program))
	case d.program != nil:
		var err error
		f.attached, err = link.AttachXDP(link.XDPOptions{Program: d.program, Interface: f.near,
			Flags: link.XDPDriverMode})
		must(t, err)
	}
	ip(t, "", d.begin)
	if d.balance != "" {
		must(t, linux.WriteSysctl("net.ipv4.vs.sloppy_tcp", "1"))
		ipvs(t, d.balance, "-R")
	}
	must(t, f.objects.Variables["arrival"].Set(d.arrives))
}

// leave undoes what enter did to the kernel. Connections that IPVS knows stay.
func (f *forwarding) leave(t testing.TB, d device) {
	t.Helper()
	if d.balance != "" {
		ipvs(t, "", "-C")
	}
	ip(t, "", d.end)
}

func ipvs(t testing.TB, input string, arguments ...string) {
	t.Helper()
	command := exec.Command("ipvsadm", arguments...)
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("ipvsadm %s: %v: %s", arguments, err, out)
	}
}

// hasIPVS reports whether the kernel has IPVS, and there is its command.
func (f *forwarding) hasIPVS(t testing.TB) bool {
	t.Helper()
	_, err := os.Stat("/proc/thread-self/net/ip_vs")
	if err != nil {
		return false
	}
	_, err = exec.LookPath("ipvsadm")
	return err == nil
}

// send sends frames of a device's flows.
func (f *forwarding) send(t testing.TB, frame benchFrame, packets int) {
	t.Helper()
	must(t, f.objects.Variables["driver"].Set(frame.settings()))
	defer holdPreemption(t)()
	must(t, f.sender.Do(func() error {
		for left := packets; left > 0; {
			burst := left
			if f.nics {
				burst = min(left, *forwardingBurst)
			}
			if _, err := f.objects.Programs["forward_send"].Run(&ebpf.RunOptions{
				Data: frame.octets, Repeat: uint32(burst), Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
			}); err != nil {
				return err
			}
			if left -= burst; f.nics {
				time.Sleep(burstRest)
			}
		}
		return nil
	}))
}

// arrivals is struct arrived of bpf/bench_forwarding.c.
type arrivals struct{ Packets, Right uint64 }

func (f *forwarding) arrived(t testing.TB) arrivals {
	t.Helper()
	sum, err := sumPerCPU(f.objects.Maps["arrivals"], 0, addWords[arrivals])
	must(t, err)
	return sum
}

// settled waits for packets that are under way. Through veth there are none: a packet is at the
// receiver before the sender writes the next few.
func (f *forwarding) settled(t testing.TB, earlier arrivals, packets uint64) arrivals {
	t.Helper()
	for now := f.arrived(t); ; {
		if !f.nics || now.Right-earlier.Right >= packets {
			return now
		}
		before := now
		time.Sleep(lateness)
		if now = f.arrived(t); now == before {
			return now
		}
	}
}

// How long packets and interfaces get.
const (
	lateness  = 50 * time.Millisecond // of a packet that is not lost
	burstRest = time.Millisecond
)

// now is the time that processors have worked, in ns. Through veth one thread does all: its own
// time, so that other work does not count. Else it is that of the machine, which should do nothing
// else: what passed less what its processors rested.
func (f *forwarding) now(t testing.TB) float64 {
	t.Helper()
	if !f.nics {
		return threadTime(t)
	}
	text, err := os.ReadFile("/proc/timer_list")
	must(t, err)
	var up unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &up))
	rested, count := 0.0, 0
	for _, match := range restedTime.FindAllSubmatch(text, -1) {
		ns, err := strconv.ParseFloat(string(match[1]), 64)
		must(t, err)
		rested, count = rested+ns, count+1
	}
	if count == 0 {
		t.Fatal("/proc/timer_list does not tell how long processors rested")
	}
	return float64(up.Nano())*float64(count) - rested
}

// restedTime is of each processor in /proc/timer_list, which has nanoseconds.
var restedTime = regexp.MustCompile(`\.idle_sleeptime *: (\d+) nsecs`)
