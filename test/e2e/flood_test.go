package e2e_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/datapath/packettest"
	"sextant/lab"
)

const (
	floodFlows      = 20_000 // of the flood, over and over
	floodNewcomers  = 60     // connections opened while it goes on
	floodServerPort = 7
	floodLimited    = 8 // the port of the service with a limit
)

// Under a flood of SYNs, open connections go on, and new ones are opened: the hosts fall back to
// SYN cookies, of which no host keeps anything, and the chain still finds who made them. A limited
// service gets no more of the flood than its limit.
func TestFlood(t *testing.T) {
	needsRoot(t)
	a := upFile(t, "flood.yaml")
	a.on("client", "ip", "-6", "route", "add", "blackhole", "2001:db8:f::/48")
	for _, server := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, server)
	}
	established := startTraffic(t, a.lab)
	established.flows("before the flood")
	began := time.Now()
	f := startFlood(t, a.lab)
	cookiesSent(t, a.lab)
	openThrough(t, a.lab)
	established.flows("in the flood")
	f.stop()
	established.flows("after the flood")
	established.stop()
	received := sumOf(t, a.lab, "SyncookiesRecv")
	t.Logf("%d SYNs, %d answered by SYN cookies, of which %d opened a connection", f.sent.Load(),
		sumOf(t, a.lab, "SyncookiesSent"), received)
	if received == 0 {
		t.Error("no connection was opened by a SYN cookie: the flood was none")
	}
	checkLimited(t, a, time.Since(began))
}

// floodFrom sends SYNs until it is stopped.
type floodFrom struct {
	sent    atomic.Uint64
	stopped chan struct{}
	done    sync.WaitGroup
}

func startFlood(t *testing.T, l *lab.Lab) *floodFrom {
	t.Helper()
	var socket int
	inside(t, l, "client", func() (err error) {
		// with headers of our own
		socket, err = unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		return err
	})
	syns := make([][]byte, floodFlows)
	for i := range syns {
		source := netip.MustParseAddr("2001:db8:f::").As16()
		binary.BigEndian.PutUint32(source[12:], uint32(i*2654435761))
		port := uint16(floodServerPort)
		if i%4 == 0 {
			port = floodLimited
		}
		syns[i] = packettest.Packet{
			Src: netip.AddrFrom16(source), Dst: netip.MustParseAddr("2001:db8:80::80"),
			SrcPort: uint16(1024 + i%60000), DstPort: port, Flags: "S", Seq: uint32(i),
		}.Bytes(t)
	}
	f := &floodFrom{stopped: make(chan struct{})}
	f.done.Go(func() {
		defer unix.Close(socket)
		to := &unix.SockaddrInet6{Addr: netip.MustParseAddr("2001:db8:80::80").As16()}
		for i := 0; ; i++ {
			select {
			case <-f.stopped:
				return
			default:
			}
			if unix.Sendto(socket, syns[i%floodFlows], 0, to) == nil {
				f.sent.Add(1)
			}
			if i%64 == 0 {
				time.Sleep(time.Millisecond) // others want the processor too
			}
		}
	})
	t.Cleanup(f.stop)
	return f
}

func (f *floodFrom) stop() {
	select {
	case <-f.stopped:
	default:
		close(f.stopped)
	}
	f.done.Wait()
}

// cookiesSent waits until hosts have fallen back to cookies.
func cookiesSent(t *testing.T, l *lab.Lab) {
	t.Helper()
	for deadline := time.Now().Add(patience); sumOf(t, l,
		"SyncookiesSent") < 100; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no host sends SYN cookies: the flood is none")
		}
	}
}

// sumOf adds up a counter of the servers' TCP.
func sumOf(t *testing.T, l *lab.Lab, counter string) (sum uint64) {
	t.Helper()
	for _, server := range []string{"web1", "web2", "web3"} {
		sum += tcpCounter(t, l, server, counter)
	}
	return sum
}

// openThrough opens connections through the flood, and talks over each.
func openThrough(t *testing.T, l *lab.Lab) {
	t.Helper()
	var all sync.WaitGroup
	for i := range floodNewcomers {
		var conn net.Conn
		inside(t, l, "client", func() (err error) {
			conn, err = net.DialTimeout("tcp", echoAddress, 3*patience)
			return err
		})
		all.Go(func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(3 * patience))
			sent, received := fmt.Appendf(nil, "connection %d", i), make([]byte, 100)
			if _, err := conn.Write(sent); err != nil {
				t.Errorf("connection %d: %v", i, err)
				return
			}
			if _, err := io.ReadFull(conn, received[:len(sent)]); err != nil ||
				string(received[:len(sent)]) != string(sent) {
				t.Errorf("connection %d got %q: %v", i, received, err)
			}
		})
	}
	all.Wait()
}

// checkLimited: of the SYNs to the limited service, which were many more, the edge let through what
// it may in that time.
func checkLimited(t *testing.T, a *agents, lasted time.Duration) {
	t.Helper()
	services, err := a.client("edge").Services(t.Context(), "limited", api.Edge)
	if err != nil || len(services) != 1 || services[0].Edge.NewConnections == nil {
		t.Fatalf("services %+v, error %v", services, err)
	}
	n := *services[0].Edge.NewConnections
	if most := uint64(n.Burst) + uint64(float64(n.Rate)*lasted.Seconds()); n.Taken > most+most/20 ||
		n.Taken+n.Refused < 2*most {
		t.Errorf("of a flood of %v, at most %d SYNs may pass: %+v", lasted, most, n)
	}
}
