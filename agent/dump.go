package agent

import (
	"context"
	"errors"
	"fmt"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/datapath"
)

// DumpMap is what api.Agent says.
func (q *answers) DumpMap(ctx context.Context, of api.Role, name string,
	limit int) ([]api.MapEntry, error) {
	return role.Ask(ctx, &q.Loop, func() ([]api.MapEntry, error) {
		return q.dumpMap(of, name,
			limit)
	})
}

func (q *answers) dumpMap(of api.Role, name string, limit int) ([]api.MapEntry, error) {
	for _, r := range q.Running() {
		if of != "" && of != r.Name {
			continue
		}
		list, err := r.Uses().Dump(name, limit)
		if errors.Is(err, datapath.ErrNoMap) {
			continue // the other role may have one
		}
		entries := []api.MapEntry{}
		for _, e := range list {
			entry := api.MapEntry{Key: e.Key, Value: e.Value}
			if e.CPU >= 0 {
				entry.CPU = &e.CPU
			}
			entries = append(entries, entry)
		}
		return entries, err
	}
	return nil, &api.Error{Code: api.NotFound,
		Message: fmt.Sprintf("there is no map %q with entries here; see: sextant map list", name)}
}
