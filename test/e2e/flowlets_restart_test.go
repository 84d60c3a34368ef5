package e2e_test

import (
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

const flowletService = "[2001:db8:b::1]:7"

// counted are the counters of a1's flowlets.
func (w *flowletLab) counted() api.FlowletCounters {
	w.t.Helper()
	counters, err := w.client("a1").Counters(w.t.Context())
	must(w.t, err)
	for _, c := range counters {
		if c.Flowlets != nil {
			return *c.Flowlets
		}
	}
	w.t.Fatal("a1 counts nothing of flowlets")
	return api.FlowletCounters{}
}

// goesOn does something to the agents, and fails if counters of paths that stay go back, or if
// nothing is known any more of what was measured.
func (w *flowletLab) goesOn(what string, do func()) {
	w.t.Helper()
	before := w.counted()
	do()
	after := w.counted()
	if after.Sent < before.Sent || after.TooLong < before.TooLong ||
		after.Pathless < before.Pathless {
		w.t.Errorf("%s: counters %+v became %+v", what, before, after)
	}
	known := map[string]api.FlowletPath{}
	for _, p := range before.Paths {
		known[p.Name] = p
	}
	for _, p := range after.Paths {
		was, stays := known[p.Name]
		if p.Packets < was.Packets || p.Bytes < was.Bytes || p.Moves < was.Moves ||
			p.Left < was.Left || stays && p.RoundTripMs == 0 {
			w.t.Errorf("%s: of path %s %+v became %+v", what, p.Name, was, p)
		}
	}
}

// without leaves the second path out of a node.
func without(n *config.Node) {
	paths := n.Flowlets.Groups[0].Paths
	n.Flowlets.Groups[0].Paths = append(paths[:1:1], paths[2:]...)
}

// Agents of a host's flowlets are killed and start again, by the same file and by others, and are
// told of changes: no connection breaks, no datagram is lost, and counters and measures go on. What
// they count are the packets that come to the spines.
func TestFlowletsRestart(t *testing.T) {
	t.Parallel()
	w := upFlowlets(t)
	echoDatagrams(t, w.lab, "b1", flowletService)
	tr := startTrafficTo(t, w.lab, "a1", flowletService)
	flows := tr.comeAndGo(w.lab, "a1", flowletService)
	w.until("all paths are used and measured", func(paths []api.FlowletPath) bool {
		for _, p := range paths {
			if p.Packets < 100 || p.RoundTripMs == 0 {
				return false
			}
		}
		return true
	})
	all := w.paths()
	step := func(what string, do func()) {
		t.Helper()
		w.goesOn(what, do)
		flows(what)
	}
	step("a restart", func() { w.restart("a1", same) })
	step("agents that die", func() { w.dying(5) })
	step("another gap, by a restart", func() {
		w.restart("a1", func(n *config.Node) { n.Flowlets.Gap = 2 * time.Millisecond })
	})
	step("another gap, by apply", func() {
		w.reconfigure("a1", func(n *config.Node) { n.Flowlets.Gap = 3 * time.Millisecond })
	})
	step("a path less, by a restart", func() { w.restart("a1", without) })
	came := w.came("s2")
	flows("without a path")
	if n := w.came("s2") - came; n > 50 { // neighbours are looked for
		t.Errorf("%d packets came over a path that is none any more", n)
	}
	for i, p := range w.paths() {
		if want := []string{"s1", "s3", "s4"}[i]; p.Name != want {
			t.Errorf("path %d is shown as %s, want %s", i, p.Name, want)
		}
	}
	step("more paths, by apply", func() {
		w.reconfigure("a1", func(n *config.Node) {
			paths := &n.Flowlets.Groups[0].Paths
			*paths = append(*paths, config.FlowletPath{Name: "s2", SID: all[1].SID})
		})
		if p := w.paths()[3]; p.Name != "s2" || p.Packets >= all[1].Packets {
			t.Errorf("a path that came anew begins as %+v", p)
		}
	})
	step("more flows, by apply", func() {
		w.reconfigure("a1", func(n *config.Node) { n.Flowlets.Flows *= 2 })
	})
	if lost := tr.stop(); lost != 0 {
		t.Errorf("%d of %d datagrams are lost", lost, tr.sent.Load())
	}
	for _, p := range w.paths()[:3] { // those that were there all the time
		if came := float64(w.came(p.Name)); came < 0.97*float64(p.Packets) ||
			came > 1.03*float64(p.Packets)+100 {
			t.Errorf("%d packets are counted over %s, and %.0f came there", p.Packets, p.Name, came)
		}
	}
	w.staysDown()
}

// came is how many packets came to a spine from the left.
func (w *flowletLab) came(spine string) uint64 {
	w.t.Helper()
	return w.receivedBy(spine, "left")
}

// staysDown has probes find a path silent, which then is out of use also for agents that begin and
// for other probes, until they come back.
func (w *flowletLab) staysDown() {
	w.t.Helper()
	probed := func(interval time.Duration) func(*config.Node) {
		return func(n *config.Node) {
			n.Flowlets.Probe = &config.Probe{Interval: interval, Missed: 3, Good: 5}
		}
	}
	first := func(up bool) func([]api.FlowletPath) bool {
		return func(paths []api.FlowletPath) bool { return paths[0].Up == up }
	}
	longer := func(n *config.Node) { n.Flowlets.Gap++ }
	w.stream(4)
	w.reconfigure("a1", probed(20*time.Millisecond))
	time.Sleep(time.Second) // all answer before one falls silent
	w.lossy("s1", true)
	w.until("a path is down by probes", first(false))
	for what, change := range map[string]func(){
		"a restart":           func() { w.restart("a1", same) },
		"other probes":        func() { w.reconfigure("a1", probed(30*time.Millisecond)) },
		"another gap":         func() { w.reconfigure("a1", longer) },
		"probes by a restart": func() { w.restart("a1", probed(25*time.Millisecond)) },
	} {
		sent := w.paths()[0].Packets
		change()
		for began := time.Now(); time.Since(began) < 2*time.Second; { // a new one judges after 1 s
			w.answered(100_000)
			if now := w.paths()[0]; now.Up || now.Packets != sent {
				w.t.Fatalf("%s: a path that is down became %+v", what, now)
			}
		}
	}
	w.lossy("s1", false)
	w.until("it is up again", first(true))
}
