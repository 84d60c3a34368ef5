package main

import (
	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) pathSubflows() *cobra.Command {
	return &cobra.Command{
		Use:   "subflows",
		Short: "List the MPTCP connections of a host and the paths of their subflows",
		Long: `List the MPTCP connections that a host with role subflows has opened, with the rule that each
matches. STATE is managed for one that has subflows by its rule, or gets them; watched for one that
has not carried enough bytes; left for one of another path manager or of no rule. Each line below
has a subflow on a path that the rule wants: the index of the next hop at each router, or the
routers that the controller named.`,
		Example:     "  sextant path subflows",
		Annotations: seeAlso("sextant path mptcp", "sextant path placed", "sextant status"),
		RunE:        shows(a, a.agentFor, (*api.Client).Subflows, subflowsView),
	}
}

func subflowsView(list []api.MPTCPConnection) view {
	t := table{columns: []string{"TOKEN", "DESTINATION", "RULE", "STATE", "SOURCE", "PATH"},
		wide: []string{"BACKUP", "ACKED-BYTES"}}
	v := view{value: api.List[api.MPTCPConnection]{Items: list}}
	for _, c := range list {
		v.names = append(v.names, c.Token)
		row := func(source, path, backup string) {
			t.add(c.Token, c.Destination, orDash(c.Rule), c.State, source, path, backup,
				c.AckedBytes)
		}
		if len(c.Subflows) == 0 {
			row(c.Source.String(), "-", "-")
		}
		for _, s := range c.Subflows {
			row(s.Source.String(), orDash(s.Path), yes(s.Backup))
		}
	}
	v.tables = tables{t}
	return v
}
