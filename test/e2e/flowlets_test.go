package e2e_test

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/examples"
	"sextant/linux/linuxtest"
)

// flowletLab is the lab of flowlets.yaml with one host in each rack, whose paths have a round trip
// of a fifth of a second, so that two of them are long beside what a busy machine takes.
type flowletLab struct {
	*agents
	echoed atomic.Int64
}

func upFlowlets(t *testing.T) *flowletLab {
	t.Helper()
	needsRoot(t)
	text, _ := examples.Lab("flowlets")
	file := strings.NewReplacer("name: flowlets", "name: NAME", "rate: 20mbit, queue: 30ms, ", "",
		"delay: 2ms", "delay: 50ms").Replace(string(text))
	head, tail, _ := strings.Cut(file, "\n    left:")
	w := &flowletLab{agents: upText(t, "flowlets.yaml",
		strings.ReplaceAll(head, "count: 4", "count: 1")+"\n    left:"+tail)}
	serveWords(t, w.lab, "b1", "[2001:db8:b::1]:7", nil)
	w.ready()
	return w
}

// stream opens connections from a1 to b1 on which bursts come back until the end of the test.
func (w *flowletLab) stream(connections int) {
	w.t.Helper()
	for range connections {
		var conn net.Conn
		inside(w.t, w.lab, "a1", func() (err error) {
			conn, err = net.DialTimeout("tcp", "[2001:db8:b::1]:7", patience)
			return err
		})
		w.t.Cleanup(func() { conn.Close() })
		go func() {
			for {
				if _, err := conn.Write(make([]byte, 10_000)); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		go func() {
			buffer := make([]byte, 1<<16)
			for {
				n, err := conn.Read(buffer)
				w.echoed.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
	}
}

// paths are what a1 knows of its paths.
func (w *flowletLab) paths() []api.FlowletPath {
	w.t.Helper()
	counters, err := w.client("a1").Counters(w.t.Context())
	must(w.t, err)
	for _, c := range counters {
		if c.Flowlets != nil {
			return c.Flowlets.Paths
		}
	}
	w.t.Fatal("a1 counts nothing of flowlets")
	return nil
}

// until waits until something holds of the paths.
func (w *flowletLab) until(what string, holds func([]api.FlowletPath) bool) []api.FlowletPath {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		paths := w.paths()
		if holds(paths) {
			return paths
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within %v: %+v", what, patience, paths)
		}
	}
}

// heard sends when frames leave a1 for a path, until the end of the test.
func (w *flowletLab) heard(sid string) <-chan time.Time {
	w.t.Helper()
	times := make(chan time.Time, 1<<16)
	want := netip.MustParseAddr(sid).AsSlice()
	inside(w.t, w.lab, "a1", func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
		if err != nil {
			return err
		}
		must(w.t, unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: eth0.Index, Protocol: all}))
		must(w.t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
			&unix.Timeval{Usec: 100_000}))
		go func() {
			defer unix.Close(fd)
			frame := make([]byte, 1<<17)
			for w.t.Context().Err() == nil {
				n, _, err := linuxtest.Receive(fd, frame)
				if err == nil && n > 54 && bytes.Equal(frame[38:54], want) {
					times <- time.Now()
				}
			}
		}()
		return nil
	})
	return times
}

// lossy has a spine lose what comes from the left, or no longer.
func (w *flowletLab) lossy(spine string, loses bool) {
	w.t.Helper()
	change := map[bool]string{true: "add", false: "del"}[loses]
	w.on(spine, "ip", "-6", "rule", change, "pref", "10", "iif", "left", "to", "fcbb:bb00::/32",
		"blackhole")
}

// A host's flows take all paths; one that is dead is left within two round trips, and the flows go
// on over others. Probes that don't come back take a path out of use, until they do.
func TestFlowlets(t *testing.T) {
	w := upFlowlets(t)
	w.stream(4)
	before := w.until("all paths are used and measured", func(paths []api.FlowletPath) bool {
		for _, p := range paths {
			if p.Packets < 100 || p.RoundTripMs == 0 {
				return false
			}
		}
		return true
	})
	sent := w.heard("fcbb:bb00:51:1b::")
	<-sent // the path carries packets now
	roundTrip := 0.0
	for _, p := range before {
		roundTrip = max(roundTrip, p.RoundTripMs)
	}
	died := time.Now()
	w.lossy("s1", true)
	dead := time.Now()
	w.until("the path is silent", func(paths []api.FlowletPath) bool {
		return paths[0].SilentMs > 2*paths[0].RoundTripMs
	})
	echoed := w.echoed.Load()
	for w.echoed.Load() < echoed+100_000 {
		time.Sleep(10 * time.Millisecond)
	}
	// A path is tried again a second after what was sent over it that is not acknowledged.
	last, tried := died, died.Add(time.Second-time.Duration(roundTrip*float64(time.Millisecond)))
	for len(sent) > 0 {
		if at := <-sent; at.Before(tried) {
			last = at
		}
	}
	const slack = 100 * time.Millisecond // of a busy machine
	limit := time.Duration(2*roundTrip*float64(time.Millisecond)) + slack
	t.Logf("the path was left %v after it died; a round trip takes %.0f ms", last.Sub(dead),
		roundTrip)
	if last.Sub(dead) > limit {
		t.Errorf("the path was left %v after it died, want %v at most", last.Sub(dead), limit)
	}
	w.lossy("s1", false)
	w.probes()
}

// probes has a1 probe its paths, of which one dies and lives again.
func (w *flowletLab) probes() {
	w.t.Helper()
	file, err := os.ReadFile(filepath.Join(nodeOf(w.t, w.lab, "a1").Dir, "node.yaml"))
	must(w.t, err)
	n, err := config.Parse("node.yaml", file)
	must(w.t, err)
	n.Flowlets.Probe = &config.Probe{Interval: 20 * time.Millisecond, Missed: 3, Good: 5}
	text, err := config.Marshal(n)
	must(w.t, err)
	_, err = w.client("a1").Apply(w.t.Context(), "node.yaml", text, false)
	must(w.t, err)
	up := func(wanted bool) func([]api.FlowletPath) bool {
		return func(paths []api.FlowletPath) bool { return paths[1].Up == wanted }
	}
	time.Sleep(time.Second) // all answer before one falls silent
	w.lossy("s2", true)
	w.until("a path is down by probes", up(false))
	w.lossy("s2", false)
	w.until("it is up again", up(true))
}
