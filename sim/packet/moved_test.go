package packet

import (
	"testing"
	"time"

	"sextant/te/reroute"
	"sextant/te/topology/generate"
)

// prompt is the policy of the controller with a short backoff.
func prompt() reroute.Settings {
	s := reroute.Defaults(reroute.Sextant)
	s.Metric = reroute.IGP
	s.BackoffLeast, s.BackoffMost = time.Millisecond, 2*time.Millisecond
	return s
}

// slowSpine makes two leaves with hosts and two spines, the links of the first of which are slower.
func slowSpine(t *testing.T, hosts int, factor float64) *Network {
	t.Helper()
	g, err := generate.SpineLeaf(2, 2, hosts)
	if err != nil {
		t.Fatal(err)
	}
	spine, _ := g.Lookup("spine0")
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9, Delay: Microsecond,
		Queue: Queue{Bytes: 100 * 1500, Mark: 20 * 1500}, HostQueue: &Queue{},
		Scale: func(e edge) float64 {
			if g.From(e) == spine || g.To(e) == spine {
				return factor
			}
			return 1
		}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Schemes that sense paths leave one whose links are slow, whatever path they begin with.
func TestLeavesSlowPath(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts int
		paths Paths
		least float64
	}{
		{"ConWeave", 1, Paths{Scheme: ConWeave}, 0.7},
		// One flow marks too little to make a path congested.
		{"Hermes", 8, Paths{Scheme: Hermes}, 0.85},
		{"Controlled", 1, Paths{Scheme: Controlled, Controller: &Controller{Settings: prompt(),
			Sample: 0.02, Pause: 80 * Microsecond, Prompt: true, ReportDelay: 100 * Microsecond,
			ControlDelay: 200 * Microsecond}}, 0.85},
	} {
		n := slowSpine(t, c.hosts, 0.1)
		for seed := range uint64(4) {
			transport := DefaultTransport()
			transport.Control, transport.ECN, transport.MinRTO = DCTCP, true, 10*Millisecond
			s := begin(t, Config{Network: n, Transport: transport, Paths: c.paths, Seed: seed})
			var handles []int
			for i := range c.hosts {
				handles = append(handles, add(t, s, Flow{Src: i, Dst: c.hosts + i,
					Bytes: Endless}))
			}
			s.Run(Second)
			part := 0.0 // of the fast path
			for _, h := range handles {
				part += float64(s.Delivered(h)) * 8 / 1e9
			}
			if part < c.least {
				t.Errorf("%s, seed %d: goodput is %.2f of the fast path, %d reroutes", c.name,
					seed, part, s.totals.Reroutes)
			}
		}
	}
}

// With ConWeave the receiver sees no packet out of order although flows move, as long as nothing is
// lost: the last switch puts them in order. LetFlow with pauses as short reorders.
func TestConWeaveKeepsOrder(t *testing.T) {
	g, err := generate.SpineLeaf(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 10e9, Delay: Microsecond,
		Queue: Queue{Bytes: 4000 * 1500, Mark: 40 * 1500}, HostQueue: &Queue{}})
	if err != nil {
		t.Fatal(err)
	}
	early := func(paths Paths) (late int, reroutes uint64) {
		transport := DefaultTransport()
		transport.Control, transport.ECN, transport.DelayedAck = DCTCP, true, 0
		s := begin(t, Config{Network: n, Transport: transport, Paths: paths, Seed: 3})
		for src, dst := range permutation(len(n.Hosts), 5) {
			add(t, s, Flow{Src: src, Dst: dst, Bytes: Endless})
		}
		s.observe = func(int32) {
			for i := range s.subflows {
				if len(s.subflows[i].receiver.blocks) > 0 {
					late++
				}
			}
		}
		s.Run(10 * Millisecond)
		if s.totals.Dropped.Packets > 0 {
			t.Errorf("%d packets were dropped", s.totals.Dropped.Packets)
		}
		return late, s.totals.Reroutes
	}
	if late, moves := early(Paths{Scheme: ConWeave, Cutoff: 30 * Microsecond,
		Resume: 5 * Millisecond}); late > 0 || moves < 20 {
		t.Errorf("ConWeave: packets are out of order after %d events, with %d moves", late, moves)
	}
	if late, _ := early(Paths{Scheme: LetFlow, FlowletGap: Microsecond}); late == 0 {
		t.Error("LetFlow: no packet is out of order")
	}
}

// Each pause of a flow reaches the controller if the last switch reports it at once, however rare
// telemetry is; the paper's waits for a packet that carries telemetry.
func TestPausesAreReported(t *testing.T) {
	g, err := generate.SpineLeaf(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9, Delay: 100 * Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	const flows = 200
	known := func(promptly bool, sample float64) int {
		settings := reroute.Defaults(reroute.LetFlow)
		s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: 1,
			Paths: Paths{Scheme: Controlled, Controller: &Controller{Settings: settings,
				Sample: sample, Pause: 300 * Microsecond, Prompt: promptly}}})
		// A window of 10 segments takes 120 of the 800 µs of a round trip: then the flow pauses.
		for i := range flows {
			add(t, s, Flow{Src: 0, Dst: 1, Bytes: 30_000, Start: Time(i) * 5 * Millisecond})
		}
		s.Run(2 * Second)
		return s.controller.decider.Known()
	}
	for _, c := range []struct {
		promptly bool
		sample   float64
		want     int
	}{{true, 1e-9, flows}, {true, 1, flows}, {false, 1, flows}, {false, 1e-9, 0}} {
		if got := known(c.promptly, c.sample); got != c.want {
			t.Errorf("prompt %t, telemetry in a part %g: pauses of %d flows are known, want %d",
				c.promptly, c.sample, got, c.want)
		}
	}
}
