package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/controller"
	"sextant/packet/lists"
)

func (a *app) pathGroups() *cobra.Command {
	return &cobra.Command{
		Use: "groups", Short: "Show the paths of which flows that begin choose at head-ends",
		Long: `Show the groups of paths that the controller has given head-ends: flows to prefixes behind another router
choose one of its paths when they begin, by weight. Its share is the part of these flows that takes it; "down" are
paths over links that are down. There are groups if the controller's file has prefixes of routers, and the head-end's
node file has headend.spread.`,
		Example:     "  sextant path groups -o wide",
		Annotations: seeAlso("sextant path links", "sextant controller status"),
		RunE:        shows(a, a.controller, (*controller.Client).Groups, groupsView),
	}
}

func groupsView(groups []controller.Group) view {
	t := table{columns: []string{"FROM", "TO", "SHARE", "PATH"}, wide: []string{"PREFIXES"}}
	v := view{value: api.List[controller.Group]{Items: groups}}
	for _, g := range groups {
		for _, p := range g.Paths {
			share := "down"
			if p.Share != nil {
				share = fmt.Sprintf("%.1f %%", 100**p.Share)
			}
			t.add(g.From, g.To, share, strings.Join(p.Path, " "), lists.Join(g.Prefixes, " "))
		}
		v.names = append(v.names, g.From+">"+g.To)
	}
	v.tables = tables{t}
	return v
}
