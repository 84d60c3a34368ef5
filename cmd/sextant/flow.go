package main

import "github.com/spf13/cobra"

func (a *app) flowCommand() *cobra.Command {
	return noun("flow", "Flows: what the data plane does with one, and paths of their own",
		seeAlso("sextant explain", "sextant service show"), a.flowTrace(), a.flowList(),
		a.flowSet(), a.flowClear())
}

// flowTrace is explain by the name under which nouns have it.
func (a *app) flowTrace() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "trace SOURCE DESTINATION",
		Short: "Explain what the data plane does with a flow: the same as sextant explain",
		Long:  explainLong,
		Example: "  sextant lab exec quickstart edge -- sextant flow trace " +
			"203.0.113.7:40000 198.51.100.80:80",
		Annotations: seeAlso("sextant explain", "sextant sid list"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd,
				args, flags)
		},
	}
	flags.ofFlow(cmd)
	return cmd
}
