package packet

import (
	"slices"

	"sextant/te/topology"
)

// list lists the paths that a source knows from one node to another: the shortest, or as Paths
// says.
func (s *Simulation) list(from, to Node) [][]int32 {
	switch {
	case s.paths.List != nil:
		return slices.DeleteFunc(s.paths.List(from, to), func(path []int32) bool {
			return slices.ContainsFunc(path, func(l int32) bool { return s.routing.down[l] })
		})
	case len(s.paths.Through) == 0 || from == to:
		return s.routing.all(from, to, s.paths.Limit)
	}
	var paths [][]int32
	for _, middle := range s.paths.Through {
		for _, up := range s.routing.all(from, middle, s.paths.Limit) {
			for _, down := range s.routing.all(middle, to, s.paths.Limit) {
				if len(paths) == s.paths.Limit {
					return paths
				}
				paths = append(paths, append(slices.Clone(up), down...))
			}
		}
	}
	return paths
}

// ParallelBCube returns a Paths.List of the parallel paths of BCube(ports, levels-1), one from each
// port of the source: they share no server and no switch (Guo et al., "BCube", SIGCOMM 2009,
// section 3.2). The network is that of generate.BCube, whose servers come first.
func (n *Network) ParallelBCube(ports, levels int) func(from, to Node) [][]int32 {
	return func(from, to Node) [][]int32 {
		var paths [][]int32
		for first := levels - 1; first >= 0; first-- {
			at, path := from, []int32(nil)
			visit := func(level int, digit Node) {
				next := withDigit(at, ports, level, digit)
				if next != at {
					up := n.out[at][level]
					path = append(path, up, n.linkTo(n.links[up].to, next))
					at = next
				}
			}
			if d := digitOf(from, ports, first); d == digitOf(to, ports, first) {
				visit(first, (d+1)%Node(ports)) // a way round, whose last step returns
			} else {
				visit(first, digitOf(to, ports, first))
			}
			for step := 1; step <= levels; step++ {
				level := (first - step + levels) % levels
				visit(level, digitOf(to, ports, level))
			}
			paths = append(paths, path)
		}
		return paths
	}
}

// digitOf is a digit of a server's address.
func digitOf(server Node, base, level int) Node {
	for range level {
		server /= Node(base)
	}
	return server % Node(base)
}

// withDigit is the server whose address differs in one digit.
func withDigit(server Node, base, level int, digit Node) Node {
	stride := Node(1)
	for range level {
		stride *= Node(base)
	}
	return server + (digit-digitOf(server, base, level))*stride
}

// reversed is the way back over the links of a path; none if one has no other direction.
func (n *Network) reversed(path []int32) []int32 {
	back := make([]int32, 0, len(path))
	for i := len(path) - 1; i >= 0; i-- {
		e := n.Graph.Reverse(topology.Edge(path[i]))
		if e == topology.NoEdge {
			return nil
		}
		back = append(back, int32(e))
	}
	return back
}

// linkTo is the link from one node to a neighbour.
func (n *Network) linkTo(from, to Node) int32 {
	for _, e := range n.Graph.Out(topology.Node(from)) {
		if Node(n.Graph.To(e)) == to {
			return int32(e)
		}
	}
	return none
}
