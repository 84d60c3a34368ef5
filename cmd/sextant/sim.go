package main

import "github.com/spf13/cobra"

func (a *app) simCommand() *cobra.Command {
	return noun("sim", "Simulations: what becomes of connections, without a network",
		seeAlso("sextant experiment", "sextant demo"),
		a.simChurn(), a.simHunting(), a.simPacket())
}
