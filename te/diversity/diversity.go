package diversity

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// Many stands for a number of paths that is too large for 64 bits.
const Many = math.MaxUint64

// Paths counts the shortest paths from the root of a row to each node, or from each node to the
// root; Many when they are too many to be counted.
func Paths(row *spf.Row) []uint64 {
	order := make([]topology.Node, len(row.Dist))
	for v := range order {
		order[v] = topology.Node(v)
	}
	slices.SortFunc(order, func(a, b topology.Node) int {
		return cmp.Compare(row.Dist[a],
			row.Dist[b])
	})
	paths := make([]uint64, len(order))
	paths[row.Root] = 1
	for _, v := range order {
		if v == row.Root || row.Dist[v] == spf.Unreachable {
			continue
		}
		for _, a := range row.Back(v) {
			if row.TightBack(v, a) {
				paths[v] = add(paths[v], paths[a.Node])
			}
		}
	}
	return paths
}

func add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return Many
	}
	return sum
}

func multiply(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return Many
}

// Between counts the paths of all ordered pairs of different nodes. With bounces, packets first go
// to one of these, whichever, and from there to the destination, as Valiant load balancing has it;
// but nodes with the same neighbour speak through it.
func Between(table *spf.Table, nodes, bounces []topology.Node) []uint64 {
	var counts []uint64
	onward := map[topology.Node][]uint64{}
	for _, b := range bounces {
		onward[b] = Paths(table.From(b))
	}
	for _, s := range nodes {
		paths := Paths(table.From(s))
		for _, t := range nodes {
			switch {
			case s == t:
			case len(bounces) == 0 || neighbours(table, s, t):
				counts = append(counts, paths[t])
			default:
				sum := uint64(0)
				for _, b := range bounces {
					sum = add(sum, multiply(paths[b], onward[b][t]))
				}
				counts = append(counts, sum)
			}
		}
	}
	return counts
}

// neighbours tells whether two nodes have a neighbour in common, or are neighbours.
func neighbours(table *spf.Table, s, t topology.Node) bool {
	return slices.ContainsFunc(table.Out(s), func(a spf.Arc) bool {
		return a.Node == t || slices.ContainsFunc(table.In(t),
			func(b spf.Arc) bool { return a.Node == b.Node })
	})
}

// NextHops counts, for each node that is not one of the destinations, or for all if relay is set,
// and for each destination, the edges by which a packet may leave the node. With bounces, a
// destination is any of them, too.
func NextHops(table *spf.Table, destinations []topology.Node, relay bool) []int {
	g := table.Graph()
	ends := map[topology.Node]bool{}
	for _, t := range destinations {
		ends[t] = true
	}
	var counts []int
	for _, t := range destinations {
		row := table.To(t)
		for v := range topology.Node(g.Nodes()) {
			if v == t || row.Dist[v] == spf.Unreachable || ends[v] && !relay {
				continue
			}
			hops := 0
			for _, a := range row.Back(v) {
				if row.TightBack(v, a) {
					hops++
				}
			}
			counts = append(counts, hops)
		}
	}
	return counts
}

// Share is the part of the counts that is at least so great.
func Share[T cmp.Ordered](counts []T, least T) float64 {
	if len(counts) == 0 {
		return 0
	}
	n := 0
	for _, c := range counts {
		if c >= least {
			n++
		}
	}
	return float64(n) / float64(len(counts))
}
