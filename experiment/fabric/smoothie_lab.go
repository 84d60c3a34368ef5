package fabric

import (
	"context"
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
		Paper: experiment.SMOOTHIE, Needs: []string{"root"}, Lasts: "15 min",
		Run: smoothieLabRun("fig2", labSettings2, reportSmoothieLab2)},
	{Name: "smoothie-fig3-lab",
		Title: "SMOOTHIE in the lab over the threshold of pauses and the part of packets with " +
			"telemetry",
		Source: smoothiePaper + "figure 3", Shows: smoothieLabShows + "Thresholds from 1 to 8 " +
			"times 75 ms, telemetry in one of 10 to 200 packets, at 80 % load.",
		Paper: experiment.SMOOTHIE, Needs: []string{"root"}, Lasts: "12 min",
		Run: smoothieLabRun("fig3", labSettings3, reportSmoothieLab3)},
	{Name: "smoothie-fig4-lab",
		Title:  "How often flows are rerouted in the lab: SMOOTHIE and CLOVE",
		Source: smoothiePaper + "figure 4", Shows: smoothieLabShows + "At 80 and 100 % load.",
		Paper: experiment.SMOOTHIE, Needs: []string{"root"}, Lasts: "8 min",
		Run: smoothieLabRun("fig4", labSettings4, reportSmoothieLab4)},
}

const smoothieLabShows = "The paper's network in the lab: 8 leaves, 4 spines, a client and a " +
	"server at each leaf, each port of a switch with 100 packets per second and a queue of 64, " +
	"web search flows of Linux's TCP on connections that stay, from clients to random servers " +
	"of other leaves. An agent on each switch writes its queues into packets or reports them, " +
	"and a controller has the leaves move flows. Several such networks run beside each other. "

// cell is one run of a setting in the lab. Means of its outcome are the times of its flows, in ms,
// in the order of the schedule, which is the same one for each setting of a load.
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
const labsBeside = 4

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

// smoothieCells plays all settings.
func smoothieCells(ctx context.Context, r *experiment.Recorder, figure string,
	settings []setting) ([]cell, error) {
	beside := min(labsBeside, len(settings))
	if r.Quick() {
		beside = 1
	}
	p := &played{recorder: r, span: spanOf(r), cells: make([]cell, len(settings)),
		waits: make(chan int, len(settings)), missing: beside, up: make(chan struct{}),
		loads: make(chan struct{}, r.Workers())}
	for i := range settings {
		p.waits <- i
		p.cells[i].setting = settings[i]
	}
	close(p.waits)
	group, ctx := errgroup.WithContext(ctx)
	for i := range beside {
		group.Go(func() error {
			return p.network(ctx, fmt.Sprintf("smoothie-%s-%d", figure, i+1))
		})
	}
	return p.cells, group.Wait()
}

// played is what networks that run beside each other have played.
type played struct {
	recorder *experiment.Recorder
	span     span
	cells    []cell
	waits    chan int      // places of settings
	up       chan struct{} // is closed when all networks are up
	loads    chan struct{} // holds those that come up: the kernel works long on their programs

	mutex       sync.Mutex
	missing     int // networks that are not up
	done        int // settings
	begun, here int // flows of the settings that were begun, and those that ended
}

// tell shows how far all networks are.
func (p *played) tell(change func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	change()
	p.recorder.Progress("%d of %d settings; %d of %d flows ended", p.done, len(p.cells), p.here,
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
			for i := range p.waits {
				if err := p.one(ctx, l, &p.cells[i]); err != nil {
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

func (p *played) one(ctx context.Context, l *smoothieLab, c *cell) error {
	x := c.setting
	name := fmt.Sprintf("%s-%g-%d-%g", x.Scheme, x.Load, x.OneIn, x.RTTs)
	flows, err := smoothieFlows(x.Load, p.span)
	if err != nil {
		return err
	}
	*c, err = experiment.Part(p.recorder, name, func() (cell, error) {
		p.tell(func() { p.begun += len(flows) })
		return l.play(ctx, x, flows, p.span, func() { p.tell(func() { p.here++ }) })
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.tell(func() { p.done++ })
	return nil
}

// inEach is how many packets carry telemetry where CLOVE chooses: it looks at each.
const inEach = 1

// labSchemes2 are the paths of figure 2.
func labSchemes2(load float64) []setting {
	return []setting{tuned("ecmp", load), {"clove", load, inEach, 4}, tuned("smoothie", load),
		tuned("sextant", load)}
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
			tuned("sextant", load))
	}
	if quick {
		return all[:2]
	}
	return all
}
