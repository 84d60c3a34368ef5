package srlb

import (
	"fmt"

	"sextant/experiment"
	"sextant/experiment/chart"
)

// distributionCharts are figures 3 and 5.
func (f *findings) distributionCharts(r *experiment.Recorder) error {
	for _, figure := range []struct {
		name   string
		number int
		load   float64
		most   float64
	}{{"fig3", 3, watched, 150}, {"fig5", 5, 0.61, 60}} {
		c := chart.Chart{Title: fmt.Sprintf("Figure %d: response times at %g, lab", figure.number,
			figure.load), X: "ms",
			Y: "requests, %", ToX: figure.most, ToY: 100}
		for _, p := range contenders {
			if found, ok := at(f.lab, p, figure.load); ok {
				c.Series = append(c.Series, chart.Series{Name: p.name,
					Points: distribution(found.Quantiles, figure.most)})
			}
		}
		if err := r.Chart(figure.name, c); err != nil {
			return err
		}
	}
	return nil
}

// distribution draws quantiles up to a time.
func distribution(quantiles []float64, most float64) (points []chart.Point) {
	for i, ms := range quantiles {
		if ms > most {
			break
		}
		points = append(points, chart.Point{X: ms, Y: 100 * float64(i+1) / quantileSteps})
	}
	return points
}

// instantCharts are figure 4: the load of a server over time, in the mean over servers, and how
// fair it is.
func (f *findings) instantCharts(r *experiment.Recorder) error {
	load := chart.Chart{Title: "Figure 4: connections per server at 0.88, lab", X: "seconds",
		Y: "mean over servers"}
	fairness := chart.Chart{Title: "Figure 4: fairness at 0.88, lab", X: "seconds",
		Y: "Jain's index", FromY: 0, ToY: 1}
	for _, p := range []policy{rr, sr4, average} {
		found, ok := at(f.lab, p, watched)
		if !ok {
			continue
		}
		var mean, jain []chart.Point
		for i, second := range found.Ages.Seconds {
			if i%instantThin == 0 {
				mean = append(mean, chart.Point{X: second, Y: found.Ages.Mean[i]})
				jain = append(jain, chart.Point{X: second, Y: found.Ages.Jain[i]})
			}
		}
		load.Series = append(load.Series, chart.Series{Name: p.name, Points: mean})
		fairness.Series = append(fairness.Series, chart.Series{Name: p.name, Points: jain})
	}
	if err := r.Chart("fig4-load", load); err != nil {
		return err
	}
	return r.Chart("fig4-fairness", fairness)
}

// instantThin leaves out points that a chart cannot show.
const instantThin = 4

// dayCharts are figures 6 to 8.
func (f *findings) dayCharts(r *experiment.Recorder) error {
	if len(f.day) == 0 {
		return nil
	}
	rate := chart.Chart{Title: "Figure 6: pages per second over the synthetic day, lab", X: "hour",
		Y: "pages/s", ToX: 24}
	rate.Series = []chart.Series{{Name: "rate", Points: overDay(f.day[0].Rate)}}
	median := chart.Chart{Title: "Figure 6: median load time of pages, lab", X: "hour", Y: "ms",
		ToX: 24}
	deciles := chart.Chart{Title: "Figure 7: deciles 1, 5 and 9 of the load time of pages, lab",
		X: "hour", Y: "ms", ToX: 24}
	whole := chart.Chart{Title: "Figure 8: load time of pages over the synthetic day, lab", X: "ms",
		Y: "pages, %", ToX: 250, ToY: 100}
	for _, d := range f.day {
		median.Series = append(median.Series, chart.Series{Name: d.Policy, Points: decile(d, 5)})
		for _, n := range []int{1, 5, 9} {
			deciles.Series = append(deciles.Series,
				chart.Series{Name: fmt.Sprintf("%s, decile %d", d.Policy, n), Points: decile(d, n),
					Dashed: n != 5})
		}
		whole.Series = append(whole.Series,
			chart.Series{Name: d.Policy, Points: distribution(d.Quantiles, whole.ToX)})
	}
	for _, figure := range []struct {
		name  string
		chart chart.Chart
	}{{"fig6-rate", rate}, {"fig6", median}, {"fig7", deciles}, {"fig8", whole}} {
		if err := r.Chart(figure.name, figure.chart); err != nil {
			return err
		}
	}
	return nil
}

// overDay draws values by bin.
func overDay(values []float64) (points []chart.Point) {
	for i, v := range values {
		points = append(points, chart.Point{X: hourOf(i), Y: v})
	}
	return points
}

// hourOf is the middle of a bin.
func hourOf(bin int) float64 { return (float64(bin) + 0.5) * 24 / dayBins }

func decile(d dayResult, n int) (points []chart.Point) {
	for i, deciles := range d.Deciles {
		if len(deciles) >= n {
			points = append(points, chart.Point{X: hourOf(i), Y: deciles[n-1]})
		}
	}
	return points
}
