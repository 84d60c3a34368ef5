package draw

import (
	"math"
	"slices"

	"sextant/te/topology"
)

// style is how large things are, which depends on how many there are.
type style struct {
	width, height float64 // of the network, without margins
	radius        float64 // of a node
	link, path    float64 // widths of lines
	font          float64
	apart         float64 // distance of parallel links in their middle
}

func styleOf(nodes int) style {
	switch {
	case nodes <= 40:
		return style{1000, 680, 7, 1.6, 4.5, 13, 28}
	case nodes <= 120:
		return style{1200, 820, 5.5, 1.3, 4, 12, 20}
	case nodes <= 400:
		return style{1600, 1100, 4, 1, 3.5, 11, 14}
	case nodes <= 2000:
		return style{2200, 1500, 2.6, 0.7, 3.5, 11, 10}
	}
	return style{3000, 2000, 1.6, 0.4, 4, 12, 10}
}

// fit scales places into the drawing, and moves nodes apart that would cover one another.
func fit(at []vec, s style) {
	if len(at) == 0 {
		return
	}
	all := make([]topology.Node, len(at))
	for v := range all {
		all[v] = topology.Node(v)
	}
	low, high := bounds(at, all)
	size := high.minus(low)
	scale := min(s.width/max(size.x, 1e-9), s.height/max(size.y, 1e-9))
	if size.length() == 0 {
		scale = 0
	}
	for v := range at {
		at[v] = at[v].minus(between(low, high, 0.5)).times(scale)
	}
	for range 60 {
		if !separate(at, 3.2*s.radius) {
			break
		}
	}
}

// separate moves nodes that are closer than least apart, and tells whether there were any. It looks
// at nodes in the same or neighboring cells of a grid only.
func separate(at []vec, least float64) bool {
	type cell struct{ x, y int }
	cellOf := func(p vec) cell {
		return cell{int(math.Floor(p.x / least)), int(math.Floor(p.y / least))}
	}
	cells := map[cell][]int{}
	for v, p := range at {
		cells[cellOf(p)] = append(cells[cellOf(p)], v)
	}
	moved := false
	moves := make([]vec, len(at))
	for u, p := range at {
		c := cellOf(p)
		for dx := -1; dx <= 1; dx++ {
			for dy := -1; dy <= 1; dy++ {
				for _, v := range cells[cell{c.x + dx, c.y + dy}] {
					apart := p.minus(at[v])
					if short := least - apart.length(); u != v && short > least*0.01 {
						// radians; neighbors in a list go apart in all directions
						const golden = 2.399963
						side := polar(float64(u)*golden, 1)
						moves[u] = moves[u].plus(apart.direction(side).times(short * 0.5))
						moved = true
					}
				}
			}
		}
	}
	for v, move := range moves {
		if l := move.length(); l > least {
			move = move.times(least / l)
		}
		at[v] = at[v].plus(move)
	}
	return moved
}

// box is a rectangle that a label fills.
type box struct{ low, high vec }

func (b box) overlaps(c box) bool {
	return b.low.x < c.high.x && c.low.x < b.high.x && b.low.y < c.high.y && c.low.y < b.high.y
}

// cutBy tells whether the line from p to q runs through the box (Liang and Barsky 1984).
func (b box) cutBy(p, q vec) bool {
	d := q.minus(p)
	first, last := 0.0, 1.0 // the shares of the line between which it is inside
	for _, side := range [4][2]float64{{-d.x, p.x - b.low.x}, {d.x, b.high.x - p.x},
		{-d.y, p.y - b.low.y}, {d.y, b.high.y - p.y}} {
		speed, room := side[0], side[1]
		switch {
		case speed == 0 && room < 0:
			return false
		case speed < 0:
			first = max(first, room/speed)
		case speed > 0:
			last = min(last, room/speed)
		}
	}
	return first < last
}

// grid finds boxes that overlap.
type grid struct {
	size  float64
	cells map[[2]int][]box
}

func (g *grid) each(b box, visit func(key [2]int)) {
	for x := int(math.Floor(b.low.x / g.size)); x <= int(math.Floor(b.high.x/g.size)); x++ {
		for y := int(math.Floor(b.low.y / g.size)); y <= int(math.Floor(b.high.y/g.size)); y++ {
			visit([2]int{x, y})
		}
	}
}

func (g *grid) add(b box) { g.each(b, func(key [2]int) { g.cells[key] = append(g.cells[key], b) }) }

func (g *grid) free(b box) bool {
	free := true
	g.each(b, func(key [2]int) { free = free && !slices.ContainsFunc(g.cells[key], b.overlaps) })
	return free
}
