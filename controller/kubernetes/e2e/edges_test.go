package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// backends is the least number of backends of a Service's ports at edges.
func (w *world) backends(service string) int {
	least := -1
	for _, edge := range []string{"edge1", "edge2"} {
		found := false
		for _, d := range w.declared(edge).Items {
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

// declared is what an edge has.
func (w *world) declared(edge string) api.DeclaredList {
	w.t.Helper()
	client := w.agents[edge]
	if client == nil {
		node, err := w.lab.Node(edge)
		must(w.t, err)
		client = api.NewClient(filepath.Join(node.Dir, "agent.sock"))
		w.agents[edge] = client
	}
	list, err := api.Ask[api.DeclaredList](w.t.Context(), client, "GET", "/v1/edge/services", nil,
		nil)
	must(w.t, err)
	return list
}

// offers reports whether an edge gives one of the pods new connections of a service.
func (w *world) offers(service string, pods []*pod) bool {
	w.t.Helper()
	return isOffered(w.declared("edge1"), service, pods) ||
		isOffered(w.declared("edge2"), service, pods)
}

// follow notes when each edge gives none of the pods new connections; the function says it.
func (w *world) follow(service string, pods []*pod) func() string {
	begun, times := time.Now(), map[string]string{}
	ctx, cancel := context.WithCancel(w.t.Context())
	var work sync.WaitGroup
	var mu sync.Mutex
	for _, edge := range []string{"edge1", "edge2"} {
		work.Go(func() {
			said := "never"
			for ctx.Err() == nil {
				list, err := api.Ask[api.DeclaredList](ctx, w.agents[edge], "GET",
					"/v1/edge/services", nil, nil)
				if err == nil && !isOffered(list, service, pods) {
					said = fmt.Sprint("after ", time.Since(begun).Round(time.Millisecond))
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			times[edge] = said
		})
	}
	return func() string {
		cancel()
		work.Wait()
		return fmt.Sprint(times)
	}
}

// isOffered reports whether a pod may get new connections of a service.
func isOffered(list api.DeclaredList, service string, pods []*pod) bool {
	for _, d := range list.Items {
		if !strings.Contains(d.Name, ".default."+service+".") {
			continue
		}
		for _, b := range d.Backends {
			if b.State != nil && *b.State != config.Up {
				continue
			}
			if slices.ContainsFunc(pods, func(p *pod) bool { return p.name == b.Name }) {
				return true
			}
		}
	}
	return false
}
