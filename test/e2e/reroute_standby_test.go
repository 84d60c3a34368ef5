package e2e_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sextant/controller"
)

// A standin is one of several controllers.
type standin struct {
	*controller.Client
	fabric  *fabric
	node    string
	address string
	file    string
	process *os.Process
}

// standin writes the file of a controller that stands in for others, and starts it.
func (f *fabric) standin(node, address string) *standin {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "controller"))
	must(f.t, err)
	s := &standin{fabric: f, node: node, address: address,
		file: filepath.Join(f.dir, node)}
	must(f.t, os.WriteFile(s.file, []byte(strings.NewReplacer("fd00:5e::9]", address+"]",
		"controller.sock", node+".sock", "controller.pem", node+".pem", "controller.key",
		node+".key").Replace(string(text))+"standby: {name: "+node+
		", etcd: {endpoints: [\"http://[fd00:5e::7]:2379\"]}}\n"), 0o600))
	s.Client = controller.NewClient(filepath.Join(f.dir, node+".sock"))
	s.run()
	f.t.Cleanup(s.kill)
	return s
}

func (s *standin) run() {
	s.fabric.t.Helper()
	s.process = s.fabric.start(s.node, os.Args[0], "controller", s.file)
}

func (s *standin) kill() {
	_ = s.process.Kill() // it may have ended
	_, _ = s.process.Wait()
}

// followed is when the head-end follows this one.
func (s *standin) followed() bool {
	status, err := s.Status(s.fabric.t.Context())
	return err == nil && status.Standby.Leads && len(status.HeadEnds) == 1 &&
		status.HeadEnds[0].Followed
}

// standsBy is when another one leads, and the head-end keeps a stream to this one.
func (s *standin) standsBy(leader string) bool {
	status, err := s.Status(s.fabric.t.Context())
	return err == nil && !status.Standby.Leads && status.Standby.Leader == leader &&
		len(status.HeadEnds) == 1 && status.HeadEnds[0].Connected
}

// TestControllersStandIn has TCP fill the queue of a spine. The controller that leads is killed,
// and its successor is cut off from etcd and the head-end: the other one leads each time, knows the
// paths, and goes on deciding by the telemetry that it has got meanwhile. No connection breaks. How
// long it took is logged.
func TestControllersStandIn(t *testing.T) {
	f := layFabric(t, fabricGap, "backoffLeast: 200ms, backoffMost: 400ms")
	one, two := f.standins()
	flows, octets, end := f.uploads(6)
	f.await("a flow has a path over s2", func() bool { return f.over2() > 0 })

	begun := time.Now()
	one.kill()
	f.await("the second one is followed", two.followed)
	t.Logf("killed: the other one is followed after %v", time.Since(begun))
	f.knows(two)
	one.run()
	f.await("the first one stands by", func() bool { return one.standsBy("ctl2") })

	f.reaches("fd00:5e::8", false)
	begun = time.Now()
	f.await("the first one is followed again", one.followed)
	t.Logf("cut off: the other one is followed after %v", time.Since(begun))
	f.knows(one)
	f.reaches("fd00:5e::8", true)
	f.await("the second one stands by again", func() bool { return two.standsBy("ctl") })
	came := octets.Load()
	f.await("a megabyte comes", func() bool { return octets.Load()-came > 1<<20 })
	if !one.followed() {
		t.Error("the head-end follows the one that was cut off")
	}
	end()
	intact(t, flows)
}

// knows waits until a controller knows the queues, and the paths that the head-end has.
func (f *fabric) knows(s *standin) {
	f.t.Helper()
	f.await("it knows each path, and the queues", func() bool {
		paths, err := f.agents.client("r1").FlowPaths(f.t.Context())
		must(f.t, err)
		for _, p := range paths {
			known, err := s.Flow(f.t.Context(), p.Flow)
			if err != nil || known.State != "applied" {
				return false
			}
		}
		links, err := s.Links(f.t.Context())
		must(f.t, err)
		seen := 0
		for _, l := range links {
			if l.AgeMs != nil {
				seen++
			}
		}
		return len(paths) > 0 && seen > 0
	})
}

// standins are two controllers with one etcd, of which the first is followed.
func (f *fabric) standins() (one, two *standin) {
	f.t.Helper()
	f.authority.Leaf(f.t, "ctl", netip.MustParseAddr("fd00:5e::9"))
	f.authority.Leaf(f.t, "ctl2", netip.MustParseAddr("fd00:5e::8"))
	etcd := f.start("etcd", "etcd", "--data-dir", filepath.Join(f.dir, "etcd"),
		"--listen-client-urls", "http://[fd00:5e::7]:2379", "--advertise-client-urls",
		"http://[fd00:5e::7]:2379", "--listen-peer-urls", "http://127.0.0.1:0",
		"--initial-advertise-peer-urls", "http://127.0.0.1:0", "--initial-cluster",
		"default=http://127.0.0.1:0", "--log-level", "error")
	f.t.Cleanup(func() { _ = etcd.Kill(); _, _ = etcd.Wait() })
	one = f.standin("ctl", "fd00:5e::9")
	f.await("the first controller is followed", one.followed)
	two = f.standin("ctl2", "fd00:5e::8")
	f.await("the second one stands by", func() bool { return two.standsBy("ctl") })
	return one, two
}

// reaches has the routers reach an address, or drop what is sent to it.
func (f *fabric) reaches(address string, reachable bool) {
	f.t.Helper()
	how := "add"
	if reachable {
		how = "del"
	}
	for _, router := range []string{"r1", "r2"} {
		f.on(router, "ip", "-6", "route", how, "blackhole", address+"/128", "metric", "1")
	}
}

// Flows that begin are spread over both spines, by the weights of the controller that leads: until
// it is killed, then by its successor's, and when that is cut off from etcd and the head-end, by
// the first one's again. No connection breaks. How long it took is logged.
func TestControllersStandInWhileFlowsSpread(t *testing.T) {
	f := layFabric(t, fabricGap, "flowlet: 0s, groups: 10ms")
	f.spreadByLetFlow()
	one, two := f.standins()
	f.hasGroup()
	flows, _, end := f.uploads(6)
	spread := func(when string) {
		t.Helper()
		first, second := f.octets("s1"), f.octets("s2")
		more, _, end := f.uploads(12)
		f.await(when+", flows that begin take both spines", func() bool {
			return f.octets("s1")-first > 1<<20 && f.octets("s2")-second > 1<<20
		})
		end()
		intact(t, more)
	}
	begun := time.Now()
	one.kill()
	f.await("the second one is followed", two.followed)
	t.Logf("killed: the other one is followed after %v", time.Since(begun))
	f.weighs(two)
	spread("with the second one")
	one.run()
	f.await("the first one stands by", func() bool { return one.standsBy("ctl2") })

	f.reaches("fd00:5e::8", false)
	begun = time.Now()
	f.await("the first one is followed again", one.followed)
	t.Logf("cut off: the other one is followed after %v", time.Since(begun))
	f.weighs(one)
	spread("with the first one")
	f.reaches("fd00:5e::8", true)
	f.await("the second one stands by again", func() bool { return two.standsBy("ctl") })
	end()
	intact(t, flows)
}

// weighs waits until the head-end has weights that a controller sent.
func (f *fabric) weighs(s *standin) {
	f.t.Helper()
	before := f.applied(s)
	f.await("the head-end applies its weights", func() bool { return f.applied(s) > before })
}

// applied is how many paths and groups of a controller the head-end has made.
func (f *fabric) applied(s *standin) int {
	f.t.Helper()
	text, err := f.agents.client("r1").MetricsText(f.t.Context())
	must(f.t, err)
	found := regexp.MustCompile(`(?m)^sextant_headend_controller_paths_total\{controller="\[` +
		s.address + `\]:9478",result="applied"\} (\d+)$`).FindSubmatch(text)
	if found == nil {
		f.t.Fatalf("no counter of controller %s:\n%s", s.address, text)
	}
	n, err := strconv.Atoi(string(found[1]))
	must(f.t, err)
	return n
}
