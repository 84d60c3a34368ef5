package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"sextant/experiment"
)

var smoothieLabs = []experiment.Experiment{
	{Name: "smoothie-fig2-lab",
		Title:  "Flow completion times over load in the lab: SMOOTHIE, CLOVE and ECMP",
		Source: smoothiePaper + "figure 2", Shows: smoothieLabShows + "Loads from 20 to 100 %; " +
			"SMOOTHIE with telemetry in one of 50 packets, and its extension.",
		Paper: experiment.SMOOTHIE, Needs: []string{"root"}, Lasts: "100 min",
		Run: smoothieLabRun("fig2", labSettings2, reportSmoothieLab2)},
	{Name: "smoothie-fig3-lab",
		Title: "SMOOTHIE in the lab over the threshold of pauses and the part of packets with " +
			"telemetry",
		Source: smoothiePaper + "figure 3", Shows: smoothieLabShows + "Thresholds from 1 to 8 " +
			"times 75 ms, telemetry in one of 10 to 200 packets, at 80 % load.",
		Paper: experiment.SMOOTHIE, Needs: []string{"root"}, Lasts: "1 h",
		Run: smoothieLabRun("fig3", labSettings3, reportSmoothieLab3)},
	{Name: "smoothie-fig4-lab",
		Title:  "How often flows are rerouted in the lab: SMOOTHIE and CLOVE",
		Source: smoothiePaper + "figure 4", Shows: smoothieLabShows + "At 80 and 100 % load.",
		Paper: experiment.SMOOTHIE, Needs: []string{"root"}, Lasts: "40 min",
		Run: smoothieLabRun("fig4", labSettings4, reportSmoothieLab4)},
}

const smoothieLabShows = "The paper's network in the lab: 8 leaves, 4 spines, a client and a " +
	"server at each leaf, each port of a switch with 100 packets per second and a queue of 64, " +
	"web search flows of Linux's TCP on connections that stay, from clients to random servers " +
	"of other leaves. An agent on each switch writes its queues into packets or reports them, " +
	"and a controller has the leaves move flows. Several such networks run beside each other. " +
	"All settings have ten iterations; --requests says another number. "

// cell is the runs of a setting in the lab. Means of its outcome are those of its iterations; of
// one iteration they are the times of its flows, in ms, in the order of the schedule, which is the
// same one for each setting of a load.
type cell struct {
	outcome
	Idle, Back  int // reroutes of connections that rested, and of acknowledgements
	Connections int
	RTTMs       float64 // smoothed by TCP, in the mean of flows when they ended
	Reports     uint64  // of telemetry that the controller took
}

// span is how long a run takes: flows begin for a time, and are waited for until another.
// Sizes of flows are divided.
type span struct {
	begin, lasts time.Duration
	divided      int64
}

var (
	labSpan   = span{90 * time.Second, 210 * time.Second, 1}
	labGlance = span{2 * time.Second, 6 * time.Second, 80} // of a quick run
)

// labsBeside is how many networks run beside each other: one takes half a gigabyte of memory and,
// by its twelve agents at rest, a seventh of a processor.
const labsBeside = 8

// labIterations is how many runs of a setting the paper has.
const labIterations = 10

func iterationsOf(r *experiment.Recorder) int {
	if r.Quick() {
		return r.Requests(1)
	}
	return r.Requests(labIterations)
}

// smoothieLabRun plays the settings of a figure, those of a quick run or all, and reports them.
func smoothieLabRun(figure string, settings func(quick bool) []setting,
	report func(*experiment.Recorder, []cell) error) func(context.Context,
	*experiment.Recorder) error {
	return func(ctx context.Context, r *experiment.Recorder) error {
		cells, err := smoothieCells(ctx, r, figure, settings(r.Quick()))
		if err != nil {
			return err
		}
		return report(r, cells)
	}
}

// smoothieCells plays all settings, an iteration of all after the other.
func smoothieCells(ctx context.Context, r *experiment.Recorder, figure string,
	settings []setting) ([]cell, error) {
	iterations, beside := iterationsOf(r), labsBeside
	if r.Quick() {
		beside = 1
	}
	runs := iterations * len(settings)
	p := &played{recorder: r, span: spanOf(r), runs: make([]run, runs),
		waits: make(chan *run, runs), up: make(chan struct{}),
		loads: make(chan struct{}, r.Workers())}
	for i := range p.runs {
		p.runs[i] = run{setting: settings[i%len(settings)], iteration: i / len(settings)}
		if !p.runs[i].known(r) {
			p.waits <- &p.runs[i]
		}
	}
	close(p.waits)
	p.done = runs - len(p.waits)
	p.missing = min(beside, len(p.waits))
	group, ctx := errgroup.WithContext(ctx)
	for i := range p.missing {
		group.Go(func() error {
			return p.network(ctx, fmt.Sprintf("smoothie-%s-%d", figure, i+1))
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return p.cells(len(settings)), nil
}

// cells are the settings, each with the sum of its iterations.
func (p *played) cells(settings int) []cell {
	cells := make([]cell, settings)
	for i := range cells {
		var of []cell
		for j := i; j < len(p.runs); j += settings {
			of = append(of, p.runs[j].cell)
		}
		cells[i] = summed(of)
	}
	return cells
}

// run is one iteration of a setting.
type run struct {
	setting   setting
	iteration int
	cell      cell
}

// part names the run among the parts of its experiment.
func (r *run) part() string {
	x := r.setting
	return fmt.Sprintf("%s-%g-%d-%g-%d", x.Scheme, x.Load, x.OneIn, x.RTTs, r.iteration+1)
}

// known takes the run from an earlier one that did not finish, if that had it: no network is needed
// where all runs are known.
func (r *run) known(recorder *experiment.Recorder) bool {
	c, err := experiment.Part(recorder, r.part(), func() (cell, error) {
		return cell{}, errors.New("not played yet")
	})
	r.cell = c
	return err == nil
}

// played is what networks that run beside each other have played.
type played struct {
	recorder *experiment.Recorder
	span     span
	runs     []run
	waits    chan *run
	up       chan struct{} // is closed when all networks are up
	loads    chan struct{} // holds those that come up: the kernel works long on their programs

	mutex       sync.Mutex
	missing     int // networks that are not up
	done        int // runs
	begun, here int // flows of the runs that were begun, and those that ended
}

// tell shows how far all networks are.
func (p *played) tell(change func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	change()
	p.recorder.Progress("%d of %d runs; %d of %d flows ended", p.done, len(p.runs), p.here,
		p.begun)
}

// network brings a network up, and plays settings as long as some wait.
func (p *played) network(ctx context.Context, name string) error {
	select {
	case p.loads <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	return inSmoothieLab(ctx, name,
		func(ctx context.Context, l *smoothieLab) error {
			<-p.loads
			if err := p.together(ctx); err != nil {
				return err
			}
			for r := range p.waits {
				if err := p.one(ctx, l, r); err != nil {
					return err
				}
			}
			return nil
		})
}

// together waits until all networks are up.
func (p *played) together(ctx context.Context) error {
	p.mutex.Lock()
	if p.missing--; p.missing == 0 {
		close(p.up)
	}
	p.recorder.Progress("%d networks are to come up", p.missing)
	p.mutex.Unlock()
	select {
	case <-p.up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *played) one(ctx context.Context, l *smoothieLab, r *run) error {
	x := r.setting
	flows, err := smoothieFlows(x.Load, p.span)
	if err != nil {
		return err
	}
	l.firstPort = flowPorts + r.iteration*iterationPorts
	r.cell, err = experiment.Part(p.recorder, r.part(), func() (cell, error) {
		p.tell(func() { p.begun += len(flows) })
		return l.play(ctx, x, flows, p.span, func() { p.tell(func() { p.here++ }) })
	})
	if err != nil {
		return fmt.Errorf("%s: %w", r.part(), err)
	}
	p.tell(func() { p.done++ })
	return nil
}

// inEach is how many packets carry telemetry where CLOVE chooses: it looks at each.
const inEach = 1

// labSchemes2 are the paths of figure 2. At high loads, where pauses are many, SMOOTHIE is played
// as its authors' programs have it, too, which lose most of them.
func labSchemes2(load float64) []setting {
	all := []setting{tuned("ecmp", load), {"clove", load, inEach, 4}, tuned("smoothie", load),
		tuned("sextant", load)}
	if load >= 0.8 {
		all = append(all, tuned(sampledPauses, load))
	}
	return all
}

func labSettings2(quick bool) (all []setting) {
	if quick {
		return labSchemes2(0.8)
	}
	for _, load := range []float64{1, 0.8, 0.6, 0.4, 0.2} {
		all = append(all, labSchemes2(load)...)
	}
	return all
}

var (
	labThresholds = []float64{1, 2, 4, 8}
	labSamples    = []int{10, 50, 200}
)

func labSettings3(quick bool) (all []setting) {
	if quick {
		return []setting{{"smoothie", 0.8, 10, 1}, {"smoothie", 0.8, 200, 8}}
	}
	for _, oneIn := range labSamples {
		for _, rtts := range labThresholds {
			all = append(all, setting{"smoothie", 0.8, oneIn, rtts})
		}
	}
	return all
}

func labSettings4(quick bool) (all []setting) {
	for _, load := range []float64{1, 0.8} {
		all = append(all, tuned("smoothie", load), setting{"clove", load, inEach, 4},
			tuned("sextant", load), tuned(sampledPauses, load))
	}
	if quick {
		return all[:2]
	}
	return all
}
