package generate

import (
	"fmt"

	"sextant/te/topology"
)

// layerOf is the height of a layer in the drawing of a data center that is so wide.
func layerOf(width int) float64 { return max(1, float64(width)/5) }

// FatTree makes the three layers of k-port switches of Al-Fares, Loukissas and Vahdat ("A Scalable,
// Commodity Data Center Network Architecture", SIGCOMM 2008): k pods of k/2 edge and k/2
// aggregation switches, k²/4 core switches, and k³/4 hosts. k is even.
func FatTree(k int) (*topology.Graph, error) {
	const kind = "fat tree"
	if err := firstError(between(kind, "k", k, 2, 96), fits(kind, k, k/2, k/2+3)); err != nil {
		return nil, err
	}
	if k%2 != 0 {
		return nil, fmt.Errorf("generate a fat tree: k is %d; choose an even number, for half of "+
			"the ports lead up", k)
	}
	half := k / 2
	layer := layerOf(k * half * half)
	p := newPlan(fmt.Sprintf("fat-tree-%d", k))
	core := p.row(half*half, 3*layer, float64(k), "core%d")
	for pod := range k {
		left := float64(half*half) * (float64(pod) - float64(k)/2)
		var aggregation []topology.Node
		for i := range half {
			a := p.node(left+float64(half)*(float64(i)+0.5), 2*layer, "agg%d-%d", pod, i)
			for j := range half {
				p.hop(a, core[i*half+j])
			}
			aggregation = append(aggregation, a)
		}
		for i := range half {
			edge := p.node(left+float64(half)*(float64(i)+0.5), layer, "edge%d-%d", pod, i)
			for _, a := range aggregation {
				p.hop(edge, a)
			}
			for j := range half {
				host := p.node(left+float64(half*i)+float64(j)+0.5, 0, "host%d-%d-%d", pod, i, j)
				p.hop(host, edge)
			}
		}
	}
	return p.build()
}

// VL2 makes the Clos network of Greenberg et al. ("VL2: A Scalable and Flexible Data Center
// Network", SIGCOMM 2009) of aggregation switches with aggregationPorts and intermediate switches
// with intermediatePorts: aggregationPorts/2 intermediate switches, intermediatePorts aggregation
// switches, each linked to all intermediate ones, and a quarter of the product of top-of-rack
// switches, linked to two aggregation switches and to so many servers each. The paper has 20
// servers.
func VL2(aggregationPorts, intermediatePorts, servers int) (*topology.Graph, error) {
	const kind = "VL2 network"
	if err := firstError(
		between(kind, "the number of ports of an aggregation switch", aggregationPorts, 2,
			nodesMax),
		between(kind, "the number of ports of an intermediate switch", intermediatePorts, 2,
			nodesMax),
		between(kind, "the number of servers of a rack", servers, 0, nodesMax),
		fits(kind, aggregationPorts/2+1, intermediatePorts/2+1, servers+2),
	); err != nil {
		return nil, err
	}
	if aggregationPorts%2 != 0 || intermediatePorts%2 != 0 {
		return nil, fmt.Errorf("generate a VL2 network: switches have %d and %d ports; choose "+
			"even numbers", aggregationPorts,
			intermediatePorts)
	}
	racks := aggregationPorts * intermediatePorts / 4
	width, layer := float64(racks*max(servers, 1)), layerOf(racks*max(servers, 1))
	p := newPlan(fmt.Sprintf("vl2-%d-%d-%d", aggregationPorts, intermediatePorts, servers))
	intermediate := p.row(aggregationPorts/2, 3*layer, width/float64(aggregationPorts/2), "int%d")
	aggregation := p.row(intermediatePorts, 2*layer, width/float64(intermediatePorts), "agg%d")
	for _, a := range aggregation {
		for _, i := range intermediate {
			p.hop(a, i)
		}
	}
	for t, rack := range p.row(racks, layer, float64(max(servers, 1)), "tor%d") {
		pair := 2 * t % intermediatePorts
		p.hop(rack, aggregation[pair])
		p.hop(rack, aggregation[pair+1])
		for s := range servers {
			p.hop(p.node(float64(t*servers+s)-width/2+0.5, 0, "server%d-%d", t, s), rack)
		}
	}
	return p.build()
}

// BCube makes BCube(n, k) of Guo et al. ("BCube: A High Performance, Server-centric Network
// Architecture for Modular Data Centers", SIGCOMM 2009): n^(k+1) servers with k+1 ports, and k+1
// levels of n^k switches of n ports. A server's address has k+1 digits of base n; a switch of level
// l joins the n servers that differ in digit l only. Servers forward for others.
func BCube(n, k int) (*topology.Graph, error) {
	const kind, highest = "BCube", 16
	if err := firstError(between(kind, "n", n, 2, 1<<10),
		between(kind, "k", k, 0, highest)); err != nil {
		return nil, err
	}
	servers := 1
	for range k + 1 {
		if err := fits(kind, servers, n, 2); err != nil {
			return nil, err
		}
		servers *= n
	}
	if err := fits(kind, servers, k+2); err != nil {
		return nil, err
	}
	p, layer := newPlan(fmt.Sprintf("bcube-%d-%d", n, k)), layerOf(servers)
	nodes := p.row(servers, 0, 1, "server%d")
	stride := 1 // n^level
	for level := range k + 1 {
		switches := servers / n
		for i := range switches {
			x := (float64(i) - float64(switches-1)/2) * float64(n)
			v := p.node(x, layer*float64(level+1), "switch%d-%d", level, i)
			first := i/stride*stride*n + i%stride // the server whose digit of this level is 0
			for digit := range n {
				p.hop(nodes[first+digit*stride], v)
			}
		}
		stride *= n
	}
	return p.build()
}

// SpineLeaf makes two layers of switches, each leaf linked to each spine, with so many hosts at
// each leaf.
func SpineLeaf(spines, leaves, hosts int) (*topology.Graph, error) {
	const kind = "spine-leaf network"
	if err := firstError(
		between(kind, "the number of spines", spines, 1, nodesMax),
		between(kind, "the number of leaves", leaves, 1, nodesMax),
		between(kind, "the number of hosts of a leaf", hosts, 0, nodesMax),
		fits(kind, leaves, spines+hosts+1), // links, too, are bounded so
	); err != nil {
		return nil, err
	}
	p := newPlan(fmt.Sprintf("spine-leaf-%d-%d-%d", spines, leaves, hosts))
	width, layer := float64(leaves*max(hosts, 1)), layerOf(leaves*max(hosts, 1))
	top := p.row(spines, 2*layer, width/float64(spines), "spine%d")
	for l, leaf := range p.row(leaves, layer, float64(max(hosts, 1)), "leaf%d") {
		for _, spine := range top {
			p.hop(leaf, spine)
		}
		for h := range hosts {
			p.hop(p.node(float64(l*hosts+h)-width/2+0.5, 0, "host%d-%d", l, h), leaf)
		}
	}
	return p.build()
}

// Grid makes routers in rows and columns, linked to their neighbors; all weights are 1, so that
// equal-cost paths abound.
func Grid(width, height int) (*topology.Graph, error) {
	const kind = "grid"
	if err := firstError(
		between(kind, "the width", width, 1, nodesMax), between(kind, "the height", height, 1,
			nodesMax), fits(kind, width, height),
	); err != nil {
		return nil, err
	}
	p := newPlan(fmt.Sprintf("grid-%d-%d", width, height))
	for y := range height {
		for x := range width {
			v := p.node(float64(x), float64(-y), "r%d-%d", x, y)
			if x > 0 {
				p.hop(v-1, v)
			}
			if y > 0 {
				p.hop(v-topology.Node(width), v)
			}
		}
	}
	return p.build()
}
