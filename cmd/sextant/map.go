package main

import (
	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) mapCommand() *cobra.Command {
	return noun("map", "Tables that the kernel holds for the data plane", seeAlso("sextant status"), a.mapList())
}

func (a *app) mapList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the eBPF maps and how full they are",
		Example:           "  sextant lab exec quickstart edge -- sextant map list",
		Annotations:       seeAlso("sextant status"),
		Args:              takes(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			maps, err := a.agent().Maps(ctx)
			if err != nil {
				return err
			}
			return a.show(mapsView(maps))
		},
	}
}

func mapsView(maps []api.Map) view {
	t := table{columns: []string{"NAME", "ROLE", "TYPE", "ENTRIES", "CAPACITY", "USED"}}
	v := view{value: api.List[api.Map]{Items: maps}}
	for _, m := range maps {
		entries, used := "-", "-"
		if m.Entries != nil {
			entries, used = count(*m.Entries), share(*m.Entries, m.Capacity)
		}
		t.rows = append(t.rows, []string{m.Name, string(m.Role), m.Type, entries, count(m.Capacity), used})
		v.names = append(v.names, m.Name)
	}
	v.tables = tables{t}
	return v
}
