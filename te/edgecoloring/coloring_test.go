package edgecoloring

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// numbered is a coloring that gives edges their numbers. Those of removed edges are used again.
type numbered struct {
	*Coloring
	unused []Edge
}

func newNumbered(left, right, colors int) (*numbered, error) {
	if err := check(left, right, colors); err != nil {
		return nil, err
	}
	return &numbered{Coloring: newOf(new([]record), 0, left, right, colors)}, nil
}

func (c *numbered) Add(left, right int) Edge {
	e := Edge(len(*c.edges))
	if n := len(c.unused); n > 0 {
		e, c.unused = c.unused[n-1], c.unused[:n-1]
	} else {
		*c.edges = append(*c.edges, record{})
	}
	c.add(e, left, right)
	return e
}

func (c *numbered) Remove(e Edge) {
	c.remove(e)
	c.unused = append(c.unused, e)
}

func (c *numbered) Color(e Edge) int { return int((*c.edges)[e].color[0]) }

// A plain multigraph, kept beside a Coloring.
type plainEdge struct{ left, right int }

// checkColors counts from scratch how often each vertex has each color, and wants no more than its
// degree makes necessary.
func checkColors(t *testing.T, c *numbered, edges map[Edge]plainEdge,
	most func(side, vertex int) int) {
	t.Helper()
	type slot struct{ side, vertex, color int }
	used := map[slot]int{}
	for e, ends := range edges {
		color := c.Color(e)
		if color < 0 || color >= c.colors {
			t.Fatalf("edge %d has color %d of %d", e, color, c.colors)
		}
		used[slot{0, ends.left, color}]++
		used[slot{1, ends.right, color}]++
	}
	for s, n := range used {
		if bound := most(s.side, s.vertex); n > bound {
			t.Fatalf("side %d, vertex %d has color %d on %d edges, more than %d", s.side, s.vertex,
				s.color, n, bound)
		}
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }

// Edges come and go in any order; at each step the colors are right, only the edges in Moved
// changed theirs, and removals change none.
func TestChanges(t *testing.T) {
	for seed := range uint64(60) {
		rng := newRand(seed)
		left, right, colors := 1+rng.IntN(9), 1+rng.IntN(9), 1+rng.IntN(8)
		c, err := newNumbered(left, right, colors)
		if err != nil {
			t.Fatal(err)
		}
		edges, was := map[Edge]plainEdge{}, map[Edge]int{}
		degree, peak := map[[2]int]int{}, map[[2]int]int{}
		for range 300 {
			changed := Edge(-1)
			if rng.IntN(5) < 3 || len(edges) == 0 {
				ends := plainEdge{rng.IntN(left), rng.IntN(right)}
				changed = c.Add(ends.left, ends.right)
				if _, taken := edges[changed]; taken {
					t.Fatalf("edge %d was there", changed)
				}
				edges[changed] = ends
				for i, v := range []int{ends.left, ends.right} {
					degree[[2]int{i, v}]++
					peak[[2]int{i, v}] = max(peak[[2]int{i, v}], degree[[2]int{i, v}])
				}
			} else {
				all := make([]Edge, 0, len(edges))
				for e := range edges {
					all = append(all, e)
				}
				slices.Sort(all)
				gone := all[rng.IntN(len(all))]
				degree[[2]int{0, edges[gone].left}]--
				degree[[2]int{1, edges[gone].right}]--
				c.Remove(gone)
				delete(edges, gone)
				delete(was, gone)
				if len(c.Moved()) > 0 {
					t.Fatal("a removal moves edges")
				}
			}
			for e, color := range was {
				if moved := slices.Contains(c.Moved(), e); moved == (c.Color(e) == color) {
					t.Fatalf("edge %d had color %d, has %d, moved %v", e, color, c.Color(e), moved)
				}
			}
			for e := range edges {
				was[e] = c.Color(e)
			}
			checkColors(t, c, edges, func(side, v int) int {
				return ceil(peak[[2]int{side, v}],
					colors)
			})
		}
	}
}

// A coloring goes on when its edges, or the places of its vertices, get to be more than 16 bits
// count: those that were there keep their colors, and come and go as before.
func TestMoreThanSmallNumbers(t *testing.T) {
	for name, size := range map[string]struct{ vertices, edges, colors int }{
		"edges": {3000, 1<<16 + 500, 22}, "places": {1<<15 - 10, 1 << 10, 20},
		"vertices": {1 << 17, 1000, 2},
	} {
		rng := newRand(7)
		c, err := newNumbered(size.vertices, size.vertices, size.colors)
		if err != nil {
			t.Fatal(err)
		}
		edges, degree := map[Edge]plainEdge{}, map[[2]int]int{}
		add := func() {
			ends := plainEdge{rng.IntN(size.vertices), rng.IntN(size.vertices)}
			if name == "places" {
				ends = plainEdge{rng.IntN(2), rng.IntN(2)} // several layers
			}
			edges[c.Add(ends.left, ends.right)] = ends
			degree[[2]int{0, ends.left}]++
			degree[[2]int{1, ends.right}]++
		}
		for range size.edges {
			add()
		}
		for range 1000 {
			for e := range edges {
				c.Remove(e)
				delete(edges, e)
				break
			}
			add()
		}
		if c.small != nil {
			t.Errorf("%s: small numbers are enough", name)
		}
		checkColors(t, c, edges, func(side, v int) int {
			return ceil(degree[[2]int{side, v}], size.colors)
		})
	}
}

// Whatever the order in which edges come, the greatest number of edges of one color at a vertex is
// the least that any assignment of colors has, found by trying all.
func TestAgainstBruteForce(t *testing.T) {
	for seed := range uint64(300) {
		rng := newRand(seed)
		colors := 1 + rng.IntN(3)
		c, err := newNumbered(3, 3, colors)
		if err != nil {
			t.Fatal(err)
		}
		var plain []plainEdge
		var own []Edge
		for range 1 + rng.IntN(7) {
			ends := plainEdge{rng.IntN(3), rng.IntN(3)}
			e := c.Add(ends.left, ends.right)
			plain, own = append(plain, ends), append(own, e)
		}
		ours := make([]int, len(own))
		for i, e := range own {
			ours[i] = c.Color(e)
		}
		if got, want := worst(plain, ours), leastWorst(plain, make([]int, 0, len(plain)),
			colors); got != want {
			t.Fatalf("edges %v with %d colors: %v has %d of one color, the least is %d", plain,
				colors, ours, got, want)
		}
	}
}

// worst is the greatest number of edges of one color at one vertex.
func worst(edges []plainEdge, colors []int) int {
	var used [2][3][3]int
	most := 0
	for i, e := range edges {
		used[0][e.left][colors[i]]++
		used[1][e.right][colors[i]]++
		most = max(most, used[0][e.left][colors[i]], used[1][e.right][colors[i]])
	}
	return most
}

func leastWorst(edges []plainEdge, chosen []int, colors int) int {
	if len(chosen) == len(edges) {
		return worst(edges, chosen)
	}
	least := len(edges)
	for color := range colors {
		least = min(least, leastWorst(edges, append(chosen, color), colors))
	}
	return least
}

func TestRefusals(t *testing.T) {
	for _, bad := range [][3]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 65}} {
		if _, err := newNumbered(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("newNumbered%v has no error", bad)
		}
	}
	for _, k := range []int{0, 1, 3, -2, 130} {
		if _, err := NewFatTree(k); err == nil {
			t.Errorf("NewFatTree(%d) has no error", k)
		}
	}
	tree, err := NewFatTree(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][2]int{{-1, 0}, {0, 2}} {
		if _, err := tree.Add(Ends{bad[0], bad[1]}); err == nil || !strings.Contains(err.Error(),
			"0 to 1") {
			t.Errorf("FatTree.Add%v: %v", bad, err)
		}
	}
}

// FuzzColoring lets bytes say which edges come and go.
func FuzzColoring(f *testing.F) {
	f.Add(uint8(2), []byte{0, 1, 2, 3, 0x80, 4, 5})
	f.Fuzz(func(t *testing.T, colors uint8, steps []byte) {
		c, err := newNumbered(8, 8, int(colors))
		if err != nil {
			return
		}
		edges := map[Edge]plainEdge{}
		var order []Edge
		for _, step := range steps {
			if step&0x80 != 0 && len(order) > 0 {
				at := int(step&0x7f) % len(order)
				c.Remove(order[at])
				delete(edges, order[at])
				order = slices.Delete(order, at, at+1)
				continue
			}
			ends := plainEdge{int(step & 7), int(step >> 3 & 7)}
			e := c.Add(ends.left, ends.right)
			edges[e] = ends
			order = append(order, e)
		}
		most := ceil(len(steps), int(colors))
		checkColors(t, c, edges, func(int, int) int { return most })
	})
}
