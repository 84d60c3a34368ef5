package lab_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/lab"
)

func TestRoutes(t *testing.T) {
	each(t, "testdata/routes/*.yaml", func(t *testing.T, path string) {
		spec, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := lab.RouteText(spec)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, strings.TrimSuffix(path, ".yaml")+".txt", text)
	})
}

// TestRoutesAreAllShortestPaths compares the next hops in random networks with
// distances by the algorithm of Floyd and Warshall.
func TestRoutesAreAllShortestPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 12).Draw(t, "nodes")
		spec := &lab.Spec{Name: "random"}
		for i := range count {
			spec.Nodes = append(spec.Nodes, lab.NodeSpec{Name: fmt.Sprint("n", i)})
		}
		distance := make([][]int, count)
		for i := range distance {
			distance[i] = slices.Repeat([]int{1000}, count)
			distance[i][i] = 0
		}
		index := rapid.IntRange(0, count-1)
		for l := range rapid.IntRange(0, 24).Draw(t, "links") {
			a, b := index.Draw(t, "a"), index.Draw(t, "b")
			if a == b {
				continue
			}
			iface := fmt.Sprint("l", l)
			weight := rapid.Uint32Range(0, 4) // 0 is 1
			weights := [2]uint32{weight.Draw(t, "weight"), weight.Draw(t, "weight back")}
			spec.Links = append(spec.Links, lab.LinkSpec{Weights: weights, Ends: [2]lab.Endpoint{
				{Node: spec.Nodes[a].Name, Interface: iface},
				{Node: spec.Nodes[b].Name, Interface: iface},
			}})
			distance[a][b] = min(distance[a][b], max(1, int(weights[0])))
			distance[b][a] = min(distance[b][a], max(1, int(weights[1])))
		}
		shortest(distance)
		prefix := netip.MustParsePrefix("2001:db8::/32")
		announcers := rapid.SliceOfDistinct(index, rapid.ID[int]).Draw(t, "announcers")
		for _, a := range announcers {
			spec.Nodes[a].Announce = []netip.Prefix{prefix}
		}
		hops, err := lab.Hops(spec)
		if err != nil {
			t.Fatal(err)
		}
		nearest := func(node int) int {
			least := 1000
			for _, a := range announcers {
				least = min(least, distance[node][a])
			}
			return least
		}
		for node := range count {
			want := wantedHops(spec, node, nearest)
			got := hops[spec.Nodes[node].Name][prefix.String()]
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("node %d sends to %v, want %v", node, got, want)
			}
		}
	})
}

func shortest(distance [][]int) {
	for via := range distance {
		for a := range distance {
			for b := range distance {
				distance[a][b] = min(distance[a][b], distance[a][via]+distance[via][b])
			}
		}
	}
}

// wantedHops lists the neighbours that are nearer by the weight of a link, one for each link.
func wantedHops(spec *lab.Spec, node int, nearest func(int) int) []string {
	var want []string
	if nearest(node) == 0 || nearest(node) >= 1000 {
		return nil
	}
	for _, link := range spec.Links {
		for side, end := range link.Ends {
			peer := slices.IndexFunc(spec.Nodes,
				func(n lab.NodeSpec) bool { return n.Name == link.Ends[1-side].Node })
			if end.Node == spec.Nodes[node].Name && nearest(peer) == nearest(node)-max(1,
				int(link.Weights[side])) {
				want = append(want, spec.Nodes[peer].Name)
			}
		}
	}
	slices.Sort(want)
	return want
}
