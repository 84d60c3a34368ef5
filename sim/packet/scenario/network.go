package scenario

import (
	"fmt"
	"strings"

	"sextant/sim/packet"
	"sextant/te/topology"
)

const fullPacket = 1500

func duration(ns int64) packet.Time { return packet.Time(ns) * packet.Nanosecond }

// Network makes the network of a scenario.
func (c *Scenario) Network(g *topology.Graph) (*packet.Network, error) {
	config := packet.NetworkConfig{Delay: -1, Relay: c.Topology.Kind == "bcube",
		Queue: packet.Queue{Bytes: c.Queue.Packets * fullPacket,
			Mark: c.Queue.Mark * fullPacket, Random: c.Queue.Random * fullPacket},
		HostQueue: &packet.Queue{Bytes: c.Queue.Host * fullPacket, Mark: c.Queue.Mark * fullPacket}}
	if l := c.Queue.Lossless; l != nil {
		config.Lossless, config.Queue.Bytes = l.settings(), l.XOFF*fullPacket
	}
	if c.Topology.Kind != "file" {
		config.Host = func(s topology.NodeSpec) bool { return generatedHost(s.Name) }
	}
	if c.Links.Delay != nil {
		config.Delay = duration(c.Links.Delay.Nanoseconds())
	}
	rates, err := c.rates(g)
	if err != nil {
		return nil, err
	}
	config.Rate = 1
	config.Scale = func(e topology.Edge) float64 { return rates[e] }
	n, err := packet.NewNetwork(g, config)
	if err != nil {
		return nil, err
	}
	return n, reached(g, n.Hosts)
}

// reached refuses hosts to which no link leads.
func reached(g *topology.Graph, hosts []packet.Node) error {
	reached := make([]bool, g.Nodes())
	for e := range topology.Edge(g.Edges()) {
		reached[g.To(e)] = true
	}
	for _, v := range hosts {
		if !reached[v] {
			return fmt.Errorf("no link of topology %s leads to host %q; state both directions of "+
				"its link", g.Name(), g.Node(topology.Node(v)).Name)
		}
	}
	return nil
}

// through are the nodes that paths.through names.
func (c *Scenario) through(g *topology.Graph) (nodes []packet.Node, err error) {
	name := c.Paths.Through
	if name == "" && c.Topology.Kind == "vl2" {
		name = "int"
	}
	if name == "" || name == "none" {
		return nil, nil
	}
	for v := range g.Nodes() {
		if strings.HasPrefix(g.Node(topology.Node(v)).Name, name) {
			nodes = append(nodes, packet.Node(v))
		}
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("paths.through: no node of %s has a name that begins with %q; "+
			"\"sextant topology show\" lists them", g.Name(), name)
	}
	return nodes, nil
}

// rates are those of all edges, in bit/s.
func (c *Scenario) rates(g *topology.Graph) ([]float64, error) {
	rates := make([]float64, g.Edges())
	all, fabric := 0.0, 0.0
	var err error
	if c.Links.Rate != "" {
		if all, err = ParseRate(c.Links.Rate); err != nil {
			return nil, fmt.Errorf("links.rate: %w", err)
		}
	}
	if c.Links.Fabric != "" {
		if fabric, err = ParseRate(c.Links.Fabric); err != nil {
			return nil, fmt.Errorf("links.fabric: %w", err)
		}
	}
	for e := range rates {
		spec := g.Edge(topology.Edge(e))
		rates[e] = float64(spec.CapacityKbps) * 1000
		if all > 0 {
			rates[e] = all
		}
		if fabric > 0 && c.switches(g, spec.From) && c.switches(g, spec.To) {
			rates[e] = fabric
		}
	}
	for _, slow := range c.Links.Slow {
		rate, err := ParseRate(slow.Rate)
		if err != nil {
			return nil, fmt.Errorf("links.slow: %w", err)
		}
		edges, err := both(g, slow.From, slow.To)
		if err != nil {
			return nil, fmt.Errorf("links.slow: %w", err)
		}
		for _, e := range edges {
			rates[e] = rate
		}
	}
	return rates, nil
}

// generatedHost tells hosts of generated topologies from switches, of which some have one neighbor,
// too: spines over a single leaf.
func generatedHost(name string) bool {
	return strings.HasPrefix(name, "host") || strings.HasPrefix(name, "server")
}

// switches tells whether a node is a switch.
func (c *Scenario) switches(g *topology.Graph, v topology.Node) bool {
	if c.Topology.Kind != "file" {
		return !generatedHost(g.Node(v).Name)
	}
	return len(g.Out(v)) > 1
}

// both finds the edges between two nodes, in both directions.
func both(g *topology.Graph, from, to string) (edges []topology.Edge, err error) {
	u, knownU := g.Lookup(from)
	v, knownV := g.Lookup(to)
	if knownU && knownV {
		for _, e := range g.Out(u) {
			if g.To(e) == v {
				edges = append(edges, e)
				if back := g.Reverse(e); back != topology.NoEdge {
					edges = append(edges, back)
				}
			}
		}
	}
	if len(edges) == 0 {
		return nil, fmt.Errorf("topology %s has no link from %q to %q; \"sextant topology show\" "+
			"lists its nodes", g.Name(), from, to)
	}
	return edges, nil
}
