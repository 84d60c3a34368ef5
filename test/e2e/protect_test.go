package e2e_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/lab"
	"sextant/lab/netem"
	"sextant/te/topology/format"
)

// The protected stream: telemetry at 1,000 packets per second.
const (
	protectedAddress = "[2001:db8:b::1]:4433"
	packetInterval   = time.Millisecond
)

// protected is the lab of examples/protect.yaml with its head-end r1 and its egress r7.
type protected struct {
	*agents
	t        *testing.T
	headend  *api.Client
	sent     atomic.Uint64
	arrived  map[uint64]int // by number, how often
	stop     context.CancelFunc
	finished chan struct{}
}

func newProtected(t *testing.T) *protected {
	t.Helper()
	return newProtectedBy(t, func(*lab.Spec) {})
}

// newProtectedBy brings the lab up as it is after a change.
func newProtectedBy(t *testing.T, change func(*lab.Spec)) *protected {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile("../../examples/protect.yaml")
	must(t, err)
	spec, err := lab.Parse("protect.yaml", text)
	must(t, err)
	spec.Name = newName()
	change(spec)
	p := &protected{agents: upSpec(t, spec), t: t, arrived: map[uint64]int{},
		finished: make(chan struct{})}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(p.lab.Log("r1", "sextant"))
			t.Logf("r1:\n%s", log)
		}
	})
	p.headend = p.client("r1")
	p.awaitTopology()
	return p
}

func spec(copies, spares int) api.ProtectionSpec {
	return api.ProtectionSpec{
		From: "r1", To: "r7", Egress: netip.MustParseAddr("fcbb:bb00:7:f::"), Copies: copies,
		Spares: spares, RateKbps: 2000,
		Match: []api.Traffic{{Destination: "2001:db8:b::/64", Protocol: "udp"}},
		Agent: netip.MustParseAddrPort("[fd00:5e::7]:9477"),
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
		Profile: func(profile *netem.Profile) error { profile.Cut = cut; return nil },
	}))
}

// begin starts the stream.
func (p *protected) begin() {
	p.t.Helper()
	var out net.Conn
	var in net.PacketConn
	inside(p.t, p.lab, "hostb", func() (err error) {
		in, err = roomy.ListenPacket(p.t.Context(), "udp", protectedAddress)
		return err
	})
	inside(p.t, p.lab, "hosta", func() (err error) {
		out, err = net.Dial("udp", protectedAddress)
		return err
	})
	ctx, cancel := context.WithCancel(p.t.Context())
	p.stop = cancel
	ended := make(chan struct{})
	go func() {
		defer close(ended)
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
		p.receive(in, ended)
	}()
}

// receive notes what arrives, until the sender has ended and no more is to be expected. What is on
// its way may take its time on a busy machine; second copies have less of it, as they come soon
// after the first or not at all.
func (p *protected) receive(in net.PacketConn, ended <-chan struct{}) {
	const beat, forCopies = 50 * time.Millisecond, 200 * time.Millisecond
	buffer, heard := make([]byte, 64), time.Now()
	for first := uint64(0); ; {
		_ = in.SetReadDeadline(time.Now().Add(beat))
		n, _, err := in.ReadFrom(buffer)
		if err == nil && n == 8 {
			number := binary.BigEndian.Uint64(buffer)
			if p.arrived[number]++; p.arrived[number] == 1 {
				first++
			}
			heard = time.Now()
			continue
		}
		select {
		case <-ended:
			silence := time.Since(heard)
			if silence > patience || silence > forCopies && first == p.sent.Load() {
				return
			}
		default:
		}
	}
}

// enough is how many packets a stream must have for its end to say something.
const enough = 50

// finish stops the stream, when it is long enough, and counts what did not arrive, and what arrived
// twice.
func (p *protected) finish() (sent, lost, twice uint64) {
	for p.sent.Load() < enough {
		time.Sleep(packetInterval)
	}
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

// lostNothing ends the stream, of which every packet must have come once.
func (p *protected) lostNothing() {
	p.t.Helper()
	sent, lost, twice := p.finish()
	p.t.Logf("%d packets, %d lost, %d twice", sent, lost, twice)
	if lost != 0 || twice != 0 {
		var which []uint64
		for n := uint64(1); n <= sent && len(which) < 20; n++ {
			if p.arrived[n] != 1 {
				which = append(which, n)
			}
		}
		p.t.Errorf("of %d packets %d were lost and %d came twice: %v", sent, lost, twice, which)
	}
}

// A path is cut under a stream of 1,000 packets per second: with two copies no packet is lost, and
// a replacement is installed.
func TestCutUnderTwoCopies(t *testing.T) {
	p := newProtected(t)
	view, err := p.headend.Protect(t.Context(), "video", spec(2, 0), false)
	must(t, err)
	if view.Proof == "" || len(view.Paths) != 2 {
		t.Errorf("%+v", view)
	}
	p.await("both paths answer", answered(2))
	p.begin()
	time.Sleep(300 * time.Millisecond)
	p.await("the egress has told of copies", func(x api.Protection) bool {
		return x.Paths[0].CopyDelayMs != nil && *x.Paths[0].CopyDelayMs > 0 &&
			x.Paths[1].CopyDelayMs != nil
	})
	began := time.Now()
	p.cut("1", true)
	after := p.await("a replacement carries",
		func(x api.Protection) bool { return routers(x) == "23" && answered(2)(x) })
	t.Logf("cut at %s; the replacement was installed %v later", began.Format("15:04:05.000"),
		after.Changed.Sub(began).Round(time.Millisecond/10))
	time.Sleep(300 * time.Millisecond)
	p.cut("1", false)
	p.await("the quicker path carries again",
		func(x api.Protection) bool { return routers(x) == "12" && answered(2)(x) })
	p.lostNothing()
}

// awaitTopology waits until the head-end has read its topology.
func (p *protected) awaitTopology() {
	p.t.Helper()
	const convergence = time.Minute // of an IGP
	for deadline := time.Now().Add(patience + convergence); ; time.Sleep(5 * time.Millisecond) {
		if topology, err := p.headend.Topology(p.t.Context()); err == nil &&
			topology.NodeLink != "" {
			g, err := format.Read(format.File{Name: "network", Text: []byte(topology.NodeLink)},
				format.Options{Format: format.NodeLink})
			must(p.t, err)
			if g.Nodes() == 10 && g.Edges() == 24 {
				return
			}
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
	_, err := p.headend.Protect(t.Context(), "video", spec(3, 0), false)
	must(t, err)
	p.await("all paths answer", answered(3))
	p.begin()
	for _, cuts := range []string{"12", "13", "23"} {
		before := p.await("three paths carry",
			func(x api.Protection) bool { return routers(x) == "123" && answered(3)(x) })
		began := time.Now()
		for _, r := range cuts {
			p.cut(string(r), true)
		}
		left := strings.NewReplacer(cuts[:1], "", cuts[1:], "").Replace("1234")
		after := p.await("what is left carries",
			func(x api.Protection) bool { return routers(x) == left })
		t.Logf("%s are cut: %s carry %v later; before %s", cuts, left,
			after.Changed.Sub(began).Round(time.Millisecond/10), routers(before))
		for _, r := range cuts {
			p.cut(string(r), false)
		}
	}
	p.await("three paths carry", func(x api.Protection) bool {
		return routers(x) == "123" &&
			answered(3)(x)
	})
	p.lostNothing()
}

// What the topology's file says, and a local link that goes down, move paths without a packet lost;
// and what can't be promised is refused with the reason.
func TestProtectionFollowsTheTopology(t *testing.T) {
	p := newProtected(t)
	_, err := p.headend.Protect(t.Context(), "video", spec(2, 1), false)
	must(t, err)
	p.await("all paths answer", func(x api.Protection) bool {
		return routers(x) == "12" && answered(2)(x) && len(x.Paths) == 3
	})
	p.begin()
	r1, err := p.lab.Node("r1")
	must(t, err)
	file := filepath.Join(r1.Dir, "network.edges")
	whole, err := os.ReadFile(file)
	must(t, err)
	var less []string
	for line := range strings.Lines(string(whole)) {
		if !strings.Contains(line, "b2 -- c2 ") {
			less = append(less, line)
		}
	}
	replace := func(text string) {
		must(t, os.WriteFile(file+"~", []byte(text), 0o644))
		must(t, os.Rename(file+"~", file))
	}
	replace(strings.Join(less, ""))
	p.await("paths leave the link that is gone",
		func(x api.Protection) bool { return routers(x) == "13" && answered(2)(x) })
	began := time.Now()
	ip := func(command string) {
		must(t, p.lab.Exec("r1", exec.Command("ip", strings.Fields(command)...)))
	}
	ip("link set b1 down")
	after := p.await("paths leave the local link that is down, and there is no spare",
		func(x api.Protection) bool {
			return routers(x) == "34" && answered(2)(x) && x.Reason != ""
		})
	t.Logf("a local link went down: the spare took over %v later",
		after.Changed.Sub(began).Round(time.Millisecond/10))
	replace(string(whole))
	p.await("the link that came back is used",
		func(x api.Protection) bool { return routers(x) == "23" && answered(2)(x) })
	p.lostNothing()
	for want, change := range map[string]func(*api.ProtectionSpec){
		"5 copies from r1 to r7: there are 3 link-disjoint paths only: the ends are parted by " +
			"links": func(s *api.ProtectionSpec) { s.Copies = 5 },
		"link b2>c2 would carry 9.001 Mbit/s, and 80.0 % of its 10 Mbit/s is the bound": func(
			s *api.ProtectionSpec) {
			s.RateKbps = 7001
		},
		"traffic enters at node \"r1\" of the topology, not at \"b1\"": func(
			s *api.ProtectionSpec) {
			s.From = "b1"
		},
		"topology network has no node \"r9\"": func(
			s *api.ProtectionSpec) {
			s.To = "r9"
		},
	} {
		other := spec(2, 0)
		other.Match[0].Destination = "2001:db8:c::/64"
		change(&other)
		if _, err := p.headend.Protect(t.Context(), "other", other, true); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("refused with %v; want %s", err, want)
		}
	}
}

// An agent that is killed leaves the paths as they are, and the one that follows goes on with what
// it was asked for.
func TestProtectionOutlivesItsAgent(t *testing.T) {
	p := newProtected(t)
	_, err := p.headend.Protect(t.Context(), "video", spec(2, 1), false)
	must(t, err)
	p.await("all paths answer", func(x api.Protection) bool {
		return answered(2)(x) &&
			len(x.Paths) == 3
	})
	p.begin()
	time.Sleep(100 * time.Millisecond)
	p.kill()
	time.Sleep(100 * time.Millisecond)
	p.start()
	p.ready()
	p.await("all paths answer again", func(x api.Protection) bool {
		return routers(x) == "12" && answered(2)(x) && len(x.Paths) == 3
	})
	p.cut("1", true)
	p.await("the spare carries", func(x api.Protection) bool {
		return routers(x) == "23" &&
			answered(2)(x)
	})
	p.lostNothing()
	_, err = p.headend.DeleteProtection(t.Context(), "video")
	must(t, err)
	if left, err := p.headend.Protections(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("after it was deleted: %+v, %v", left, err)
	}
}

// If no probe comes back over any path, their way back is suspected, and nothing is switched off:
// traffic goes on.
func TestLostWayBackSwitchesNothingOff(t *testing.T) {
	p := newProtected(t)
	_, err := p.headend.Protect(t.Context(), "video", spec(2, 1), false)
	must(t, err)
	p.await("all paths answer", func(x api.Protection) bool {
		return answered(2)(x) &&
			len(x.Paths) == 3
	})
	p.begin()
	must(t, p.lab.Exec("r7", exec.Command("ip", "link", "set", "back", "down")))
	silent := p.await("the way back is suspected",
		func(x api.Protection) bool { return x.State == api.Suspended })
	if routers(silent) != "12" || !strings.Contains(silent.Reason, "r7") {
		t.Errorf("while the way back is lost: %+v", silent)
	}
	time.Sleep(200 * time.Millisecond)
	p.lostNothing()
}

// The topology comes by BGP-LS from a router, with the SIDs of its nodes, and so do its changes.
func TestProtectionOnATopologyByBGP(t *testing.T) {
	p := newProtectedBy(t, func(s *lab.Spec) {
		for i := range s.Nodes {
			switch n := &s.Nodes[i]; n.Name {
			case "r1":
				n.Sextant = regexp.MustCompile(`topology: .*`).ReplaceAllString(n.Sextant, "topology: bgp") + `
bgp:
  asn: 64512
  routerID: 192.0.2.1
  listen: "[fd00:5e::1]:179"
  neighbors: [{address: "fd00:5e::7", asn: 64512, local: "fd00:5e::1", families: [link-state]}]
`
			case "r7":
				n.Processes = append(n.Processes, lab.ProcessSpec{
					Name: "bgp", Command: lab.Command{Args: []string{"{self}", "linkstate",
						"fd00:5e::7", "fd00:5e::1", "{dir}/without"}},
				})
			}
		}
	})
	view, err := p.headend.Protect(t.Context(), "video", spec(2, 0), false)
	must(t, err)
	if got := routers(view); got != "12" || view.Paths[0].DelayUnit != "us" ||
		view.Paths[0].Delay != 1021 {
		t.Errorf("over %s: %+v", got, view.Paths)
	}
	p.await("all paths answer", answered(2))
	p.begin()
	r7, err := p.lab.Node("r7")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(r7.Dir, "without"), []byte("1"), 0o644))
	p.await("paths leave a link that is withdrawn",
		func(x api.Protection) bool { return routers(x) == "23" && answered(2)(x) })
	time.Sleep(100 * time.Millisecond)
	p.lostNothing()
}
