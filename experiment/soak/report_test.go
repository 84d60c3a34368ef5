package soak

import (
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/lab"
	"sextant/lab/loadgen"
)

// soaked is what a run has seen, in which the edge's agent grows by a share of what it had, from
// one reading to the next.
func soaked(growth float64) *arena {
	named := func(name, role string) *node { return &node{Node: &lab.Node{Name: name}, role: role} }
	a := &arena{edge: named("edge1", "edge"), hosts: []*node{named("web1", "host")}, flows: 1000,
		changes: 40, restarts: 8, leaks: leaks{had: 300}}
	a.loads = []*loadgen.Result{{Done: 90},
		{Done: 8, Failed: 2, Failures: loadgen.Failures{Reset: 2}}}
	for i := range 8 {
		r := reading{flows: uint64(i+1) * 125, accounts: map[string]account{},
			memories: map[string]memory{}}
		for _, n := range a.nodes() {
			r.accounts[n.Name] = account{In: 30, Outcomes: map[string]uint64{"passed": 20},
				Drops: map[string]uint64{"truncated": 10, "ecn": 0}}
			r.memories[n.Name] = memory{
				Agent: 50 * mebi, Maps: 6 * mebi, Files: 40, Objects: 20, Pins: 19,
				Entries:  map[string]int{"fragments": 12},
				Capacity: map[string]int{"fragments": 16384},
			}
		}
		m := r.memories["edge1"]
		m.Agent += uint64(float64(i) * growth * float64(m.Agent))
		r.memories["edge1"] = m
		a.readings = append(a.readings, r)
	}
	return a
}

func soakReport(t *testing.T, growth float64) string {
	t.Helper()
	return experimenttest.Report(t, func(r *experiment.Recorder) error {
		a := soaked(growth)
		a.recorder = r
		return a.report()
	})
}

func TestReport(t *testing.T) {
	experimenttest.Has(t, soakReport(t, 0.01),
		"| flows begun and ended | 10,000,000 | 1000 | with 40 changes of pools, and 8 agents "+
			"ended and started again |",
		"| packets in, less those that a counter has | 0 | 0 | of 60, on 2 nodes, looked at 8 "+
			"times |",
		"| real connections that failed | 0 | 2 | of 100: reset 2 |",
		"| programs and maps of ended agents left in the kernel | 0 | 0 | of 300 that there were |",
		"| edge: memory of the agent, MiB | as much in the last quarter as in the second | 51.5, "+
			"then 53.5 | stays |",
		"| host: files that the agent has open | as much in the last quarter as in the second | "+
			"40, then 40 | stays |",
		"| packets in | 30 | 30 |",
		"| dropped: truncated | 10 | 10 |",
		"| 1000 | web1 | 50.0 | 40 | 6.0 | 20 | 19 | 12 of 16384 |")
	experimenttest.Has(t, soakReport(t, 0.2),
		"| edge: memory of the agent, MiB | as much in the last quarter as in the second | 80.0, "+
			"then 120.0 | grows |")
}
