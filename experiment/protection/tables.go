package protection

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"sextant/experiment"
)

// tables1And2 are duplicated requests over paths without loss.
var tables1And2 = experiment.Experiment{
	Name:   "protection-tables",
	Title:  "Duplicated requests over paths of different delay",
	Source: source + ", tables I and II",
	Shows: "1,000 duplicated requests of 100 KB; L1 has a delay of 5 or 10 ms, L2 one that is 2 " +
		"to 10 ms longer. " +
		"The fastest link decides how long a request takes.",
	Paper: experiment.Disjoint, Needs: []string{"root", "lighttpd"}, Lasts: "15 min",
	Run: runTables,
}

// published are means and standard deviations of tables I and II by base delay, for differences of
// 2 to 10 ms.
var published = map[time.Duration][5][2]float64{
	5 * time.Millisecond:  {{70, 0}, {70, 0}, {70.37, 5.79}, {70.11, 1.86}, {70.01, 0.31}},
	10 * time.Millisecond: {{140.08, 2.52}, {140, 0}, {140, 0}, {140, 0}, {140.3, 6.35}},
}

var bases = []time.Duration{5 * time.Millisecond, 10 * time.Millisecond}

// deltaStep is between the differences of delay.
const deltaStep = 2 * time.Millisecond

func runTables(ctx context.Context, r *experiment.Recorder) error {
	var cells []cell
	for _, base := range bases {
		for _, algorithm := range algorithms {
			alone := setting{Mode: onL1, Congestion: algorithm, Delay: [2]time.Duration{base, base}}
			cells = append(cells, cell{shortName(alone), alone})
			for i := range published[base] {
				for _, m := range []mode{duplicated, eliminated} {
					s := both(m, algorithm, base, time.Duration(i+1)*deltaStep, 0)
					cells = append(cells, cell{shortName(s), s})
				}
			}
		}
	}
	outcomes, err := measureAll(ctx, r, cells, r.Requests(paperRequests))
	if err != nil {
		return err
	}
	return reportTables(r, cells, outcomes)
}

func reportTables(r *experiment.Recorder, cells []cell, outcomes []requests) error {
	setUpNote(r)
	t := experiment.Table{
		Name: "requests", Title: "Request times",
		Columns: append([]string{"TCP", "L1, ms", "L2, ms", "Path"}, statisticsColumns...),
	}
	alone := map[string]statistics{} // over L1, by algorithm and delay
	for i, c := range cells {
		s := c.setting
		slower := strconv.FormatInt(s.Delay[1].Milliseconds(), 10)
		if s.Mode == onL1 {
			slower = "-"
			alone[s.Congestion+s.Delay[0].String()] = statisticsOf(outcomes[i].Ms)
		}
		t.Rows = append(t.Rows, row(outcomes[i], s.Congestion,
			strconv.FormatInt(s.Delay[0].Milliseconds(), 10), slower, string(s.Mode)))
	}
	for i, c := range cells {
		if s := c.setting; s.Mode == duplicated {
			r.Compare(compareTable(s, statisticsOf(outcomes[i].Ms),
				alone[s.Congestion+s.Delay[0].String()]))
		}
	}
	compareDuplicates(r, cells, outcomes)
	r.Table(t)
	return nil
}

// compareTable puts the paper's row beside ours. Times differ, as TCP has another first window and
// HTTP another way to end; what matters is that they are those of the fastest link.
func compareTable(s setting, ours, alone statistics) experiment.Comparison {
	base, delta := s.Delay[0], s.Delay[1]-s.Delay[0]
	paper := published[base][int(delta/deltaStep)-1]
	roundTrip := 2 * base.Seconds() * 1e3
	says := "the time of the fastest link alone"
	if math.Abs(ours.median-alone.median) > roundTrip/2 {
		says = "not the time of the fastest link alone"
	}
	return experiment.Comparison{
		What: fmt.Sprintf("%s, L1 %s, L2 %s: request time, mean and standard deviation",
			s.Congestion, s.Delay[0], s.Delay[1]),
		Source: fmt.Sprintf("%g ms, %g ms: %.1f round trips of L1", paper[0], paper[1],
			paper[0]/roundTrip),
		Ours: fmt.Sprintf("%s ms, %s ms; median %s ms: %.1f round trips of L1; over L1 alone, "+
			"median %s ms", milliseconds(ours.mean),
			milliseconds(ours.deviation), milliseconds(ours.median), ours.median/roundTrip,
			milliseconds(alone.median)),
		Says: says,
	}
}
