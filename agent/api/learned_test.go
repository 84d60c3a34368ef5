package api_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// learning is an edge that BGP told of a backend.
type learning struct{ *memory }

func (l learning) Services(ctx context.Context, names ...string) ([]api.Service, error) {
	services, err := l.memory.Services(ctx, names...)
	for _, s := range services {
		if s.Edge != nil {
			s.Edge.Backends = append(s.Edge.Backends, api.Backend{Service: s.Name,
				Name: "bgp-fcbb-bb00-9", Learned: true})
		}
	}
	return services, err
}

// Who names a backend that is not there is told of all that are.
func TestAbsentBackendAmongLearnedOnes(t *testing.T) {
	_, m, _ := start(t, nodeFile)
	handler := api.NewHandler(learning{m})
	for method, body := range map[string]string{"PUT": `{"state":"draining"}`, "DELETE": ""} {
		r := httptest.NewRequest(method, "/v1/services/web/backends/nobody",
			strings.NewReader(body))
		r.Header.Set("If-Match", "*")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var names []string
		for _, b := range m.node.Edge.Services[0].Backends {
			names = append(names, b.Name)
		}
		want := config.Absent("backend", "nobody", append(names, "bgp-fcbb-bb00-9")).Error()
		if w.Code != 404 || !strings.Contains(w.Body.String(), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %d %s, want %s", method, w.Code, w.Body, want)
		}
	}
}
