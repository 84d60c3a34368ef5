package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sextant/config"
)

func (a *app) checkCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "check -f FILE", Short: "Check a node file; no agent is needed",
		Long: "Check a node file. All faults are shown, each with its place and the mend; there are none if " +
			"the exit code is 0. Warnings name what a file without faults permits all the same.",
		Example:     "  sextant check -f /run/sextant/lab/quickstart/nodes/edge/node.yaml",
		Annotations: seeAlso("sextant diff", "sextant apply", "sextant agent"),
		Args:        takes(),
		RunE: func(*cobra.Command, []string) error {
			f, err := a.readNodeFile(file)
			if err != nil {
				return err
			}
			if !a.quiet {
				for _, warning := range config.Warnings(f.node) {
					a.say("%s: warning: %s", f.name, warning)
				}
				a.say("%s: no faults; node %s (%s)", f.name, f.node.Name, strings.Join(f.node.Roles(), ", "))
			}
			switch a.output {
			case formatJSON, formatYAML:
				return a.show(view{value: config.Redact(f.node)})
			case formatName:
				fmt.Fprintln(a.stdout, f.node.Name)
			}
			return nil
		},
	}
	fileFlag(cmd, &file)
	return cmd
}
