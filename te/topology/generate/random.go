package generate

import (
	"fmt"
	"math"
	"math/rand/v2"

	"sextant/te/topology"
)

// The country of the random networks, in km, and the delay of fibre.
const (
	countryWidth  = 4000
	countryHeight = 2500
	microsPerKm   = 5
)

// spot is a place in the country.
type spot struct{ x, y float64 }

func (a spot) distance(b spot) float64 { return math.Hypot(a.x-b.x, a.y-b.y) }

func scatter(r *rand.Rand, count int) []spot {
	spots := make([]spot, count)
	for i := range spots {
		spots[i] = spot{math.Round(r.Float64()*countryWidth*10) / 10,
			math.Round(r.Float64()*countryHeight*10) / 10}
	}
	return spots
}

// The numbers of ISP. Delays are microseconds; a jitter is what a delay has at most besides.
const (
	ispLeast, ispMost = 16, 100_000 // routers
	cityShare         = 0.5         // of the square root of the number of routers
	corePoPs          = 2           // core routers a city
	// share of the other routers that is linked to both cores of their city
	dualHomed = 0.7
	// up to this share: to one core and another router of the city; the rest to one core
	withNeighbor = 0.9
	kmPerWeight  = 10.0

	coreMicros, coreJitter     = 10, 20
	cityMicros, cityJitter     = 10, 50 // and the fibre
	accessMicros, accessJitter = 10, 500

	cityWeight                = 10 // and one more for each kmPerWeight
	accessWeight, accessSteps = 50, 16
)

// ISP makes a provider's network of so many routers: √routers/2 cities spread over a country,
// linked as a Gabriel graph (Gabriel and Sokal 1969: two cities are linked if no third lies in the
// circle that has them at its ends); two core routers a city, linked to each other and doubled
// towards neighboring cities; of the other routers, seven tenths are linked to both cores of their
// city, two tenths to one core and one other router, the rest to one core.
func ISP(routers int, seed uint64) (*topology.Graph, error) {
	if err := between("provider's network", "the number of routers", routers, ispLeast,
		ispMost); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, uint64(routers)))
	cities := scatter(r, max(2, int(math.Sqrt(float64(routers))*cityShare)))
	i := &isp{plan: newPlan(fmt.Sprintf("isp-%d-%d", routers, seed)), r: r,
		members: make([][]topology.Node, len(cities))}
	for c, at := range cities {
		a := i.node(at.x, at.y, "core%da", c)
		b := i.node(at.x+1, at.y+1, "core%db", c)
		i.link(a, b, unitWeight, coreMicros+r.Int64N(coreJitter))
		i.members[c] = []topology.Node{a, b}
	}
	for _, pair := range gabriel(cities) {
		km := cities[pair[0]].distance(cities[pair[1]])
		weight := cityWeight + uint32(km/kmPerWeight)
		for side := range corePoPs {
			i.link(i.members[pair[0]][side], i.members[pair[1]][side], weight,
				cityMicros+int64(microsPerKm*km)+r.Int64N(cityJitter))
		}
	}
	for n := range routers - corePoPs*len(cities) {
		i.access(n, cities)
	}
	return i.build()
}

type isp struct {
	*plan
	r       *rand.Rand
	members [][]topology.Node // of each city, core routers first
}

// access adds a router to a random city.
func (i *isp) access(n int, cities []spot) {
	const radius = 40 // km
	c := i.r.IntN(len(cities))
	members := i.members[c]
	v := i.node(cities[c].x+radius*(2*i.r.Float64()-1), cities[c].y+radius*(2*i.r.Float64()-1),
		"r%d", n)
	first := i.r.IntN(corePoPs)
	i.accessLink(v, members[first])
	switch share := i.r.Float64(); {
	case share < dualHomed:
		i.accessLink(v, members[1-first])
	case share < withNeighbor:
		other := members[i.r.IntN(len(members))]
		if other == members[first] {
			other = members[1-first]
		}
		i.accessLink(v, other)
	}
	i.members[c] = append(members, v)
}

func (i *isp) accessLink(u, v topology.Node) {
	i.link(u, v, accessWeight+10*i.r.Uint32N(accessSteps), accessMicros+i.r.Int64N(accessJitter))
}

// gabriel lists the edges of the Gabriel graph of some places, which is connected.
func gabriel(places []spot) [][2]int {
	var edges [][2]int
	for u := range places {
		for v := u + 1; v < len(places); v++ {
			if !occupied(places, u, v) {
				edges = append(edges, [2]int{u, v})
			}
		}
	}
	return edges
}

// occupied tells whether a third place lies within the circle that has u and v at opposite ends.
func occupied(places []spot, u, v int) bool {
	a, b := places[u], places[v]
	for w, c := range places {
		// The angle at c is more than a right one.
		if w != u && w != v && (a.x-c.x)*(b.x-c.x)+(a.y-c.y)*(b.y-c.y) < 0 {
			return true
		}
	}
	return false
}

// Waxman makes a random network of nodes spread over a country (Waxman, "Routing of Multipoint
// Connections", JSAC 1988): two nodes at distance d are linked with probability
// beta·exp(-d/(alpha·L)), where L is the largest distance. Weights and delays follow the distance.
// Parts that stay apart are joined by the shortest links that do so, so that the network is
// connected.
func Waxman(nodes int, alpha, beta float64, seed uint64) (*topology.Graph, error) {
	const kind, most = "Waxman network", 10_000
	if err := between(kind, "the number of nodes", nodes, 2, most); err != nil {
		return nil, err
	}
	if err := firstError(share(kind, "alpha", alpha), share(kind, "beta", beta)); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, uint64(nodes)))
	places := scatter(r, nodes)
	p := newPlan(fmt.Sprintf("waxman-%d-%g-%g-%d", nodes, alpha, beta, seed))
	for i, at := range places {
		p.node(at.x, at.y, "r%d", i)
	}
	scale := alpha * longest(places)
	neighbors := make([][]int, nodes)
	for u := range places {
		for v := u + 1; v < len(places); v++ {
			if r.Float64() < beta*math.Exp(-places[u].distance(places[v])/scale) {
				neighbors[u] = append(neighbors[u], v)
				neighbors[v] = append(neighbors[v], u)
				p.span(places, u, v)
			}
		}
	}
	for _, pair := range missing(places, neighbors) {
		p.span(places, pair[0], pair[1])
	}
	return p.build()
}

func share(kind, what string, of float64) error {
	if !(of > 0 && of <= 1) {
		return fmt.Errorf("generate a %s: %s is %g; choose a number above 0 and up to 1", kind,
			what, of)
	}
	return nil
}

// span links two places by a weight and a delay that follow their distance.
func (p *plan) span(places []spot, u, v int) {
	km := places[u].distance(places[v])
	p.link(topology.Node(u), topology.Node(v), uint32(max(1, km/kmPerWeight)),
		max(1, int64(microsPerKm*km)))
}

func longest(places []spot) float64 {
	most := 1.0
	for u := range places {
		for v := u + 1; v < len(places); v++ {
			most = max(most, places[u].distance(places[v]))
		}
	}
	return most
}

// missing lists the links that make a network connected: those of Prim's spanning tree, in which
// links that are there cost nothing, that are not there.
func missing(places []spot, neighbors [][]int) [][2]int {
	const unreached, least = math.MaxFloat64, 1e-6
	cost := make([]float64, len(places))
	parent := make([]int, len(places))
	for v := range cost {
		cost[v] = unreached
	}
	in := make([]bool, len(places))
	var links [][2]int
	cost[0] = 0
	for u := 0; u >= 0; u = cheapest(cost, in) {
		in[u] = true
		if cost[u] > 0 {
			links = append(links, [2]int{min(u, parent[u]), max(u, parent[u])})
		}
		for v := range places {
			if c := max(least, places[u].distance(places[v])); c < cost[v] {
				cost[v], parent[v] = c, u
			}
		}
		for _, v := range neighbors[u] {
			cost[v] = 0
		}
	}
	return links
}

// cheapest is the node outside the tree that costs least, or -1.
func cheapest(cost []float64, in []bool) int {
	best := -1
	for v := range cost {
		if !in[v] && (best < 0 || cost[v] < cost[best]) {
			best = v
		}
	}
	return best
}
