package lab_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/lab"
	"sextant/lab/netem"
	"sextant/linux"
)

const wiredPair = `
name: NAME
topology:
  nodes:
    a: {addresses: ["fd00::a"]}
    b: {addresses: ["fd00::b"]}
  links:
    - {endpoints: ["a:eth0", "b:eth0"], wire: user, seed: 7, `

// upWired brings a pair of nodes up, with a link that says more.
func upWired(t *testing.T, link string) *lab.Lab {
	t.Helper()
	name := newName(t)
	l, err := lab.Up(t.Context(), parse(t, name, wiredPair+link+"}\n"), wiredOptions)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wiredOptions let the test program be the wire.
var wiredOptions = lab.Options{WireProcess: []string{"{self}", "helper", "wire", "{dir}/wire.json"}}

// roomy makes sockets with memory for what comes while their reader does not run.
var roomy = net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
	failure := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	})
	return errors.Join(failure, err)
}}

// numbers sends datagrams numbered from 0 from node a to node b, and returns the numbers in the
// order in which they come, until the wire has had all and none comes for a while.
func numbers(t *testing.T, l *lab.Lab, count int) []int {
	t.Helper()
	var receiver, sender net.PacketConn
	listen := func(address string, conn *net.PacketConn) func() error {
		return func() (err error) {
			*conn, err = roomy.ListenPacket(t.Context(), "udp6", address)
			return err
		}
	}
	inside(t, l, "b", listen("[fd00::b]:7", &receiver))
	defer receiver.Close()
	inside(t, l, "a", listen("[fd00::a]:0", &sender))
	defer sender.Close()
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[fd00::b]:7"))
	before := states(t, l)[0].Directions[0].Counters.Packets
	go func() {
		for i := range count {
			// what is not sent does not come
			_, _ = sender.WriteTo(binary.BigEndian.AppendUint32(nil, uint32(i)), to)
			if i%50 == 49 {
				time.Sleep(time.Millisecond) // the queues between the namespaces hold some hundred
			}
		}
	}()
	var came []int
	var buffer [64]byte
	for over, deadline := false, time.Now().Add(patience); ; {
		if err := receiver.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, _, err := receiver.ReadFrom(buffer[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if over || len(came) == count {
				return came
			}
			d := states(t, l)[0].Directions[0]
			over = d.Counters.Packets >= before+uint64(count) && d.UnderWay == 0 ||
				time.Now().After(deadline)
			continue
		}
		if err != nil || n != 4 {
			t.Fatalf("received %d bytes: %v", n, err)
		}
		came = append(came, int(binary.BigEndian.Uint32(buffer[:])))
	}
}

func states(t *testing.T, l *lab.Lab) []lab.LinkState {
	t.Helper()
	links, err := l.LinkStates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return links
}

func change(t *testing.T, l *lab.Lab, name string, f func(*netem.Profile)) {
	t.Helper()
	err := l.ChangeLinks(t.Context(), name, lab.LinkChange{Profile: func(p *netem.Profile) error {
		f(p)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// Packets that the wire does not lose come once, in order; and it loses as many as its seed says,
// of those that came.
func TestWireLosesWhatItsSeedSays(t *testing.T) {
	l := upWired(t, "delay: 2ms, forward: {loss: 10%}")
	const count = 2000
	came := numbers(t, l, count)
	if !slices.IsSorted(came) || len(slices.Compact(slices.Clone(came))) != len(came) {
		t.Error("packets came twice or out of order")
	}
	forward, back := states(t, l)[0].Directions[0], states(t, l)[0].Directions[1]
	if forward.Counters.Lost == 0 || back.Counters.Lost != 0 {
		t.Errorf("lost %d forward and %d back, want some and none", forward.Counters.Lost,
			back.Counters.Lost)
	}
	replay := netem.NewStream(7, "a:eth0", forward.Profile)
	for range forward.Counters.Packets {
		replay.Arrive(0, 0)
	}
	if got, want := forward.Counters.Lost, replay.Counters().Lost; got != want {
		t.Errorf("of %d packets %d were lost, the seed says %d", forward.Counters.Packets, got,
			want)
	}
	if forward.Overruns+forward.TooLong+forward.Unsent > 0 {
		t.Errorf("the wire failed: %+v", forward)
	}
	if missing := count - len(came); missing > int(forward.Counters.Lost) {
		t.Errorf("%d packets did not come, and the wire has lost %d only", missing,
			forward.Counters.Lost)
	}
}

func TestWireIsCutAndRestored(t *testing.T) {
	l := upWired(t, "delay: 1ms")
	if came := numbers(t, l, 10); len(came) != 10 {
		t.Fatalf("%d packets of 10 came", len(came))
	}
	change(t, l, "a--b", func(p *netem.Profile) { p.Cut = true })
	if d := states(t, l)[0].Directions; !d[0].Profile.Cut || !d[1].Profile.Cut ||
		d[0].Profile.Delay != time.Millisecond {
		t.Errorf("after the cut, the link does %v and %v", d[0].Profile, d[1].Profile)
	}
	inside(t, l, "a", func() error { return shout("[fd00::b]:7") })
	eventually(t, "packets are cut",
		func() bool { return states(t, l)[0].Directions[0].Counters.Cut > 0 })
	change(t, l, "b:eth0--a:eth0", func(p *netem.Profile) { p.Cut = false })
	if came := numbers(t, l, 10); len(came) != 10 {
		t.Errorf("after it was restored, %d packets of 10 came", len(came))
	}
}

// shout sends a datagram.
func shout(to string) error {
	conn, err := net.Dial("udp6", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte("!"))
	return err
}

// A cut that takes the carrier away is seen by the node, and undone.
func TestWireWithoutCarrier(t *testing.T) {
	l := upWired(t, "delay: 1ms")
	carrier := func() (on bool) {
		inside(t, l, "a", func() error {
			port, err := net.InterfaceByName("eth0")
			on = err == nil && port.Flags&net.FlagRunning != 0
			return err
		})
		return on
	}
	set := func(on bool) {
		t.Helper()
		keep := func(*netem.Profile) error { return nil }
		if err := l.ChangeLinks(t.Context(), "a:eth0",
			lab.LinkChange{Profile: keep, Carrier: &on}); err != nil {
			t.Fatal(err)
		}
	}
	set(false)
	eventually(t, "the carrier is gone", func() bool { return !carrier() })
	set(true)
	eventually(t, "the carrier is back", carrier)
	if came := numbers(t, l, 10); len(came) != 10 {
		t.Errorf("with the carrier back, %d packets of 10 came", len(came))
	}
}

// TCP segments come as frames of the MTU, whatever the stack would leave to a device, and not one
// is refused.
func TestWireCarriesTCP(t *testing.T) {
	l := upWired(t, "delay: 1ms, rate: 100mbit, queue: 1s")
	var listener net.Listener
	inside(t, l, "b", func() (err error) {
		listener, err = net.Listen("tcp6", "[fd00::b]:80")
		return err
	})
	defer listener.Close()
	content := bytes.Repeat([]byte("segment"), 150_000)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return // the dial fails too
		}
		defer conn.Close()
		_, _ = conn.Write(content) // what is not written is missed
	}()
	answer, err := ask(l, "a", netip.Addr{}, "[fd00::b]:80")
	if err != nil {
		t.Fatal(err)
	}
	if answer != string(content) {
		t.Errorf("%d bytes came, or others than the %d that were sent", len(answer), len(content))
	}
	back := states(t, l)[0].Directions[1]
	if least := uint64(len(content) / 1440); back.TooLong > 0 || back.Counters.Packets < least {
		t.Errorf("%d frames were too long, %d passed; want none and %d at least", back.TooLong,
			back.Counters.Packets, least)
	}
}

// A lab whose file does not say what impairs a link has what the kernel can do, and says which.
func TestWireOfTheKernelsChoice(t *testing.T) {
	name := newName(t)
	text := strings.ReplaceAll(wiredPair, "wire: user, ", "") + "delay: 1ms}\n"
	l, err := lab.Up(t.Context(), parse(t, name, text), wiredOptions)
	if err != nil {
		t.Fatal(err)
	}
	if came := numbers(t, l, 10); len(came) != 10 {
		t.Errorf("%d packets of 10 came", len(came))
	}
	s := states(t, l)[0]
	if s.Wire != lab.WireUser && s.Wire != lab.WireKernel ||
		s.Directions[0].Profile.Delay != time.Millisecond {
		t.Errorf("the link is %q and does %v", s.Wire, s.Directions[0].Profile)
	}
}

// A lab whose process of wires has ended, so that its links carry nothing, is a leftover, which the
// next Up replaces.
func TestLabWithoutItsWire(t *testing.T) {
	name := newName(t)
	spec := parse(t, name, strings.Replace(wiredPair, `["fd00::a"]`,
		`["fd00::a"], processes: [{name: sleep, command: [sleep, "1000"]}]`, 1)+"delay: 1ms}\n")
	l, err := lab.Up(t.Context(), spec, wiredOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := linux.OpenCgroup(l.Wire.Cgroup).Kill(); err != nil {
		t.Fatal(err)
	}
	if s := listed(t, name); s == nil || s.Status != lab.LeftOver {
		t.Errorf("without its wire the lab is %+v", s)
	}
	if l, err = lab.Up(t.Context(), spec, wiredOptions); err != nil {
		t.Fatal(err)
	}
	if came := numbers(t, l, 10); len(came) != 10 {
		t.Errorf("%d packets of 10 came", len(came))
	}
}

// A link that is not there is no file, and the links that are there are named.
func TestNoSuchLink(t *testing.T) {
	l := &lab.Lab{Name: "lab1", Links: []lab.Link{{Ends: [2]string{"a:eth0", "b:eth0"}}}}
	err := l.ChangeLinks(t.Context(), "a--c", lab.LinkChange{})
	wantError(t, err, os.ErrNotExist, `no link or end "a--c"; it has a:eth0--b:eth0`)
}
