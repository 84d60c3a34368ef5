package cflb

import (
	"context"
	"fmt"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
)

var figure10 = experiment.Experiment{
	Name: "cflb-fig10", Title: "Seven subflows of Multipath TCP over seven links: chosen or random",
	Source: "Detal et al., figure 10",
	Shows: "Connections of the kernel's Multipath TCP have seven subflows over seven parallel " +
		"links of 20 Mbit/s (the source's have 100), by source ports that take one each, and by " +
		"random ones. The links that carry data are counted.",
	Paper: experiment.CFLB, Needs: []string{"root"}, Lasts: "7 min",
	Run: runFigure10,
}

// paperRuns is how many connections of each kind the paper has opened.
const (
	paperRuns = 400
	quickRuns = 6
	partRuns  = 50 // after which a run that is interrupted resumes
)

// watchedLinks is enough to count the links that carry data.
var watchedLinks = watched{after: 250 * time.Millisecond, lasts: 150 * time.Millisecond}

// counted are connections by how many links they used, from 1.
type counted struct {
	Links    [links]int
	Megabits []float64
}

func (c *counted) add(o counted) {
	for i, n := range o.Links {
		c.Links[i] += n
	}
	c.Megabits = append(c.Megabits, o.Megabits...)
}

func runFigure10(ctx context.Context, r *experiment.Recorder) error {
	runs := paperRuns
	if r.Quick() {
		runs = quickRuns
	}
	spec, err := parallel("cflb-fig10", nil)
	if err != nil {
		return err
	}
	var chosen, random counted
	err = within(ctx, spec, func(a *arena) error {
		for first := 0; first < runs; first += partRuns {
			n := min(partRuns, runs-first)
			for _, kind := range []struct {
				name string
				into *counted
				hops func() []int
			}{{"chosen", &chosen, eachHop}, {"random", &random, randomHops(links)}} {
				r.Progress("%s ports: %d of %d connections", kind.name, first, runs)
				part, err := experiment.Part(r, fmt.Sprintf("%s-%d", kind.name, first),
					func() (c counted, err error) {
						for range n {
							o, err := a.connect(ctx, kind.hops(), watchedLinks)
							if err != nil {
								return c, err
							}
							c.Links[max(1, o.Links)-1]++
							c.Megabits = append(c.Megabits, o.Megabits)
						}
						return c, nil
					})
				if err != nil {
					return err
				}
				kind.into.add(part)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return reportFigure10(r, chosen, random, runs)
}

func eachHop() (hops []int) {
	for i := range links {
		hops = append(hops, i)
	}
	return hops
}

func randomHops(n int) func() []int {
	return func() []int {
		hops := make([]int, n)
		for i := range hops {
			hops[i] = anyHop
		}
		return hops
	}
}

// usedLaw is the probability of each number of links, from 1, by so many subflows at random.
func usedLaw(subflows int) (p [links]float64) {
	p[0] = 1 // with one subflow
	for range subflows - 1 {
		for used := links; used >= 1; used-- {
			p[used-1] *= float64(used) / links
			if used > 1 {
				p[used-1] += p[used-2] * float64(links-used+1) / links
			}
		}
	}
	return p
}

// chiSquareUsed compares counts with the law: up to three links, four, five, six or seven. Its
// bound is that of 3 degrees of freedom at a probability of 0.001.
func chiSquareUsed(counts [links]int, runs int) (sum float64) {
	law := usedLaw(links)
	pool := func(i int) int { return min(max(i, 2), 5) - 2 }
	var got, want [4]float64
	for i := range counts {
		got[pool(i)] += float64(counts[i])
		want[pool(i)] += law[i] * float64(runs)
	}
	for i := range got {
		sum += (got[i] - want[i]) * (got[i] - want[i]) / want[i]
	}
	return sum
}

const chiSquareUsedMost = 16.27

func reportFigure10(r *experiment.Recorder, chosen, random counted, runs int) error {
	law := usedLaw(links)
	table := experiment.Table{Name: "fig10", Title: "Connections by links that carried data",
		Columns: []string{"Links", "Chosen ports", "Random ports", "Random, by the law"}}
	series := []chart.Series{{Name: "chosen ports", Marks: true}, {Name: "random ports",
		Marks: true}, {Name: "random, by the law", Dashed: true}}
	for i := range links {
		want := law[i] * float64(runs)
		table.Add(i+1, chosen.Links[i], random.Links[i], fmt.Sprintf("%.1f", want))
		for s, y := range []float64{float64(chosen.Links[i]), float64(random.Links[i]), want} {
			series[s].Points = append(series[s].Points, chart.Point{X: float64(i + 1),
				Y: 100 * y / float64(runs)})
		}
	}
	r.Table(table)
	all := chosen.Links[links-1]
	says := "as the source"
	if all < runs {
		says = "less than the source"
	}
	r.Compare(experiment.Comparison{What: "connections of chosen ports on all 7 links",
		Source: "400 of 400", Ours: fmt.Sprintf("%d of %d", all, runs), Says: says})
	r.Compare(experiment.Comparison{What: "connections of random ports on all 7 links",
		Source: "2 of 400", Ours: fmt.Sprintf("%d of %d", random.Links[links-1], runs),
		Says: fmt.Sprintf("7!/7^7 = %.2f %%", 100*law[links-1])})
	says = "agrees"
	square := chiSquareUsed(random.Links, runs)
	if square > chiSquareUsedMost {
		says = "differs"
	}
	r.Compare(experiment.Comparison{What: "random ports against the law, chi-square of 3 degrees",
		Source: "-", Ours: fmt.Sprintf("%.1f, at most %.1f", square, chiSquareUsedMost),
		Says: says})
	r.Compare(experiment.Comparison{What: "goodput of chosen and random ports, Mbit/s, mean",
		Source: "about 700 of 700, -", Ours: fmt.Sprintf("%.0f and %.0f of %d",
			mean(chosen.Megabits), mean(random.Megabits), links*linkBits/1_000_000),
		Says: "what the server read, from 0.25 s after the connection on"})
	return r.Chart("fig10", chart.Chart{Title: "Links that seven subflows use",
		X: "links", Y: "connections, %", Series: series, FromX: 1, ToX: links, ToY: 100})
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}
