package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sextant/te/topology"
	"sextant/te/topology/generate"
)

func (a *app) topologyGenerate() *cobra.Command {
	return noun("generate", "Generate a topology: data centers, grids, providers",
		seeAlso("sextant topology convert"),
		a.generateFatTree(), a.generateVL2(), a.generateBCube(), a.generateSpineLeaf(),
		a.generateGrid(), a.generateISP(),
		a.generateWaxman())
}

// generator makes the command for one kind of network.
func (a *app) generator(cmd cobra.Command, flags func(*pflag.FlagSet),
	make func() (*topology.Graph, error)) *cobra.Command {
	var target topologyTarget
	cmd.Use += " [FILE]"
	cmd.Annotations = seeAlso("sextant topology convert", "sextant topology draw")
	cmd.Args = takes("[FILE]")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		g, err := make()
		if err != nil {
			return usageError{err}
		}
		target.file = ""
		if len(args) == 1 {
			target.file = args[0]
		}
		return a.writeTopology(g, target)
	}
	flags(cmd.Flags())
	target.flags(&cmd)
	return &cmd
}

func (a *app) generateFatTree() *cobra.Command {
	var k int
	return a.generator(cobra.Command{
		Use: "fat-tree", Short: "A fat tree of k-port switches (Al-Fares et al. 2008)",
		Long:    "Generate k pods of k switches, k²/4 core switches and k³/4 hosts. k is even.",
		Example: "  sextant topology generate fat-tree --k 4 fat-tree.json",
	}, func(f *pflag.FlagSet) { f.IntVar(&k, "k", 4, "ports of a switch") },
		func() (*topology.Graph, error) { return generate.FatTree(k) })
}

func (a *app) generateVL2() *cobra.Command {
	var aggregation, intermediate, servers int
	return a.generator(cobra.Command{
		Use: "vl2", Short: "A Clos network for valiant load balancing (Greenberg et al. 2009)",
		Long: `Generate half as many intermediate switches as an aggregation switch has ports, as many aggregation switches as an
intermediate one has ports, a quarter of the product of racks, and the servers of each rack.`,
		Example: "  sextant topology generate vl2 --aggregation-ports 12 --intermediate-ports 10 " +
			"--servers 20",
	}, func(f *pflag.FlagSet) {
		f.IntVar(&aggregation, "aggregation-ports", 12, "ports of an aggregation switch")
		f.IntVar(&intermediate, "intermediate-ports", 10, "ports of an intermediate switch")
		f.IntVar(&servers, "servers", 20, "servers of a rack")
	}, func() (*topology.Graph, error) { return generate.VL2(aggregation, intermediate, servers) })
}

func (a *app) generateBCube() *cobra.Command {
	var n, k int
	return a.generator(cobra.Command{
		Use: "bcube", Short: "A server-centric cube, BCube(n, k) (Guo et al. 2009)",
		Long: "Generate n^(k+1) servers with k+1 ports each, which forward for others, and " +
			"k+1 levels of n^k switches of n ports.",
		Example: "  sextant topology generate bcube --n 5 --k 3",
	}, func(f *pflag.FlagSet) {
		f.IntVar(&n, "n", 4, "ports of a switch")
		f.IntVar(&k, "k", 1, "level of the cube: servers have one port more")
	}, func() (*topology.Graph, error) { return generate.BCube(n, k) })
}

func (a *app) generateSpineLeaf() *cobra.Command {
	var spines, leaves, hosts int
	return a.generator(cobra.Command{
		Use: "spine-leaf", Short: "Two layers of switches, each leaf linked to each spine",
		Example: "  sextant topology generate spine-leaf --spines 4 --leaves 8 --hosts 16",
	}, func(f *pflag.FlagSet) {
		f.IntVar(&spines, "spines", 2, "number of spines")
		f.IntVar(&leaves, "leaves", 4, "number of leaves")
		f.IntVar(&hosts, "hosts", 4, "hosts of a leaf")
	}, func() (*topology.Graph, error) { return generate.SpineLeaf(spines, leaves, hosts) })
}

func (a *app) generateGrid() *cobra.Command {
	var width, height int
	return a.generator(cobra.Command{
		Use: "grid", Short: "Routers in rows and columns, all weights 1: equal-cost paths abound",
		Example: "  sextant topology generate grid --width 20 --height 20 --to repetita",
	}, func(f *pflag.FlagSet) {
		f.IntVar(&width, "width", 4, "routers of a row")
		f.IntVar(&height, "height", 4, "number of rows")
	}, func() (*topology.Graph, error) { return generate.Grid(width, height) })
}

func (a *app) generateISP() *cobra.Command {
	var routers int
	var seed uint64
	return a.generator(cobra.Command{
		Use: "isp", Short: "A provider: a Gabriel graph of cities with two core routers each, " +
			"access routers around them",
		Example: "  sextant topology generate isp --routers 1000 --seed 7 isp.graph",
	}, func(f *pflag.FlagSet) {
		f.IntVar(&routers, "routers", 100, "number of routers")
		f.Uint64Var(&seed, "seed", 1, "seed: the same one gives the same network")
	}, func() (*topology.Graph, error) { return generate.ISP(routers, seed) })
}

func (a *app) generateWaxman() *cobra.Command {
	var nodes int
	var alpha, beta float64
	var seed uint64
	return a.generator(cobra.Command{
		Use: "waxman", Short: "A random network in which near nodes are more likely to be linked " +
			"(Waxman 1988)",
		Example: "  sextant topology generate waxman --nodes 50 --alpha 0.15 --beta 0.4 --seed 3 " +
			"waxman.json",
	}, func(f *pflag.FlagSet) {
		f.IntVar(&nodes, "nodes", 50, "number of nodes")
		f.Float64Var(&alpha, "alpha", 0.15,
			"how slowly the likelihood falls with the distance, up to 1")
		f.Float64Var(&beta, "beta", 0.4, "likelihood of a link between nodes side by side, up to 1")
		f.Uint64Var(&seed, "seed", 1, "seed: the same one gives the same network")
	}, func() (*topology.Graph, error) { return generate.Waxman(nodes, alpha, beta, seed) })
}
