package fabric

import (
	"context"
	"fmt"
	"math"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/sim/packet/scenario"
	"sextant/te/topology"
)

const smoothiePaper = "L. Champagne, B. Donnet, SMOOTHIE: efficient and flexible load-balancing " +
	"in data center, "

var smoothieFigures = []experiment.Experiment{
	{Name: "smoothie-fig2", Title: "Flow completion times over load: SMOOTHIE, CLOVE and ECMP",
		Source: smoothiePaper + "figure 2", Shows: smoothieShows + "Loads from 20 to 100 %; " +
			"SMOOTHIE with telemetry in one of 10, 50 and 100 packets, and its extension.",
		Paper: experiment.SMOOTHIE, Lasts: "1 min",
		Run: runSmoothie2},
	{Name: "smoothie-fig3",
		Title: "SMOOTHIE over the threshold of pauses and the part of packets " +
			"with telemetry",
		Source: smoothiePaper + "figure 3", Shows: smoothieShows + "Thresholds from 1 to 8 " +
			"round-trip times, telemetry in one of 10 to 200 packets, at 80 % load.",
		Paper: experiment.SMOOTHIE, Lasts: "1 min",
		Run: runSmoothie3},
	{Name: "smoothie-fig4", Title: "How often flows are rerouted: SMOOTHIE and CLOVE",
		Source: smoothiePaper + "figure 4", Shows: smoothieShows + "At 80 and 100 % load.",
		Paper: experiment.SMOOTHIE, Lasts: "1 min",
		Run: runSmoothie4},
	{Name: "smoothie-fabrics", Title: "SMOOTHIE and others where links between switches are scarce",
		Source: smoothiePaper + "section V, on other fabrics",
		Shows: "Web search flows between the hosts of 8 leaves and 8 spines at 10 Gb/s: as many " +
			"ports to hosts as to spines, twice as many, and with a fifth of the links between " +
			"switches at a fifth of the rate. Decisions come from the code of the controller, " +
			"whose reaction time is varied from 0.1 ms to 1 s.",
		Paper: experiment.SMOOTHIE, Lasts: "10 min",
		Run: runSmoothieFabrics},
}

const smoothieShows = "The paper's network in the packet simulator: 8 leaves, 4 spines, a client " +
	"and a server at each leaf, ports of 100 packets of 1500 bytes per second with queues of 64, " +
	"web search flows from clients to random servers. The controller's own code decides. "

// tunedRTT is the round-trip time that the paper's threshold of four makes 300 ms.
const tunedRTT = 75 // ms

// setting is one point of the paper's network.
type setting struct {
	Scheme string
	Load   float64
	OneIn  int     // packets of which one carries telemetry
	RTTs   float64 // threshold of pauses
}

// tuned are the values that the paper chose.
func tuned(scheme string, load float64) setting { return setting{scheme, load, 50, 4} }

func (x setting) scenario(quick bool) (*scenario.Scenario, error) {
	until, lasts := "300s", "900s"
	if quick {
		until, lasts = "30s", "200s"
	}
	return scenario.Parse(fmt.Appendf(nil, `
topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts: 2}
links: {rate: 1.2Mbps, delay: 1ms}
queue: {packets: 64}
paths: {controller: {sample: %g, pause: %gms, reportDelay: 1ms, controlDelay: 5ms}}
traffic: {pattern: clients, sizes: web-search, load: %g, until: %s}
duration: %s
`, 1/float64(x.OneIn), x.RTTs*tunedRTT, x.Load, until, lasts), nil)
}

// outcome sums up the runs of a setting.
type outcome struct {
	setting
	MeanMs, P99Ms     float64 // of completion times: means over the seeds
	Flows, Unfinished int     // of all runs
	Drops             uint64
	Moves             []int     // flows by how often they were rerouted
	Means             []float64 // completion times by seed, in ms
}

// beside is by how much a mean is above another one with the same flows, in ms, and the half of its
// 95 % confidence interval; NaN of one seed, which has none.
func (o outcome) beside(other outcome) (difference, half float64) {
	n := float64(min(len(o.Means), len(other.Means)))
	if n < 2 {
		return o.MeanMs - other.MeanMs, math.NaN()
	}
	squares := 0.0
	for i := range int(n) {
		d := o.Means[i] - other.Means[i]
		difference += d / n
		squares += d * d
	}
	variance := max(0, squares-n*difference*difference) / (n - 1)
	return difference, studentT(int(n)-1) * math.Sqrt(variance/n)
}

// halfText is the half of an interval, behind a mean; "" if there is none.
func halfText(format string, half float64) string {
	if math.IsNaN(half) {
		return ""
	}
	return " ± " + fmt.Sprintf(format, half)
}

// studentT is the 97.5 % quantile of Student's distribution, from tables; it ends near the normal
// distribution's.
func studentT(freedom int) float64 {
	small := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228}
	if freedom <= len(small) {
		return small[freedom-1]
	}
	return 1.96 + 2.5/float64(freedom) // at most 0.3 % off
}

// runs makes the runs of a scenario.
func runs(ctx context.Context, s *scenario.Scenario, x setting, seeds int) (outcome, error) {
	o := outcome{setting: x}
	g, err := s.Topology.Graph(func(string) (*topology.Graph, error) { return nil, nil })
	if err != nil {
		return o, err
	}
	for seed := range seeds {
		r, err := s.Run(g, x.Scheme, uint64(seed+1), func(float64) error { return ctx.Err() })
		if err != nil {
			return o, err
		}
		o.MeanMs += r.MeanMs / float64(seeds)
		o.Means = append(o.Means, r.MeanMs)
		o.P99Ms += r.P99Ms / float64(seeds)
		o.Flows += r.Flows
		o.Unfinished += r.Unfinished
		o.Drops += r.Drops
		for times, flows := range r.Moves {
			for len(o.Moves) <= times {
				o.Moves = append(o.Moves, 0)
			}
			o.Moves[times] += flows
		}
	}
	return o, nil
}

// smoothieRuns makes the runs of all settings.
func smoothieRuns(ctx context.Context, r *experiment.Recorder, settings []setting, seeds int) (
	[]outcome, error) {
	if r.Quick() {
		seeds = 1
	}
	outcomes := make([]outcome, len(settings))
	var work []func() error
	for i, x := range settings {
		work = append(work, func() (err error) {
			name := fmt.Sprintf("%s-%g-%d-%g", x.Scheme, x.Load, x.OneIn, x.RTTs)
			outcomes[i], err = experiment.Part(r, name, func() (outcome, error) {
				s, err := x.scenario(r.Quick())
				if err != nil {
					return outcome{}, err
				}
				return runs(ctx, s, x, seeds)
			})
			return err
		})
	}
	return outcomes, together(r, work)
}

// again are the part of flows that were rerouted, and of these the parts that were more than twice
// and more than five times.
func (o outcome) again() (moved, moreThanTwo, moreThanFive float64) {
	for times, flows := range o.Moves {
		if times > 0 {
			moved += float64(flows)
		}
		if times > 2 {
			moreThanTwo += float64(flows)
		}
		if times > 5 {
			moreThanFive += float64(flows)
		}
	}
	return moved / float64(max(1, o.Flows)), moreThanTwo / max(1, moved),
		moreThanFive / max(1, moved)
}

func smoothieTable(name, title string, outcomes []outcome) experiment.Table {
	t := experiment.Table{Name: name, Title: title, Columns: []string{"Paths", "Load, %",
		"Telemetry, one in", "Threshold, RTT", "Mean, s", "Beside ECMP, s", "P99, s", "Flows",
		"Unfinished", "Drops", "Rerouted, %", "of these > 2 times, %", "> 5 times, %", "Most"}}
	ecmp := map[float64]outcome{}
	for _, o := range outcomes {
		if o.Scheme == "ecmp" {
			ecmp[o.Load] = o
		}
	}
	for _, o := range outcomes {
		beside := "-"
		if base, ok := ecmp[o.Load]; ok && o.Scheme != "ecmp" {
			difference, half := o.beside(base)
			beside = fmt.Sprintf("%+.2f", difference/1000) + halfText("%.2f", half/1000)
		}
		moved, two, five := o.again()
		t.Add(o.Scheme, fmt.Sprintf("%.0f", 100*o.Load), o.OneIn, fmt.Sprintf("%g", o.RTTs),
			fmt.Sprintf("%.4f", o.MeanMs/1000), beside, fmt.Sprintf("%.4f", o.P99Ms/1000), o.Flows,
			o.Unfinished, o.Drops, fmt.Sprintf("%.1f", 100*moved), fmt.Sprintf("%.2f", 100*two),
			fmt.Sprintf("%.2f", 100*five), max(0, len(o.Moves)-1))
	}
	return t
}

const smoothieSeeds = 10

func runSmoothie2(ctx context.Context, r *experiment.Recorder) error {
	outcomes, err := smoothieRuns(ctx, r, settings2(), smoothieSeeds)
	if err != nil {
		return err
	}
	return reportSmoothie2(r, outcomes)
}

func settings2() (all []setting) {
	for _, load := range []float64{0.2, 0.4, 0.6, 0.8, 1} {
		for _, scheme := range []string{"ecmp", "smoothie-clove", "clove-int", "smoothie",
			"sextant"} {
			all = append(all, tuned(scheme, load))
		}
		all = append(all, setting{"smoothie", load, 10, 4}, setting{"smoothie", load, 100, 4})
	}
	return all
}

// overLoad draws the mean times of the paths of figure 2. It returns them by path and load, too.
func overLoad(title string, outcomes []outcome) (c chart.Chart,
	at map[string]map[float64]outcome) {
	c = chart.Chart{Title: title, X: "load, % of the clients' links",
		Y: "mean completion time, s"}
	at = map[string]map[float64]outcome{}
	places := map[string]int{}
	for _, o := range outcomes {
		name := o.Scheme
		if name == "smoothie" && o.OneIn != 50 {
			name = fmt.Sprintf("%s, telemetry in one of %d", name, o.OneIn)
		}
		if at[name] == nil {
			at[name], places[name] = map[float64]outcome{}, len(c.Series)
			c.Series = append(c.Series, chart.Series{Name: name, Marks: true})
		}
		at[name][o.Load] = o
		s := &c.Series[places[name]]
		s.Points = append(s.Points, chart.Point{X: 100 * o.Load, Y: o.MeanMs / 1000})
	}
	return c, at
}

func reportSmoothie2(r *experiment.Recorder, outcomes []outcome) error {
	r.Table(smoothieTable("fig2", "Completion times of flows", outcomes))
	c, at := overLoad("The paper's network", outcomes)
	for _, other := range []string{"ecmp", "smoothie-clove"} {
		for _, name := range []string{"smoothie", "sextant"} {
			for _, load := range []float64{0.2, 0.4, 0.6, 0.8, 1} {
				besideAt(r, name, other, load, at)
			}
		}
	}
	r.Note("In this network links between switches are as fast as those of hosts and twice as " +
		"many: with max-min fair shares, no choice of paths is faster than ECMP. What is gained " +
		"comes from queues.")
	r.Note("Intervals are of 95 %%, of the differences between runs with the same flows.")
	r.Note("The paper limits packets per second, so that an acknowledgement costs as much as " +
		"1500 bytes; here ports limit bytes.")
	return r.Chart("fig2", c)
}

// besideAt compares the means of two paths at a load.
func besideAt(r *experiment.Recorder, name, other string, load float64,
	at map[string]map[float64]outcome) {
	mine, its := at[name][load], at[other][load]
	difference, half := mine.beside(its)
	r.Compare(experiment.Comparison{
		What:   fmt.Sprintf("%s beside %s at %.0f %%", name, other, 100*load),
		Source: "faster (figure 2)",
		Ours:   fmt.Sprintf("%.2f s and %.2f s", mine.MeanMs/1000, its.MeanMs/1000),
		Says: fmt.Sprintf("%+.1f %%", 100*difference/its.MeanMs) +
			halfText("%.1f %%", 100*half/its.MeanMs)})
}

func runSmoothie3(ctx context.Context, r *experiment.Recorder) error {
	outcomes, err := smoothieRuns(ctx, r, settings3(), smoothieSeeds/2)
	if err != nil {
		return err
	}
	return reportSmoothie3(r, outcomes)
}

var (
	thresholds3 = []float64{1, 2, 3, 4, 5, 8}
	samples3    = []int{10, 30, 40, 50, 60, 70, 100, 200}
)

func settings3() (all []setting) {
	for _, oneIn := range samples3 {
		for _, rtts := range thresholds3 {
			all = append(all, setting{"smoothie", 0.8, oneIn, rtts})
		}
	}
	return append(all, tuned("ecmp", 0.8), tuned("sextant", 0.8),
		setting{"sextant", 0.8, 1000, 4})
}

// overThreshold draws the mean times of figure 3, and compares the best with the worst.
func overThreshold(r *experiment.Recorder, outcomes []outcome, samples []int) chart.Chart {
	c := chart.Chart{Title: "SMOOTHIE at 80 % load", X: "threshold of pauses, RTT",
		Y: "mean completion time, s"}
	best, worst := outcomes[0], outcomes[0]
	for _, oneIn := range samples {
		s := chart.Series{Name: fmt.Sprintf("telemetry in one of %d", oneIn), Marks: true}
		for _, o := range outcomes {
			if o.Scheme != "smoothie" || o.OneIn != oneIn {
				continue
			}
			s.Points = append(s.Points, chart.Point{X: o.RTTs, Y: o.MeanMs / 1000})
			if o.MeanMs < best.MeanMs {
				best = o
			}
			if o.MeanMs > worst.MeanMs {
				worst = o
			}
		}
		c.Series = append(c.Series, s)
	}
	say := func(o outcome) string {
		return fmt.Sprintf("%g RTT, one in %d: %.2f s", o.RTTs, o.OneIn, o.MeanMs/1000)
	}
	r.Compare(experiment.Comparison{What: "the best setting",
		Source: "1 to 5 RTT, one in 40 to 70 (figure 3)", Ours: say(best),
		Says: "the worst: " + say(worst)})
	return c
}

func reportSmoothie3(r *experiment.Recorder, outcomes []outcome) error {
	r.Table(smoothieTable("fig3", "Completion times of flows", outcomes))
	c := overThreshold(r, outcomes, samples3)
	n := len(outcomes)
	r.Compare(experiment.Comparison{What: "sextant with telemetry in one of 50 and of 1000",
		Source: "-", Ours: fmt.Sprintf("%.2f s and %.2f s", outcomes[n-2].MeanMs/1000,
			outcomes[n-1].MeanMs/1000),
		Says: "the sink reports a pause at once, whatever packet ends it"})
	return r.Chart("fig3", c)
}

func runSmoothie4(ctx context.Context, r *experiment.Recorder) error {
	outcomes, err := smoothieRuns(ctx, r, settings4(), smoothieSeeds)
	if err != nil {
		return err
	}
	return reportSmoothie4(r, "fig4", outcomes)
}

func settings4() (all []setting) {
	for _, load := range []float64{0.8, 1} {
		for _, scheme := range []string{"smoothie", "smoothie-clove", "sextant"} {
			all = append(all, tuned(scheme, load))
		}
	}
	return all
}

// rerouted is how often all flows were, and how often the worst one.
func (o outcome) rerouted() (all, most int) {
	for times, flows := range o.Moves {
		all += times * flows
	}
	return all, max(0, len(o.Moves)-1)
}

// compareReroutes compares how often flows are rerouted with CLOVE, at each load.
func compareReroutes(r *experiment.Recorder, outcomes []outcome) {
	for _, clove := range outcomes {
		if clove.Scheme != "clove" && clove.Scheme != "smoothie-clove" {
			continue
		}
		its, worst := clove.rerouted()
		for _, o := range outcomes {
			all, most := o.rerouted()
			if o.Load != clove.Load || o.Scheme == clove.Scheme || all == 0 {
				continue
			}
			r.Compare(experiment.Comparison{What: fmt.Sprintf("reroutes of all flows: %s and %s "+
				"at %.0f %%", o.Scheme, clove.Scheme, 100*o.Load), Source: "fewer (figure 4)",
				Ours: fmt.Sprintf("%d and %d, of the worst flow %d and %d", all, its, most, worst),
				Says: fmt.Sprintf("%.1f times fewer", float64(its)/float64(all))})
		}
	}
}

func reportSmoothie4(r *experiment.Recorder, name string, outcomes []outcome) error {
	r.Table(smoothieTable(name, "How often flows are rerouted", outcomes))
	c := chart.Chart{Title: "Flows by how often they are rerouted", X: "reroutes",
		Y: "flows rerouted at most so often, %", ToY: 100}
	const publishedClove = "27 % more than five times, 37 at most"
	published := map[string]string{
		"smoothie":       "twice at most",
		"smoothie-clove": publishedClove, "clove": publishedClove,
	}
	for _, o := range outcomes {
		s := chart.Series{Name: fmt.Sprintf("%s, %.0f %% load", o.Scheme, 100*o.Load)}
		sum := 0
		for times, flows := range o.Moves {
			sum += flows
			s.Points = append(s.Points, chart.Point{X: float64(times),
				Y: 100 * float64(sum) / float64(max(1, o.Flows))})
		}
		c.Series = append(c.Series, s)
		_, two, five := o.again()
		source := "-"
		if text, ok := published[o.Scheme]; ok {
			source = text + " (figure 4)"
		}
		r.Compare(experiment.Comparison{
			What:   fmt.Sprintf("reroutes of a flow: %s at %.0f %%", o.Scheme, 100*o.Load),
			Source: source, Ours: fmt.Sprintf("%.1f %% of those rerouted more than twice, "+
				"%.1f %% more than five times", 100*two, 100*five),
			Says: fmt.Sprintf("%d at most", max(0, len(o.Moves)-1))})
	}
	compareReroutes(r, outcomes)
	return r.Chart(name, c)
}
