package edgecoloring

import "testing"

// plainShortest walks each pair of colors by itself on plain maps and returns the least number of
// edges of a path whose exchange makes one color free at both ends of a new edge: none if there is
// such a color.
func plainShortest(c *numbered, edges map[Edge]plainEdge, u, v int) int {
	type corner struct{ side, vertex, color int }
	other := map[corner]int{} // the vertex at the other end
	for e, ends := range edges {
		color := c.Color(e)
		other[corner{0, ends.left, color}] = ends.right
		other[corner{1, ends.right, color}] = ends.left
	}
	length := func(side, vertex, leave, enter int) int {
		n := 0
		for {
			next, ok := other[corner{side, vertex, leave}]
			if !ok {
				return n
			}
			n, side, vertex, leave, enter = n+1, 1-side, next, enter, leave
		}
	}
	least := len(edges) + 1
	for a := range c.colors {
		if _, used := other[corner{0, u, a}]; used {
			continue
		}
		for b := range c.colors {
			if _, used := other[corner{1, v, b}]; !used {
				least = min(least, length(0, u, b, a), length(1, v, a, b))
			}
		}
	}
	return least
}

// In graphs that are all but full, an edge changes no more others than the shortest path that two
// colors have, as long as that is short, and fewer in all where it is long.
func TestFewEdgesMove(t *testing.T) {
	const vertices, colors, gaps = 150, 6, 8
	rng := newRand(3)
	c, err := newNumbered(vertices, vertices, colors)
	if err != nil {
		t.Fatal(err)
	}
	edges := map[Edge]plainEdge{}
	var order []Edge
	for range colors {
		for left, right := range rng.Perm(vertices) {
			e := c.Add(left, right)
			edges[e] = plainEdge{left, right}
			order = append(order, e)
		}
	}
	for range gaps {
		last := len(order) - 1
		i := rng.IntN(last)
		c.Remove(order[i])
		delete(edges, order[i])
		order[i], order = order[last], order[:last]
	}
	var long, moved, shortest int
	for range 400 {
		i, j := rng.IntN(len(order)), rng.IntN(len(order)-1)
		if j >= i {
			j++
		}
		x, y := edges[order[i]], edges[order[j]]
		c.Remove(order[i])
		c.Remove(order[j])
		delete(edges, order[i])
		delete(edges, order[j])
		for _, one := range []struct {
			at int
			plainEdge
		}{{i, plainEdge{x.left, y.right}}, {j, plainEdge{y.left, x.right}}} {
			least := plainShortest(c, edges, one.left, one.right)
			order[one.at] = c.Add(one.left, one.right)
			edges[order[one.at]] = one.plainEdge
			if n := len(c.Moved()); least > thirdMin {
				long, moved, shortest = long+1, moved+n, shortest+least
			} else if n > least {
				t.Fatalf("%d edges moved, a path of two colors has %d", n, least)
			}
			checkColors(t, c, edges, func(int, int) int { return 1 })
		}
	}
	t.Logf("%d long paths: %d moved, those of two colors have %d", long, moved, shortest)
	if long == 0 || moved >= shortest {
		t.Errorf("%d long paths, %d edges moved, the shortest of two colors have %d", long, moved,
			shortest)
	}
}

// A path is followed to its end, however long: an edge joins the ends of two paths, of which one
// lacks the first color and the other the second.
func TestLongPath(t *testing.T) {
	const length = 20_000 // vertices of a path on a side
	c, err := newNumbered(2*length, 2*length, 2)
	if err != nil {
		t.Fatal(err)
	}
	edges := map[Edge]plainEdge{}
	add := func(left, right int) { edges[c.Add(left, right)] = plainEdge{left, right} }
	for v := range length - 1 {
		add(v, v) // color 0
		add(v+1, v)
		add(length+v, length+v) // color 0
		add(length+v, length+v+1)
	}
	add(0, 2*length-1)
	if n := len(c.Moved()); n != 2*length-2 {
		t.Errorf("%d edges moved, each path has %d", n, 2*length-2)
	}
	checkColors(t, c, edges, func(int, int) int { return 1 })
}
