package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sextant/agent/api"
)

// layFlowlets is the fabric with a controller whose head-end spreads flows that begin, by policy
// letflow, and has them choose again after pauses. Without a word of it for four leases of a
// second, the head-end spreads them no more.
func layFlowlets(t *testing.T, flowlet time.Duration) *fabric {
	t.Helper()
	f := layFabric(t, fabricGap, "flowlet: "+flowlet.String()+", groups: 10ms")
	f.spreadByLetFlow()
	f.startController()
	return f
}

// spreadByLetFlow changes the controller's file accordingly.
func (f *fabric) spreadByLetFlow() {
	f.t.Helper()
	file := filepath.Join(f.dir, "controller")
	text, err := os.ReadFile(file)
	must(f.t, err)
	for was, is := range map[string]string{"name: sextant": "name: letflow",
		"node: 2}": "node: 2, prefixes: [\"2001:db8:b::/48\"]}",
		"  decap:": "  lease: 1s\n  decap:"} {
		text = bytes.Replace(text, []byte(was), []byte(is), 1)
	}
	must(f.t, os.WriteFile(file, text, 0o600))
}

// noneMoved fails if the controller, or anything else, gave a flow a path of its own.
func (f *fabric) noneMoved() {
	f.t.Helper()
	s, err := f.client.Status(f.t.Context())
	must(f.t, err)
	if n := f.over2(); n > 0 || counted(s, "moved") > 0 {
		f.t.Errorf("%d flows have paths of their own, %+v", n, s.Verdicts)
	}
}

// Flows that begin are spread over both spines by the head-end, though its rules send all over one.
// The controller is killed: they go on as before; then, when the time of its weights is over, by
// the rules again. No octet is lost or changed.
func TestFlowsBeginOnBothSpines(t *testing.T) {
	f := layFlowlets(t, 0)
	f.hasGroup()
	one, two := f.octets("s1"), f.octets("s2")
	flows, octets, end := f.uploads(12)
	f.await("two megabytes over each spine", func() bool {
		return f.octets("s1")-one > 2<<20 && f.octets("s2")-two > 2<<20
	})
	f.noneMoved()
	f.killController()
	one, two = f.octets("s1"), f.octets("s2")
	f.await("without a controller, a megabyte over each spine", func() bool {
		return f.octets("s1")-one > 1<<20 && f.octets("s2")-two > 1<<20
	})
	f.await("the time of the group is over, and all goes by the rules", func() bool {
		came, two := octets.Load(), f.octets("s2")
		time.Sleep(200 * time.Millisecond)
		return octets.Load()-came > 200_000 && f.octets("s2")-two < 20_000
	})
	f.startController()
	two = f.octets("s2")
	f.await("with a controller, both spines carry again", func() bool {
		return f.octets("s2")-two > 1<<20
	})
	end()
	intact(t, flows)
}

// octets is how many a spine has sent to r2.
func (f *fabric) octets(spine string) uint64 {
	octets, _ := f.crossed(spine)
	return octets
}

// hasGroup awaits that the head-end has been told weights.
func (f *fabric) hasGroup() {
	f.t.Helper()
	f.await("the head-end has the group", func() bool {
		groups, err := f.agents.client("r1").DumpMap(f.t.Context(), api.Headend, "flow_groups", 2)
		return err == nil && len(groups) == 1
	})
}

// bursts sends data from hosta to hostb by one connection, in pieces with pauses between, and fails
// unless all comes as it was sent.
func (f *fabric) bursts(count, size int, pause time.Duration) {
	f.t.Helper()
	flows, octets, end := f.pausing(1, func(sent int64) {
		if sent%int64(size) == 0 {
			time.Sleep(pause)
		}
	})
	f.await("all bursts have come", func() bool { return octets.Load() >= int64(count*size) })
	end()
	intact(f.t, flows)
}

// One connection that pauses for longer than the flowlet time goes over one spine and over the
// other: the head-end's program switches it, no path of its own does, and nothing comes twice or is
// lost. With a longer flowlet time it stays on one spine.
func TestFlowletsTakeBothSpines(t *testing.T) {
	for _, flowlet := range []time.Duration{2 * time.Millisecond, time.Minute} {
		t.Run(flowlet.String(), func(t *testing.T) { takeFlowlets(t, flowlet) })
	}
}

func takeFlowlets(t *testing.T, flowlet time.Duration) {
	t.Helper()
	f := layFlowlets(t, flowlet)
	f.hasGroup()
	one, two := f.octets("s1"), f.octets("s2")
	const bursts, burst = 60, 32 << 10
	f.bursts(bursts, burst, 30*time.Millisecond)
	one, two = f.octets("s1")-one, f.octets("s2")-two
	less := min(one, two)
	t.Logf("flowlets after %v: %d octets over s1, %d over s2", flowlet, one, two)
	if switches := flowlet < time.Second; switches != (less > bursts*burst/10) {
		t.Errorf("flowlets after %v: the spine with less has %d octets", flowlet, less)
	}
	f.noneMoved()
}
