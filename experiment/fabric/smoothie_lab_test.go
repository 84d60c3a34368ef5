package fabric

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
	"sextant/agent/southbound"
	"sextant/config"
	"sextant/controller"
	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/te/topology/format"
)

// The controller's file, topology and the agents' files of each setting are what controller and
// agents read; the settings are in them.
func TestFilesOfSmoothieLab(t *testing.T) {
	spec, err := smoothieSpec("test")
	if err != nil {
		t.Fatal(err)
	}
	agents := 0
	for _, n := range spec.Nodes {
		if n.Sextant == "" {
			continue
		}
		agents++
		c, err := config.Parse(n.Name, []byte(strings.ReplaceAll(n.Sextant, "{dir}", "/run/x")))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "leaf") && (len(c.Headend.Policies) != smoothieLeaves ||
			len(c.Headend.Rules) != smoothieLeaves ||
			len(c.Headend.Policies[0].Paths[0].Lists) != smoothieSpines) {
			t.Errorf("%s has not a path over each spine to each leaf", n.Name)
		}
	}
	g, err := format.Read(format.File{Name: "network.edges", Text: []byte(smoothieEdges())},
		format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if nodes := smoothieLeaves + smoothieSpines; agents != nodes || g.Nodes() != nodes ||
		g.Edges() != 2*smoothieLeaves*smoothieSpines {
		t.Errorf("%d agents, %d routers and %d directed links", agents, g.Nodes(), g.Edges())
	}
	for _, x := range slices.Concat(labSettings2(false), labSettings3(false),
		labSettings4(false)) {
		c, err := controller.Parse([]byte(x.controllerFile("/run/x")))
		if err != nil {
			t.Fatalf("%+v: %v", x, err)
		}
		name, sampled := strings.CutSuffix(x.Scheme, "-sampled")
		if c.Policy.Name != name || c.Policy.Sampled != sampled || c.Queue != 64*packetUnit ||
			len(c.Routers) != g.Nodes() {
			t.Errorf("%+v: %+v", x, c)
		}
		if spreads := len(c.Routers[0].Prefixes) > 0; spreads != (x.Scheme == "sextant") ||
			x.Scheme == "sextant" && math.Abs(c.Policy.Sampling*float64(x.OneIn)-1) > 1e-9 {
			t.Errorf("%+v: spreads: %v; %+v", x, spreads, c.Policy)
		}
	}
}

// Leaves put utilization into packets where the policy goes by it, and report full queues alone
// where it looks at nothing else: a queue that is one packet beyond the threshold, at least.
func TestTelemetryOfSmoothieLab(t *testing.T) {
	node := config.Telemetry{Source: &config.TelemetrySource{}, Sink: &config.TelemetrySink{}}
	all := []config.TelemetryReason{config.ReportGap, config.ReportEach}
	for _, c := range []struct {
		x         setting
		report    []config.TelemetryReason
		tells     bool // of utilization
		threshold int  // packets
	}{
		{setting{"clove", 1, 1, 4}, []config.TelemetryReason{config.ReportQueue}, false, 50},
		{tuned("sextant", 1), all, true, 0},
		{tuned("smoothie", 1), all, false, 0},
	} {
		c.x.telemetry(&node)
		if tells := slices.Contains(node.Source.Metadata, "utilization"); tells != c.tells ||
			!slices.Equal(node.Sink.Report, c.report) || node.Source.OneIn != c.x.OneIn ||
			node.Sink.Gap != 300*time.Millisecond ||
			c.threshold > 0 && node.Sink.QueueBytes/packetUnit != c.threshold {
			t.Errorf("%+v: %+v, %+v", c.x, node.Source, node.Sink)
		}
	}
}

// Keys are what controller and head-ends take: files of an authority and of what it signed.
func TestKeysOfSmoothieLab(t *testing.T) {
	keys, err := newKeys("router", "controller")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range keys {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shakeHands(t, dir, keys)
}

// Flows go to servers of other leaves, are the same ones each time, and fill the load's share of
// the clients' ports.
func TestFlowsOfSmoothieLab(t *testing.T) {
	for _, load := range []float64{0.2, 1} {
		s := span{begin: 40 * time.Hour, divided: 1}
		flows, err := smoothieFlows(load, s)
		if err != nil {
			t.Fatal(err)
		}
		bytes := 0.0
		for _, f := range flows {
			bytes += float64(f.Bytes)
			if f.Src < 0 || f.Src >= smoothieLeaves || f.Dst < smoothieLeaves ||
				f.Dst >= 2*smoothieLeaves || f.Dst-smoothieLeaves == f.Src {
				t.Fatalf("a flow from host %d to %d", f.Src, f.Dst)
			}
		}
		got := bytes / (smoothieLeaves * portRate * packetBytes * s.begin.Seconds())
		if math.Abs(got-load) > 0.05*load {
			t.Errorf("a load of %v, not %v", got, load)
		}
		again, err := smoothieFlows(load, s)
		if err != nil || !slices.Equal(flows, again) {
			t.Errorf("flows differ from run to run, %v", err)
		}
	}
}

// Decisions count for the flow that their connection had at that time: random flows on connections
// that stay, and decisions whose flow is known because it was drawn first.
func TestReroutesOfFlows(t *testing.T) {
	server := netip.MustParseAddrPort("[2001:db8:2::5]:5001")
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		var all []carried
		var want, moves []int // of each flow
		var moved []controller.Decision
		var c cell
		decide := func(source, destination netip.AddrPort, at time.Time) {
			moved = append(moved, controller.Decision{At: at, Flow: api.Flow{Source: source,
				Destination: destination, Protocol: config.TCP}})
		}
		idle, back := 0, 0
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for connection := range 5 {
			source := netip.AddrPortFrom(netip.MustParseAddr("2001:db8:1::c"),
				uint16(flowPorts+connection))
			at := start
			for range r.IntN(4) {
				at = at.Add(time.Second)
				for range r.IntN(2) { // while it rests
					decide(source, server, at)
					idle++
				}
				f := carried{source: source, begun: at.Add(time.Second), whole: r.IntN(3) > 0,
					rttMs: 100}
				f.end = f.begun.Add(time.Duration(1+r.IntN(9)) * time.Second)
				n := r.IntN(4)
				for range n {
					decide(source, server, f.begun.Add(time.Duration(r.Int64N(
						int64(f.end.Sub(f.begun))))))
				}
				for range r.IntN(2) {
					decide(server, source, f.end)
					back++
				}
				all, want, at = append(all, f), append(want, n), f.end
			}
		}
		r.Shuffle(len(moved), func(a, b int) { moved[a], moved[b] = moved[b], moved[a] })
		c.sum(tuned("smoothie", 0.8), all, moved)
		unfinished, ms := 0, 0.0
		for i, f := range all {
			if !f.whole {
				unfinished++
			}
			ms += float64(f.end.Sub(f.begun).Milliseconds())
			for len(moves) <= want[i] {
				moves = append(moves, 0)
			}
			moves[want[i]]++
		}
		if !slices.Equal(c.Moves, moves) || c.Idle != idle || c.Back != back ||
			c.Flows != len(all) || c.Unfinished != unfinished ||
			math.Abs(c.MeanMs*float64(len(all))-ms) > 1e-6 {
			t.Fatalf("seed %d: %+v; want reroutes %v, %d at rest, %d of acknowledgements, "+
				"%d of %d unfinished, %v ms in all", seed, c, moves, idle, back, unfinished,
				len(all), ms)
		}
	}
}

// Several iterations of a setting are one: means are of theirs, intervals between these, and flows
// are added up.
func TestIterationsAreSummed(t *testing.T) {
	one := func(ms float64, moves ...int) cell {
		return cell{outcome: outcome{setting: tuned("smoothie", 1), MeanMs: ms, P99Ms: 2 * ms,
			Flows: 3, Unfinished: 1, Drops: 5, Moves: moves, Means: []float64{1, 2, 3}}, Idle: 1,
			Back: 2, Connections: 3, RTTMs: ms, Reports: 7}
	}
	got := summed([]cell{one(10, 3), one(20, 1, 1, 1), one(60, 2, 0, 0, 1)})
	want := cell{outcome: outcome{setting: tuned("smoothie", 1), MeanMs: 30, P99Ms: 60, Flows: 9,
		Unfinished: 3, Drops: 15, Moves: []int{6, 1, 1, 1}, Means: []float64{10, 20, 60}}, Idle: 3,
		Back: 6, Connections: 9, RTTMs: 30, Reports: 21}
	if math.Abs(got.MeanMs-30)+math.Abs(got.P99Ms-60)+math.Abs(got.RTTMs-30) > 1e-9 {
		t.Errorf("means %v, %v, %v", got.MeanMs, got.P99Ms, got.RTTMs)
	}
	got.MeanMs, got.P99Ms, got.RTTMs = 30, 60, 30
	if difference := cmp.Diff(want, got, cmp.AllowUnexported(cell{}, outcome{})); difference != "" {
		t.Error(difference)
	}
	if alone := summed([]cell{one(10, 3)}); !slices.Equal(alone.Means, []float64{1, 2, 3}) {
		t.Errorf("one iteration has the times of its flows, not %v", alone.Means)
	}
}

// Reports of the lab have the paper's statements beside ours, in the order of loads.
func TestReportsOfSmoothieLab(t *testing.T) {
	filled := func(settings []setting) (all []cell) {
		for i, x := range settings {
			s := 1000 * float64(i+1)
			all = append(all, cell{outcome: outcome{setting: x, MeanMs: s, P99Ms: 5000,
				Flows: 2, Unfinished: 1, Drops: 3, Moves: []int{1, 0, 0, 1},
				Means: []float64{s, s}}, Idle: 4, Back: 5, Connections: 6, RTTMs: 250.4,
				Reports: 7})
		}
		return all
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportSmoothieLab2(r, filled(labSettings2(false)))
	})
	experimenttest.Has(t, text, "| smoothie beside ecmp at 80 % | faster (figure 2) | 8.00 s and "+
		"6.00 s | +33.3 % ± 0.0 % |", "| smoothie beside clove at 100 % | faster (figure 2) | "+
		"3.00 s and 2.00 s | +50.0 % ± 0.0 % |", "![fig2-lab](fig2-lab.svg)",
		"| sextant | 100 | 50 | 4 | 6 | 250 | 7 | 4 | 5 |",
		"| ecmp | 20 | 50 | 4 | 19.0000 | - | 5.0000 | 2 | 1 | 3 | 50.0 | 100.00 | 0.00 | 3 |")
	if strings.Index(text, "| ecmp | 20 |") > strings.Index(text, "| ecmp | 100 |") {
		t.Errorf("loads are not in order:\n%s", text)
	}
	text = experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportSmoothieLab3(r, filled(labSettings3(false)))
	})
	experimenttest.Has(t, text, fmt.Sprintf("| the best setting | 1 to 5 RTT, one in 40 to 70 "+
		"(figure 3) | 1 RTT, one in 10: 1.00 s | the worst: 8 RTT, one in 200: %d.00 s |",
		len(labSamples)*len(labThresholds)), "![fig3-lab](fig3-lab.svg)")
	text = experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportSmoothieLab4(r, filled(labSettings4(false)))
	})
	experimenttest.Has(t, text, "| reroutes of all flows: sextant and clove at 100 % | fewer "+
		"(figure 4) | 3 and 3, of the worst flow 3 and 3 | 1.0 times fewer |",
		"| reroutes of a flow: clove at 80 % | 27 % more than five times, "+
			"37 at most (figure 4) | 100.0 % of those rerouted more than twice, 0.0 % more than "+
			"five times | 3 at most |")
}

// shakeHands has both sides of a connection show their certificates to each other.
func shakeHands(t *testing.T, dir string, keys map[string]string) {
	t.Helper()
	server, err := southbound.Files{CA: filepath.Join(dir, "ca.pem"),
		Certificate: filepath.Join(dir, "controller.pem"),
		Key:         filepath.Join(dir, "controller.key")}.Server()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(keys["router.pem"]), []byte(keys["router.key"]))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(keys["ca.pem"]))
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := tls.Server(one, server).Write([]byte("y"))
		answered <- err
	}()
	client := tls.Client(other, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair},
		ServerName: strings.Trim(smoothieControl, "[]"), NextProtos: []string{"h2"}})
	if _, err := client.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
