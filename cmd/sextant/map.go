package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) mapCommand() *cobra.Command {
	return noun("map", "Tables that the kernel holds for the data plane", seeAlso("sextant status"),
		a.mapList(), a.mapDump())
}

func (a *app) mapList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the eBPF maps and how full they are",
		Example:     "  sextant lab exec quickstart edge -- sextant map list",
		Annotations: seeAlso("sextant map dump", "sextant status"),
		RunE:        shows(a, a.agentFor, (*api.Client).Maps, mapsView),
	}
}

func mapsView(maps []api.Map) view {
	t := table{columns: []string{"NAME", "ROLE", "TYPE", "ENTRIES", "CAPACITY", "USED"}}
	return listView(maps, t, func(m api.Map) (string, []any) {
		entries, used := "-", "-"
		if m.Entries != nil {
			entries, used = count(*m.Entries), share(*m.Entries, m.Capacity)
		}
		return m.Name, []any{m.Name, m.Role, m.Type, entries, m.Capacity, used}
	})
}

func (a *app) mapDump() *cobra.Command {
	var role string
	var limit int
	cmd := &cobra.Command{
		Use: "dump NAME", Short: "Print the entries of an eBPF map, as the kernel holds them",
		Long: `Print the entries of an eBPF map, as the kernel holds them, with fields by their names in C, addresses and numbers readable.
Entries of arrays that are all zero are left out. The chains of all services are "tables", by service number and bucket;
their paths are "paths", by service number and id of the backend.`,
		Example: `  sextant lab exec quickstart edge -- sextant map dump services
  sextant lab exec quickstart edge -- sextant map dump tables --limit 10 -o json`,
		Annotations:       seeAlso("sextant map list", "sextant explain"),
		Args:              takes("NAME"),
		ValidArgsFunction: a.completeMaps(),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return answered(a, dumpView)(a.agent().DumpMap(ctx, api.Role(role), args[0], limit))
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 1000, "at most so many entries, up to 100000")
	roleFlag(cmd, &role)
	return cmd
}

// completeMaps offers the names of maps.
func (a *app) completeMaps() cobra.CompletionFunc {
	return offers(a, (*api.Client).Maps, func(m api.Map) (string, string) {
		return m.Name, string(m.Role) + " " + m.Type
	})
}

func dumpView(entries []api.MapEntry) view {
	t := table{columns: []string{"KEY", "VALUE", "CPU"}}
	return listView(entries, t, func(e api.MapEntry) (string, []any) {
		key := jsonText(e.Key)
		return key, []any{key, jsonText(e.Value), known(e.CPU, count[int])}
	})
}

// jsonText writes a value that came as JSON on one line; text without quotes.
func jsonText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error() // what came as JSON can be written as JSON
	}
	return string(text)
}
