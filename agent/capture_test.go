package agent_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
)

var errSeen = errors.New("seen")

// send puts a frame on the wire that leads to an interface.
func (m *machine) send(iface string, frame []byte) {
	err := m.ns.Do(func() error {
		device, err := net.InterfaceByName(iface)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: device.Index})
	})
	if err != nil {
		m.t.Error(err)
	}
}

// raise brings the other ends of the machine's links up, so that frames can come from there.
func (m *machine) raise() {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		for _, name := range []string{"edge0-peer", "host0-peer"} {
			peer, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(peer); err != nil {
				return err
			}
		}
		return nil
	}))
}

// syn is a frame that opens a flow from a client to the service web, or is made so that the edge
// drops it.
func syn(port uint16, destinationPort byte) []byte {
	frame := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 70,
		6, 64}, netip.MustParseAddr("2001:db8:c::1").AsSlice()...)
	frame = append(frame, netip.MustParseAddr("2001:db8:80::80").AsSlice()...)
	// and a payload
	tcp := [70]byte{byte(port >> 8), byte(port), 0, destinationPort, 7: 1, 12: 0x50, 13: 2,
		14: 0xff, 15: 0xff}
	return append(frame, tcp[:]...)
}

// traced is a SYN behind an IOAM trace of node 9, with 12 octets in its queue.
func traced(port uint16, destinationPort byte) []byte {
	frame := syn(port, destinationPort)
	header := []byte{6, 2, 1, 0, 0x31, 18, 0, 0, 0, 123, 2 << 3, 0, 0x82, 0, 0, 0, 64, 0, 0, 9, 0,
		0,
		0, 12}
	frame = slices.Insert(frame, 54, header...)
	frame[19], frame[20] = byte(70+len(header)), 0
	return frame
}

// captureOne captures until a packet comes, while send sends again and again: the first may come
// before the capture has begun. What is to be tried meanwhile is, when one has come and the capture
// has not ended.
func (r *running) captureOne(want api.Capture, send func(),
	meanwhile ...func()) api.CapturedPacket {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	stop, stopped := make(chan struct{}), make(chan struct{})
	defer func() { close(stop); <-stopped }()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				send()
			}
		}
	}()
	var got api.CapturedPacket
	var err error
	for ended := false; !ended; { // the one before ends after its caller has gone
		err = r.Capture(ctx, want, func(p api.CapturedPacket) error {
			got = p
			for _, try := range meanwhile {
				try()
			}
			return errSeen
		})
		var refusal *api.Error
		ended = !errors.As(err, &refusal) || refusal.Code != api.Conflict
	}
	if !errors.Is(err, errSeen) {
		r.t.Fatalf("capture: %v", err)
	}
	return got
}

// A captured packet comes with what the edge did with it, for whom, and the filter leaves others
// out; meanwhile nobody else captures, and when it ends the plain program is back.
func TestCaptureAtEdge(t *testing.T) {
	m := newMachine(t)
	m.reach()
	m.raise()
	a := m.start(nodeText)
	defer a.stop()
	before := m.state()
	both := func() {
		m.send("edge0-peer", syn(40000, 80))
		m.send("edge0-peer", syn(40001, 99))
	}
	p := a.captureOne(api.Capture{Service: "web", Bytes: 80}, both)
	e := p.Explanation
	if e.Verdict != "transmit" || e.Service != "web" || e.Flow.Source.Port() != 40000 ||
		len(e.OfferedTo) != 2 || len(p.Frame) != 80 || e.Bytes != 124 ||
		!strings.HasPrefix(e.Why, "offered to web") || time.Since(p.Time).Abs() > time.Minute {
		t.Errorf("captured %+v", p)
	}
	m.await(func() bool { return slices.Equal(m.state(), before) })
	for range 20 { // others, as of neighbor discovery, come too
		if p = a.captureOne(api.Capture{Interface: "edge0"}, func() {
			m.send("edge0-peer", traced(40000, 80))
		}); p.Explanation.Telemetry != nil {
			break
		}
	}
	if got := p.Explanation.Telemetry; len(got) != 1 || got[0].Format != "ioam-trace" ||
		len(got[0].Hops) != 1 || *got[0].Hops[0].Node != 9 || *got[0].Hops[0].QueueBytes != 12 {
		t.Errorf("of a packet with a trace is captured: %+v", got)
	}
	for _, e := range a.explain(api.Question{Frames: []api.Frame{traced(40000, 80)}}) {
		if diff := cmp.Diff(p.Explanation.Telemetry, e.Telemetry); diff != "" {
			t.Errorf("a packet with a trace is explained otherwise than captured: %s", diff)
		}
	}
	p = a.captureOne(api.Capture{Verdict: "drop", Interface: "edge0"}, both, func() {
		err := a.Capture(t.Context(), api.Capture{}, func(api.CapturedPacket) error { return nil })
		var refusal *api.Error
		if !errors.As(err, &refusal) || refusal.Code != api.Conflict {
			t.Errorf("a second capture: %v", err)
		}
	})
	if e := p.Explanation; e.Reason != "no_service" || e.Interface != "edge0" || e.Flow != nil &&
		e.Flow.Source.Port() != 40001 {
		t.Errorf("captured %+v", p)
	}
	m.await(func() bool { return slices.Equal(m.state(), before) })
}

// await waits until something holds that follows from what was done.
func (m *machine) await(holds func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatal("it does not come about")
		}
	}
}

// What a host made of an offer is in its capture.
func TestCaptureAtHost(t *testing.T) {
	m := newMachine(t)
	m.reach()
	m.raise()
	a := m.start(nodeText)
	defer a.stop()
	flow := &api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8:c::1]:40000"),
		Destination: netip.MustParseAddrPort("[2001:db8:80::81]:443"), Protocol: config.TCP,
	}
	must(t, m.setThreshold(a, "api"))
	frame := m.offered(t, a.explain(api.Question{Role: api.Host, Flow: flow})[0])
	p := a.captureOne(api.Capture{Role: api.Host, Service: "api"},
		func() { m.send("host0-peer", frame) })
	if e := p.Explanation; e.Offer != "refused" || e.SID == nil || e.Interface != "host0" ||
		e.Why != "passed on: the acceptance policy refuses it" {
		t.Errorf("captured %+v", p)
	}
}

func TestCaptureRefuses(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	for _, test := range []struct {
		want api.Capture
		text string
	}{
		{api.Capture{Interface: "none"}, "none of the interfaces has a program"},
		{api.Capture{Role: "router"}, "this node has no router"},
	} {
		if err := a.Capture(t.Context(), test.want, nil); err == nil ||
			!strings.Contains(err.Error(), test.text) {
			t.Errorf("%+v: %v, want %q", test.want, err, test.text)
		}
	}
}

// A capture goes on for longer than the agent takes to look at its programs, and it is not taken
// for a foreign program meanwhile.
func TestCaptureOutlivesTheWatch(t *testing.T) {
	m := newMachine(t)
	m.reach()
	m.raise()
	a := m.start(nodeText)
	defer a.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := uint16(0); ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				m.send("edge0-peer", syn(40000+n%1000, 80))
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	var first, last time.Time
	err := a.Capture(ctx, api.Capture{Service: "web"}, func(p api.CapturedPacket) error {
		if last = p.Time; first.IsZero() {
			first = p.Time
		}
		if last.Sub(first) > 3*time.Second {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		t.Errorf("captured for %v: %v", last.Sub(first), err)
	}
	status, err := a.Status(t.Context())
	must(t, err)
	for _, w := range status.Warnings {
		if strings.Contains(w, "foreign") {
			t.Errorf("warned: %s", w)
		}
	}
}
