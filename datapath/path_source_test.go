package datapath

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// A steeredHost is a network namespace of a host, this process being in the cgroup whose
// connections are steered.
type steeredHost struct {
	ns     *linux.Netns
	config PathSourceConfig
	source *PathSource
}

var steeredPath = []cflb.Hop{{HopLimit: 64, Index: 1}, {HopLimit: 62, Index: 3},
	{HopLimit: 61, Index: 0}}

// newSteeredHost makes a namespace of an interface behind which all addresses are, and joins a
// cgroup with the programs. It calls use in the namespace.
func newSteeredHost(t testing.TB, fields cflb.Fields, use func(h *steeredHost)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	ns, name := linuxtest.Netns(t)
	root, _, err := linux.CgroupRoot()
	must(t, err)
	group, err := linux.CreateCgroup(filepath.Join(root, name))
	must(t, err)
	codec, err := cflb.New(cflb.Parameters{Fields: fields, Radix: 4, Key: [16]byte{9}})
	must(t, err)
	h := &steeredHost{ns: ns, config: PathSourceConfig{IPv4: codec, IPv6: codec,
		Rules:   []PathRule{{Path: steeredPath}},
		Source4: netip.MustParseAddr("10.7.0.1"), Source6: netip.MustParseAddr("fd00:7::1"),
		PortsFrom: 10000, PortsTo: 60000}}
	h.source, err = SteerCgroup(group.Dir(), h.config)
	must(t, err)
	own := linuxtest.OwnCgroup(t)
	must(t, linuxtest.MoveTo(group.Dir()))
	t.Cleanup(func() {
		must(t, linuxtest.MoveTo(own))
		h.source.Close()
		must(t, group.Remove())
	})
	must(t, ns.Do(func() error {
		if err := linuxtest.IP(`link set lo up
link add d0 type veth peer name d1
link set d1 up
addr add 10.7.0.1/8 dev d0
addr add 10.7.0.2/8 dev d0
-6 addr add fd00:7::1/16 dev d0 nodad
link set d0 up
route add default dev d0
-6 route add default dev d0`); err != nil {
			return err
		}
		use(h)
		return nil
	}))
}

// connectSteered connects a socket and returns its own end; a TCP connection is not awaited.
func connectSteered(t testing.TB, kind int, to netip.AddrPort) (netip.AddrPort, func()) {
	t.Helper()
	family, address := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: int(to.Port()),
		Addr: to.Addr().As16()})
	if to.Addr().Is4() {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()),
			Addr: to.Addr().As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	if err := unix.Connect(fd, address); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return netip.AddrPort{}, nil
	}
	name, err := unix.Getsockname(fd)
	must(t, err)
	end := func() { unix.Close(fd) }
	switch own := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(own.Addr), uint16(own.Port)), end
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(own.Addr), uint16(own.Port)), end
	}
	t.Fatalf("own end %v", name)
	return netip.AddrPort{}, nil
}

// takesPath asks the codec of the routers which next hops they take.
func (h *steeredHost) takesPath(own, to netip.AddrPort, protocol uint8) error {
	p := cflb.Packet{Src: own.Addr(), Dst: to.Addr(), Protocol: protocol, HasPorts: true,
		SrcPort: own.Port(), DstPort: to.Port()}
	for _, hop := range h.config.Rules[0].Path {
		p.HopLimit = hop.HopLimit
		if digit, choice, _ := h.config.IPv4.Digit(p, 7); choice != cflb.Controlled ||
			digit != hop.Index {
			return fmt.Errorf("%s to %s: the router at %d takes %d, %s; want %d", own, to,
				hop.HopLimit, digit, choice, hop.Index)
		}
	}
	return nil
}

// Connections of the cgroup take the path, whatever they are: IPv4 and IPv6, TCP and UDP, to one
// destination many times, each by another port.
func TestPathSource(t *testing.T) {
	for _, fields := range []cflb.Fields{cflb.SourcePort, cflb.BothPorts} {
		t.Run(fields.String(), func(t *testing.T) {
			newSteeredHost(t, fields, func(h *steeredHost) { connectAll(t, h) })
		})
	}
}

func connectAll(t *testing.T, h *steeredHost) {
	const each = 50
	want := uint64(0)
	for _, to := range []string{"192.0.2.1:80", "192.0.2.1:443", "[2001:db8::1]:443"} {
		for kind, protocol := range map[int]uint8{unix.SOCK_STREAM: 6, unix.SOCK_DGRAM: 17} {
			to, ports := netip.MustParseAddrPort(to), map[uint16]bool{}
			for range each {
				own, end := connectSteered(t, kind, to)
				if end == nil {
					t.Fatalf("no connection to %s", to)
				}
				defer end()
				if err := h.takesPath(own, to, protocol); err != nil {
					t.Fatal(err)
				}
				if ports[own.Port()] || own.Port() < 10000 || own.Port() > 60000 {
					t.Errorf("port %d is not one of its own from 10000 to 60000", own.Port())
				}
				ports[own.Port()] = true
				want++
			}
		}
	}
	loopback, end := connectSteered(t, unix.SOCK_DGRAM, netip.MustParseAddrPort("127.0.0.1:53"))
	end()
	if loopback.Addr() != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("a connection to loopback comes from %s", loopback)
	}
	got, err := h.source.Counters()
	must(t, err)
	if got != (PathSourceCounters{Steered: want}) {
		t.Errorf("counted %+v, want %d steered", got, want)
	}
}

// A socket that its application has bound is left alone, and one for whose path no port is free is
// connected by another port; both are counted.
func TestPathSourceLeavesAlone(t *testing.T) {
	newSteeredHost(t, cflb.SourcePort, func(h *steeredHost) {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(fd)
		must(t, unix.Bind(fd, &unix.SockaddrInet4{Port: 777, Addr: [4]byte{10, 7, 0, 2}}))
		must(t, unix.Connect(fd, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{192, 0, 2, 1}}))
		name, err := unix.Getsockname(fd)
		must(t, err)
		if own := name.(*unix.SockaddrInet4); own.Port != 777 || own.Addr[3] != 2 {
			t.Errorf("a bound socket is now at %v", own)
		}
		got, err := h.source.Counters()
		must(t, err)
		if got != (PathSourceCounters{Bound: 1}) {
			t.Errorf("counted %+v, want 1 bound", got)
		}
	})
	newSteeredHost(t, cflb.SourcePort, func(h *steeredHost) {
		to := netip.MustParseAddrPort("192.0.2.1:80")
		var free uint64 // ports that take the path, counted one after the other
		for port := h.config.PortsFrom; port <= h.config.PortsTo; port++ {
			own := netip.AddrPortFrom(h.config.Source4, port)
			if h.takesPath(own, to, 17) == nil {
				free++
			}
		}
		// UDP ports are taken by whoever has them, so all can be.
		const more = 3
		for i := range free + more {
			own, end := connectSteered(t, unix.SOCK_DGRAM, to)
			defer end()
			if err := h.takesPath(own, to, 17); err != nil && i < free/2 {
				t.Fatal(err)
			}
		}
		got, err := h.source.Counters()
		must(t, err)
		if got.Steered > free || got.NoPort < more || got.Steered+got.NoPort != free+more {
			t.Errorf("counted %+v of %d, want at most %d steered", got, free+more, free)
		}
	})
}

var _ = fuzzes(FuzzPathConnect, "path_connect4", "path_connect6")

// FuzzPathConnect connects to whatever address and port: the connection takes the path, as routers
// decode it.
func FuzzPathConnect(f *testing.F) {
	f.Add([]byte{192, 0, 2, 1, 0, 80}, false)
	f.Add([]byte{8, 8, 8, 8, 1, 187}, true)
	f.Add([]byte("\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50"), true)
	newSteeredHost(f, cflb.SourcePort, func(h *steeredHost) {
		f.Fuzz(func(t *testing.T, to []byte, stream bool) {
			if len(to) != 6 && len(to) != 18 {
				return
			}
			address, _ := netip.AddrFromSlice(to[:len(to)-2])
			end := netip.AddrPortFrom(address, uint16(to[len(to)-2])<<8|uint16(to[len(to)-1]))
			kind, protocol := unix.SOCK_DGRAM, uint8(17)
			if stream {
				kind, protocol = unix.SOCK_STREAM, 6
			}
			before, err := h.source.Counters()
			must(t, err)
			must(t, h.ns.Do(func() error {
				own, done := connectSteered(t, kind, end)
				if done == nil {
					return nil // the kernel knows no way there
				}
				defer done()
				counted, err := h.source.Counters()
				if err != nil || counted.Steered == before.Steered {
					return err
				}
				return h.takesPath(own, end, protocol)
			}))
		})
	})
}
