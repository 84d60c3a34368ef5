package e2e_test

import (
	"net/netip"
	"os"
	"path/filepath"
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
	file    string
	process *os.Process
}

// standin writes the file of a controller that stands in for others, and starts it.
func (f *fabric) standin(node, address string) *standin {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.dir, "controller"))
	must(f.t, err)
	s := &standin{fabric: f, node: node, file: filepath.Join(f.dir, node)}
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

func (s *standin) standsBy(leader string) bool {
	status, err := s.Status(s.fabric.t.Context())
	return err == nil && !status.Standby.Leads && status.Standby.Leader == leader
}

// TestControllersStandIn has TCP fill the queue of a spine. The controller that leads is killed,
// and its successor is cut off from etcd and the head-end: the other one leads each time, knows the
// paths, and goes on deciding by the telemetry that it has got meanwhile. No connection breaks. How
// long it took is logged.
func TestControllersStandIn(t *testing.T) {
	f := layFabric(t, fabricGap, "backoffLeast: 200ms, backoffMost: 400ms")
	f.authority.Leaf(t, "ctl", netip.MustParseAddr("fd00:5e::9"))
	f.authority.Leaf(t, "ctl2", netip.MustParseAddr("fd00:5e::8"))
	etcd := f.start("etcd", "etcd", "--data-dir", filepath.Join(f.dir, "etcd"),
		"--listen-client-urls", "http://[fd00:5e::7]:2379", "--advertise-client-urls",
		"http://[fd00:5e::7]:2379", "--listen-peer-urls", "http://127.0.0.1:0",
		"--initial-advertise-peer-urls", "http://127.0.0.1:0", "--initial-cluster",
		"default=http://127.0.0.1:0", "--log-level", "error")
	t.Cleanup(func() { _ = etcd.Kill(); _, _ = etcd.Wait() })
	one := f.standin("ctl", "fd00:5e::9")
	f.await("the first controller is followed", one.followed)
	two := f.standin("ctl2", "fd00:5e::8")
	f.await("the second one stands by", func() bool { return two.standsBy("ctl") })
	flows, octets, end := f.uploads(6)
	f.await("a flow has a path over s2", func() bool { return f.over2() > 0 })

	begun := time.Now()
	one.kill()
	f.await("the second one is followed", two.followed)
	t.Logf("killed: the other one is followed after %v", time.Since(begun))
	f.knows(two)
	one.run()
	f.await("the first one stands by", func() bool { return one.standsBy("ctl2") })

	for _, router := range []string{"r1", "r2"} {
		f.on(router, "ip", "-6", "route", "add", "blackhole", "fd00:5e::8/128", "metric", "1")
	}
	begun = time.Now()
	f.await("the first one is followed again", one.followed)
	t.Logf("cut off: the other one is followed after %v", time.Since(begun))
	f.knows(one)
	for _, router := range []string{"r1", "r2"} {
		f.on(router, "ip", "-6", "route", "del", "blackhole", "fd00:5e::8/128", "metric", "1")
	}
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
