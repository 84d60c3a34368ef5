package scenario

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"sextant/te/topology"
)

const small = `
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 3}
links: {rate: 1Gbps, fabric: 2Gbps, delay: 2us}
transport: {control: dctcp}
queue: {packets: 50, mark: 20}
paths: {scheme: letflow, convergence: 1ms}
traffic: {pattern: random, sizes: 20000, load: 0.3}
duration: 60ms
failures: [{from: leaf1, to: spine0, at: 20ms, back: 40ms}]
`

func unopened(string) (*topology.Graph, error) { return nil, errors.New("no file is to be opened") }

// parsed is a scenario, which may name files, with its topology.
func parsed(t *testing.T, text string, f files) (*Scenario, *topology.Graph) {
	t.Helper()
	c, err := Parse([]byte(text), f.read)
	if err != nil {
		t.Fatal(err)
	}
	g, err := c.Topology.Graph(unopened)
	if err != nil {
		t.Fatal(err)
	}
	return c, g
}

func run(t *testing.T, text, scheme string, seed uint64) *Result {
	t.Helper()
	return runWith(t, text, nil, scheme, seed)
}

func runWith(t *testing.T, text string, f files, scheme string, seed uint64) *Result {
	t.Helper()
	c, g := parsed(t, text, f)
	r, err := c.Run(g, scheme, seed, func(float64) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ring makes switches in a ring, with a host at each.
func ring(t *testing.T, around int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("ring", 1000)
	for _, kind := range []string{"ring", "host"} {
		for i := range around {
			if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint(kind, i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	join := func(u, v topology.Node) {
		if _, err := b.AddEdge(topology.EdgeSpec{From: u, To: v, Weight: 1,
			CapacityKbps: 1e6}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range topology.Node(around) {
		next, host := (i+1)%topology.Node(around), topology.Node(around)+i
		join(i, next)
		join(next, i)
		join(host, i)
		join(i, host)
	}
	return b.Build()
}

// Every scheme sees the same flows, and nearly all of them end; the same seed gives the same
// result.
func TestRun(t *testing.T) {
	flows := 0
	for _, scheme := range Schemes() {
		if scheme == "rerouted" || scheme == "best-response" || scheme == "coloring" {
			continue // of flow mode, and of fat trees
		}
		r := run(t, small, scheme, 3)
		if all := r.Flows + r.Unfinished; flows == 0 {
			flows = all
		} else if all != flows {
			t.Errorf("%s: %d flows, others see %d", scheme, all, flows)
		}
		// 6 hosts at 0.3 Gb/s and flows of 20 kB: 675 in 60 ms.
		if r.Flows < 600 || r.Unfinished > 30 || r.P50Ms < 0.2 || r.P99Ms < r.P50Ms ||
			r.PeakLoad > 1 {
			r.Times = nil
			t.Errorf("%s: %+v", scheme, *r)
		}
		again := run(t, small, scheme, 3)
		if math.Float64bits(again.MeanMs) != math.Float64bits(r.MeanMs) || again.Hops != r.Hops {
			t.Errorf("%s: %g ms and %g ms with the same seed", scheme, r.MeanMs, again.MeanMs)
		}
	}
}

// A link with a rate of its own is the bottleneck of all that cross it; one with an unknown end is
// refused.
func TestSlowLink(t *testing.T) {
	slow := strings.Replace(small, "delay: 2us",
		"delay: 2us, slow: [{from: leaf0, to: spine1, rate: 50 Mb/s}]", 1)
	if fast, r := run(t, small, "ecmp", 1), run(t, slow, "ecmp", 1); r.P99Ms < 5*fast.P99Ms ||
		r.PeakLoad < 0.9 || r.PeakLoad > 1 {
		t.Errorf("99th percentile %g ms, %g ms without the slow link; peak load %g", r.P99Ms,
			fast.P99Ms, r.PeakLoad)
	}
	c, g := parsed(t, strings.Replace(slow, "spine1", "spine7", 1), nil)
	if _, err := c.Network(g); err == nil || !strings.Contains(err.Error(), `"spine7"`) {
		t.Errorf("a link to a node that is not there: %v", err)
	}
}

// At flow level the same flows come; without packets and handshakes they are a little faster.
func TestFlowMode(t *testing.T) {
	text := small[:strings.Index(small, "failures")]
	packets, flows := run(t, text, "random", 2), run(t, "mode: flow"+text, "random", 2)
	if packets.Flows+packets.Unfinished != flows.Flows+flows.Unfinished ||
		flows.MeanMs > packets.MeanMs ||
		flows.MeanMs < packets.MeanMs/3 {
		t.Errorf("%d flows of %g ms as packets, %d of %g ms as rates", packets.Flows,
			packets.MeanMs, flows.Flows, flows.MeanMs)
	}
}

// At flow level, too, flows that have begun go on when no more begin.
func TestFlowModeGoesOn(t *testing.T) {
	const text = `
mode: flow
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2}
links: {rate: 1Gbps, delay: 1us}
traffic: {pattern: random, sizes: "10000000", load: 0.5, until: 100ms}
duration: 100s
`
	if r := run(t, text, "random", 1); r.Unfinished > 0 || r.Flows == 0 ||
		r.MeanMs < 80 { // of one flow alone
		t.Errorf("%d flows have ended, %d not, in %g ms", r.Flows, r.Unfinished, r.MeanMs)
	}
}

// Rerouting makes flows faster on a fabric that carries half of what hosts send: a third at a load
// of 0.8 of its links. To look at two random paths is within
// 5 % of looking at all.
func TestRerouted(t *testing.T) {
	text := `
mode: flow
topology: {kind: leaf-spine, leaves: 8, spines: 8, hosts: 16}
links: {rate: 10Gbps}
paths: {reroute: 1ms}
traffic: {pattern: random, sizes: web-search, load: 0.43}
duration: 400ms
`
	hashed, moved := run(t, text, "random", 1), run(t, text, "rerouted", 1)
	best := run(t, text, "best-response", 1)
	if ratio := moved.MeanMs / best.MeanMs; ratio < 0.98 || ratio > 1.05 {
		t.Errorf("mean %g ms, %g ms with all paths looked at", moved.MeanMs, best.MeanMs)
	}
	if ratio := moved.MeanMs / hashed.MeanMs; ratio > 0.75 || ratio < 0.5 || moved.Reroutes == 0 {
		t.Errorf("mean %g ms with %d reroutes, %g ms without", moved.MeanMs, moved.Reroutes,
			hashed.MeanMs)
	}
}

// A constant stream takes its rate from the flows beside it.
func TestConstant(t *testing.T) {
	c := strings.Replace(small, "load: 0.3}",
		"load: 0.3, constant: [{from: host0-0, to: host1-0, rate: 900Mbps}]}", 1)
	if plain, r := run(t, small, "ecmp", 1), run(t, c, "ecmp", 1); r.PeakLoad < 0.89 ||
		r.P99Ms < 2*plain.P99Ms {
		t.Errorf("peak load %g; 99th percentile %g ms, %g ms without the stream", r.PeakLoad,
			r.P99Ms, plain.P99Ms)
	}
}

// What Parse takes has only names that are known, and a duration.
func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text), nil)
		if err != nil {
			return
		}
		_, control := controls[c.Transport.Control]
		_, scheme := schemes[c.Paths.Scheme]
		if !control || !scheme || c.Duration <= 0 || c.Queue.Packets < 1 ||
			c.Traffic.load(nil) != nil {
			t.Errorf("%q is taken as %+v", text, c)
		}
	})
}

// Rates and refusals.
func TestParse(t *testing.T) {
	for text, want := range map[string]float64{"10Gbps": 1e10, "100 Mb/s": 1e8, "64k": 64e3,
		"1e9": 1e9, "1.5 Tbit/s": 1.5e12} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q is %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "fast", "-1G", "10 Gbps more"} {
		if rate, err := ParseRate(text); err == nil {
			t.Errorf("%q is %g", text, rate)
		}
	}
	for replaced, complaint := range map[[2]string]string{
		{"dctcp", "vegas"}:             "choose one of cubic",
		{"letflow", "luck"}:            "choose one of best-response, cflb",
		{"random", "gossip"}:           "choose permutation, random, clients",
		{"load: 0.3", "load: 0"}:       "traffic.load",
		{"20000", "small"}:             "choose one of data-mining",
		{"60ms", "0s"}:                 "state how long",
		{"queue:", "queues:"}:          "queues",
		{"packets: 50", "packets: -1"}: "queue.packets",
	} {
		_, err := Parse([]byte(strings.Replace(small, replaced[0], replaced[1], 1)), nil)
		if err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s for %s: %v, want it to say %q", replaced[1], replaced[0], err, complaint)
		}
	}
}
