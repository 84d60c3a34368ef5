package fabric

import (
	"fmt"
	"slices"

	"sextant/experiment"
	"sextant/sim/packet/scenario"
)

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return scenario.Quantile(slices.Sorted(slices.Values(values)), q)
}

// inOrder are the cells by load from the least on; those of a load stay as they are.
func inOrder(cells []cell) []cell {
	return slices.SortedStableFunc(slices.Values(cells), func(a, b cell) int {
		return int(100*a.Load) - int(100*b.Load)
	})
}

func outcomesOf(cells []cell) (all []outcome) {
	for _, c := range cells {
		all = append(all, c.outcome)
	}
	return all
}

// tableOfLab says what the tables of the simulator's runs do not have.
func tableOfLab(cells []cell) experiment.Table {
	t := experiment.Table{Name: "lab", Title: "Connections and telemetry", Columns: []string{
		"Paths", "Load, %", "Telemetry, one in", "Threshold, RTT", "Connections",
		"Smoothed RTT, ms", "Reports", "Reroutes of connections at rest",
		"Reroutes of acknowledgements"}}
	for _, c := range cells {
		t.Add(c.Scheme, fmt.Sprintf("%.0f", 100*c.Load), c.OneIn, fmt.Sprintf("%g", c.RTTs),
			c.Connections, fmt.Sprintf("%.0f", c.RTTMs), c.Reports, c.Idle, c.Back)
	}
	return t
}

func noteLab(r *experiment.Recorder, s span) {
	r.Note("Flows begin for %v and are waited for until %v; one that has not ended then counts "+
		"as long as it was waited for. All settings of a load have the same flows, in each of %d "+
		"iterations; another iteration has other ports, which are hashed to other paths. "+
		"Intervals are of 95 %%, of the differences between iterations with the same flows and "+
		"ports, or, of one iteration, between flows. Flows and drops are those of all.", s.begin,
		s.lasts, iterationsOf(r))
	if s.divided > 1 {
		r.Note("Flows are %d times smaller than those of web search.", s.divided)
	}
	r.Note("Ports of switches count packets, acknowledgements too; what hosts send into their " +
		"leaf has no limit, as in the paper's programs, so that a client with several flows can " +
		"fill several of its leaf's ports.")
	r.Note("Sinks report a pause at once, by a packet without telemetry, too, and if none comes. "+
		"The paper's programs report it if the packet that ends it has telemetry; the controller "+
		"of %s takes these reports alone. Sinks of clove report packets alone that met a queue "+
		"beyond its threshold. A threshold of n RTT is n times %d ms. Congestion control is %s.",
		sampledPauses, tunedRTT, smoothieTCP)
}

func spanOf(r *experiment.Recorder) span {
	if r.Quick() {
		return labGlance
	}
	return labSpan
}

func reportSmoothieLab2(r *experiment.Recorder, cells []cell) error {
	cells = inOrder(cells)
	outcomes := outcomesOf(cells)
	r.Table(smoothieTable("fig2-lab", "Completion times of flows", outcomes))
	r.Table(tableOfLab(cells))
	c, at := overLoad("The paper's network in the lab", outcomes)
	for _, other := range []string{"ecmp", "clove"} {
		for _, name := range []string{"smoothie", "sextant"} {
			for _, load := range loadsOf(cells) {
				besideAt(r, name, other, load, at)
			}
		}
	}
	compareReroutes(r, outcomes)
	noteLab(r, spanOf(r))
	return r.Chart("fig2-lab", c)
}

func loadsOf(cells []cell) (loads []float64) {
	for _, c := range cells {
		loads = append(loads, c.Load)
	}
	return slices.Compact(loads)
}

func reportSmoothieLab3(r *experiment.Recorder, cells []cell) error {
	outcomes := outcomesOf(cells)
	r.Table(smoothieTable("fig3-lab", "Completion times of flows", outcomes))
	r.Table(tableOfLab(cells))
	c := overThreshold(r, outcomes, labSamples)
	noteLab(r, spanOf(r))
	return r.Chart("fig3-lab", c)
}

func reportSmoothieLab4(r *experiment.Recorder, cells []cell) error {
	cells = inOrder(cells)
	r.Table(tableOfLab(cells))
	noteLab(r, spanOf(r))
	return reportSmoothie4(r, "fig4-lab", outcomesOf(cells))
}
