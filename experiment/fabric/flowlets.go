package fabric

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"sextant/examples"
	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/lab"
	"sextant/sim/packet"
	"sextant/sim/packet/scenario"
)

var flowletsLab = experiment.Experiment{
	Name: "flowlets-lab", Title: "Flowlets of hosts, in the lab with the kernel's TCP",
	Source: "R. Nakamura et al., Host-driven flowlet balancing with SRv6, arXiv 2606.27697: " +
		"33 % less tail latency than ECMP, 15 % less than random flowlets",
	Shows: "Two racks of four hosts and four paths of 20 Mbit/s between them: the lab " +
		"examples/flowlets.yaml. Flows of the sizes of web search, a tenth of them for links " +
		"this slow, go from each rack to the other. The role flowlets of the hosts gives each " +
		"flow one path by hash, each flowlet any path, or each flowlet the path of least cost. " +
		"The times of the same flows until their last byte was read are compared.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "8 min",
	Run: runFlowlets,
}

// The load is that of the paths of one direction; sizes are those of web search, divided.
const (
	flowletLoad    = 0.6
	flowletFlows   = 1000
	flowletPasses  = 10
	flowletDivided = 10
	flowletControl = "cubic"
)

// flowletChoices are what hosts choose paths by.
var flowletChoices = []struct{ choice, name string }{
	{"flow", "by hash of the flow (ECMP)"}, {"random", "at random for each flowlet"},
	{"measured", "of least cost for each flowlet"},
}

// flowletCell is what a choice showed: of each pass, the time of each flow in ms.
type flowletCell struct {
	Choice string
	Times  [][]float64
}

// flowletSchedule draws the flows of a pass between racks of as many hosts each.
func flowletSchedule(hosts int, rate float64, count, pass int) ([]packet.Flow, error) {
	sizes, err := packet.NamedSizes("web-search")
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(labSeed+uint64(pass), 2))
	mean := sizes.Mean() / flowletDivided
	p := packet.Poisson{Hosts: hosts, Sizes: sizes, Until: packet.Time(math.MaxInt64),
		Gap: mean / (2 * flowletLoad * rate),
		Pair: func(r *rand.Rand) (src, dst int) {
			src, dst = r.IntN(hosts/2), hosts/2+r.IntN(hosts/2)
			if r.IntN(2) == 0 {
				return dst, src
			}
			return src, dst
		}}
	var flows []packet.Flow
	for range count {
		f, _ := p.Next(r)
		f.Bytes = max(f.Bytes/flowletDivided, headBytes)
		flows = append(flows, f)
	}
	return flows, nil
}

func runFlowlets(ctx context.Context, r *experiment.Recorder) error {
	count, passes := flowletFlows, flowletPasses
	if r.Quick() {
		count, passes = 40, 1
	}
	text, _ := examples.Lab("flowlets")
	var cells []flowletCell
	for _, c := range flowletChoices {
		cell := flowletCell{Choice: c.name}
		spec, err := lab.Parse("flowlets.yaml", []byte(strings.ReplaceAll(string(text), "gap: 5ms",
			"gap: 50ms\n          choice: "+c.choice)))
		if err != nil {
			return err
		}
		spec.Name = "flowlets-lab"
		err = experiment.InLab(ctx, spec, lab.Options{},
			func(ctx context.Context, a *experiment.Arena) (err error) {
				cell.Times, err = flowletTimes(ctx, r, a, spec, c.choice, count, passes)
				return err
			})
		if err != nil {
			return err
		}
		cells = append(cells, cell)
	}
	return reportFlowlets(r, cells)
}

// flowletTimes plays the flows in a lab, pass by pass.
func flowletTimes(ctx context.Context, r *experiment.Recorder, a *experiment.Arena,
	spec *lab.Spec, choice string, count, passes int) (times [][]float64, err error) {
	n, err := networkOf(spec)
	if err != nil {
		return nil, err
	}
	paths, rate := 0, 0.0
	for _, l := range spec.Links {
		if l.RateBits != 0 {
			paths, rate = paths+1, float64(l.RateBits)/8
		}
	}
	h := hostsOf(a, spec, n)
	if err := h.listen(ctx); err != nil {
		return nil, err
	}
	// Each path has a link before its spine and one behind it.
	for pass := range passes {
		flows, err := flowletSchedule(len(h.names), rate*float64(paths/2), count, pass)
		if err != nil {
			return nil, err
		}
		r.Progress("%s, pass %d of %d", choice, pass+1, passes)
		part, err := experiment.Part(r, fmt.Sprintf("%s-%d", choice, pass),
			func() ([]float64, error) {
				ms, err := h.times(ctx, flowletControl, flows)
				if err == nil {
					_, err = h.settle(ctx)
				}
				return ms, err
			})
		if err != nil {
			return nil, err
		}
		times = append(times, part)
	}
	return times, nil
}

func reportFlowlets(r *experiment.Recorder, cells []flowletCell) error {
	table := experiment.Table{Name: "times", Title: "Times of flows in ms",
		Columns: []string{"Path", "Pass", "mean", "median", "90 %", "99 %"}}
	drawn := chart.Chart{Title: "Completion times", X: "completion time (ms)",
		Y: "part of the flows", LogX: true}
	for _, c := range cells {
		for pass, ms := range c.Times {
			row := []string{c.Choice, fmt.Sprint(pass + 1), fmt.Sprintf("%.1f", mean(ms))}
			sorted := slices.Sorted(slices.Values(ms))
			for _, q := range []float64{0.5, 0.9, 0.99} {
				row = append(row, fmt.Sprintf("%.1f", scenario.Quantile(sorted, q)))
			}
			table.Rows = append(table.Rows, row)
		}
		all := slices.Sorted(slices.Values(slices.Concat(c.Times...)))
		drawn.Series = append(drawn.Series, chart.Series{Name: c.Choice,
			Points: chart.AtMost(all), Step: true})
	}
	r.Table(table)
	least := cells[len(cells)-1].Times
	for i, published := range []float64{-33, -15} { // per cent
		ours, low, high := tailsBeside(least, cells[i].Times)
		says := "reached"
		if ours > published {
			says = "not reached"
		}
		r.Compare(experiment.Comparison{What: "99th percentile, beside a path " + cells[i].Choice,
			Source: fmt.Sprintf("%+.0f %%", published), Says: says,
			Ours: fmt.Sprintf("%.1f and %.1f ms, %+.1f %% (95 %%: %+.1f to %+.1f)", tailOf(least),
				tailOf(cells[i].Times), ours, low, high)})
	}
	r.Note("The flows of a pass are the same for each choice of path, other ones in each pass. " +
		"Intervals are those of passes drawn again with replacement (bootstrap).")
	r.Note("Times begin before connect(2), and end when the receiver has read the last byte. " +
		"Congestion control is " + flowletControl + "; the pause that ends a flowlet is 50 ms.")
	return r.Chart("times", drawn)
}

// tailOf is the 99th percentile of all passes.
func tailOf(passes [][]float64) float64 {
	return quantile(slices.Concat(passes...), 0.99)
}

// flowletDrawn is how often passes are drawn again.
const flowletDrawn = 1000

// tailsBeside is how much the tail of one choice differs from that of another, in per cent, and
// between which values that lies if passes are drawn again, the same ones of both.
func tailsBeside(ours, other [][]float64) (differ, low, high float64) {
	differ = 100 * (tailOf(ours)/tailOf(other) - 1)
	r := rand.New(rand.NewPCG(labSeed, 3))
	drawn := make([]float64, flowletDrawn)
	for i := range drawn {
		var a, b [][]float64
		for range ours {
			pass := r.IntN(len(ours))
			a, b = append(a, ours[pass]), append(b, other[pass])
		}
		drawn[i] = 100 * (tailOf(a)/tailOf(b) - 1)
	}
	slices.Sort(drawn)
	return differ, scenario.Quantile(drawn, 0.025), scenario.Quantile(drawn, 0.975)
}
