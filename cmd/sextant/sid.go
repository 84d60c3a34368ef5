package main

import (
	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) sidCommand() *cobra.Command {
	return noun("sid", "Local segment identifiers of a host or an egress",
		seeAlso("sextant service"), a.sidList())
}

func (a *app) sidList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the local SIDs and what they do",
		Example:     "  sextant lab exec quickstart web1 -- sextant sid list",
		Annotations: seeAlso("sextant backend list"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			sids, err := a.agent().SIDs(ctx)
			if err != nil {
				return err
			}
			t := table{columns: []string{"PREFIX", "BEHAVIOR"}}
			return a.show(listView(sids, t, func(s api.SID) (string, []string) {
				return s.Prefix.String(), []string{s.Prefix.String(), s.Behavior}
			}))
		},
	}
}
