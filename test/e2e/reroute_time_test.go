package e2e_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/controller"
)

// timedFlows is how many flows TestTimeToTheNewPath has move: "-args -reroutes 300" for tails.
var timedFlows = flag.Int("reroutes", 20, "how many flows TestTimeToTheNewPath has move")

// timedSpacing is left between packets after the pause: "-args -spacing 40us".
var timedSpacing = flag.Duration("spacing", 150*time.Microsecond,
	"between packets of TestTimeToTheNewPath after the pause")

const (
	timedGap     = 20 * time.Millisecond // of the sink
	timedPause   = 30 * time.Millisecond // of a flow
	timedPackets = 40                    // of a flow before its pause, a millisecond apart
	timedTo      = "[2001:db8:b::1]:5002"
	// timedThreads may run Go at a time, so that none waits for those that upload.
	timedThreads = 8
	// timedPriority is above that which agents and controller have by chrt(1), as they would be on
	// machines of their own.
	timedPriority = 90
)

// sighting is a frame of a UDP flow to timedTo, and when the kernel took it in.
type sighting struct {
	port uint16
	at   time.Time
}

// sightings are those of one place.
type sightings struct {
	news chan struct{}

	mutex sync.Mutex
	all   []sighting
}

// of returns when frames of a flow were seen, in order.
func (s *sightings) of(port uint16) (times []time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, x := range s.all {
		if x.port == port {
			times = append(times, x.at)
		}
	}
	return times
}

func (s *sightings) add(x sighting) {
	s.mutex.Lock()
	s.all = append(s.all, x)
	s.mutex.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// await waits until a flow was seen more often than a number of times. It is false if it was not.
func (s *sightings) await(port uint16, more int, within time.Duration) bool {
	for over := time.After(within); len(s.of(port)) <= more; {
		select {
		case <-s.news:
		case <-over:
			return false
		}
	}
	return true
}

func (s *sightings) clear() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.all = s.all[:0]
}

// tap tells of each frame that comes in by a device and has a timed flow in it, also in SRv6, in
// telemetry, and in a report.
func (f *fabric) tap(node, device string) *sightings {
	f.t.Helper()
	var socket int
	inside(f.t, f.lab, node, func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		protocol := uint16(unix.ETH_P_IPV6<<8&0xff00 | unix.ETH_P_IPV6>>8)
		if socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(protocol)); err != nil {
			return err
		}
		return errors.Join(
			unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: d.Index}),
			unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
				&unix.Timeval{Usec: 100000}))
	})
	out := &sightings{news: make(chan struct{}, 1)}
	stopped, over := make(chan struct{}), atomic.Bool{}
	go func() {
		defer close(stopped)
		frame, control := make([]byte, 2048), make([]byte, 128)
		for !over.Load() {
			n, used, _, from, err := unix.Recvmsg(socket, frame, control, 0)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			link, ok := from.(*unix.SockaddrLinklayer)
			if port := timedPort(frame[:n]); ok && link.Pkttype == unix.PACKET_HOST && port != 0 {
				out.add(sighting{port, kernelTime(control[:used])})
			}
		}
	}()
	f.t.Cleanup(func() { over.Store(true); <-stopped; unix.Close(socket) })
	return out
}

// timedPort is the source port of a UDP flow to timedTo, 0 if the frame has none in it.
func timedPort(frame []byte) uint16 {
	to := netip.MustParseAddrPort(timedTo)
	address := to.Addr().AsSlice()
	want := binary.BigEndian.AppendUint16(nil, to.Port())
	for {
		at := bytes.Index(frame, address)
		if at < 0 || at+20 > len(frame) {
			return 0
		}
		frame = frame[at+16:]
		if bytes.Equal(frame[2:4], want) {
			return binary.BigEndian.Uint16(frame)
		}
	}
}

// kernelTime reads SO_TIMESTAMPNS.
func kernelTime(control []byte) time.Time {
	messages, _ := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		if m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			s := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return time.Unix(s.Unix())
		}
	}
	return time.Time{}
}

// timed is the sender of flows that pause, and what sees them.
type timed struct {
	*fabric
	sink, reports, elsewhere *sightings // at the controller, and at the other spine
	port                     int
}

// sendUntil sends packets of a flow until it is seen, or for a time. A thread does it that the
// kernel prefers to all others: a host's own, for what is measured.
func (s *timed) sendUntil(out net.Conn, c *sightings, port uint16, within time.Duration) bool {
	s.t.Helper()
	over, ended := atomic.Bool{}, make(chan error, 1)
	spacing := unix.NsecToTimespec(timedSpacing.Nanoseconds())
	go func() {
		runtime.LockOSThread() // which ends with the goroutine
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr,
			Policy: unix.SCHED_FIFO, Priority: timedPriority}, 0)
		socket, also := out.(*net.UDPConn).SyscallConn()
		err = errors.Join(err, also)
		for err == nil && !over.Load() {
			err = socket.Control(func(fd uintptr) { _, _ = unix.Write(int(fd), make([]byte, 64)) })
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &spacing, nil)
		}
		ended <- err
	}()
	seen := c.await(port, 0, within)
	over.Store(true)
	must(s.t, <-ended)
	return seen
}

// steps are the parts of the time from the packet that ends a pause to the new path.
type steps struct{ report, decision, word, packet, all time.Duration }

// measure has one flow pause. It is false if the flow did not move, or not because a packet ended a
// pause: the sink looks through the flows as well, and now and then the queue is short or drops the
// packet.
func (s *timed) measure() (steps, bool) {
	t := s.t
	t.Helper()
	s.port++ // a flow of the same port would have the path of the earlier one
	port := uint16(s.port)
	for _, c := range []*sightings{s.sink, s.reports, s.elsewhere} {
		c.clear()
	}
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{Port: s.port}}
	var out net.Conn
	inside(t, s.lab, "hosta", func() (err error) {
		out, err = dialer.Dial("udp", timedTo)
		return err
	})
	defer out.Close()
	flow := api.Flow{Protocol: "udp", Source: out.LocalAddr().(*net.UDPAddr).AddrPort(),
		Destination: netip.MustParseAddrPort(timedTo)}
	for range timedPackets {
		_, err := out.Write(make([]byte, 64))
		must(t, err)
		time.Sleep(time.Millisecond)
	}
	time.Sleep(timedPause)
	before := len(s.sink.of(port))
	_, err := out.Write(make([]byte, 64))
	must(t, err)
	if !s.sink.await(port, before, time.Second) ||
		!s.sendUntil(out, s.elsewhere, port, 100*time.Millisecond) {
		return steps{}, false
	}
	var known controller.Flow
	s.await("the head-end says that the path is in force", func() bool {
		known, err = s.client.Flow(t.Context(), flow)
		return err == nil && known.AppliedMs != nil
	})
	decisions, err := s.client.Reroutes(t.Context(), 100, true)
	must(t, err)
	at := slices.IndexFunc(decisions, func(d controller.Decision) bool { return d.Flow == flow })
	if at < 0 {
		t.Fatalf("no decision moved %+v", known)
	}
	decided, first := decisions[at].At, s.elsewhere.of(port)[0]
	if first.Before(decided) {
		t.Fatalf("decided at %v, and the first packet came at %v", decided, first)
	}
	end, report := lastPause(s.sink.of(port), s.reports.of(port), decided)
	if report.IsZero() {
		return steps{}, false
	}
	return steps{report: report.Sub(end), decision: decided.Sub(report),
		word:   time.Duration(*known.AppliedMs * float64(time.Millisecond)),
		packet: first.Sub(decided), all: first.Sub(end)}, true
}

// lastPause is when the last packet before a decision came that ended a pause, and when the report
// after it. Zero: there is none.
func lastPause(packets, reports []time.Time, decided time.Time) (end, report time.Time) {
	for i, at := range packets {
		if i > 0 && at.Sub(packets[i-1]) > timedGap && at.Before(decided) {
			end = at
		}
	}
	for _, at := range reports {
		if !end.IsZero() && at.After(end) && at.Before(decided) {
			return end, at
		}
	}
	return time.Time{}, time.Time{}
}

// TestTimeToTheNewPath has TCP keep the queue of one spine full, and flows of UDP pause there one
// after the other. It logs how long it takes from the packet that ends the pause at the sink to the
// flow's first packet on the other path, and of what that consists. The sink measures the pause,
// and telemetry in packets tells of the queue. No time is asserted, but the order of the steps.
func TestTimeToTheNewPath(t *testing.T) {
	before := runtime.GOMAXPROCS(timedThreads)
	defer runtime.GOMAXPROCS(before)
	f := newFabric(t, timedGap, "threshold: 1, ratio: 0, noise: 0")
	uploads, _, end := f.uploads(2)
	for _, x := range uploads {
		must(t, f.client.Pin(t.Context(), controller.Pin{Flow: x.flow,
			Path: []string{"r1", "s1", "r2"}}))
	}
	inside(t, f.lab, "hostb", func() error { // so that no ICMP error comes back
		in, err := net.ListenPacket("udp", timedTo)
		if err == nil {
			t.Cleanup(func() { in.Close() })
		}
		return err
	})
	s := &timed{fabric: f, port: 20000, sink: f.tap("r2", "s1"),
		reports: f.tap("ctl", "r2"), elsewhere: f.tap("s2", "r1")}
	f.await("s1's queue is more than half full", func() bool {
		_, backlog := f.crossed("s1")
		return backlog > 60000
	})
	var all []steps
	attempts := 0
	for len(all) < *timedFlows {
		f.await("a flow moves when a packet ends its pause", func() bool {
			attempts++
			one, ok := s.measure()
			if ok {
				all = append(all, one)
			}
			return ok
		})
	}
	end()
	intact(t, uploads)
	t.Logf("%d flows that paused, of which %d moved when their pause ended", attempts, len(all))
	for _, x := range []struct {
		what string
		of   func(steps) time.Duration
	}{
		{"packet that ends the pause to the report at the controller",
			func(s steps) time.Duration { return s.report }},
		{"report to decision", func(s steps) time.Duration { return s.decision }},
		{"decision to the first packet at the other spine",
			func(s steps) time.Duration { return s.packet }},
		{"decision to the head-end's word", func(s steps) time.Duration { return s.word }},
		{"packet that ends the pause to the first packet at the other spine",
			func(s steps) time.Duration { return s.all }},
	} {
		var times []time.Duration
		for _, one := range all {
			times = append(times, x.of(one))
		}
		slices.Sort(times)
		n := len(times)
		t.Logf("%s: median %v, 90 %% %v, 99 %% %v, most %v", x.what, times[n/2], times[n*9/10],
			times[n*99/100], times[n-1])
	}
}
