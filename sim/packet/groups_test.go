package packet

import (
	"math"
	"testing"
	"time"

	"sextant/te/reroute"
	"sextant/te/topology"
)

// Flows that begin take the faster of two paths once weights have come, and the other one while a
// link of the faster is down; without weights half of them take each. No flow is moved: all of them
// end before a report of theirs can have an answer.
func TestFlowsBeginByWeights(t *testing.T) {
	for _, c := range []struct {
		name        string
		groups      time.Duration
		down        bool
		least, most float64 // part of the bytes over the slow spine
	}{
		{"weights", time.Millisecond, false, 0, 0.03},
		{"weights, and a link is down", time.Millisecond, true, 1, 1},
		{"none", 0, false, 0.3, 0.7},
	} {
		n := slowSpine(t, 1, 0.1)
		settings := reroute.Defaults(reroute.Sextant).Spreading(c.groups)
		settings.Metric = reroute.IGP
		s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: 3,
			Paths: Paths{Scheme: Controlled, Controller: &Controller{Settings: settings,
				Sample: 0.02, Pause: 100 * Microsecond, ReportDelay: 10 * Millisecond,
				ControlDelay: 200 * Microsecond}}})
		over := func(spine string) topology.Edge {
			from, _ := n.Graph.Lookup("leaf0")
			to, _ := n.Graph.Lookup(spine)
			for _, e := range n.Graph.Out(from) {
				if n.Graph.To(e) == to {
					return e
				}
			}
			t.Fatal("no link to", spine)
			return topology.NoEdge
		}
		slow, fast := over("spine0"), over("spine1")
		if c.down {
			if err := s.Schedule(Change{Link: int(fast), At: Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 200 {
			add(t, s, Flow{Src: 0, Dst: 1, Bytes: 10_000,
				Start: 10*Millisecond + Time(i)*3*Millisecond})
		}
		s.Run(Second)
		a, b := float64(s.links[slow].stats.Bytes), float64(s.links[fast].stats.Bytes)
		if part := a / (a + b); part < c.least || part > c.most || s.totals.Reroutes > 0 {
			t.Errorf("%s: %.3f of the bytes took the slow spine, %d reroutes", c.name, part,
				s.totals.Reroutes)
		}
	}
}

// A flow that began on the slower path before weights came leaves it at its next pause, if it may
// choose again, unless the controller gave it the path. On the slow path a flow pauses between
// packets, as its acknowledgements come 120 us apart; no report is answered before it ends.
func TestFlowletsFollowWeights(t *testing.T) {
	slowly := 0
	for seed := range uint64(8) {
		run := func(flowlet time.Duration, given bool) (reroutes uint64, took Time) {
			settings := reroute.Defaults(reroute.Sextant).Spreading(time.Millisecond)
			settings.Metric, settings.Flowlet = reroute.IGP, flowlet
			s := begin(t, Config{Network: slowSpine(t, 1, 0.1), Transport: DefaultTransport(),
				Seed: seed, Done: func(f Completed) { took = f.Finish },
				Paths: Paths{Scheme: Controlled, Controller: &Controller{Settings: settings,
					Sample: 0.02, Pause: 100 * Microsecond, ReportDelay: 100 * Millisecond,
					ControlDelay: 200 * Microsecond}}})
			add(t, s, Flow{Src: 0, Dst: 1, Bytes: 200_000})
			s.Run(Millisecond / 2)
			for i := range s.subflows {
				s.subflows[i].path.given = given
			}
			s.Run(90 * Millisecond)
			return s.totals.Reroutes, took
		}
		reroutes, alone := run(0, false)
		if reroutes > 0 {
			t.Fatalf("seed %d: %d reroutes, and nothing can reroute", seed, reroutes)
		}
		if alone < 10*Millisecond {
			continue // it began on the fast path
		}
		slowly++
		if reroutes, took := run(100*time.Microsecond, false); reroutes == 0 || took > alone/2 {
			t.Errorf("seed %d: %d reroutes, %v in place of %v", seed, reroutes, took, alone)
		}
		if reroutes, took := run(100*time.Microsecond, true); reroutes > 0 || took != alone {
			t.Errorf("seed %d: a path that the controller gave: %d reroutes, %v in place of %v",
				seed, reroutes, took, alone)
		}
	}
	if slowly == 0 {
		t.Error("no flow began on the slow path")
	}
}

// What switches say of how much of a link is used is what the link has sent since, by its counter:
// of a flow that one link limits, the whole of that one, and as much of a faster one as that lets
// through.
func TestUtilizationOfLinks(t *testing.T) {
	n := slowSpine(t, 1, 0.1)
	settings := reroute.Defaults(reroute.Sextant)
	settings.Metric = reroute.IGP
	for seed := range uint64(2) {
		s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: seed,
			Paths: Paths{Scheme: Controlled, Controller: &Controller{Settings: settings,
				Sample: 0.02, Pause: 100 * Millisecond, ReportDelay: Second,
				ControlDelay: Second, Utilization: true}}})
		add(t, s, Flow{Src: 0, Dst: 1, Bytes: 100_000_000})
		s.Run(50 * Millisecond)
		before := make([]uint64, len(s.links))
		for l := range s.links {
			before[l] = s.links[l].stats.Bytes
		}
		said, looks := make([]float64, len(s.links)), 0.0
		s.Every(20*Microsecond, func(s *Simulation) {
			looks++
			for l := range s.links {
				said[l] += s.usedOf(int32(l), max(s.links[l].free-s.now, 0))
			}
		})
		const passes = 100 * Millisecond
		s.Run(50*Millisecond + passes)
		most := 0.0
		for l := range s.links {
			sent := float64(s.links[l].stats.Bytes-before[l]) / (s.network.links[l].rate() *
				float64(passes) / float64(Second))
			most = max(most, sent)
			if got := said[l] / looks; math.Abs(got-sent) > 0.03 {
				t.Errorf("seed %d, link %d: %.3f is said, and %.3f was sent", seed, l, got, sent)
			}
		}
		if most < 0.9 {
			t.Errorf("seed %d: the busiest link sends %.2f of its rate", seed, most)
		}
	}
}
