package churn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
)

var figure13 = experiment.Experiment{
	Name: "shadow-fig13", Title: "Round-trip times without, with and while packets are sent on",
	Source: source + ", section VI-D, figure 13",
	Shows: "A client sends 1 and 1,460 bytes over TCP connections, and a server sends them back: " +
		"where hosts take whatever " +
		"comes, where they look for the connection first, and while a server that does not have " +
		"it sends the packets on. All " +
		"connections take turns, so that they meet the same machine.",
	Paper: experiment.VRFShadowing, Needs: []string{"root"}, Lasts: "5 min",
	Run: runFigure13,
}

// scenario is a curve of figure 13.
type scenario struct {
	name    string
	policy  policy
	chained bool
}

var scenarios = []scenario{
	{"ecmp: End.DT46", ecmp, false},
	{"shadow: End.DT46.COND", shadow, false},
	{"shadow, sent back", shadow, true},
	{"offer: End.OFFER", offer, false},
	{"offer, passed on", offer, true},
}

// messages are the paper's sizes in bytes.
var messages = []int{1, 1460}

// latencies are microseconds by scenario.
type latencies [][]float64

func runFigure13(ctx context.Context, r *experiment.Recorder) error {
	rounds := 100_000
	if r.Quick() {
		rounds = 4_000
	}
	var results []latencies
	err := within(ctx, setting{name: "shadow-fig13", fast: true},
		func(ctx context.Context, a *arena) error {
			for _, size := range messages {
				l, err := experiment.Part(r, fmt.Sprintf("%d-bytes", size),
					func() (latencies, error) {
						return a.latencies(ctx, r, size, rounds)
					})
				if err != nil {
					return err
				}
				results = append(results, l)
			}
			return nil
		})
	if err != nil {
		return err
	}
	return reportFigure13(r, results)
}

// latencies measures round by round, each connection once per round.
func (a *arena) latencies(ctx context.Context, r *experiment.Recorder, size,
	rounds int) (latencies, error) {
	end, err := a.serve(echoPort, experiment.Echo)
	if err != nil {
		return nil, err
	}
	defer end()
	lines, err := a.scenarioLines(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, l := range lines {
			l.conn.Close()
		}
	}()
	message, answer := make([]byte, size), make([]byte, size)
	result := make(latencies, len(lines))
	for round := range rounds {
		if round%1000 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			r.Progress("%d bytes: round %d of %d", size, round, rounds)
		}
		for i, l := range lines {
			took, err := l.roundTrip(message, answer)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", scenarios[i].name, err)
			}
			result[i] = append(result[i], float64(took)/float64(time.Microsecond))
		}
	}
	return result, nil
}

// scenarioLines opens a connection for each scenario.
func (a *arena) scenarioLines(ctx context.Context) ([]*line, error) {
	straight, chained := map[policy]*line{}, map[policy]*line{}
	for _, p := range []policy{ecmp, shadow, offer} {
		var err error
		if straight[p], chained[p], err = a.lines(ctx, p, echoPort); err != nil {
			return nil, err
		}
	}
	var lines []*line
	for _, s := range scenarios {
		if s.chained {
			lines = append(lines, chained[s.policy])
		} else {
			lines = append(lines, straight[s.policy])
		}
	}
	return lines, nil
}

func reportFigure13(r *experiment.Recorder, results []latencies) error {
	t := experiment.Table{
		Name: "rtt", Title: "Round-trip times in microseconds",
		Columns: []string{"Bytes", "Connection", "Rounds", "P10", "Median", "P90", "P99",
			"Median, above ecmp",
			"Median, above the same straight"},
	}
	for i, size := range messages {
		c := chart.Chart{Title: fmt.Sprintf("Round-trip times, %d bytes", size), X: "microseconds",
			Y: "messages, %", ToY: 100}
		base, straight := median(results[i][0]), 0.0
		for j, s := range scenarios {
			micros := slices.Sorted(slices.Values(results[i][j]))
			own := median(micros)
			if !s.chained {
				straight = own
			}
			t.Rows = append(t.Rows, cells(size, s.name, len(micros), quantile(micros, 0.1), own,
				quantile(micros, 0.9),
				quantile(micros, 0.99), own-base, own-straight))
			c.Series = append(c.Series, chart.Series{Name: s.name, Points: thinned(micros),
				Step: true})
			if s.chained {
				r.Compare(experiment.Comparison{
					What: fmt.Sprintf("%s, %d bytes: median added by the way round", s.name,
						size),
					Source: "15 to 34 us", Ours: fmt.Sprintf("%.1f us", own-straight),
					Says: saysAdded(own - straight),
				})
			}
		}
		c.FromX, c.ToX = 0, 2*quantile(slices.Sorted(slices.Values(results[i][2])), 0.5)
		if err := r.Chart(fmt.Sprintf("fig13-%d", size), c); err != nil {
			return err
		}
	}
	r.Table(t)
	r.Note("The links have no rate here. A message of 1,460 bytes does not fit into one segment " +
		"behind the encapsulation and takes two.")
	return nil
}

// goalMicros is what a way round may add.
const goalMicros = 40

func saysAdded(micros float64) string {
	if micros < goalMicros {
		return fmt.Sprintf("below %d us", goalMicros)
	}
	return fmt.Sprintf("%d us or more; was the machine busy?", goalMicros)
}

func median(values []float64) float64 { return quantile(slices.Sorted(slices.Values(values)), 0.5) }

// quantile is that of ascending values.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// thinned draws a distribution by a few hundred points.
func thinned(sorted []float64) (points []chart.Point) {
	const steps = 400
	for i := 1; i <= steps; i++ {
		share := float64(i) / steps
		points = append(points, chart.Point{X: quantile(sorted, share), Y: 100 * share})
	}
	return points
}
