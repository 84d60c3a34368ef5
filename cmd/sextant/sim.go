package main

import "github.com/spf13/cobra"

func (a *app) simCommand() *cobra.Command {
	return noun("sim", "Simulations of connections, service hunting and fabrics",
		seeAlso("sextant experiment", "sextant demo"),
		a.simChurn(), a.simHunting(), a.simPacket())
}
