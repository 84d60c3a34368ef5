package network_test

import (
	"fmt"
	"slices"
	"testing"

	"sextant/agent/network"
	"sextant/packet/srv6"
	"sextant/te/protection"
	"sextant/te/topology"
)

// parallels is the topology in which some of parallel links are told of; the name of each stays.
func parallels(t *testing.T, told []int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("parallels", 0)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	add := func(name string, from, to topology.Node) {
		if _, err := b.AddEdge(topology.EdgeSpec{Name: name, From: from, To: to,
			Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range told {
		add(fmt.Sprint(i), 0, 1)
		add(fmt.Sprint(i), 1, 0)
	}
	add("other", 0, 2)
	return b.Build()
}

// Of four parallel links each may be up or down, and routers tell no more of some that are down:
// those left that are down are switched off, and once routers tell of none or of all of these, no
// other is.
func TestParallelLinksThatAreDown(t *testing.T) {
	const links = 4
	for down := range 1 << links {
		for gone := range 1 << links {
			if gone&^down != 0 {
				continue
			}
			local, told := map[protection.Link]bool{}, []int(nil)
			for i := range links {
				local[protection.Link{From: "a", To: "b", Number: i}] = down>>i&1 != 0
				if gone>>i&1 == 0 {
					told = append(told, i)
				}
			}
			n := &network.Known{Graph: parallels(t, told)}
			view := n.View(srv6.Block{}, n.Down(local)).View
			for e := range topology.Edge(view.Edges()) {
				i := slices.Index([]string{"0", "1", "2", "3"}, view.Edge(e).Name)
				dead := i >= 0 && down>>i&1 != 0
				certain := gone == 0 || gone == down || i < 0
				if dead && view.Up(e) || !dead && !view.Up(e) && certain {
					t.Errorf("down %04b, gone %04b: link %s, from %d, is up: %v", down, gone,
						view.Edge(e).Name, view.From(e), view.Up(e))
				}
			}
		}
	}
}
