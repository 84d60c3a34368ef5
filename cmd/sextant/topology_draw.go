package main

import (
	"strings"

	"github.com/spf13/cobra"

	"sextant/te/topology"
	"sextant/te/topology/draw"
)

// What may be written beside links.
const (
	labelAuto     = "auto" // the weight, in small networks
	labelWeight   = "weight"
	labelDelay    = "delay"
	labelCapacity = "capacity"
	labelNone     = "none"
)

var linkLabels = []string{labelAuto, labelWeight, labelDelay, labelCapacity, labelNone}

// autoLabelLinks is up to how many links "auto" labels them.
const autoLabelLinks = 40

func (a *app) topologyDraw() *cobra.Command {
	var source topologySource
	var label string
	var byHops bool
	cmd := &cobra.Command{
		Use: "draw TOPOLOGY [FILE]", Short: "Draw a topology as SVG",
		Long: `Draw a topology as SVG, to a file or to standard output: at its coordinates if it has them, or else so that distances
resemble those in hops. Any browser shows it, in its light or dark colours; names that have no room are in the tooltips.

` + topologyHelp,
		Example: "  sextant topology draw zoo/Geant2012 geant.svg\n" +
			"  sextant topology draw paper-table3/AS1239 --label none > as1239.svg\n" +
			"  sextant topology draw zoo/Abilene abilene.svg --label delay --by-hops",
		Annotations: seeAlso("sextant topology show"),
		Args:        takes("TOPOLOGY", "[FILE]"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("label", label, linkLabels); err != nil {
				return err
			}
			g, err := source.read(args[0], a.stdin)
			if err != nil {
				return err
			}
			file := ""
			if len(args) == 2 {
				file = args[1]
			}
			return a.writeFile(file, draw.SVG(g, draw.Options{EdgeLabel: edgeLabel(g, label),
				ByHops: byHops}))
		},
	}
	source.flags(cmd)
	cmd.Flags().StringVar(&label, "label", labelAuto,
		"what to write beside links: "+strings.Join(linkLabels, ", "))
	cmd.Flags().BoolVar(&byHops, "by-hops", false,
		"place nodes by hops even if their coordinates are known")
	complete(cmd, "label", linkLabels...)
	return cmd
}

// edgeLabel gives the text beside a link. Where the directions differ it has both.
func edgeLabel(g *topology.Graph, label string) func(topology.Edge) string {
	if label == labelAuto && g.Edges() <= 2*autoLabelLinks {
		label = labelWeight
	}
	text := map[string]func(topology.Edge) string{
		labelWeight:   func(e topology.Edge) string { return count(g.Weight(e)) },
		labelDelay:    func(e topology.Edge) string { return delayText(g.Delay(e), g.DelayUnit()) },
		labelCapacity: func(e topology.Edge) string { return capacityText(g.Edge(e).CapacityKbps) },
	}[label]
	if text == nil {
		return nil
	}
	return func(e topology.Edge) string {
		there := text(e)
		if r := g.Reverse(e); r != topology.NoEdge && text(r) != there {
			return there + " / " + text(r)
		}
		return there
	}
}
