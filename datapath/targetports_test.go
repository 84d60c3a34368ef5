package datapath

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// targetWorld is a client and a server whose sockets do not listen where the client connects to.
type targetWorld struct {
	t              *testing.T
	client, server *linux.Netns
	dir            string
}

const targetWiring = `
link set lo up
link add eth0 type veth peer name eth0 netns CLIENT
link set eth0 up
addr add 192.0.2.2/24 dev eth0
addr add 2001:db8:1::2/64 dev eth0 nodad
addr add 198.51.100.1/32 dev lo
addr add 2001:db8:80::1/128 dev lo nodad
-n CLIENT link set eth0 up
-n CLIENT addr add 192.0.2.1/24 dev eth0
-n CLIENT addr add 2001:db8:1::1/64 dev eth0 nodad
-n CLIENT -4 route add 198.51.100.1 via 192.0.2.2
-n CLIENT -6 route add 2001:db8:80::1 via 2001:db8:1::2
`

// targetHost is a server's own address and a virtual one, in one family.
type targetHost struct{ vip, own netip.Addr }

var targetHosts = map[string]targetHost{
	"IPv4": {netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.2")},
	"IPv6": {netip.MustParseAddr("2001:db8:80::1"), netip.MustParseAddr("2001:db8:1::2")},
}

func newTargetWorld(t *testing.T) *targetWorld {
	w := &targetWorld{t: t}
	var name string
	w.client, name = linuxtest.Netns(t)
	w.server, _ = linuxtest.Netns(t)
	bpffs, _, err := linux.BPFFS()
	must(t, err)
	dir, err := os.MkdirTemp(bpffs, "sextant-test-")
	must(t, err)
	w.dir = filepath.Join(dir, "pod")
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, w.server.Do(func() error {
		if err := linux.WriteSysctl("net.ipv6.conf.all.disable_ipv6", "0"); err != nil {
			return err
		}
		return linuxtest.IP(strings.ReplaceAll(targetWiring, "CLIENT", name))
	}))
	return w
}

func (w *targetWorld) set(list ...TargetPort) {
	w.t.Helper()
	must(w.t, SetTargetPorts(w.server, w.dir, "eth0", list))
}

// target is a port of a service at both families.
func target(protocol uint8, port, to uint16) (list []TargetPort) {
	for _, h := range targetHosts {
		list = append(list, TargetPort{ServiceKey{VIP: h.vip, Port: port, Protocol: protocol},
			h.own, to})
	}
	return list
}

// listen answers each connection with the address that it has at the server.
func (w *targetWorld) listen(address string, multipath bool) net.Listener {
	w.t.Helper()
	var l net.Listener
	must(w.t, w.server.Do(func() (err error) {
		var config net.ListenConfig
		config.SetMultipathTCP(multipath)
		l, err = config.Listen(w.t.Context(), "tcp", address)
		return err
	}))
	w.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.LocalAddr())
			c.Close()
		}
	}()
	return l
}

// ask connects to a port, and returns what the server says.
func (w *targetWorld) ask(at netip.AddrPort) (string, error) { return w.askFrom(0, at) }

// askFrom does so from a port of the client; 0: any. The client's end of the connection before has
// the port until the server has acknowledged that it is closed.
func (w *targetWorld) askFrom(port int, at netip.AddrPort) (string, error) {
	var c net.Conn
	from := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}}
	for deadline := time.Now().Add(wirePatience); ; time.Sleep(time.Millisecond) {
		err := w.client.Do(func() (err error) {
			c, err = from.Dial("tcp", at.String())
			return err
		})
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return "", err
		}
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	return string(text), err
}

// reusesPort connects from one port to a service, to the socket's own port and to both again: of
// each connection the server's end is in TIME_WAIT when the next one comes.
func (w *targetWorld) reusesPort(service, own netip.AddrPort) {
	w.t.Helper()
	const port = 40000
	for i, at := range []netip.AddrPort{own, service, own, service, service} {
		if got, err := w.askFrom(port, at); err != nil || got != at.String() {
			w.t.Errorf("connection %d from one port, to %s: %q, %v", i+1, at, got, err)
		}
	}
}

// Connections to a service's port reach the socket on the target port, have the service's port at
// both ends, and do so when the server has started again; another service that has the target port
// as its own is another one; and afterwards all is as before.
func TestTargetPortTCP(t *testing.T) {
	w := newTargetWorld(t)
	w.set(append(target(unix.IPPROTO_TCP, 80, 8080), target(unix.IPPROTO_TCP, 8080, 9090)...)...)
	for family, h := range targetHosts {
		t.Run(family, func(t *testing.T) {
			for _, c := range []struct {
				bound     string
				multipath bool
			}{{"", false}, {h.own.String(), false}, {"", true}} {
				first := w.listen(net.JoinHostPort(c.bound, "8080"), c.multipath)
				second := w.listen(net.JoinHostPort(c.bound, "9090"), c.multipath)
				for _, port := range []uint16{80, 8080, 80} {
					at := netip.AddrPortFrom(h.vip, port)
					if got, err := w.ask(at); err != nil || got != at.String() {
						t.Errorf("%s, listener %v: %q, %v", at, c, got, err)
					}
				}
				own := netip.AddrPortFrom(h.own, 8080)
				if got, err := w.ask(own); err != nil || got != own.String() {
					t.Errorf("%s: %q, %v", own, got, err)
				}
				at := netip.AddrPortFrom(h.vip, 80)
				w.reusesPort(at, own)
				first.Close()
				second.Close()
				if _, err := w.ask(at); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("%s without a listener: %v, want it to be refused", at, err)
				}
			}
		})
	}
	w.listen(":8080", false)
	w.set(target(unix.IPPROTO_TCP, 81, 8080)...)
	vip := targetHosts["IPv6"].vip
	if _, err := w.ask(netip.AddrPortFrom(vip, 80)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port that is wanted no longer: %v, want it to be refused", err)
	}
	if _, err := w.ask(netip.AddrPortFrom(vip, 81)); err != nil {
		t.Errorf("a port that is wanted now: %v", err)
	}
	must(t, UnsetTargetPorts(w.server, w.dir))
	if _, err := w.ask(netip.AddrPortFrom(vip, 81)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("at last: %v, want it to be refused", err)
	}
}

// Datagrams to a service's port reach the socket on the target port, in fragments too, and the
// answers come from the service's port.
func TestTargetPortUDP(t *testing.T) {
	w := newTargetWorld(t)
	w.set(target(unix.IPPROTO_UDP, 53, 5353)...)
	for family, h := range targetHosts {
		t.Run(family, func(t *testing.T) {
			var server, client net.Conn
			must(t, w.server.Do(func() (err error) {
				server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(
					netip.AddrPortFrom(h.vip, 5353)))
				return err
			}))
			defer server.Close()
			go echoTarget(server.(*net.UDPConn))
			must(t, w.client.Do(func() (err error) {
				client, err = net.Dial("udp", netip.AddrPortFrom(h.vip, 53).String())
				return err
			}))
			defer client.Close()
			for _, size := range []int{0, 1, 2, 1400, 1473, 9001, 60000} {
				answer := make([]byte, 1<<16)
				_, err := client.Write(make([]byte, size))
				must(t, err)
				n, err := client.Read(answer) // of the address that it is connected to alone
				must(t, err)
				if n != size {
					t.Errorf("%d bytes came back of %d", n, size)
				}
			}
		})
	}
}

// Several ports of a service lead to one UDP socket, one of them its own: answers come from the
// port that was asked, for each client.
func TestTargetPortsOfOneSocket(t *testing.T) {
	w := newTargetWorld(t)
	ports := []uint16{53, 54, 5353}
	var list []TargetPort
	for _, port := range ports {
		list = append(list, target(unix.IPPROTO_UDP, port, 5353)...)
	}
	w.set(list...)
	for family, h := range targetHosts {
		t.Run(family, func(t *testing.T) {
			var server *net.UDPConn
			must(t, w.server.Do(func() (err error) {
				server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(
					netip.AddrPortFrom(h.vip, 5353)))
				return err
			}))
			defer server.Close()
			go echoTarget(server)
			var clients [2]*net.UDPConn
			for i := range clients {
				must(t, w.client.Do(func() (err error) {
					clients[i], err = net.ListenUDP("udp", nil)
					return err
				}))
				defer clients[i].Close()
			}
			for i := range 12 {
				at := [2]netip.AddrPort{netip.AddrPortFrom(h.vip, ports[i%3]),
					netip.AddrPortFrom(h.vip, ports[(i+1)%3])}
				for n, c := range clients { // both ask before one reads
					_, err := c.WriteToUDPAddrPort([]byte{byte(n)}, at[n])
					must(t, err)
				}
				for n, c := range clients {
					_, from, err := c.ReadFromUDPAddrPort(make([]byte, 10))
					must(t, err)
					if got := netip.AddrPortFrom(from.Addr().Unmap(), from.Port()); got != at[n] {
						t.Errorf("asked %s, and %s answers", at[n], got)
					}
				}
			}
		})
	}
}

// programs loads the programs once more, with the maps of the last set.
func (w *targetWorld) programs() map[string]*ebpf.Program {
	w.t.Helper()
	c, err := newCollection(w.dir, loadTargetPort)
	must(w.t, err)
	w.t.Cleanup(c.close)
	spec, err := loadTargetPort()
	must(w.t, err)
	programs, err := c.load(spec, "targets", "target_sources", "target_asked", "target_listeners")
	must(w.t, err)
	return programs
}

func runTarget(t *testing.T, program *ebpf.Program, frame []byte) []byte {
	t.Helper()
	_, after, err := program.Test(frame)
	must(t, err)
	return after
}

func echoTarget(c *net.UDPConn) {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := c.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		_, _ = c.WriteToUDPAddrPort(buffer[:n], from) // a lost answer is missed by who waits
	}
}

// Of the packets that programs see, datagrams of target ports change in their port and checksum,
// and nothing else does.
func TestTargetPortPackets(t *testing.T) {
	w := newTargetWorld(t)
	w.set(append(target(unix.IPPROTO_UDP, 53, 5353), target(unix.IPPROTO_TCP, 80, 8080)...)...)
	programs := w.programs()
	wire := packettest.FromClient()
	for family, h := range targetHosts {
		base := packettest.Web6("")
		if h.vip.Is4() {
			base = packettest.Web4("")
		}
		in := base.To(h.vip, 53).Of(layers.IPProtocolUDP, 1, 2, 3, 4, 5)
		out := in.To(h.vip, 5353).Reply("")
		for _, c := range []struct {
			what, program string
			packet, want  packettest.Packet
		}{
			{"to the service", "target_arrive", in, in.To(h.vip, 5353)},
			{"to another port", "target_arrive", in.To(h.vip, 54), in.To(h.vip, 54)},
			{"to another address", "target_arrive", in.To(h.own, 53), in.To(h.own, 53)},
			{"TCP", "target_arrive", base.To(h.vip, 80), base.To(h.vip, 80)},
			{"from the socket", "target_leave", out, in.Reply("")},
			{"from another socket", "target_leave", in.To(h.vip, 5354).Reply(""),
				in.To(h.vip, 5354).Reply("")},
			{"TCP leaves", "target_leave", base.To(h.vip, 5353).Reply("A"),
				base.To(h.vip, 5353).Reply("A")},
		} {
			t.Run(family+"/"+c.what, func(t *testing.T) {
				after := runTarget(t, programs[c.program], wire.Frame(t, c.packet.Bytes(t)))
				packettest.WantFrame(t, after, wire.Frame(t, c.want.Bytes(t)))
			})
		}
	}
	// An IPv4 datagram without a checksum stays without one.
	h := targetHosts["IPv4"]
	in := packettest.Web4("").To(h.vip, 53).Of(layers.IPProtocolUDP, 9).Bytes(t)
	want := packettest.Web4("").To(h.vip, 5353).Of(layers.IPProtocolUDP, 9).Bytes(t)
	in, want = packettest.Patched(in, 26, 0, 0), packettest.Patched(want, 26, 0, 0)
	after := runTarget(t, programs["target_arrive"], wire.Frame(t, in))
	packettest.WantFrame(t, after, wire.Frame(t, want))
}

// Whatever ports are set after others: datagrams, whole and in fragments, change as a plain
// map of the ports that are set now says, and TCP does not. Some have a checksum of zero, which UDP
// writes as 0xffff.
func TestTargetPortRandom(t *testing.T) {
	w := newTargetWorld(t)
	var programs map[string]*ebpf.Program
	r := rand.New(rand.NewPCG(8, 53))
	for range 6 {
		list := randomTargets(r)
		w.set(list...)
		if programs == nil {
			programs = w.programs()
		}
		arrive, leave := map[ServiceKey]uint16{}, map[ServiceKey]uint16{}
		for _, p := range list {
			if p.Protocol == unix.IPPROTO_UDP {
				arrive[p.ServiceKey] = p.Target
				leave[ServiceKey{VIP: p.VIP, Port: p.Target, Protocol: p.Protocol}] = p.Port
			}
		}
		for range 300 {
			in, key := randomToTarget(r)
			name, want := "target_arrive", in
			if to, ok := arrive[key]; ok {
				want = in.To(key.VIP, to)
			}
			if r.IntN(2) == 0 {
				name, want = "target_leave", in
				if to, ok := leave[key]; ok {
					want = in.To(key.VIP, to)
				}
				in, want = in.Reply("A"), want.Reply("A")
			}
			if r.IntN(4) == 0 {
				zeroSum(in.Payload, want.Bytes(t))
			}
			compareTargets(t, r, programs[name], in.Bytes(t), want.Bytes(t))
		}
	}
}

// zeroSum changes the first two bytes of a payload, so that the sum of a datagram with it is zero.
func zeroSum(payload, datagram []byte) {
	copy(payload, datagram[len(datagram)-len(payload)-2:][:2])
}

// compareTargets gives a program a packet, or two fragments of it.
func compareTargets(t *testing.T, r *rand.Rand, program *ebpf.Program, in, want []byte) {
	t.Helper()
	header := 40
	if in[0]>>4 == 4 {
		header = 20
	}
	wire := []packettest.Link{packettest.FromClient(), packettest.FromClient(7)}[r.IntN(2)]
	parts := [][2]int{{0, len(in) - header}}
	if len(in)-header > 24 && r.IntN(2) == 0 {
		parts = [][2]int{{0, 24}, {24, len(in) - header}}
	}
	for _, part := range parts {
		frame, whole := in, want
		if len(parts) > 1 {
			frame = packettest.Part(in, 9, part[0], part[1])
			whole = packettest.Part(want, 9, part[0], part[1])
		}
		packettest.WantFrame(t, runTarget(t, program, wire.Frame(t, frame)),
			wire.Frame(t, whole))
	}
}

// Few ports and addresses, so that packets meet targets, and targets each other.
const randomPorts = 6

// randomTargets are ports of virtual addresses; those of UDP have sockets of their own.
func randomTargets(r *rand.Rand) (list []TargetPort) {
	for _, family := range []string{"IPv4", "IPv6"} {
		h := targetHosts[family]
		for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			to := r.Perm(randomPorts)
			for port := range randomPorts {
				if r.IntN(2) == 0 {
					list = append(list, TargetPort{ServiceKey{VIP: h.vip, Port: uint16(port + 1),
						Protocol: protocol}, h.own, uint16(to[port] + 1)})
				}
			}
		}
	}
	return list
}

// randomToTarget is a packet to one of the ports.
func randomToTarget(r *rand.Rand) (packettest.Packet, ServiceKey) {
	family, p := "IPv6", packettest.Web6("A")
	if r.IntN(2) == 0 {
		family, p = "IPv4", packettest.Web4("A")
	}
	h := targetHosts[family]
	key := ServiceKey{VIP: h.vip, Port: uint16(1 + r.IntN(randomPorts)), Protocol: unix.IPPROTO_UDP}
	if r.IntN(8) == 0 {
		key.VIP = h.own
	}
	if r.IntN(4) == 0 {
		key.Protocol = unix.IPPROTO_TCP
	}
	payload := make([]byte, 2+r.IntN(60))
	for i := range payload[2:] {
		payload[2+i] = byte(r.Uint32())
	}
	return p.To(key.VIP, key.Port).Of(layers.IPProtocol(key.Protocol), payload...), key
}
