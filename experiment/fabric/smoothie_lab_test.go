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
		if c.Policy.Name != x.Scheme || c.Queue != 64*packetUnit || len(c.Routers) != g.Nodes() {
			t.Errorf("%+v: %+v", x, c)
		}
		if spreads := len(c.Routers[0].Prefixes) > 0; spreads != (x.Scheme == "sextant") ||
			x.Scheme == "sextant" && math.Abs(c.Policy.Sampling*float64(x.OneIn)-1) > 1e-9 {
			t.Errorf("%+v: spreads: %v; %+v", x, spreads, c.Policy)
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
	experimenttest.Has(t, text, "| smoothie beside ecmp at 80 % | faster (figure 2) | 7.00 s and "+
		"5.00 s | +40.0 % ± 0.0 % |", "| smoothie beside clove at 100 % | faster (figure 2) | "+
		"3.00 s and 2.00 s | +50.0 % ± 0.0 % |", "![fig2-lab](fig2-lab.svg)",
		"| sextant | 100 | 50 | 4 | 6 | 250 | 7 | 4 | 5 |",
		"| ecmp | 20 | 50 | 4 | 17.0000 | - | 5.0000 | 2 | 1 | 3 | 50.0 | 100.00 | 0.00 | 3 |")
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
	experimenttest.Has(t, text, "| reroutes of a flow: clove at 80 % | 27 % more than five times, "+
		"37 at most (figure 4) | 100.0 % of those rerouted more than twice, 0.0 % more than five "+
		"times | 3 at most |")
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
