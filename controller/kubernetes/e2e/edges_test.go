package e2e_test

import (
	"path/filepath"
	"strings"

	"sextant/agent/api"
)

// backends is the least number of backends of a Service's ports at edges.
func (w *world) backends(service string) int {
	least := -1
	for _, edge := range []string{"edge1", "edge2"} {
		client := w.agents[edge]
		if client == nil {
			node, err := w.lab.Node(edge)
			must(w.t, err)
			client = api.NewClient(filepath.Join(node.Dir, "agent.sock"))
			w.agents[edge] = client
		}
		list, err := api.Ask[api.DeclaredList](w.t.Context(), client, "GET", "/v1/edge/services",
			nil, nil)
		must(w.t, err)
		found := false
		for _, d := range list.Items {
			if strings.Contains(d.Name, ".default."+service+".") {
				found = true
				if least < 0 || len(d.Backends) < least {
					least = len(d.Backends)
				}
			}
		}
		if !found {
			return 0
		}
	}
	return least
}
