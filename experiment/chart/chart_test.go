package chart_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/experiment/chart"
)

func TestAtMost(t *testing.T) {
	want := []chart.Point{{X: 1, Y: 50}, {X: 2, Y: 75}, {X: 7, Y: 100}}
	if diff := cmp.Diff(want, chart.AtMost([]float64{7, 1, 2, 1})); diff != "" {
		t.Error(diff)
	}
}

func TestSVG(t *testing.T) {
	line := []chart.Point{{X: 1, Y: 0}, {X: 10, Y: 50}, {X: 100, Y: 100}}
	svg := string(chart.Chart{
		Title: "a < b", X: "x & y", Y: "%", LogX: true,
		Series: []chart.Series{{Name: "measured", Points: line, Step: true, Marks: true},
			{Name: "source", Points: line, Dashed: true}},
	}.SVG())
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	// The logarithmic axis has its middle power of ten in the middle, and the lines go there.
	for _, part := range []string{"a &lt; b", "x &amp; y", ">10<", ">100<",
		"M70.0 364.0H385.0V205.0H700.0V46.0",
		"M70.0 364.0L385.0 205.0L700.0 46.0",
		`stroke-dasharray="7 5"`, `cx="385.0" cy="205.0"`, ">measured<", ">source<"} {
		if !strings.Contains(svg, part) {
			t.Errorf("%q is not in the drawing", part)
		}
	}
	if strings.Contains(svg, ">-0<") {
		t.Error("an axis has -0")
	}
}

func TestSVGOfNothing(t *testing.T) {
	if svg := string(chart.Chart{}.SVG()); strings.Contains(svg, "NaN") || strings.Contains(svg,
		"Inf") {
		t.Errorf("numbers that are none: %s", svg)
	}
}

// A logarithmic axis has no place for 0: a point there is at its end, and a chart without points
// is drawn too.
func TestLogarithmOfNothing(t *testing.T) {
	for _, points := range [][]chart.Point{nil, {{X: 0, Y: 1}}, {{X: 0, Y: 1}, {X: 20, Y: 2}}} {
		series := []chart.Series{{Name: "s", Points: points}}
		svg := string(chart.Chart{LogX: true, Series: series}.SVG())
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") || len(svg) > 10_000 {
			t.Errorf("%v: %d octets: %.2000s", points, len(svg), svg)
		}
	}
}
