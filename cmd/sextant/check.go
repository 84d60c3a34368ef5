package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent"
	"sextant/agent/api"
	"sextant/config"
)

func (a *app) checkCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "check -f FILE", Short: "Check a node file; no agent is needed",
		Long: fmt.Sprintf(`Check a node file. The first %d faults are shown, each with its place and a hint, and the number
of others; there are none if the exit code is 0. Warnings name risks that a valid file permits, and say if its
node may take more than half of this machine's memory, or if its secrets can't be read here. It does
not look for interfaces: "sextant apply --dry-run" does, on the node.`, config.MaxErrors),
		Example:     "  sextant check -f /run/sextant/lab/quickstart/nodes/edge/node.yaml",
		Annotations: seeAlso("sextant diff", "sextant apply", "sextant agent"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := a.readNodeFile(cmd.Context(), file)
			if err != nil {
				return err
			}
			if !a.quiet {
				for _, warning := range slices.Concat(config.Warnings(f.node),
					a.memoryWarnings(f.node), secretWarnings(f.node)) {
					a.say("%s: warning: %s", f.name, warning)
				}
				need := agent.EstimateMemory(f.node)
				a.say("%s: no faults; node %s (%s); memory up to %s of the agent, %s of the kernel",
					f.name, f.node.Name, strings.Join(f.node.Roles(), ", "),
					mebibytes(need.Agent), mebibytes(need.Kernel))
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

// secretWarnings says which secrets an agent could not read here; it may run on another machine.
func secretWarnings(n *config.Node) (list []string) {
	for err := range strings.Lines(errorText(api.ReadSecrets(n.Clone()))) {
		list = append(list, "not on this machine: "+strings.TrimSpace(err))
	}
	return list
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// memoryWarnings compares what a node needs with this machine.
func (a *app) memoryWarnings(n *config.Node) []string {
	estimate := agent.EstimateMemory(n)
	need := estimate.Agent + estimate.Kernel
	has, err := a.memory()
	switch {
	case err != nil:
		return []string{fmt.Sprintf("whether this machine has %s of memory is not known: %v",
			mebibytes(need), err)}
	case need > has/2:
		return []string{fmt.Sprintf(
			"it may take %s of memory, more than half of this machine's %s; "+
				"write fewer buckets (edge.buckets, maxBackends of services)", mebibytes(need),
			mebibytes(has))}
	}
	return nil
}

func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }
