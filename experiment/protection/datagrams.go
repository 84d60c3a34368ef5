package protection

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sextant/experiment"
	"sextant/lab"
	"sextant/lab/netem"
)

// telemetry is a stream over UDP, which nobody repairs.
var telemetry = experiment.Experiment{
	Name:   "protection-telemetry",
	Title:  "A stream of telemetry over one path and over two, under loss and when a path is cut",
	Source: source + ", section II, of which this is an extension",
	Shows: "1,000 datagrams a second, numbered, from one host to the other for 20 s: how many " +
		"come, how late, twice, out of order; " +
		"over paths that lose, and over paths of which the first is cut for good at the half.",
	Paper: experiment.Disjoint, Needs: []string{"root", "lighttpd"}, Lasts: "2 min",
	Run: runTelemetry,
}

// trial is a stream in a setting.
type trial struct {
	what    string
	setting setting
	cut     bool // the first path, at the half
}

// trials are all settings, in each mode.
func trials() []trial {
	const ms = time.Millisecond
	var all []trial
	for _, m := range []mode{onL1, onL2, duplicated, eliminated} {
		for _, n := range []struct {
			what  string
			delay [2]time.Duration
			loss  [2]float64
			cut   bool
		}{
			{"L1 10 ms, 10 % loss; L2 20 ms", [2]time.Duration{10 * ms, 20 * ms},
				[2]float64{0.1, 0}, false},
			{"both 5 ms, 5 % loss", [2]time.Duration{5 * ms, 5 * ms}, [2]float64{0.05, 0.05},
				false},
			{"L1 10 ms, L2 100 ms, 10 % loss", [2]time.Duration{10 * ms, 100 * ms},
				[2]float64{0.1, 0.1}, false},
			{"L1 5 ms, cut; L2 7 ms", [2]time.Duration{5 * ms, 7 * ms}, [2]float64{}, true},
		} {
			all = append(all, trial{n.what, setting{Mode: m, Delay: n.delay, Loss: n.loss, Seed: 1},
				n.cut})
		}
	}
	return all
}

func runTelemetry(ctx context.Context, r *experiment.Recorder) error {
	lasts := 20 * time.Second
	if r.Quick() {
		lasts = 2 * time.Second
	}
	all := trials()
	streams := make([]stream, len(all))
	err := sideBySide(ctx, r, len(all), func(ctx context.Context, i int) error {
		var err error
		streams[i], err = experiment.Part(r, strconv.Itoa(i),
			func() (stream, error) { return all[i].run(ctx, labName(i), lasts) })
		return err
	})
	if err != nil {
		return err
	}
	reportTelemetry(r, all, streams)
	return nil
}

func (t trial) run(ctx context.Context, name string, lasts time.Duration) (s stream, err error) {
	err = within(ctx, name, t.setting, func(ctx context.Context, a *arena) error {
		if _, err := a.fetchOnce(ctx); err != nil &&
			ctx.Err() != nil { // neighbours resolve one another's addresses
			return err
		}
		s, err = a.telemetry(ctx, lasts, func() error {
			if !t.cut {
				return nil
			}
			return a.cut(ctx)
		})
		return err
	})
	return s, err
}

// cut lets nothing pass over the first path any more.
func (a *arena) cut(ctx context.Context) error {
	return a.ChangeLinks(ctx, "ingress--p1",
		lab.LinkChange{Profile: func(p *netem.Profile) error {
			p.Cut = true
			return nil
		}})
}

func reportTelemetry(r *experiment.Recorder, all []trial, streams []stream) {
	t := experiment.Table{
		Name: "streams", Title: "Streams",
		Columns: []string{
			"Paths", "Mode", "Sent", "Lost", "Lost, %", "Longest gap", "Duplicates", "Out of order",
			"Median delay, ms", "99 %, ms",
			"Dropped by the machine",
		},
	}
	for i, trial := range all {
		s := streams[i]
		delays := statisticsOf(s.Ms)
		t.Add(trial.what, trial.setting.Mode, s.Sent, s.Lost,
			fmt.Sprintf("%.2f", 100*float64(s.Lost)/float64(s.Sent)), s.LongestGap, s.Duplicates,
			s.Reordered, milliseconds(delays.median), milliseconds(delays.p99), s.Faults)
		if trial.cut && trial.setting.Mode == eliminated {
			says := "no packet lost, none twice"
			switch {
			case s.Lost > 0 && s.Duplicates == 0 && uint64(s.Lost) <= s.Faults:
				says = "none lost but what the machine has dropped"
			case s.Lost+s.Duplicates > 0:
				says = "packets were lost or came twice, and none should"
			}
			r.Compare(experiment.Comparison{
				What: "a path is cut under the stream: lost, twice", Source: "-",
				Ours: fmt.Sprintf("%d, %d of %d", s.Lost, s.Duplicates, s.Sent), Says: says,
			})
		}
	}
	r.Table(t)
	r.Note("What is lost over both paths is what both lose: the product of their shares. What " +
		"the machine drops, in full rings when it " +
		"stands still, is in the last column, copies and answers among it; it is lost too.")
}
