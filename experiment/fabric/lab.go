package fabric

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sextant/examples"
	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/lab"
	"sextant/sim/packet"
	"sextant/sim/packet/scenario"
)

var inLab = experiment.Experiment{
	Name: "fabric-lab", Title: "A fabric of four hosts, in the lab and in the packet simulator",
	Source: "Sextant: the packet simulator against the kernel's TCP",
	Shows: "Four leaves with a host each and two spines, links of 20 Mbit/s with 4 ms and a " +
		"queue of 30 ms: the lab examples/fabric.yaml. Flows of Linux's TCP are sent through it, " +
		"and the same flows are sent through the simulator, whose network is made of the lab's " +
		"file. Flows that end are compared by the times until their last byte was read, endless " +
		"ones by their goodput. The lab plays the same flows six times, which shows how far its " +
		"own runs are from each other; the simulator has 20 runs, whose flows begin a little " +
		"later.",
	Paper: experiment.Ours, Needs: []string{"root"}, Lasts: "5 min",
	Run: runInLab,
}

// The load is that of the links to the hosts.
const (
	labLoad   = 0.4
	labFlows  = 300
	labPasses = 6
	labSeed   = 7
)

// labSizes are flow sizes: from two round trips to many.
const labSizes = "30000 0\n60000 0.3\n150000 0.7\n400000 1\n"

// longPairs are endless flows: the first two meet before host 2, the first and the third behind
// host 1, and the fourth is alone.
var longPairs = [][2]int{{0, 1}, {2, 1}, {0, 3}, {1, 2}}

var longWindow = window{after: 3 * time.Second, lasts: 10 * time.Second}

var labControls = []struct {
	name    string // as Linux has it
	control packet.Control
}{{"reno", packet.Reno}, {"cubic", packet.Cubic}}

// labCell is what a congestion control showed.
type labCell struct {
	Control string
	Lab     [][]float64 // of each pass, the time of each flow in ms
	Sim     []float64   // of all runs of the simulator
	LabLong [][]float64 // of each pass, the goodput of each endless flow in Mbit/s
	SimLong []float64
}

// labSchedule draws flows between the hosts.
func labSchedule(n *packet.Network, rate float64, count int) ([]packet.Flow, error) {
	sizes, err := packet.ParseSizes(labSizes)
	if err != nil {
		return nil, err
	}
	hosts := len(n.Hosts)
	r := rand.New(rand.NewPCG(labSeed, 1))
	p := packet.Poisson{Hosts: hosts, Gap: sizes.Mean() / (labLoad * rate * float64(hosts)),
		Sizes: sizes, Until: packet.Time(math.MaxInt64)}
	var flows []packet.Flow
	for range count {
		f, _ := p.Next(r)
		flows = append(flows, f)
	}
	return flows, nil
}

func runInLab(ctx context.Context, r *experiment.Recorder) error {
	spec, err := lab.Parse("fabric.yaml", examples.Fabric)
	if err != nil {
		return err
	}
	spec.Name = "fabric-lab"
	n, err := networkOf(spec)
	if err != nil {
		return err
	}
	count, passes, w := labFlows, labPasses, longWindow
	if r.Quick() {
		count, passes, w = 60, 1, window{after: time.Second, lasts: 3 * time.Second}
	}
	// Of the links that have a rate, all have the same one.
	rate := float64(slices.MaxFunc(spec.Links, func(a, b lab.LinkSpec) int {
		return int(a.RateBits) - int(b.RateBits)
	}).RateBits) / 8
	flows, err := labSchedule(n, rate, count)
	if err != nil {
		return err
	}
	var long []packet.Flow
	for _, pair := range longPairs {
		long = append(long, packet.Flow{Src: pair[0], Dst: pair[1], Bytes: packet.Endless})
	}
	var cells []labCell
	var late time.Duration
	err = experiment.InLab(ctx, spec, lab.Options{},
		func(ctx context.Context, a *experiment.Arena) error {
			h := hostsOf(a, spec, n)
			if err := h.listen(ctx); err != nil {
				return err
			}
			for _, c := range labControls {
				cell := labCell{Control: c.name}
				for pass := range passes {
					r.Progress("%s, pass %d of %d", c.name, pass+1, passes)
					part, err := experiment.Part(r, fmt.Sprintf("%s-%d", c.name, pass),
						func() (p [2][]float64, err error) {
							if p[0], err = h.times(ctx, c.name, flows); err != nil {
								return p, err
							}
							if p[1], err = h.goodputs(ctx, c.name, long, w); err != nil {
								return p, err
							}
							late, err = h.settle(ctx)
							return p, err
						})
					if err != nil {
						return err
					}
					cell.Lab = append(cell.Lab, part[0])
					cell.LabLong = append(cell.LabLong, part[1])
				}
				cells = append(cells, cell)
			}
			return nil
		})
	if err != nil {
		return err
	}
	for i, c := range labControls {
		if cells[i].Sim, err = simulated(n, c.control, flows); err != nil {
			return err
		}
		if cells[i].SimLong, err = simulatedGoodputs(n, c.control, long, w); err != nil {
			return err
		}
	}
	if late > 0 {
		r.Note("The lab's links were late by up to %s for 99 of 100 packets; a busy machine makes "+
			"it more, and flows slower.", late)
	}
	return reportInLab(r, cells)
}

// within is how far lab and simulator may be from each other to be called the same.
const within = 0.05

func reportInLab(r *experiment.Recorder, cells []labCell) error {
	table := experiment.Table{Name: "lab", Title: "Flows that end: times in ms",
		Columns: []string{"Control", "Run", "mean", "median", "90 %", "99 %"}}
	long := experiment.Table{Name: "long", Title: "Endless flows: goodput in Mbit/s",
		Columns: []string{"Control", "Run", "1 to 2", "3 to 2", "1 to 4", "2 to 3", "sum"}}
	for _, c := range cells {
		add := func(run string, ms, rates []float64) {
			row := []string{c.Control, run, fmt.Sprintf("%.1f", mean(ms))}
			sorted := slices.Sorted(slices.Values(ms))
			for _, q := range []float64{0.5, 0.9, 0.99} {
				row = append(row, fmt.Sprintf("%.1f", scenario.Quantile(sorted, q)))
			}
			table.Rows = append(table.Rows, row)
			row = []string{c.Control, run}
			for _, rate := range append(slices.Clone(rates), total(rates)) {
				row = append(row, fmt.Sprintf("%.2f", rate))
			}
			long.Rows = append(long.Rows, row)
		}
		var means, sums []float64
		for pass, ms := range c.Lab {
			add(fmt.Sprintf("lab, %d", pass+1), ms, c.LabLong[pass])
			means, sums = append(means, mean(ms)), append(sums, total(c.LabLong[pass]))
		}
		add("simulator", c.Sim, c.SimLong)
		compareLab(r, c.Control+": mean time of a flow", "ms", means, mean(c.Sim))
		compareLab(r, c.Control+": goodput of four endless flows", "Mbit/s", sums,
			total(c.SimLong))
		if err := r.Chart("lab-"+c.Control, labChart(c)); err != nil {
			return err
		}
	}
	r.Table(table)
	r.Table(long)
	r.Note("The lab's times begin before connect(2), and end when the receiver has read the last " +
		"byte; they include the time that the machine takes. Frames of 1514 bytes carry 1428.")
	return nil
}

// compareLab compares the simulator's mean with that of the lab's passes, which has a 95 %
// confidence interval.
func compareLab(r *experiment.Recorder, what, unit string, passes []float64, sim float64) {
	lab, half := mean(passes), math.NaN()
	if n := float64(len(passes)); n > 1 {
		squares := 0.0
		for _, x := range passes {
			squares += (x - lab) * (x - lab)
		}
		half = studentT(len(passes)-1) * math.Sqrt(squares/(n-1)/n)
	}
	off := sim/lab - 1
	says := fmt.Sprintf("within %.0f %%", 100*within)
	if math.Abs(off) > within {
		says = fmt.Sprintf("not within %.0f %%", 100*within)
	}
	r.Compare(experiment.Comparison{What: what,
		Source: fmt.Sprintf("lab: %.1f%s %s", lab, halfText("%.1f", half), unit),
		Ours:   fmt.Sprintf("simulator: %.1f %s, %+.1f %%", sim, unit, 100*off), Says: says})
}

func labChart(c labCell) chart.Chart {
	result := chart.Chart{Title: "Completion times, " + c.Control, X: "completion time (ms)",
		Y: "part of the flows", LogX: true}
	for pass, ms := range c.Lab {
		result.Series = append(result.Series, chart.Series{Name: fmt.Sprintf("lab, %d", pass+1),
			Points: chart.AtMost(ms), Step: true})
	}
	result.Series = append(result.Series, chart.Series{Name: "simulator",
		Points: chart.AtMost(c.Sim), Step: true, Dashed: true})
	return result
}

func total(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

func mean(values []float64) float64 { return total(values) / float64(len(values)) }
