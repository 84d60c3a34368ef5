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

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/southbound/southboundtest"
	"sextant/config"
	"sextant/controller"
	"sextant/linux"
	"sextant/packet/telemetry"
)

// A fabric is the lab of reroute.yaml with a controller and a sink of telemetry.
type fabric struct {
	*agents
	dir        string
	controller *os.Process
	client     *controller.Client
	reports    net.Conn
	sequence   uint32
}

const controllerFile = `topology: DIR/fabric.edges
block: "fcbb:bb00::/32"
seed: 1
queueBytes: 120000
api: {socket: DIR/controller.sock}
policy: {name: sextant, backoffLeast: 200ms, backoffMost: 400ms}
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

func newFabric(t *testing.T) *fabric {
	t.Helper()
	needsRoot(t)
	f := &fabric{dir: t.TempDir()}
	authority := southboundtest.NewAuthority(t, f.dir)
	authority.Leaf(t, "router")
	authority.Leaf(t, "controller", netip.MustParseAddr("fd00:5e::9"))
	for name, text := range map[string]string{"token": "secret", "tokens": "r1 secret",
		"fabric.edges": fabricEdges,
		"controller":   strings.ReplaceAll(controllerFile, "DIR", f.dir)} {
		must(t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
	}
	text, err := os.ReadFile("testdata/reroute.yaml")
	must(t, err)
	f.agents = upText(t, "reroute.yaml", strings.ReplaceAll(string(text), "FILES", f.dir))
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
	inside(t, f.lab, "r2", func() (err error) {
		f.reports, err = net.Dial("udp", "[fd00:5e::9]:32766")
		return err
	})
	t.Cleanup(func() { f.reports.Close() })
	f.startController()
	return f
}

// startController starts it, and waits until the head-end follows it.
func (f *fabric) startController() {
	f.t.Helper()
	log, err := os.OpenFile(filepath.Join(f.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(f.t, err)
	defer log.Close()
	cmd := exec.Command(os.Args[0], "controller", filepath.Join(f.dir, "controller"))
	cmd.Stdout, cmd.Stderr = log, log
	ns := namespaceOf(f.t, f.lab, "ctl")
	defer ns.Close()
	must(f.t, linux.Start(cmd, ns, nil))
	f.controller = cmd.Process
	f.await("the head-end follows the controller", func() bool {
		s, err := f.client.Status(f.t.Context())
		return err == nil && len(s.HeadEnds) == 1 && s.HeadEnds[0].Followed
	})
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
	var listener net.Listener
	inside(f.t, f.lab, "hostb", func() (err error) {
		listener, err = net.Listen("tcp", "[2001:db8:b::1]:5001")
		return err
	})
	over, octets := make(chan struct{}), &atomic.Int64{}
	var running sync.WaitGroup
	for i := range count {
		var out net.Conn
		inside(f.t, f.lab, "hosta", func() (err error) {
			out, err = net.Dial("tcp", "[2001:db8:b::1]:5001")
			return err
		})
		in, err := listener.Accept()
		must(f.t, err)
		x := &upload{sent: sha256.New(), octets: octets, flow: api.Flow{Protocol: "tcp",
			Source:      out.LocalAddr().(*net.TCPAddr).AddrPort(),
			Destination: out.RemoteAddr().(*net.TCPAddr).AddrPort()}}
		all = append(all, x)
		running.Go(func() { x.send(out, uint64(i), over) })
		running.Go(func() { x.receive(in) })
	}
	return all, octets, func() {
		close(over)
		running.Wait()
		listener.Close()
	}
}

func (x *upload) send(c net.Conn, seed uint64, over chan struct{}) {
	defer c.Close()
	random, block := rand.NewChaCha8([32]byte{byte(seed)}), make([]byte, 16<<10)
	for {
		select {
		case <-over:
			return
		default:
		}
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

// report says of each flow what INT would: the nodes on its way with their queues, and that it
// paused if the queue on it is more than half full. The queues are those of the kernel.
func (f *fabric) report(flows []*upload) {
	f.t.Helper()
	paths, err := f.agents.client("r1").FlowPaths(f.t.Context())
	must(f.t, err)
	spines := map[api.Flow]uint32{}
	for _, p := range paths {
		if p.Segments[0] == netip.MustParseAddr("fcbb:bb00:a2::") {
			spines[p.Flow] = 162
		}
	}
	_, one := f.crossed("s1")
	_, two := f.crossed("s2")
	queues := map[uint32]uint32{161: one, 162: two}
	b, err := telemetry.Group{Node: 2, Sequence: f.sequence}.Append(nil)
	must(f.t, err)
	f.sequence++
	for _, x := range flows {
		spine := max(spines[x.flow], 161)
		r := telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6, Tracked: true,
			Inner: inbandPacket(f.t, x.flow, spine, queues[spine])}
		if queues[spine] > 60000 {
			r.Congested, r.DomainID = true, telemetry.Domain
			r.DSBits = telemetry.DSIdleGap | telemetry.DSFlowHash
			r.Metadata = telemetry.AppendCongestion(nil, telemetry.Congestion{IdleGapUS: 1000})
		}
		b, err = r.Append(b)
		must(f.t, err)
	}
	_, _ = f.reports.Write(b) // while the controller is away nobody listens
}

// inbandPacket is the head of a packet as it comes to r2, with the INT of r1 and a spine.
func inbandPacket(t *testing.T, flow api.Flow, spine, queue uint32) []byte {
	t.Helper()
	header := func(next uint8, src, dst netip.Addr, payload []byte) []byte {
		b := []byte{0x60, 0, 0, 0, byte(len(payload) >> 8), byte(len(payload)), next, 64}
		return append(append(append(b, src.AsSlice()...), dst.AsSlice()...), payload...)
	}
	md := telemetry.MD{Shim: telemetry.Shim{NPT: 2, Value: 41}, HopWords: 2, Remaining: 8,
		Instructions: telemetry.NodeID | telemetry.Queue}
	for _, hop := range [][2]uint32{{spine, queue}, {1, 0}} { // the last node is on top
		md.Stack = telemetry.AppendMetadata(md.Stack, md.Instructions, telemetry.Metadata{
			Present: md.Instructions, NodeID: hop[0], QueueBytes: hop[1]})
	}
	body, err := md.AppendBinary(nil)
	must(t, err)
	ports := func(a, b uint16) []byte {
		return []byte{byte(a >> 8), byte(a), byte(b >> 8), byte(b)}
	}
	protocol := uint8(unix.IPPROTO_TCP)
	transport := append(ports(flow.Source.Port(), flow.Destination.Port()), make([]byte, 16)...)
	if transport[12] = 0x50; flow.Protocol == config.UDP {
		protocol = unix.IPPROTO_UDP
		transport = append(transport[:4:4], 0, 8, 0, 0)
	}
	body = append(body, header(protocol, flow.Source.Addr(), flow.Destination.Addr(),
		transport)...)
	udp := append(ports(0xc000, 33122), byte((len(body)+8)>>8), byte(len(body)+8), 0, 0)
	return header(17, netip.MustParseAddr("fd00:5e::1"), netip.MustParseAddr("fcbb:bb00:2:e0d6::"),
		append(udp, body...))
}

// TestFlowsLeaveACongestedSpine has TCP fill the queue of one spine. Reports lead to decisions,
// these to paths over the other spine, and the octets go there, as its counters say. Meanwhile the
// controller is killed: nothing breaks, flows keep their paths; and the next one goes on with them.
func TestFlowsLeaveACongestedSpine(t *testing.T) {
	f := newFabric(t)
	flows, octets, end := f.uploads(6)
	begun, _ := f.crossed("s2")
	f.await("s1's queue is more than half full", func() bool {
		_, backlog := f.crossed("s1")
		return backlog > 60000
	})
	if now, _ := f.crossed("s2"); now-begun > 100000 {
		t.Errorf("s2 has carried %d octets before anything moved", now-begun)
	}
	f.await("a megabyte goes over s2", func() bool {
		f.report(flows)
		now, _ := f.crossed("s2")
		return now-begun > 1<<20
	})
	status, err := f.client.Status(t.Context())
	must(t, err)
	moved := counted(status, "moved")
	if moved == 0 || status.HeadEnds[0].Applied == 0 {
		t.Errorf("%d moves, %+v", moved, status.HeadEnds)
	}
	paths, err := f.agents.client("r1").FlowPaths(t.Context())
	must(t, err)
	f.killController()
	before, _ := f.crossed("s2")
	came := octets.Load()
	f.await("without a controller, another megabyte goes over s2", func() bool {
		f.report(flows)
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
	f.await("two more megabytes come", func() bool {
		f.report(flows)
		return octets.Load()-came > 2<<20
	})
	end()
	for _, x := range flows {
		if sent := [sha256.Size]byte(x.sent.Sum(nil)); x.failure != nil || sent != x.received {
			t.Errorf("%v: sent %x, received %x, %v", x.flow, sent, x.received, x.failure)
		}
	}
	one, _ := f.crossed("s1")
	two, _ := f.crossed("s2")
	t.Logf("%d moves; %d octets over s1, %d over s2", moved, one, two-begun)
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
