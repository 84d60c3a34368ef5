package generate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"sextant/te/topology"
)

// measure is what is known of a network without looking at each link.
type measure struct {
	nodes, links int
	degrees      map[string]int // by the letters that the node's name begins with
	diameter     int            // in hops; -1 if the network is not connected
}

func measureOf(t *testing.T, g *topology.Graph) measure {
	t.Helper()
	m := measure{nodes: g.Nodes(), degrees: map[string]int{}}
	for e, r := range g.Links() {
		m.links++
		if r == topology.NoEdge || g.Weight(e) != g.Weight(r) || g.Delay(e) != g.Delay(r) ||
			g.Delay(e) == 0 {
			t.Errorf("%s: link %d has one direction, two opinions, or no delay", g.Name(), e)
		}
	}
	for v := range topology.Node(g.Nodes()) {
		kind := strings.TrimRight(g.Node(v).Name, "0123456789-")
		degree := len(g.Out(v))
		if known, ok := m.degrees[kind]; ok && known != degree {
			t.Errorf("%s: %s has degree %d, others of its kind have %d", g.Name(), g.Node(v).Name,
				degree, known)
		}
		m.degrees[kind] = degree
		m.diameter = max(m.diameter, eccentricity(g, v))
	}
	return m
}

// eccentricity is the number of hops to the farthest node, by breadth-first search.
func eccentricity(g *topology.Graph, from topology.Node) int {
	hops := make([]int, g.Nodes())
	for v := range hops {
		hops[v] = -1
	}
	hops[from] = 0
	queue := []topology.Node{from}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		for _, e := range g.Out(u) {
			if v := g.To(e); hops[v] < 0 {
				hops[v] = hops[u] + 1
				queue = append(queue, v)
			}
		}
	}
	if slices.Contains(hops, -1) {
		return math.MaxInt
	}
	return slices.Max(hops)
}

// What the papers say of their networks.
func TestDataCenters(t *testing.T) {
	for _, c := range []struct {
		make func() (*topology.Graph, error)
		want measure
	}{
		{func() (*topology.Graph, error) { return FatTree(2) },
			measure{1 + 2 + 2 + 2, 2 + 2 + 2, map[string]int{"core": 2, "agg": 2, "edge": 2,
				"host": 1}, 6}},
		{func() (*topology.Graph, error) { return FatTree(8) },
			measure{16 + 32 + 32 + 128, 128 + 128 + 128,
				map[string]int{"core": 8, "agg": 8, "edge": 8, "host": 1}, 6}},
		{func() (*topology.Graph, error) { return VL2(12, 10, 20) },
			measure{6 + 10 + 30 + 600, 60 + 60 + 600,
				map[string]int{"int": 10, "agg": 12, "tor": 22, "server": 1}, 6}},
		{func() (*topology.Graph, error) { return VL2(4, 6, 0) },
			measure{2 + 6 + 6, 12 + 12, map[string]int{"int": 6, "agg": 4, "tor": 2}, 4}},
		{func() (*topology.Graph, error) { return BCube(4, 1) },
			measure{16 + 8, 32, map[string]int{"server": 2, "switch": 4}, 4}},
		{func() (*topology.Graph, error) { return BCube(5, 2) },
			measure{125 + 75, 375, map[string]int{"server": 3, "switch": 5}, 6}},
		{func() (*topology.Graph, error) { return BCube(3, 0) },
			measure{4, 3, map[string]int{"server": 1, "switch": 3}, 2}},
		{func() (*topology.Graph, error) { return SpineLeaf(4, 6, 3) },
			measure{4 + 6 + 18, 24 + 18, map[string]int{"spine": 6, "leaf": 7, "host": 1}, 4}},
		{func() (*topology.Graph, error) { return SpineLeaf(2, 1, 0) },
			measure{3, 2, map[string]int{"spine": 1, "leaf": 2}, 2}},
	} {
		g, err := c.make()
		if err != nil {
			t.Error(err)
			continue
		}
		got := measureOf(t, g)
		if got.nodes != c.want.nodes || got.links != c.want.links ||
			got.diameter != c.want.diameter || !maps.Equal(got.degrees, c.want.degrees) {
			t.Errorf("%s: %+v, want %+v", g.Name(), got, c.want)
		}
	}
}

// A switch of a BCube joins servers that differ in one digit.
func TestBCubeDigits(t *testing.T) {
	const n, k = 3, 2
	g, err := BCube(n, k)
	if err != nil {
		t.Fatal(err)
	}
	for v := range topology.Node(g.Nodes()) {
		var level, number int
		if _, err := fmt.Sscanf(g.Node(v).Name, "switch%d-%d", &level, &number); err != nil {
			continue
		}
		digits := map[int]bool{}
		rest := map[int]bool{}
		stride := int(math.Pow(n, float64(level)))
		for _, e := range g.Out(v) {
			server := int(g.To(e)) // servers come first
			digit := server / stride % n
			digits[digit] = true
			rest[server-digit*stride] = true
		}
		if len(digits) != n || len(rest) != 1 {
			t.Errorf("%s joins digits %v of servers %v", g.Node(v).Name, digits, rest)
		}
	}
}

func TestGrid(t *testing.T) {
	g, err := Grid(5, 3)
	if err != nil {
		t.Fatal(err)
	}
	degrees := map[int]int{}
	for v := range topology.Node(g.Nodes()) {
		degrees[len(g.Out(v))]++
	}
	if want := map[int]int{2: 4, 3: 8, 4: 3}; !maps.Equal(degrees, want) ||
		g.Edges() != 2*(4*3+5*2) || eccentricity(g, 0) != 6 {
		t.Errorf("degrees %v, %d edges, %d hops from corner to corner", degrees, g.Edges(),
			eccentricity(g, 0))
	}
}

func TestISP(t *testing.T) {
	for _, routers := range []int{16, 100, 1000, 3000} {
		for seed := range uint64(3) {
			g, err := ISP(routers, seed)
			if err != nil {
				t.Fatal(err)
			}
			if g.Nodes() != routers || eccentricity(g, 0) == math.MaxInt {
				t.Errorf("%s: %d routers, the farthest of them %d hops away", g.Name(), g.Nodes(),
					eccentricity(g, 0))
			}
			homes := map[int]int{}
			for v := range topology.Node(g.Nodes()) {
				core := strings.HasPrefix(g.Node(v).Name, "core")
				up := 0
				for _, e := range g.Out(v) {
					if g.To(e) < v {
						up++
					}
				}
				if !core {
					homes[up]++
				}
			}
			others := float64(homes[1] + homes[2])
			if single := float64(homes[1]) / others; others != float64(routers-cores(g)) ||
				routers >= 1000 && math.Abs(single-0.1) > 0.05 {
				t.Errorf("%s: routers have %v links up, want 1 for a tenth and 2 for the rest",
					g.Name(), homes)
			}
		}
	}
}

func cores(g *topology.Graph) int {
	count := 0
	for v := range topology.Node(g.Nodes()) {
		if strings.HasPrefix(g.Node(v).Name, "core") {
			count++
		}
	}
	return count
}

// The data set's ISP of 1000 routers was made by the same rules, and has about as many links.
func TestISPResemblesTheDataSet(t *testing.T) {
	g, err := ISP(1000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if published := 3834.0; math.Abs(float64(g.Edges())-published) > 0.05*published {
		t.Errorf("%d edges, the data set's has %v", g.Edges(), published)
	}
}

func TestGabriel(t *testing.T) {
	// The third place is within the circle of the first two, the fourth is not.
	places := []spot{{0, 0}, {10, 0}, {5, 1}, {5, 7}}
	want := [][2]int{{0, 2}, {1, 2}, {2, 3}}
	if got := gabriel(places); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWaxman(t *testing.T) {
	links := map[float64]int{}
	for _, beta := range []float64{0.01, 0.2, 0.8} {
		for seed := range uint64(5) {
			g, err := Waxman(120, 0.2, beta, seed)
			if err != nil {
				t.Fatal(err)
			}
			if g.Nodes() != 120 || eccentricity(g, 0) == math.MaxInt {
				t.Errorf("%s: %d nodes, or not connected", g.Name(), g.Nodes())
			}
			links[beta] += g.Edges() / 2
		}
	}
	if !(links[0.01] >= 5*119 && links[0.2] > links[0.01] && links[0.8] > 3*links[0.2]) {
		t.Errorf("links by beta: %v", links)
	}
}

// Nothing is missing if all are linked, and a spanning tree is if none is.
func TestMissing(t *testing.T) {
	places := []spot{{0, 0}, {1, 0}, {1, 0}, {9, 0}}
	if got, want := missing(places, make([][]int, 4)),
		[][2]int{{0, 1}, {1, 2}, {1, 3}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := missing(places, [][]int{{3}, {2}, {1}, {0}}); !slices.Equal(got, [][2]int{{0, 1}}) {
		t.Errorf("got %v, want the shortest link between the parts", got)
	}
}

func TestSameSeedSameGraph(t *testing.T) {
	isp := func(seed uint64) (*topology.Graph, error) { return ISP(200, seed) }
	waxman := func(seed uint64) (*topology.Graph, error) { return Waxman(60, 0.2, 0.3, seed) }
	for _, generate := range []func(uint64) (*topology.Graph, error){isp, waxman} {
		if a, b := text(t, generate, 7), text(t, generate, 7); a != b {
			t.Error("the same seed gives two graphs")
		}
		if a, b := text(t, generate, 7), text(t, generate, 8); a == b {
			t.Error("two seeds give the same graph")
		}
	}
}

func text(t *testing.T, generate func(uint64) (*topology.Graph, error), seed uint64) string {
	t.Helper()
	g, err := generate(seed)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for e := range topology.Edge(g.Edges()) {
		fmt.Fprintln(&out, g.Edge(e))
	}
	return out.String()
}

func TestRefused(t *testing.T) {
	for name, generate := range map[string]func() (*topology.Graph, error){
		"odd fat tree":    func() (*topology.Graph, error) { return FatTree(5) },
		"no fat tree":     func() (*topology.Graph, error) { return FatTree(0) },
		"huge fat tree":   func() (*topology.Graph, error) { return FatTree(1000) },
		"odd VL2":         func() (*topology.Graph, error) { return VL2(3, 4, 1) },
		"huge VL2":        func() (*topology.Graph, error) { return VL2(1000, 1000, 1000) },
		"less VL2":        func() (*topology.Graph, error) { return VL2(4, 4, -1) },
		"BCube of one":    func() (*topology.Graph, error) { return BCube(1, 1) },
		"huge BCube":      func() (*topology.Graph, error) { return BCube(10, 10) },
		"no spines":       func() (*topology.Graph, error) { return SpineLeaf(0, 1, 1) },
		"huge spine-leaf": func() (*topology.Graph, error) { return SpineLeaf(1<<17, 1<<17, 1) },
		"flat grid":       func() (*topology.Graph, error) { return Grid(3, 0) },
		"huge grid":       func() (*topology.Graph, error) { return Grid(1<<18, 2) },
		"tiny ISP":        func() (*topology.Graph, error) { return ISP(3, 1) },
		"Waxman alpha":    func() (*topology.Graph, error) { return Waxman(10, 0, 0.5, 1) },
		"Waxman beta": func() (*topology.Graph, error) {
			return Waxman(10, 0.5, math.NaN(),
				1)
		},
		"Waxman of one": func() (*topology.Graph, error) { return Waxman(1, 0.5, 0.5, 1) },
	} {
		if g, err := generate(); err == nil || !strings.Contains(err.Error(), "choose") {
			t.Errorf("%s: %v, %v; want an error that says what to choose", name, g != nil, err)
		}
	}
}
