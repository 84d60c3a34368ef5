package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Series is a line with its name in the legend.
type Series struct {
	Name   string
	Points []Point // by ascending X
	Step   bool    // level until the next point, as distributions are
	Dashed bool    // for what a source reports, beside what was measured
	Marks  bool    // a dot at each point
}

// Chart is a set of lines over common axes.
type Chart struct {
	Title      string
	X, Y       string // what the axes show, with units
	Series     []Series
	FromX, ToX float64 // the X axis; both 0: as far as the points reach
	FromY, ToY float64 // likewise
	LogX       bool    // points whose X is not above 0 are at the axis
}

// The drawing area in pixels. The legend is below.
const (
	width, height            = 720.0, 420.0
	left, right, top, bottom = 70.0, 20.0, 46.0, 56.0
	legendLine, legendColumn = 20.0, 320.0
)

// colours can be told apart by most people, on white and on black.
var colours = []string{"#4477aa", "#ee6677", "#228833", "#aa8800", "#0099bb", "#aa3377", "#777777",
	"#dd7711"}

const style = `<style>
svg{background:#fff;font:13px system-ui,sans-serif}text{fill:#222}.axis{stroke:#222;fill:none}.grid{stroke:#ddd;fill:none}
.line{fill:none;stroke-width:2}.title{font-size:16px;font-weight:600}
@media(prefers-color-scheme:dark){svg{background:#161616}text{fill:#ddd}.axis{stroke:#ddd}.grid{stroke:#333}}
</style>
`

// SVG draws the chart.
func (c Chart) SVG() []byte {
	d := &drawing{chart: c, x: axisOf(c, true), y: axisOf(c, false)}
	rows := math.Ceil(float64(len(c.Series)) / 2)
	total := height + rows*legendLine + 10
	fmt.Fprintf(&d.out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img">`+"\n", width,
		total, width, total)
	d.out.WriteString(style)
	d.text(width/2, 24, "middle", "title", c.Title)
	d.axes()
	for i, s := range c.Series {
		d.series(i, s)
	}
	d.out.WriteString("</svg>\n")
	return d.out.Bytes()
}

type drawing struct {
	chart Chart
	x, y  axis
	out   bytes.Buffer
}

// axis maps values to pixels.
type axis struct {
	low, high   float64 // values, as logarithms on a logarithmic axis
	first, last float64 // pixels
	log         bool
}

func axisOf(c Chart, horizontal bool) axis {
	low, high := c.FromY, c.ToY
	if horizontal {
		low, high = c.FromX, c.ToX
	}
	if low == 0 && high == 0 {
		low, high = extent(c, horizontal)
	}
	a := axis{low: low, high: high, first: height - bottom, last: top}
	if horizontal {
		a.first, a.last, a.log = left, width-right, c.LogX
	}
	if a.log {
		a.low, a.high = math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

// extent is as far as the points reach, and the origin where it is near.
func extent(c Chart, horizontal bool) (low, high float64) {
	logarithmic := horizontal && c.LogX
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for _, p := range s.Points {
			v := p.Y
			if horizontal {
				v = p.X
			}
			if logarithmic && v <= 0 {
				continue
			}
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high && logarithmic {
		return 1, 10
	}
	if low > high {
		return 0, 1
	}
	if low > 0 && low < high/2 && !logarithmic {
		low = 0
	}
	return low, high
}

func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	v = min(max(v, a.low), a.high)
	return a.first + (v-a.low)/(a.high-a.low)*(a.last-a.first)
}

// ticks are round values, some five to ten; on a logarithmic axis the powers of ten.
func (a axis) ticks() []float64 {
	var ticks []float64
	if a.log {
		for e := a.low; e <= a.high; e++ {
			ticks = append(ticks, math.Pow(10, e))
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(a.high-a.low)))
	for _, finer := range []float64{2, 2.5, 2} {
		if (a.high-a.low)/step < 5 {
			step /= finer
		}
	}
	for i := math.Ceil(a.low/step - 1e-9); i*step <= a.high+step*1e-9; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

func (d *drawing) axes() {
	for _, v := range d.x.ticks() {
		d.line("grid", d.x.at(v), d.y.first, d.x.at(v), d.y.last)
		d.text(d.x.at(v), d.y.first+18, "middle", "", number(v))
	}
	for _, v := range d.y.ticks() {
		d.line("grid", d.x.first, d.y.at(v), d.x.last, d.y.at(v))
		d.text(d.x.first-8, d.y.at(v)+4, "end", "", number(v))
	}
	d.line("axis", d.x.first, d.y.first, d.x.last, d.y.first)
	d.line("axis", d.x.first, d.y.first, d.x.first, d.y.last)
	d.text((d.x.first+d.x.last)/2, d.y.first+40, "middle", "", d.chart.X)
	fmt.Fprintf(&d.out, `<g transform="translate(16 %g) rotate(-90)">`, (d.y.first+d.y.last)/2)
	d.text(0, 0, "middle", "", d.chart.Y)
	d.out.WriteString("</g>\n")
}

// number writes a value without digits that do not count.
func number(v float64) string {
	if v != 0 && (math.Abs(v) >= 1e6 || math.Abs(v) < 1e-3) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6+0, 'f', -1, 64) // -0 + 0 is 0
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&d.out, `<path class="%s" d="M%.1f %.1fL%.1f %.1f"/>`+"\n", class, x1, y1, x2, y2)
}

func (d *drawing) text(x, y float64, anchor, class, text string) {
	fmt.Fprintf(&d.out, `<text x="%.1f" y="%.1f" text-anchor="%s"`, x, y, anchor)
	if class != "" {
		fmt.Fprintf(&d.out, ` class="%s"`, class)
	}
	d.out.WriteString(">")
	_ = xml.EscapeText(&d.out, []byte(text)) // a buffer takes everything
	d.out.WriteString("</text>\n")
}

func (d *drawing) series(i int, s Series) {
	colour, dash := colours[i%len(colours)], ""
	if s.Dashed {
		dash = ` stroke-dasharray="7 5"`
	}
	fmt.Fprintf(&d.out, `<path class="line" stroke="%s"%s d="`, colour, dash)
	for j, p := range s.Points {
		switch x, y := d.x.at(p.X), d.y.at(p.Y); {
		case j == 0:
			fmt.Fprintf(&d.out, "M%.1f %.1f", x, y)
		case s.Step:
			fmt.Fprintf(&d.out, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&d.out, "L%.1f %.1f", x, y)
		}
	}
	d.out.WriteString("\"/>\n")
	if s.Marks {
		for _, p := range s.Points {
			fmt.Fprintf(&d.out, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", d.x.at(p.X),
				d.y.at(p.Y), colour)
		}
	}
	x, y := left+float64(i%2)*legendColumn, height+4+float64(i/2)*legendLine
	fmt.Fprintf(&d.out, `<path class="line" stroke="%s"%s d="M%.1f %.1fh28"/>`+"\n", colour, dash,
		x, y)
	d.text(x+36, y+4, "start", "", s.Name)
}
