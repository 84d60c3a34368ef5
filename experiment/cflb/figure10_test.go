package cflb

import (
	"math"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

// The law is that of counting all ways to throw seven subflows at seven links.
func TestUsedLaw(t *testing.T) {
	var ways [links]int
	total := 1
	for range links {
		total *= links
	}
	for number := range total {
		used, count := [links]bool{}, 0
		for rest, i := number, 0; i < links; rest, i = rest/links, i+1 {
			if !used[rest%links] {
				used[rest%links], count = true, count+1
			}
		}
		ways[count-1]++
	}
	for i, p := range usedLaw(links) {
		if want := float64(ways[i]) / float64(total); math.Abs(p-want) > 1e-12 {
			t.Errorf("%d links: %v, want %v", i+1, p, want)
		}
	}
}

// The report compares with the source and with the law.
func TestReportOfFigure10(t *testing.T) {
	chosen, random := counted{Megabits: []float64{133}}, counted{Megabits: []float64{90}}
	chosen.Links[6] = 400
	random.Links = [links]int{0, 1, 31, 143, 171, 51, 3}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportFigure10(r, chosen, random, 400)
	})
	experimenttest.Has(t, text,
		"| connections of chosen ports on all 7 links | 400 of 400 | 400 of 400 | as the source |",
		"| connections of random ports on all 7 links | 2 of 400 | 3 of 400 | 7!/7^7 = 0.61 % |",
		"| random ports against the law, chi-square of 3 degrees | - | 0.0, at most 16.3 | "+
			"agrees |",
		"| goodput of chosen and random ports, Mbit/s, mean | about 700 of 700, - | "+
			"133 and 90 of 140 | what the server read, from 0.25 s after the connection on |",
		"| 5 | 0 | 171 | 171.4 |", "![fig10](fig10.svg)")
	random.Links = [links]int{0, 0, 0, 0, 0, 0, 400}
	text = experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportFigure10(r, random, random, 400)
	})
	if !strings.Contains(text, "| differs |") {
		t.Errorf("400 of 400 by chance agree with the law:\n%s", text)
	}
}

// The report of figure 11 has a row for each number of subflows.
func TestReportOfFigure11(t *testing.T) {
	var chosen, random goodputs
	for i := range chosen {
		chosen[i], random[i] = []float64{39, 39}, []float64{20, 30}
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportFigure11(r, chosen, random)
	})
	experimenttest.Has(t, text, "| two subflows by chosen ports, of both links | "+
		"200 of 200 Mbit/s | 39 of 40 Mbit/s | both links are full |",
		"| 2 | 39.0 | 25.0 | 24.9 |", "| 10 | 39.0 | 25.0 | 35.7 |", "![fig11](fig11.svg)")
}

// The report of figure 8 compares ciphers with hashing by the same program, pass by pass: a pass in
// which the machine was slow changes nothing.
func TestReportOfFigure8(t *testing.T) {
	found := rates{}
	for _, f := range forwarders() {
		found[f.name] = []float64{2e6, 1e6, 4e6}
	}
	found["XDP, skip32"] = []float64{1e6, 0.5e6, 2e6}
	found["XDP, rc5"] = []float64{2e6, 1.1e6, 3e6} // 0, +10 and -25 %
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportFigure8(r, found)
	})
	experimenttest.Has(t, text, "| kernel, addresses | 2000000 | 500 | - | - |",
		"| TC, rc5 | 2000000 | 500 | +0.0 % | +0.0 to +0.0 % |",
		"| XDP, skip32 | 1000000 | 1000 | -50.0 % | -50.0 to -50.0 % |",
		"| XDP, rc5 | 2000000 | 500 | +0.0 % | +0.0 to +10.0 % |",
		"| packets per second beside hashing, XDP, skip32 | -12.3 % | -50.0 % | at most 2 % less "+
			"is the goal for feistel |")
}
