package e2e_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/controller"
	"sextant/packet/telemetry"
)

const (
	timedFlows   = 200
	timedSpacing = 100 * time.Microsecond // between packets
	// of the inner UDP header's source port in a frame with one segment in a reduced SRH
	timedPort = 14 + 40 + 24 + 40
)

// arrivalAt is the first packet of a flow at the other spine.
type arrivalAt struct {
	port uint16
	at   time.Time
}

// sniff tells of the first packet of each flow that comes from r1 to a spine in SRv6.
func (f *fabric) sniff(spine string) <-chan arrivalAt {
	f.t.Helper()
	var socket int
	inside(f.t, f.lab, spine, func() error {
		device, err := net.InterfaceByName("r1")
		if err != nil {
			return err
		}
		protocol := uint16(unix.ETH_P_IPV6<<8&0xff00 | unix.ETH_P_IPV6>>8)
		if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(protocol)); err != nil {
			return err
		}
		return unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol,
			Ifindex: device.Index})
	})
	out := make(chan arrivalAt, timedFlows)
	stopped := make(chan struct{})
	must(f.t, unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Usec: 100000}))
	over := atomic.Bool{}
	go func() {
		defer close(stopped)
		frame, last := make([]byte, 2048), uint16(0)
		for !over.Load() {
			n, _, err := unix.Recvfrom(socket, frame, 0)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			if n < timedPort+2 || frame[14+6] != unix.IPPROTO_ROUTING {
				continue
			}
			if port := binary.BigEndian.Uint16(frame[timedPort:]); port != last {
				last = port
				out <- arrivalAt{port, time.Now()}
			}
		}
	}()
	f.t.Cleanup(func() { over.Store(true); <-stopped; unix.Close(socket) })
	return out
}

// pulse sends packets of one UDP flow after another, and returns how to begin the next one.
func (f *fabric) pulse() (next func() api.Flow) {
	var in net.PacketConn
	inside(f.t, f.lab, "hostb", func() (err error) { // so that no ICMP error comes back
		in, err = net.ListenPacket("udp", "[2001:db8:b::1]:5002")
		return err
	})
	var current atomic.Pointer[net.Conn]
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(timedSpacing)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if c := current.Load(); c != nil {
					_, _ = (*c).Write(make([]byte, 64)) // one that is closed is followed by another
				}
			}
		}
	}()
	f.t.Cleanup(func() { close(over); <-ended; in.Close() })
	port := 20000
	return func() api.Flow {
		port++ // a flow of the same port would have the path of the earlier one
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{Port: port}}
		var c net.Conn
		inside(f.t, f.lab, "hosta", func() (err error) {
			c, err = dialer.Dial("udp", "[2001:db8:b::1]:5002")
			return err
		})
		if old := current.Swap(&c); old != nil {
			(*old).Close()
		}
		return api.Flow{Protocol: "udp", Source: c.LocalAddr().(*net.UDPAddr).AddrPort(),
			Destination: netip.MustParseAddrPort("[2001:db8:b::1]:5002")}
	}
}

// pause reports that a flow paused on the way over s1, whose queue is nearly full.
func (f *fabric) pause(flow api.Flow) {
	f.t.Helper()
	b, err := telemetry.Group{Node: 2, Sequence: f.sequence}.Append(nil)
	must(f.t, err)
	f.sequence++
	packet := inbandPacket(f.t, flow, 161, 110000)
	r := telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6, Tracked: true,
		Congested: true, DomainID: telemetry.Domain, Inner: packet,
		DSBits:   telemetry.DSIdleGap | telemetry.DSFlowHash,
		Metadata: telemetry.AppendCongestion(nil, telemetry.Congestion{IdleGapUS: 1000})}
	b, err = r.Append(b)
	must(f.t, err)
	_, err = f.reports.Write(b)
	must(f.t, err)
}

// TestTimeToTheNewPath has one flow after the other reported as paused, and logs how long it takes
// until its first packet is on the other path, and what of that until the decision and until the
// head-end's word. No time is asserted, but that packets come over the other spine after the
// decision.
func TestTimeToTheNewPath(t *testing.T) {
	f := newFabric(t)
	arrivals, next := f.sniff("s2"), f.pulse()
	var decided, applied, arrived []time.Duration
	for range timedFlows {
		flow := next()
		var sent, came time.Time
		for came.IsZero() { // now and then no other path is drawn
			sent = time.Now()
			f.pause(flow)
			select {
			case a := <-arrivals:
				if a.port == flow.Source.Port() {
					came = a.at
				}
			case <-time.After(time.Second):
			case <-t.Context().Done():
				t.Fatal("the flow does not come over the other spine")
			}
		}
		d, err := f.client.Reroutes(t.Context(), 1, true)
		must(t, err)
		if len(d) != 1 || d[0].Flow != flow || !came.After(d[0].At) {
			t.Fatalf("decided %+v, and the first packet came at %v", d, came)
		}
		var known controller.Flow
		f.await("the head-end says that the path is in force", func() bool {
			known, err = f.client.Flow(t.Context(), flow)
			return err == nil && known.AppliedMs != nil
		})
		decided = append(decided, d[0].At.Sub(sent))
		applied = append(applied, time.Duration(*known.AppliedMs*float64(time.Millisecond)))
		arrived = append(arrived, came.Sub(sent))
	}
	for _, x := range []struct {
		what  string
		times []time.Duration
	}{{"report sent to decision", decided}, {"decision to the head-end's word", applied},
		{"report sent to the first packet at the other spine", arrived}} {
		slices.Sort(x.times)
		t.Logf("%s: median %v, 90 %% %v, 99 %% %v", x.what, x.times[timedFlows/2],
			x.times[timedFlows*9/10], x.times[timedFlows*99/100])
	}
}
