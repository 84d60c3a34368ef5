package e2e_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

const (
	streamInterval = time.Millisecond // between two datagrams
	stageTime      = 300 * time.Millisecond
	streamBytes    = 2 << 20 // of a TCP transfer
)

// stream is UDP from hosta to hostb, a numbered datagram per interval.
type stream struct {
	t        *testing.T
	receiver net.PacketConn
	sent     atomic.Uint64
	came     atomic.Uint64 // of these, each counted once
	seen     []uint8       // how often each number has come
	over     chan struct{}
	silent   chan struct{} // nothing is sent any more
	ended    chan struct{}
}

// startStream begins to send.
func (a *agents) startStream() *stream {
	a.t.Helper()
	s := &stream{t: a.t, seen: make([]uint8, 1<<20), over: make(chan struct{}),
		silent: make(chan struct{}), ended: make(chan struct{})}
	var sender net.Conn
	inside(a.t, a.lab, "hostb", func() (err error) {
		s.receiver, err = roomy.ListenPacket(a.t.Context(), "udp", "[2001:db8:b::1]:5000")
		return err
	})
	inside(a.t, a.lab, "hosta", func() (err error) {
		sender, err = net.Dial("udp", "[2001:db8:b::1]:5000")
		return err
	})
	a.t.Cleanup(func() { s.receiver.Close(); sender.Close() })
	go func() {
		defer close(s.ended)
		buffer := make([]byte, 8)
		for {
			if _, _, err := s.receiver.ReadFrom(buffer); err != nil {
				return
			}
			if n := binary.BigEndian.Uint64(buffer); n < uint64(len(s.seen)) {
				if s.seen[n]++; s.seen[n] == 1 {
					s.came.Add(1)
				}
			}
		}
	}()
	go func() {
		defer close(s.silent)
		ticker := time.NewTicker(streamInterval)
		defer ticker.Stop()
		for {
			select {
			case <-s.over:
				return
			case <-ticker.C:
				n := s.sent.Load()
				if _, err := sender.Write(binary.BigEndian.AppendUint64(nil, n)); err != nil {
					s.t.Errorf("send datagram %d: %v", n, err)
					return
				}
				s.sent.Store(n + 1)
			}
		}
	}()
	return s
}

// stop ends the stream, and returns how many datagrams did not come, and how many came more than
// once. What is on its way may take its time on a busy machine; second copies have less of it.
func (s *stream) stop() (lost, doubled int) {
	close(s.over)
	<-s.silent
	for deadline := time.Now().Add(patience); s.came.Load() < s.sent.Load() &&
		time.Now().Before(deadline); {
		time.Sleep(streamInterval)
	}
	time.Sleep(stageTime)
	s.receiver.Close()
	<-s.ended
	for _, times := range s.seen[:s.sent.Load()] {
		switch {
		case times == 0:
			lost++
		case times > 1:
			doubled++
		}
	}
	return lost, doubled
}

// cut makes a router throw away what is for the SIDs of both ends, or stop doing so. Nobody is
// told.
func (a *agents) cut(router string, cut bool) {
	a.t.Helper()
	verb := "del"
	if cut {
		verb = "add"
	}
	for _, locator := range []string{"fcbb:bb00:1::/48", "fcbb:bb00:2::/48"} {
		inside(a.t, a.lab, router, func() error {
			return exec.Command("ip", "-6", "route", verb, "blackhole", locator, "metric",
				"1").Run()
		})
	}
}

// mergedAt is the protected flow that ends at a node.
func (a *agents) mergedAt(node string) api.MergedFlow {
	a.t.Helper()
	flows, err := a.client(node).Merge(a.t.Context())
	if err != nil || len(flows) != 1 {
		a.t.Fatalf("node %s: %d protected flows, error %v", node, len(flows), err)
	}
	return flows[0]
}

// numbered is how many packets the ingress has numbered.
func (a *agents) numbered() uint64 {
	a.t.Helper()
	policies, err := a.client("ingress").Policies(a.t.Context())
	if err != nil || len(policies) != 1 {
		a.t.Fatalf("%d policies, error %v", len(policies), err)
	}
	return policies[0].NumberedPackets
}

// upPolicies brings the lab of examples/policies.yaml up, with wires that impair nothing.
func upPolicies(t *testing.T) *agents {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile("../../examples/policies.yaml")
	must(t, err)
	plain := regexp.MustCompile(`, wire: user, delay: \dms`).ReplaceAllString(string(text), "")
	// nothing is forgotten for mere silence
	plain = strings.ReplaceAll(plain, "skew: 50ms}", "skew: 50ms, reset: 1h}")
	return upText(t, "policies.yaml", strings.Replace(plain, "name: policies", "name: NAME", 1))
}

// Any two of three paths are cut under a stream of 1,000 datagrams a second, agents are killed and
// start again, lists go and come back, and programs are replaced: no datagram is lost, none comes
// twice, and numbers go on.
func TestPathsAreCutUnderLoad(t *testing.T) {
	a := upPolicies(t)
	s := a.startStream()
	stage := func(routers ...string) {
		t.Helper()
		for _, r := range routers {
			a.cut(r, true)
		}
		time.Sleep(stageTime)
		for _, r := range routers {
			a.cut(r, false)
		}
		time.Sleep(stageTime / 3)
	}
	for _, two := range [][]string{{"p1", "p2"}, {"p2", "p3"}, {"p3", "p1"}} {
		stage(two...)
	}

	before := a.numbered()
	a.kill()
	stage("p1")
	a.start()
	stage("p2", "p3")
	a.ready()
	if now := a.numbered(); now <= before {
		t.Errorf("after a restart %d packets are numbered, %d before", now, before)
	}
	a.replacePrograms()
	stage("p1", "p3")

	for _, state := range []config.ListState{config.ListDown, config.ListUp} {
		changes, err := a.client("ingress").SetList(t.Context(), "hosts", "north",
			api.ListSpec{State: state})
		if err != nil || len(changes.Items) != 1 {
			t.Fatalf("list %s: changes %v, error %v", state, changes, err)
		}
		stage("p2") // with two copies or three
	}
	lost, doubled := s.stop()
	if lost != 0 || doubled != 0 {
		t.Errorf("of %d datagrams %d are lost and %d came twice", s.sent.Load(), lost, doubled)
	}
	m := a.mergedAt("egress")
	if m.OldEpochPackets != 0 || m.RoguePackets != 0 || m.Resets > 1 || m.MissingPackets != 0 ||
		m.PassedPackets < s.sent.Load() {
		t.Errorf("the egress counted %+v", m)
	}
	for _, p := range m.Paths {
		if p.LostPackets == 0 || p.Packets == 0 {
			t.Errorf("the path of flow %d was cut, and counts %+v", p.Flow, p)
		}
	}
	t.Logf("%d datagrams, %d lost, %d doubled; %d packets numbered", s.sent.Load(), lost, doubled,
		a.numbered())
}

// TCP of both families arrives whole over paths of which one loses everything, and the receiver
// sees no copies.
func TestStreamsOverCutPaths(t *testing.T) {
	a := upPolicies(t)
	a.cut("p1", true)
	content := bytes.Repeat([]byte("Sextant\n"), streamBytes/8)
	for _, address := range []string{"[2001:db8:b::1]:80", "192.0.2.2:80"} {
		var listener net.Listener
		inside(t, a.lab, "hostb", func() (err error) {
			listener, err = net.Listen("tcp", address)
			return err
		})
		arrived := make(chan []byte, 1)
		go func() {
			defer listener.Close()
			conn, err := listener.Accept()
			if err != nil {
				arrived <- nil
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			text, _ := io.ReadAll(conn)
			arrived <- text
		}()
		var conn net.Conn
		inside(t, a.lab, "hosta", func() (err error) {
			conn, err = net.DialTimeout("tcp", address, patience)
			return err
		})
		conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write(content); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		conn.Close()
		if got := <-arrived; !bytes.Equal(got, content) {
			t.Errorf("%s: %d of %d bytes arrived as they were", address, len(got), len(content))
		}
	}
	for _, node := range []string{"ingress", "egress"} {
		m := a.mergedAt(node)
		// A burst can be more than a queue holds, on both paths at once; TCP sends it again, under
		// other numbers.
		if m.DuplicatePackets == 0 || m.Paths[0].Packets != 0 ||
			m.PassedPackets+m.MissingPackets != m.ExpectedPackets || m.RoguePackets != 0 {
			t.Errorf("at the %s: %+v", node, m)
		}
	}
}

// A head-end whose tables were unloaded begins its numbers afresh, in another epoch: the egress
// takes them at once, and drops none for the numbers that it remembers.
func TestNumbersBeginAfresh(t *testing.T) {
	a := upPolicies(t)
	const count = 100
	send := func() {
		t.Helper()
		s := a.startStream()
		for s.sent.Load() < count {
			time.Sleep(streamInterval)
		}
		if lost, doubled := s.stop(); lost != 0 || doubled != 0 {
			t.Errorf("%d datagrams are lost and %d came twice", lost, doubled)
		}
	}
	send()
	before := a.mergedAt("egress")
	a.kill()
	a.unload("ingress")
	a.start()
	a.ready()
	send()
	after := a.mergedAt("egress")
	if after.PassedPackets < before.PassedPackets+count || after.Resets <= before.Resets ||
		after.OldEpochPackets != 0 || after.RoguePackets != 0 {
		t.Errorf("before the head-end began afresh %+v, after it %+v", before, after)
	}
}

// A dead path, which costs no packet, is told as a warning, an event and a metric; so is its
// return.
func TestSilentPathIsTold(t *testing.T) {
	a := upPolicies(t)
	s := a.startStream()
	var events []string
	watched, end := context.WithCancel(t.Context())
	defer end()
	enough, begun, told := errors.New("enough"), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		told <- a.client("egress").Monitor(watched, 100*time.Millisecond,
			func(sample api.Sample) error {
				select {
				case begun <- struct{}{}:
				default:
				}
				for _, e := range sample.Events {
					if events = append(events, e.String()); strings.Contains(e.String(),
						"flow 1: back") {
						return enough
					}
				}
				return nil
			})
	}()
	<-begun
	warned := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			status, err := a.client("egress").Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if is := strings.Contains(strings.Join(status.Warnings, "\n"),
				"the path of flow 1 has been silent for"); is == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("warnings %q", status.Warnings)
			}
		}
	}
	metric := func(want string) {
		t.Helper()
		text, err := a.client("egress").MetricsText(t.Context())
		if line := `sextant_merge_path_silent{flow="1",sid="fcbb:bb00:2:f::/80"} ` +
			want; err != nil || !strings.Contains(string(text), line) {
			t.Errorf("no line %q in the metrics, error %v", line, err)
		}
	}
	warned(false)
	a.cut("p1", true)
	warned(true)
	metric("1")
	a.cut("p1", false)
	warned(false)
	metric("0")
	if lost, doubled := s.stop(); lost != 0 || doubled != 0 {
		t.Errorf("%d datagrams are lost and %d came twice", lost, doubled)
	}
	time.AfterFunc(patience, end)
	err := <-told
	text := strings.Join(events, "\n")
	if !errors.Is(err, enough) || !strings.Contains(text,
		"sid fcbb:bb00:2:f::/80: flow 1: silent (nothing has come by this path for") {
		t.Errorf("the monitor ended: %v; events:\n%s", err, text)
	}
}
