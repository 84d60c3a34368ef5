package e2e_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

var (
	siegeClients = flag.Int("clients", 1000, "clients of the API that TestManyClients has at once")
	siegeTime    = flag.Duration("clients.for", time.Second, "how long TestManyClients measures")
	siegeRounds  = flag.Int("clients.rounds", 1,
		"how often TestManyClients measures, without clients and beside them")
)

// echoServices have quickstart.yaml serve datagrams on port 7, and give its client a /48.
var echoServices = []string{
	"port: 80, backends: *backends}", `port: 80, backends: *backends}
            - {name: echo, vip: "2001:db8:80::80", protocol: udp, port: 7, backends: *backends}`,
	"vip: 198.51.100.80, port: 80}\n", `vip: 198.51.100.80, port: 80}
            - {name: echo, vip: "2001:db8:80::80", protocol: udp, port: 7}
`,
	`"2001:db8:c::/112"`, `"2001:db8:c::/48"`,
}

// timesOf are what a measurement found.
type timesOf struct {
	// of answers and of changes by the event loop, and of round trips
	answers, changes, packets []time.Duration
	lost, unsent              int // packets
}

func (x timesOf) String() string {
	text := func(all []time.Duration) string {
		slices.Sort(all)
		at := func(share float64) time.Duration {
			return all[int(share*float64(len(all)-1))].Round(10 * time.Microsecond)
		}
		return fmt.Sprintf("median %v, 99 of 100 within %v, longest %v, of %d", at(0.5), at(0.99),
			at(1), len(all))
	}
	return fmt.Sprintf("%d packets lost, %d not sent; times:\n    round trips: %s\n    answers of "+
		"the event loop: %s\n    changes: %s", x.lost, x.unsent, text(x.packets),
		text(x.answers), text(x.changes))
}

// preferred has the kernel prefer a thread to all others, 0 being this one, so that times are those
// of what is measured.
func preferred(thread int) error {
	if thread == 0 {
		runtime.LockOSThread() // which ends with the goroutine
	}
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr,
		Policy: unix.SCHED_RR, Priority: 1}, 0)
}

// preferAgent does so for all threads of a node's agent. Those that it starts later are like these.
func (a *agents) preferAgent(node string) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", a.processes[node].Pid))
	must(a.t, err)
	for _, entry := range threads {
		thread, err := strconv.Atoi(entry.Name())
		must(a.t, errors.Join(err, preferred(thread)))
	}
}

// datagrams makes a blocking socket on a node; reading from it ends after a moment. It is told when
// the node's own device has no room for a datagram.
func (a *agents) datagrams(node string) (socket int) {
	inside(a.t, a.lab, node, func() (err error) {
		socket, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return errors.Join(err, unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
			&unix.Timeval{Usec: 200_000}),
			unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1))
	})
	return socket
}

// echoOn answers datagrams on a node until the test ends.
func (a *agents) echoOn(node string, at *unix.SockaddrInet6) {
	socket := a.datagrams(node)
	must(a.t, unix.Bind(socket, at))
	over, ended := atomic.Bool{}, make(chan error, 1)
	go func() {
		err := preferred(0)
		for b := make([]byte, 100); err == nil && !over.Load(); {
			if n, from, failure := unix.Recvfrom(socket, b, 0); failure == nil {
				err = unix.Sendto(socket, b[:n], 0, from)
			}
		}
		ended <- err
	}()
	a.t.Cleanup(func() { over.Store(true); must(a.t, <-ended); unix.Close(socket) })
}

// measure sends datagrams through an edge and back, for a time in which its event loop is asked
// and, in the last quarter, makes changes.
func (a *agents) measure(to *unix.SockaddrInet6, length time.Duration, out *timesOf) {
	a.t.Helper()
	socket := a.datagrams("client")
	defer unix.Close(socket)
	over, ended := atomic.Bool{}, make(chan error, 1)
	go func() {
		err := errors.Join(preferred(0), unix.Connect(socket, to))
		spacing := unix.NsecToTimespec(int64(time.Millisecond))
		for n := uint64(0); err == nil && !over.Load(); n++ {
			err = out.roundTrip(socket, n)
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &spacing, nil)
		}
		ended <- err
	}()
	client, began := a.client("edge"), time.Now()
	timed := func(times *[]time.Duration, f func() error) {
		began := time.Now()
		must(a.t, f())
		*times = append(*times, time.Since(began))
		time.Sleep(5 * time.Millisecond)
	}
	for time.Since(began) < length*3/4 {
		timed(&out.answers, func() error {
			_, err := client.Services(a.t.Context(), "web", "edge")
			return err
		})
	}
	for time.Since(began) < length {
		weight := 1 + len(out.changes)%2
		timed(&out.changes, func() error {
			_, err := client.PutBackend(a.t.Context(), api.Update, "web-ipv4", "web3",
				api.BackendSpec{Weight: &weight})
			return err
		})
	}
	over.Store(true)
	must(a.t, <-ended)
}

// roundTrip sends a numbered datagram and waits for its answer, for a second. One for which the
// device of the client has no room, beside what the other clients send by it, is not on its way.
func (x *timesOf) roundTrip(socket int, n uint64) error {
	b := make([]byte, 8)
	binary.BigEndian.PutUint64(b, n)
	began := time.Now()
	if _, err := unix.Write(socket, b); errors.Is(err, unix.ENOBUFS) {
		x.unsent++
		return nil
	} else if err != nil {
		return err
	}
	for time.Since(began) < time.Second {
		got, err := unix.Read(socket, b)
		if err == nil && got == len(b) && binary.BigEndian.Uint64(b) == n {
			x.packets = append(x.packets, time.Since(began))
			return nil
		}
	}
	x.lost++
	return nil
}

// besieged starts clients of the edge's API on the client's node, of which each sends from a /64 of
// its own, and waits until all have been there. They have a processor of their own.
func (a *agents) besieged(clients int, token string) (end func() string) {
	a.t.Helper()
	cpu := strconv.Itoa(runtime.NumCPU() - 1)
	command := exec.Command("taskset", "-c", cpu, os.Args[0], "besiege", strconv.Itoa(clients),
		token)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	must(a.t, err)
	output, err := command.StdoutPipe()
	must(a.t, err)
	inside(a.t, a.lab, "client", command.Start)
	lines := bufio.NewReader(output)
	if line, err := lines.ReadString('\n'); err != nil {
		a.t.Fatalf("the clients say %q, %v", line, err)
	}
	return func() string {
		input.Close()
		text, err := io.ReadAll(lines)
		must(a.t, errors.Join(err, command.Wait()))
		return string(text)
	}
}

// Clients of the API over TLS come in thousands: silent ones, slow ones, some with bodies or
// streams without end, and some that come again at once. The event loop answers, and packets pass,
// beside them; when they are gone, others have the port.
func TestManyClients(t *testing.T) {
	needsRoot(t)
	a, dir, token := remoteEdge(t, echoServices...)
	to := &unix.SockaddrInet6{Port: 7, Addr: netip.MustParseAddr("2001:db8:80::80").As16()}
	for _, node := range []string{"web1", "web2", "web3"} {
		a.echoOn(node, to)
	}
	a.preferAgent("edge")
	var quiet, beside timesOf
	for range *siegeRounds {
		a.measure(to, *siegeTime, &quiet)
		end := a.besieged(*siegeClients, token[api.Read])
		a.measure(to, *siegeTime, &beside)
		var open int
		_, line, _ := strings.Cut(a.metrics("edge"), `sextant_listener_connections{listener="tls"} `)
		_, err := fmt.Sscan(line, &open)
		must(t, err)
		if open < 1 || open > 128 {
			t.Errorf("%d connections are open, not 1 to 128", open)
		}
		t.Log(end())
	}
	t.Logf("without clients: %v", quiet)
	t.Logf("beside %d clients: %v", *siegeClients, beside)
	if beside.lost > 0 {
		t.Errorf("%d packets were lost", beside.lost)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		got := status(a, "router", "--cacert", filepath.Join(dir, "ca.pem"), "-H",
			"Authorization: Bearer "+token[api.Read], "https://[fd00:5e::e1]:9479/v1/status")
		if got == "200" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the clients the port answers %s", got)
		}
	}
}
