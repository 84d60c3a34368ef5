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
		RunE:        shows(a, a.agentFor, (*api.Client).SIDs, sidsView),
	}
}

func sidsView(sids []api.SID) view {
	t := table{columns: []string{"PREFIX", "BEHAVIOR"}}
	return listView(sids, t, func(s api.SID) (string, []any) {
		return s.Prefix.String(), []any{s.Prefix, s.Behavior}
	})
}
