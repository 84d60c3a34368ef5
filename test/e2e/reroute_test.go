package e2e_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/agent/southbound/southboundtest"
	"sextant/controller"
	"sextant/linux"
)

// A fabric is the lab of reroute.yaml with a controller.
type fabric struct {
	*agents
	dir        string
	authority  *southboundtest.Authority
	controller *os.Process
	client     *controller.Client
}

// fabricGap is from which on the sink reports a pause of a flow.
const fabricGap = 5 * time.Millisecond

const controllerFile = `topology: DIR/fabric.edges
block: "fcbb:bb00::/32"
seed: 1
queueBytes: 120000
api: {socket: DIR/controller.sock}
policy: {name: sextant, tau: GAP, POLICY}
telemetry: {listen: "[fd00:5e::9]:32766", exporters: ["fd00:5e::/48"]}
southbound:
  listen: "[fd00:5e::9]:9478"
  decap: e0d6
  tokens: DIR/tokens
  tls: {ca: DIR/ca.pem, certificate: DIR/controller.pem, key: DIR/controller.key}
routers: [{name: r1, node: 1}, {name: s1, node: 161}, {name: s2, node: 162}, {name: r2, node: 2}]
`

const fabricEdges = `#! delay us
#! node r1 sid=fcbb:bb00:1::/128
#! node s1 sid=fcbb:bb00:a1::/128
#! node s2 sid=fcbb:bb00:a2::/128
#! node r2 sid=fcbb:bb00:2::/128
r1 -- s1 10 10 100M
s1 -- r2 10 10 100M
r1 -- s2 10 10 100M
s2 -- r2 10 10 100M
`

func newFabric(t *testing.T, gap time.Duration, policy string) *fabric {
	t.Helper()
	f := layFabric(t, gap, policy)
	f.startController()
	return f
}

// layFabric brings the lab up without a controller.
func layFabric(t *testing.T, gap time.Duration, policy string) *fabric {
	t.Helper()
	needsRoot(t)
	f := &fabric{dir: t.TempDir()}
	f.authority = southboundtest.NewAuthority(t, f.dir)
	f.authority.Leaf(t, "router")
	f.authority.Leaf(t, "controller", netip.MustParseAddr("fd00:5e::9"))
	for name, text := range map[string]string{"token": "secret", "tokens": "r1 secret",
		"fabric.edges": fabricEdges,
		"controller": strings.NewReplacer("DIR", f.dir, "GAP", gap.String(), "POLICY",
			policy).Replace(controllerFile)} {
		must(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
	}
	text, err := os.ReadFile("testdata/reroute.yaml")
	must(t, err)
	f.agents = upText(t, "reroute.yaml", strings.NewReplacer("FILES", f.dir, "GAP",
		gap.String()).Replace(string(text)))
	f.client = controller.NewClient(filepath.Join(f.dir, "controller.sock"))
	t.Cleanup(func() {
		f.killController()
		if t.Failed() {
			for _, log := range []string{f.lab.Log("r1", "sextant"), filepath.Join(f.dir, "log")} {
				text, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", log, text)
			}
		}
	})
	return f
}

// startController starts it, and waits until the head-end follows it.
func (f *fabric) startController() {
	f.t.Helper()
	f.controller = f.start("ctl", os.Args[0], "controller", filepath.Join(f.dir, "controller"))
	f.await("the head-end follows the controller", func() bool {
		s, err := f.client.Status(f.t.Context())
		return err == nil && len(s.HeadEnds) == 1 && s.HeadEnds[0].Followed
	})
}

// start starts a command on a node. Its output goes to a log of all.
func (f *fabric) start(node, command string, arguments ...string) *os.Process {
	f.t.Helper()
	log, err := os.OpenFile(filepath.Join(f.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(f.t, err)
	defer log.Close()
	cmd := exec.Command(command, arguments...)
	cmd.Stdout, cmd.Stderr = log, log
	ns := namespaceOf(f.t, f.lab, node)
	defer ns.Close()
	must(f.t, linux.Start(cmd, ns, nil))
	return cmd.Process
}

func (f *fabric) killController() {
	if f.controller != nil {
		_ = f.controller.Kill() // it may have ended
		_, _ = f.controller.Wait()
		f.controller = nil
	}
}

func (f *fabric) await(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("never: %s", what)
		}
	}
}

// crossed is how many octets a spine has sent to r2, and how many wait there, as tc(8) counts.
func (f *fabric) crossed(spine string) (octets uint64, backlog uint32) {
	f.t.Helper()
	var queues []struct {
		Bytes   uint64
		Backlog uint32
	}
	out := f.on(spine, "tc", "-s", "-j", "qdisc", "show", "dev", "r2")
	must(f.t, json.Unmarshal(out, &queues))
	return queues[0].Bytes, queues[0].Backlog
}

// An upload is one connection from hosta to hostb that goes on until it is told to end.
type upload struct {
	flow     api.Flow
	sent     hash.Hash
	received [sha256.Size]byte
	octets   *atomic.Int64 // received by all
	failure  error
}

// uploads begins some. The function that it returns ends them, and returns them when all has
// come.
func (f *fabric) uploads(count int) (all []*upload, octets *atomic.Int64, end func()) {
	f.t.Helper()
	return f.pausing(count, func(int64) {})
}

// pausing is uploads, of which each calls with how much it has sent before it goes on.
func (f *fabric) pausing(count int, pause func(sent int64)) (all []*upload, octets *atomic.Int64,
	end func()) {
	f.t.Helper()
	var listener net.Listener
	inside(f.t, f.lab, "hostb", func() (err error) {
		listener, err = net.Listen("tcp", "[2001:db8:b::1]:0")
		return err
	})
	over, octets := make(chan struct{}), &atomic.Int64{}
	var running sync.WaitGroup
	for i := range count {
		var out net.Conn
		inside(f.t, f.lab, "hosta", func() (err error) {
			out, err = net.Dial("tcp", listener.Addr().String())
			return err
		})
		in, err := listener.Accept()
		must(f.t, err)
		x := &upload{sent: sha256.New(), octets: octets, flow: api.Flow{Protocol: "tcp",
			Source:      out.LocalAddr().(*net.TCPAddr).AddrPort(),
			Destination: out.RemoteAddr().(*net.TCPAddr).AddrPort()}}
		all = append(all, x)
		running.Go(func() { x.send(out, uint64(i), over, pause) })
		running.Go(func() { x.receive(in) })
	}
	return all, octets, func() {
		close(over)
		running.Wait()
		listener.Close()
	}
}

func (x *upload) send(c net.Conn, seed uint64, over chan struct{}, pause func(sent int64)) {
	defer c.Close()
	random, block := rand.NewChaCha8([32]byte{byte(seed)}), make([]byte, 16<<10)
	for sent := int64(0); ; sent += int64(len(block)) {
		select {
		case <-over:
			return
		default:
		}
		pause(sent)
		_, _ = random.Read(block) // never fails
		if _, err := c.Write(block); err != nil {
			x.failure = err
			return
		}
		x.sent.Write(block)
	}
}

func (x *upload) receive(c net.Conn) {
	defer c.Close()
	sum, block := sha256.New(), make([]byte, 64<<10)
	for {
		n, err := c.Read(block)
		sum.Write(block[:n])
		x.octets.Add(int64(n))
		if errors.Is(err, io.EOF) {
			x.received = [sha256.Size]byte(sum.Sum(nil))
			return
		}
		if err != nil {
			x.failure = errors.Join(x.failure, err)
			return
		}
	}
}

// over2 is how many flows have a path of their own over s2.
func (f *fabric) over2() (n int) {
	f.t.Helper()
	paths, err := f.agents.client("r1").FlowPaths(f.t.Context())
	must(f.t, err)
	for _, p := range paths {
		if p.Segments[0] == netip.MustParseAddr("fcbb:bb00:a2::") {
			n++
		}
	}
	return n
}

// TestFlowsLeaveACongestedSpine has TCP fill the queue of one spine. The sink reports what
// telemetry in these packets says; reports lead to decisions, these to paths over the other spine,
// and the octets go there, as its counters say. Meanwhile the controller is killed: nothing
// breaks, flows keep their paths; and the next one goes on with them.
func TestFlowsLeaveACongestedSpine(t *testing.T) {
	f := newFabric(t, fabricGap, "backoffLeast: 200ms, backoffMost: 400ms")
	begun, _ := f.crossed("s2")
	flows, octets, end := f.uploads(6)
	f.await("a megabyte goes over s2", func() bool {
		now, _ := f.crossed("s2")
		return now-begun > 1<<20
	})
	status, err := f.client.Status(t.Context())
	must(t, err)
	moved := counted(status, "moved")
	if moved == 0 || status.HeadEnds[0].Applied == 0 {
		t.Errorf("%d moves, %+v", moved, status.HeadEnds)
	}
	f.killController()
	for f.over2() == 0 && t.Context().Err() == nil { // all are just on their way back
		f.startController()
		f.await("a flow has a path over s2", func() bool { return f.over2() > 0 })
		f.killController()
	}
	paths, err := f.agents.client("r1").FlowPaths(t.Context())
	must(t, err)
	before, _ := f.crossed("s2")
	came := octets.Load()
	f.await("without a controller, another megabyte goes over s2", func() bool {
		now, _ := f.crossed("s2")
		return now-before > 1<<20 && octets.Load()-came > 1<<20
	})
	left, err := f.agents.client("r1").FlowPaths(t.Context())
	must(t, err)
	if len(left) != len(paths) {
		t.Errorf("%d flows had paths, and %d have without a controller", len(paths), len(left))
	}
	f.startController()
	f.await("the next controller knows the paths", func() bool {
		s, err := f.client.Status(t.Context())
		return err == nil && int(s.HeadEnds[0].Adopted) == len(paths)
	})
	came = octets.Load()
	f.await("two more megabytes come", func() bool { return octets.Load()-came > 2<<20 })
	end()
	intact(t, flows)
	one, _ := f.crossed("s1")
	two, _ := f.crossed("s2")
	t.Logf("%d moves; %d octets over s1, %d over s2", moved, one, two-begun)
}

// intact fails unless each upload received what was sent.
func intact(t *testing.T, flows []*upload) {
	t.Helper()
	for _, x := range flows {
		if sent := [sha256.Size]byte(x.sent.Sum(nil)); x.failure != nil || sent != x.received {
			t.Errorf("%v: sent %x, received %x, %v", x.flow, sent, x.received, x.failure)
		}
	}
}

// counted is how many decisions had a verdict.
func counted(s controller.Status, verdict string) uint64 {
	for _, v := range s.Verdicts {
		if v.Verdict == verdict {
			return v.Count
		}
	}
	return 0
}
