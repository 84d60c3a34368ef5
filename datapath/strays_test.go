package datapath

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// A router beside which strays are taken away: its VRF has a web service that a client reaches by a
// SID of the kernel, and strays leave by the routes of its backup device, as one of FRRouting's has
// them.
const (
	strayVIP4, strayVIP6       = "10.80.0.1", "2001:db8:80::1"
	strayClient4, strayClient6 = "10.9.9.1", "2001:db8:9::1"
	strayShadow                = "fcbb:bb00:d000::"
)

const vrfCommands = `
link set blue up
link add green type vrf table 20
link set green up
addr add 10.80.0.1/32 dev blue
addr add 2001:db8:80::1/128 dev blue nodad
route add 10.9.9.0/24 dev near table 10
-6 route add 2001:db8:9::/64 via fd00:5e:1::2 dev near table 10
-6 route add fcbb:bb00:1:46::/128 encap seg6local action End.DT46 vrftable 10 dev blue
` + backupCommands

// backupCommands lead strays to the shadow.
const backupCommands = `
route add 0.0.0.0/0 encap seg6 mode encap segs fcbb:bb00:d000:: dev far table 20
-6 route add ::/0 encap seg6 mode encap segs fcbb:bb00:d000:: dev far table 20
`

// strayRouter is the machine under test, in the test's namespace, with a client behind the
// interface near.
type strayRouter struct {
	*world
	client  *linux.Netns
	web     *linux.Netns // the VRF, if it is a namespace
	program *Strays
	wire    wire // of the client
}

// ip runs commands of ip, one a line, in a namespace; "" is the test's.
func ip(t testing.TB, namespace, commands string) {
	t.Helper()
	if namespace != "" {
		commands = strings.ReplaceAll("\n"+commands, "\n", "\n-n "+namespace+" ")
	}
	must(t, linuxtest.IP(commands))
}

func newStrayRouter(t testing.TB) *strayRouter {
	t.Helper()
	r := &strayRouter{world: newWorld(t)}
	for _, sysctl := range []string{"net.ipv4.ip_forward", "net.ipv6.conf.all.seg6_enabled",
		"net.ipv6.conf.near.seg6_enabled"} {
		must(t, linux.WriteSysctl(sysctl, "1"))
	}
	var client string
	r.client, client = linuxtest.Netns(t)
	ip(t, "", `
		addr add 10.9.9.254/24 dev near
		-6 addr add 2001:db8:9::fe/64 dev near nodad
		-6 route add fcbb:bb00:d000::/48 via fd00:5e:2::2
		-6 rule add to fcbb:bb00::/32 lookup main priority 90
		link set nearpeer netns `+client)
	ip(t, client, `
		link set lo up
		link set nearpeer address `+routerMAC.String()+`
		link set nearpeer up
		addr add 10.9.9.1/24 dev nearpeer
		-6 addr add 2001:db8:9::1/64 dev nearpeer nodad
		-6 addr add fd00:5e:1::2/64 dev nearpeer nodad
		-6 route add fcbb:bb00:1::/48 via fd00:5e:1::1`)
	must(t, r.client.Do(func() error { r.wire = openWire(t); return nil }))
	return r
}

// reach gives the client a route to a VIP by a SID.
func (r *strayRouter) reach(t testing.TB, vip, sid string) {
	t.Helper()
	must(t, r.client.Do(func() error {
		ip(t, "", "route replace "+vip+" encap seg6 mode encap segs "+sid+" dev nearpeer")
		return nil
	}))
}

// ofDevice makes the VRF a device.
func ofDevice(t testing.TB, r *strayRouter) StrayVRF {
	t.Helper()
	if out, err := exec.Command("ip", "link", "add", "blue", "type", "vrf", "table",
		"10").CombinedOutput(); err != nil {
		t.Skipf("missing kernel feature: VRF devices: %s", bytes.TrimSpace(out))
	}
	// else the kernel refuses End.DT46: a table must be one VRF's
	must(t, linux.WriteSysctl("net.vrf.strict_mode", "1"))
	ip(t, "", vrfCommands)
	for _, vip := range []string{strayVIP4, strayVIP6} {
		r.reach(t, vip, "fcbb:bb00:1:46::")
	}
	return StrayVRF{Device: "blue", Backup: "green"}
}

// ofNamespace makes the VRF a network namespace.
func ofNamespace(t testing.TB, r *strayRouter) StrayVRF {
	t.Helper()
	var web string
	r.web, web = linuxtest.Netns(t)
	must(t, linuxtest.NamespaceVRF(web))
	ip(t, "", backupCommands)
	r.reach(t, strayVIP4, "fcbb:bb00:1:4::")
	r.reach(t, strayVIP6, "fcbb:bb00:1:6::")
	return StrayVRF{
		Namespace: linux.NetnsPath(web), Backup: "back",
		SIDs: []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:1:4::/64"),
			netip.MustParsePrefix("fcbb:bb00:1:6::/64")},
	}
}

// start takes strays away that come by these interfaces.
func (r *strayRouter) start(t testing.TB, vrf StrayVRF, interfaces ...string) {
	t.Helper()
	config := StraysConfig{Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")},
		VRFs: []StrayVRF{vrf}}
	for _, name := range interfaces {
		config.Interfaces = append(config.Interfaces, StrayInterface{Name: name})
	}
	program, err := OpenStrays(r.dir, config)
	must(t, err)
	t.Cleanup(program.Close)
	attachments, err := program.Commit()
	must(t, err)
	t.Log(attachments)
	r.program = program
}

// serve runs an echo server at an address of the VRF.
func (r *strayRouter) serve(t testing.TB, address string, device string) {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if device != "" {
			c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) })
		}
		return err
	}}
	listen := func() error {
		l, err := config.Listen(context.Background(), "tcp", address)
		if err != nil {
			return err
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					io.Copy(c, c)
				}()
			}
		}()
		return nil
	}
	if r.web != nil {
		must(t, r.web.Do(listen))
		return
	}
	must(t, listen())
}

// TestStrays: a connection to a VRF lives, packets of others leave by the backup, and openings are
// the kernel's. Each has a router of its own: packets behind the end of a connection, which a busy
// machine sends late or twice, are strays.
func TestStrays(t *testing.T) {
	for name, of := range map[string]func(testing.TB, *strayRouter) StrayVRF{"VRF device": ofDevice,
		"namespace": ofNamespace} {
		serving := func(t *testing.T) *strayRouter {
			r := newStrayRouter(t)
			vrf := of(t, r)
			r.start(t, vrf, "near")
			for _, vip := range []string{strayVIP4, strayVIP6} {
				r.serve(t, net.JoinHostPort(vip, "80"), vrf.Device)
			}
			return r
		}
		t.Run(name, func(t *testing.T) { serving(t).checkStrays(t) })
		for _, vip := range []string{strayVIP4, strayVIP6} {
			t.Run(name+", connection to "+vip, func(t *testing.T) {
				serving(t).checkConnection(t, vip)
			})
		}
	}
}

// checkConnection echoes a megabyte.
func (r *strayRouter) checkConnection(t *testing.T, vip string) {
	t.Helper()
	before, err := r.program.Traffic(0)
	must(t, err)
	sent := bytes.Repeat([]byte("stray"), 200_000)
	got, after := make([]byte, len(sent)), StrayTraffic{}
	must(t, r.client.Do(func() error {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(vip, "80"), wirePatience)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(wirePatience))
		go c.Write(sent)
		if _, err := io.ReadFull(c, got); err != nil {
			return err
		}
		// As long as the connection is there: what comes after its end is astray.
		after, err = r.program.Traffic(0)
		return err
	}))
	if !bytes.Equal(got, sent) {
		t.Errorf("%s: other bytes came back than were sent", vip)
	}
	if after.HereBytes-before.HereBytes < uint64(len(sent)) || after.Strays != before.Strays {
		t.Errorf("%s: counted %+v after %+v, want a megabyte here and no stray", vip, after, before)
	}
}

// checkStrays sends packets of connections that are nowhere, and looks at what leaves.
func (r *strayRouter) checkStrays(t *testing.T) {
	t.Helper()
	far := openWireOn(t, "farpeer")
	for _, stray := range []packettest.Packet{
		{Src: netip.MustParseAddr(strayClient4), Dst: netip.MustParseAddr(strayVIP4)},
		{Src: netip.MustParseAddr(strayClient6), Dst: netip.MustParseAddr(strayVIP6)},
	} {
		for _, flags := range []string{"A", "PA", "FA", "R"} {
			stray.SrcPort, stray.DstPort, stray.Flags, stray.Payload = 4711, 80, flags,
				[]byte("astray "+flags)
			before, err := r.program.Traffic(0)
			must(t, err)
			r.wire.send(t, packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t,
				packettest.To(r.sid(stray.Dst)).Around(t, stray.Bytes(t))))
			if !far.sees(netip.MustParseAddr(strayShadow), stray.Payload) {
				t.Errorf("%v %s: not sent to the shadow", stray.Dst, flags)
			}
			after, err := r.program.Traffic(0)
			must(t, err)
			if after.Strays != before.Strays+1 || after.Here != before.Here {
				t.Errorf("%v %s: counted %+v after %+v, want one stray more", stray.Dst, flags,
					after, before)
			}
		}
	}
}

// sid is by which the client reaches a VIP.
func (r *strayRouter) sid(vip netip.Addr) netip.Addr {
	switch {
	case r.web == nil:
		return netip.MustParseAddr("fcbb:bb00:1:46::")
	case vip.Is4():
		return netip.MustParseAddr("fcbb:bb00:1:4::")
	}
	return netip.MustParseAddr("fcbb:bb00:1:6::")
}

// sees waits for a packet to a SID that ends with the payload.
func (w wire) sees(sid netip.Addr, payload []byte) bool {
	buffer := make([]byte, 4096)
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); {
		n, _, err := linuxtest.Receive(w.fd, buffer)
		if err != nil {
			return false
		}
		frame := buffer[:n]
		const destination = 14 + 24
		if n > destination+16 && netip.AddrFrom16([16]byte(frame[destination:])) == sid &&
			bytes.HasSuffix(frame, payload) {
			return true
		}
	}
	return false
}

func (w wire) send(t testing.TB, frame []byte) {
	t.Helper()
	_, err := unix.Write(w.fd, frame)
	must(t, err)
}
