package endtoend_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/impair"
	"sextant/lab"
	"sextant/topology"
	"sextant/topology/format"
)

// The protected stream: telemetry at 1,000 packets per second.
const (
	protectedAddress = "[2001:db8:b::1]:4433"
	packetInterval   = time.Millisecond
)

// protected is the lab of protect.yaml with its head-end r1 and its egress r7.
type protected struct {
	t        *testing.T
	lab      *lab.Lab
	headend  *api.Client
	sent     atomic.Uint64
	arrived  map[uint64]int // by number, how often
	stop     context.CancelFunc
	finished chan struct{}
}

// ladderGraph is what the head-end knows of the network: four paths of three links. The first ones are quicker.
func ladderGraph(t *testing.T) string {
	t.Helper()
	b := topology.NewBuilder("ladder", time.Microsecond)
	node := func(name, sid string) topology.Node {
		v, err := b.AddNode(topology.NodeSpec{Name: name, SID: netip.PrefixFrom(netip.MustParseAddr(sid), 128)})
		must(t, err)
		return v
	}
	link := func(u, v topology.Node, delay int64) {
		for _, ends := range [][2]topology.Node{{u, v}, {v, u}} {
			_, err := b.AddEdge(topology.EdgeSpec{From: ends[0], To: ends[1], Weight: 10, Delay: delay, CapacityKbps: 10_000})
			must(t, err)
		}
	}
	r1, r7 := node("r1", "fcbb:bb00:1::"), node("r7", "fcbb:bb00:7::")
	for i := 1; i <= 4; i++ {
		near, far := node(fmt.Sprintf("b%d", i), fmt.Sprintf("fcbb:bb00:b%d::", i)), node(fmt.Sprintf("c%d", i), fmt.Sprintf("fcbb:bb00:c%d::", i))
		link(r1, near, 10)
		link(near, far, 1000+int64(i))
		link(far, r7, 10)
	}
	text, err := format.Write(b.Build(), format.Edges)
	must(t, err)
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newProtected(t *testing.T) *protected {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile("testdata/protect.yaml")
	must(t, err)
	name := fmt.Sprintf("p%d", os.Getpid())
	edges := strings.ReplaceAll(strings.TrimSpace(ladderGraph(t)), "\n", "\n          ")
	spec, err := lab.Parse("protect.yaml", []byte(strings.NewReplacer("NAME", name, "EDGES", edges).Replace(string(text))))
	must(t, err)
	l, err := lab.Up(t.Context(), spec, lab.Options{})
	must(t, err)
	p := &protected{t: t, lab: l, arrived: map[uint64]int{}, finished: make(chan struct{})}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(l.Log("r1", "sextant"))
			t.Logf("r1:\n%s", log)
		}
		must(t, lab.Down(name, nil))
	})
	r1, err := l.Node("r1")
	must(t, err)
	p.headend = api.NewClient(filepath.Join(r1.Dir, "agent.sock"))
	return p
}

func spec(copies, spares int) api.ProtectionSpec {
	return api.ProtectionSpec{
		From: "r1", To: "r7", Egress: netip.MustParseAddr("fcbb:bb00:7:f::"), Copies: copies, Spares: spares, RateKbps: 2000,
		Match: []api.Traffic{{Destination: "2001:db8:b::/64", Protocol: "udp"}},
	}
}

// await waits for a state of the protection.
func (p *protected) await(what string, holds func(api.Protection) bool) api.Protection {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		now, err := p.headend.Protection(p.t.Context(), "video")
		must(p.t, err)
		if holds(now) {
			return now
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %s\n%+v", what, now)
		}
	}
}

// routers are those of the ladder that carrying paths go by, like "13".
func routers(x api.Protection) string {
	var names []string
	for _, path := range x.Paths {
		if path.Role == api.Carries {
			_, to, _ := strings.Cut(path.Links[0], ">b")
			names = append(names, to)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

// cut makes a path lose all packets in its middle, both ways, without telling anybody; or mends it.
func (p *protected) cut(router string, cut bool) {
	p.t.Helper()
	must(p.t, p.lab.ChangeLinks(p.t.Context(), "b"+router+"--c"+router, lab.LinkChange{
		Profile: func(profile *impair.Profile) error { profile.Cut = cut; return nil },
	}))
}

// begin starts the stream.
func (p *protected) begin() {
	p.t.Helper()
	var out net.Conn
	var in net.PacketConn
	inside(p.t, p.lab, "hostb", func() (err error) { in, err = net.ListenPacket("udp", protectedAddress); return err })
	inside(p.t, p.lab, "hosta", func() (err error) { out, err = net.Dial("udp", protectedAddress); return err })
	ctx, cancel := context.WithCancel(p.t.Context())
	p.stop = cancel
	go func() {
		defer out.Close()
		for tick := time.NewTicker(packetInterval); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				_, _ = out.Write(binary.BigEndian.AppendUint64(nil, p.sent.Add(1)))
			}
		}
	}()
	go func() {
		defer close(p.finished)
		defer in.Close()
		buffer := make([]byte, 64)
		for {
			if ctx.Err() != nil {
				_ = in.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // what is on its way
			} else {
				_ = in.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			}
			n, _, err := in.ReadFrom(buffer)
			switch {
			case err == nil && n == 8:
				p.arrived[binary.BigEndian.Uint64(buffer)]++
			case err != nil && ctx.Err() != nil:
				return
			}
		}
	}()
}

// end stops the stream and counts what did not arrive, and what arrived twice.
func (p *protected) end() (sent, lost, twice uint64) {
	p.stop()
	<-p.finished
	sent = p.sent.Load()
	for n := uint64(1); n <= sent; n++ {
		switch count := p.arrived[n]; {
		case count == 0:
			lost++
		case count > 1:
			twice++
		}
	}
	return sent, lost, twice
}

// A path is cut under a stream of 1,000 packets per second: with two copies no packet is lost, and a replacement is installed.
func TestCutUnderTwoCopies(t *testing.T) {
	p := newProtected(t)
	p.await2()
	view, err := p.headend.Protect(t.Context(), "video", spec(2, 0), false)
	must(t, err)
	if view.Proof == "" || len(view.Paths) != 2 {
		t.Errorf("%+v", view)
	}
	p.await("both paths answer", answered(2))
	p.begin()
	time.Sleep(300 * time.Millisecond)
	began := time.Now()
	p.cut("1", true)
	after := p.await("a replacement carries", func(x api.Protection) bool { return routers(x) == "23" && answered(2)(x) })
	t.Logf("cut at %s; the replacement was installed %v later", began.Format("15:04:05.000"), after.Changed.Sub(began).Round(time.Millisecond/10))
	time.Sleep(300 * time.Millisecond)
	p.cut("1", false)
	p.await("the quicker path carries again", func(x api.Protection) bool { return routers(x) == "12" && answered(2)(x) })
	sent, lost, twice := p.end()
	t.Logf("%d packets, %d lost, %d twice", sent, lost, twice)
	if lost != 0 || twice != 0 || sent < 500 {
		t.Errorf("of %d packets %d were lost and %d came twice", sent, lost, twice)
	}
}

// await2 waits until the head-end has read its topology.
func (p *protected) await2() {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if topology, err := p.headend.Topology(p.t.Context()); err == nil && topology.NodeLink != "" {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the head-end has read no topology")
		}
	}
}

func answered(paths int) func(api.Protection) bool {
	return func(x api.Protection) bool {
		count := 0
		for _, path := range x.Paths {
			if path.Role == api.Carries && path.Probes == "answers" {
				count++
			}
		}
		return count == paths && x.State == api.Protected
	}
}

// With three copies any two paths may be cut at once.
func TestAnyTwoCutsUnderThreeCopies(t *testing.T) {
	p := newProtected(t)
	p.await2()
	_, err := p.headend.Protect(t.Context(), "video", spec(3, 0), false)
	must(t, err)
	p.await("all paths answer", answered(3))
	p.begin()
	for _, cuts := range []string{"12", "13", "23"} {
		before := p.await("three paths carry", func(x api.Protection) bool { return routers(x) == "123" && answered(3)(x) })
		began := time.Now()
		for _, r := range cuts {
			p.cut(string(r), true)
		}
		left := strings.NewReplacer(cuts[:1], "", cuts[1:], "").Replace("1234")
		after := p.await("what is left carries", func(x api.Protection) bool { return routers(x) == left })
		t.Logf("%s are cut: %s carry %v later; before %s", cuts, left, after.Changed.Sub(began).Round(time.Millisecond/10), routers(before))
		for _, r := range cuts {
			p.cut(string(r), false)
		}
	}
	p.await("three paths carry", func(x api.Protection) bool { return routers(x) == "123" && answered(3)(x) })
	sent, lost, twice := p.end()
	t.Logf("%d packets, %d lost, %d twice", sent, lost, twice)
	if lost != 0 || twice != 0 {
		t.Errorf("of %d packets %d were lost and %d came twice", sent, lost, twice)
	}
}
