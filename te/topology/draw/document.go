package draw

import (
	"bytes"
	"fmt"
	"strings"
)

// Colours of paths, which people with any colour vision can tell apart by tone, and patterns of
// dashes besides. The first of a pair is for a light ground, the second for a dark one.
var palette = [colours]struct{ light, dark, dash string }{
	{"#0066b2", "#4fb3ff", ""},
	{"#d55e00", "#ff9a4d", ""},
	{"#00845f", "#2fd6a5", ""},
	{"#b0307f", "#f08cc8", ""},
	{"#8a6d00", "#f0d040", "9 3"},
	{"#5b4bb5", "#b0a4ff", "9 3"},
	{"#5a5a5a", "#d0d0d0", "9 3"},
	{"#a02020", "#ff7d7d", "9 3"},
}

const colours = 8

// Space around the network.
const margin = 24

// legend adds the title, and a line for each path, above the network.
func (c *canvas) legend() {
	title := c.o.Title
	if title == "" {
		title = fmt.Sprintf("%s: %d nodes, %d edges", c.g.Name(), c.g.Nodes(), c.g.Edges())
	}
	size := c.headSize()
	rows := float64(len(c.o.Paths))
	left, y := c.low.x, c.low.y-size*(rows*1.5+1)
	c.see(vec{left, y - 1.5*size}, vec{left + 0.6*1.3*size*float64(len(title)), y})
	fmt.Fprintf(&c.body, "<g class=\"legend\">\n<text class=\"title\" x=\"%.1f\" "+
		"y=\"%.1f\">%s</text>\n", left, y, text(title))
	for i, p := range c.o.Paths {
		y += size * 1.5
		fmt.Fprintf(&c.body, "<path class=\"p%d\" d=\"M%.1f,%.1f h%.1f\"/>\n", i%colours, left,
			y-size*0.35, 3*size)
		fmt.Fprintf(&c.body, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", left+3.5*size, y,
			text(p.Label))
		c.see(vec{left + 3.5*size + 0.6*size*float64(len(p.Label)), y})
	}
	c.body.WriteString("</g>\n")
}

// headSize is the size of the legend's font, which grows with the drawing.
func (c *canvas) headSize() float64 { return max(15, (c.high.x-c.low.x)/75) }

// document puts the drawing into a file that needs nothing else.
func (c *canvas) document() []byte {
	low, high := c.low.minus(vec{margin, margin}), c.high.plus(vec{margin, margin})
	size := high.minus(low)
	var out bytes.Buffer
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"%.1f %.1f %.1f %.1f\" "+
		"width=\"%.0f\" height=\"%.0f\">\n",
		low.x, low.y, size.x, size.y, size.x, size.y)
	fmt.Fprintf(&out, "<title>%s</title>\n", text(c.g.Name()))
	c.sheet(&out)
	fmt.Fprintf(&out, "<rect class=\"ground\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "+
		"height=\"%.1f\"/>\n", low.x, low.y, size.x, size.y)
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// sheet writes the style sheet: first what is the same in light and dark, then both sets of
// colours.
func (c *canvas) sheet(out *bytes.Buffer) {
	s := c.style
	fmt.Fprintf(out, "<style>\ntext { font: %.1fpx system-ui, \"Segoe UI\", Helvetica, Arial, "+
		"sans-serif; paint-order: stroke; "+
		"stroke-width: %.1fpx; stroke-linejoin: round }\n", s.font, s.font/4)
	fmt.Fprintf(out, ".links path { fill: none; stroke-width: %.1f }\n", s.link)
	fmt.Fprintf(out, ".paths path { fill: none; stroke-width: %.1f; stroke-linecap: round }\n",
		s.path)
	fmt.Fprintf(out, ".legend path { fill: none; stroke-width: %.1f }\n", s.path*1.3)
	fmt.Fprintf(out, ".legend text { font-size: %.1fpx }\n.legend .title { font-size: %.1fpx; "+
		"font-weight: 600 }\n",
		c.headSize(), c.headSize()*1.3)
	fmt.Fprintf(out, ".leader { fill: none; stroke-width: %.1f }\n", s.link)
	fmt.Fprintf(out, ".labels .edge { font-size: %.1fpx }\n.labels .on { font-weight: 600 }\n",
		s.font*0.85)
	for i, p := range palette {
		if p.dash != "" {
			fmt.Fprintf(out, "path.p%d, .p%d path { stroke-dasharray: %s }\n", i, i, p.dash)
		}
	}
	out.WriteString(theme("#ffffff", "#1c2430", "#8e99a8", "#44505f", false))
	fmt.Fprintf(out, "@media (prefers-color-scheme: dark) {\n%s}\n</style>\n",
		theme("#10151c", "#e8edf3", "#667384", "#b9c4d0", true))
}

// theme is the part of a style sheet that says colours.
func theme(ground, ink, link, node string, dark bool) string {
	var out strings.Builder
	fmt.Fprintf(&out, ".ground { fill: %s }\ntext { fill: %s; stroke: %s }\n", ground, ink, ground)
	fmt.Fprintf(&out, ".links path { stroke: %s }\n.way { fill: %s }\n.leader { stroke: %s }\n",
		link, link, node)
	fmt.Fprintf(&out, ".nodes circle { fill: %s; stroke: %s }\n.labels .edge { fill: %s }\n", node,
		ground, node)
	for i, p := range palette {
		colour := p.light
		if dark {
			colour = p.dark
		}
		fmt.Fprintf(&out, "path.p%d, .p%d path { stroke: %s }\n.p%d polygon, .nodes circle.p%d { "+
			"fill: %s }\n", i, i, colour, i, i, colour)
	}
	return out.String()
}
