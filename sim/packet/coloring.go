package packet

import (
	"fmt"

	"sextant/te/edgecoloring"
)

// coloring assigns the paths of a fat tree by edge coloring, for Colored.
type coloring struct {
	tree  *edgecoloring.FatTree
	half  int     // half of the ports of a switch
	owner []int32 // subflow of each of the tree's flows; none: not begun
	// connections that have not started
	waiting []int32
}

// prepareColoring wants a fat tree whose hosts are in the order of their switches.
func (s *Simulation) prepareColoring() error {
	hosts, k := s.network.Hosts, 2
	for k*k*k/4 < len(hosts) {
		k += 2
	}
	half := k / 2
	s.paths.Limit = max(s.paths.Limit, half*half)
	refused := fmt.Errorf("paths: coloring assigns paths of fat trees; the network %s is none. "+
		"Choose topology.kind: fat-tree, or the scheme cflb, which knows all networks",
		s.network.Graph.Name())
	if k*k*k/4 != len(hosts) {
		return refused
	}
	for host, v := range hosts {
		if s.network.entry[v] != s.network.entry[hosts[host/half*half]] {
			return refused
		}
	}
	for other, paths := range map[int]int{half * half: half * half, half: half} {
		if other < len(hosts) && half > 1 && len(s.routing.all(s.network.entry[hosts[0]],
			s.network.entry[hosts[other]], s.paths.Limit)) != paths {
			return refused
		}
	}
	tree, err := edgecoloring.NewFatTree(k)
	s.paths.coloring = coloring{tree: tree, half: half}
	return err
}

// colorStarted gives paths to all flows that start now, at once: flows under way are moved as
// rarely as can be, and none that has not sent.
func (s *Simulation) colorStarted() error {
	k, rest := &s.paths.coloring, s.paths.coloring.waiting[:0]
	var ends []edgecoloring.Ends
	var of []*connection
	for _, number := range k.waiting {
		c := &s.connections[number]
		if c.flow.Start > s.now {
			rest = append(rest, number)
			continue
		}
		for range s.wanted(c) {
			ends = append(ends, edgecoloring.Ends{Src: c.flow.Src, Dst: c.flow.Dst})
			of = append(of, c)
		}
	}
	k.waiting = rest
	colors, err := k.tree.Add(ends...)
	if err != nil {
		return err
	}
	for i, color := range colors {
		for int(color) >= len(k.owner) {
			k.owner = append(k.owner, none)
		}
		k.owner[color] = none
		of[i].colors = append(of[i].colors, int32(color))
	}
	for _, moved := range k.tree.Moved() {
		if owner := k.owner[moved]; owner != none {
			s.followColor(&s.subflows[owner])
		}
	}
	return nil
}

// color gives a subflow its path.
func (s *Simulation) color(number int32, f *subflow, c *connection, index int) error {
	k := &s.paths.coloring
	if len(c.colors) == 0 {
		if err := s.colorStarted(); err != nil {
			return err
		}
	}
	f.path.color = c.colors[index]
	k.owner[f.path.color] = number
	s.followColor(f)
	return nil
}

// followColor puts a subflow onto the path of its color.
func (s *Simulation) followColor(f *subflow) {
	k, c := &s.paths.coloring, &s.connections[f.connection]
	n := len(s.paths.tables[f.path.table].fabric)
	if n == 0 {
		return
	}
	path := k.tree.Path(edgecoloring.Flow(f.path.color))
	choice := 0
	switch n {
	case 1:
	case k.half:
		choice = path.Aggregation
	default: // after a failure there are fewer
		choice = (path.Aggregation*k.half + max(path.Core, 0)) % n
	}
	s.use(c, &f.path, int32(choice))
}
