package main

import (
	"io"

	"github.com/spf13/cobra"
)

// demoOptions are what the command line says about the demonstration.
type demoOptions struct {
	Output   io.Writer         // the result, for people
	JSON     bool              // the result as JSON instead
	Progress func(string)      // a line that replaces the one before; nil: nobody looks
	Say      func(text string) // what happens, for people; nil: -q
}

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Service hunting against random choice, and downloads that survive " +
			"while servers leave",
		Long: `Build a network of client, router, edge and servers in namespaces of this machine, load it with the same stream of
requests first by random choice, then by service hunting over two and over three candidates, and compare the response
times. Then let a server leave or return every second under downloads, by a router's equal-cost multipath, by
VRF-shadowing and by offer, and count those that fail. It takes less than a minute, needs root, and leaves
nothing behind. While it runs, a browser of this machine can look at its edge, by the address that is printed.`,
		Example:     "  sextant demo",
		Annotations: seeAlso("sextant lab", "sextant loadgen"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := demoOptions{Output: a.stdout, JSON: a.output == formatJSON}
			if !a.quiet {
				o.Say = func(text string) { a.say("%s", text) }
			}
			if a.progress {
				o.Progress = a.progressLine
			}
			return labError(a.demo(cmd.Context(), o))
		},
	}
}
