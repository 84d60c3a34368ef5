package e2e_test

import (
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/examples"
)

// flowletLab is the lab of flowlets.yaml with one host in each rack, whose paths have a round trip
// of a fifth of a second, so that two of them are long beside what a busy machine takes.
type flowletLab struct {
	*agents
	echoed atomic.Int64
	conns  []net.Conn // that stream
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
		w.conns = append(w.conns, conn)
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

// answered waits until so many octets more have come back.
func (w *flowletLab) answered(octets int64) {
	w.t.Helper()
	want, deadline := w.echoed.Load()+octets, time.Now().Add(patience)
	for ; w.echoed.Load() < want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d octets did not come back within %v: flows stand still", octets, patience)
		}
	}
}

// lossy has a spine lose what comes from the left, or no longer.
func (w *flowletLab) lossy(spine string, loses bool) {
	w.t.Helper()
	change := map[bool]string{true: "add", false: "del"}[loses]
	w.on(spine, "ip", "-6", "rule", change, "pref", "10", "iif", "left", "to", "fcbb:bb00::/32",
		"blackhole")
}

// inARow is how many frames came after a time without a pause as long as the one before a path is
// tried again, and for how long.
func (a *arrivals) inARow(since time.Time) (frames int, took time.Duration) {
	for _, at := range a.times {
		switch {
		case at.Before(since):
		case at.Sub(since)-took > time.Second/2:
			return frames, took
		default:
			frames, took = frames+1, at.Sub(since)
		}
	}
	return frames, took
}

// A host's flows take all paths; one that falls silent is left, and the flows go
// on over others. Probes that don't come back take a path out of use, until they do.
func TestFlowlets(t *testing.T) {
	t.Parallel()
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
	came := w.arriving("s1", "left")
	w.lossy("s1", true)
	died, last := time.Now(), before[0].Packets
	w.until("the path is left", func([]api.FlowletPath) bool {
		began := time.Now()
		w.answered(500_000)
		came.all()
		sent := w.paths()[0].Packets - last
		last += sent
		// Each second one burst may try a path that is silent.
		return sent <= 10*(1+uint64(time.Since(began)/time.Second))
	})
	wasted, took := came.inARow(died)
	t.Logf("%d packets were sent to the dead path, for %v; a round trip takes %.0f ms", wasted,
		took, before[0].RoundTripMs)
	w.lossy("s1", false)
	w.probes()
	w.headers()
}

// configure gives a1 other settings.
func (w *flowletLab) configure(change func(*config.Flowlets)) {
	w.t.Helper()
	_, err := w.client("a1").Apply(w.t.Context(), "node.yaml",
		w.changed("a1", func(n *config.Node) { change(n.Flowlets) }), false)
	must(w.t, err)
}

// headers compares what a1 explains of flows with what it then sends, as tshark reads both.
func (w *flowletLab) headers() {
	w.t.Helper()
	const flows, source, service = 8, "2001:db8:a::1", "[2001:db8:b::1]:7"
	for _, conn := range w.conns { // what they still have to send would fill the ring
		must(w.t, conn.(*net.TCPConn).SetLinger(0))
		conn.Close()
	}
	w.configure(func(f *config.Flowlets) { f.Choice = config.OfFlow }) // nothing else may decide
	came, paths := w.arriving("left", "a1"), map[string]bool{}
	explained := func(port int) (list []dissection) {
		told, err := w.client("a1").Explain(w.t.Context(), api.Question{Flow: &api.Flow{
			Source:      netip.AddrPortFrom(netip.MustParseAddr(source), uint16(port)),
			Destination: netip.MustParseAddrPort(service), Protocol: config.TCP}})
		must(w.t, err)
		for _, e := range told {
			frame, err := hex.DecodeString(e.Frame)
			must(w.t, err)
			d := dissect(w.t, [][]byte{frame})
			if len(d) != 1 || len(e.Header) != 1 || d[0].to != e.Header[0].SID ||
				d[0].to != e.Path[0] || e.Flowlet == nil || e.Header[0].Name != e.Flowlet.Path {
				w.t.Fatalf("explained as %+v, and tshark reads %+v", e, d)
			}
			if len(told) == 1 && e.Flowlet.Before != e.Flowlet.Path {
				w.t.Errorf("a flow that is known is explained as %+v", e.Flowlet)
			}
			paths[e.Flowlet.Path] = true
			list = append(list, d[0])
		}
		return list
	}
	var want []dissection
	for i := range flows {
		first := explained(talkerPort + i)
		w.talkFrom("a1", source, talkerPort+i, service)
		then := explained(talkerPort + i)
		if len(first) != 2 || len(then) != 1 || then[0] != first[1] {
			w.t.Errorf("explained as %+v, and with a connection as %+v", first, then)
		}
		want = append(want, first...)
		came.all() // makes room in the ring
	}
	for deadline := time.Now().Add(patience); len(want) > 0; time.Sleep(100 * time.Millisecond) {
		sent := dissect(w.t, came.all())
		want = slices.DeleteFunc(want, func(d dissection) bool { return slices.Contains(sent, d) })
		if time.Now().After(deadline) {
			w.t.Fatalf("explained and not sent: %+v", want)
		}
	}
	if len(paths) < 2 {
		w.t.Errorf("%d flows have the paths %v", flows, paths)
	}
}

// probes has a1 probe its paths, of which one dies and lives again.
func (w *flowletLab) probes() {
	w.t.Helper()
	w.configure(func(f *config.Flowlets) {
		f.Probe = &config.Probe{Interval: 20 * time.Millisecond, Missed: 3, Good: 5}
	})
	up := func(wanted bool) func([]api.FlowletPath) bool {
		return func(paths []api.FlowletPath) bool { return paths[1].Up == wanted }
	}
	time.Sleep(time.Second) // all answer before one falls silent
	w.lossy("s2", true)
	w.until("a path is down by probes", up(false))
	w.lossy("s2", false)
	w.until("it is up again", up(true))
}
