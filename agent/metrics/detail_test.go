package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
	"sextant/config"
)

// A scrape may leave out the series of backends, or those of services, too; what remains does not
// change. How many backends a service has of each state is told with either.
func TestDetailOfScrapes(t *testing.T) {
	list := manyServices(3, 4)
	for i, state := range []config.BackendState{config.Draining, config.Down, config.Up} {
		list[1].Edge.Backends[i].Effective = state
	}
	list[1].Edge.Check = "tcp"
	list[1].Edge.Backends[3].Health = &api.Health{Status: "failing"}
	list = append(list, api.Service{Name: "empty", Role: api.Edge, Edge: &api.EdgeService{}})
	m := metrics.New("1", prometheus.NewHistogram(prometheus.HistogramOpts{Name: "updates"}),
		fakeAgent{services: list})
	scrape := func(query string) (int, string) {
		answer := httptest.NewRecorder()
		m.Handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics"+query, nil))
		return answer.Code, answer.Body.String()
	}
	const node = `sextant_packets_total{outcome="passed",role="edge"} 7`
	counted := []string{
		`sextant_service_backends{service="s1",state="up"} 2`,
		`sextant_service_backends{service="s1",state="draining"} 1`,
		`sextant_service_backends{service="s1",state="down"} 1`,
		`sextant_service_backends{service="s1",state="maintenance"} 0`,
		`sextant_service_backends{service="s2",state="up"} 4`,
		`sextant_service_failing_backends{service="s1"} 1`,
		`sextant_service_backends{service="empty",state="up"} 0`, // which alerts look for
	}
	for query, want := range map[string]struct{ services, backends bool }{
		"": {true, true}, "?detail=backend": {true, true}, "?detail=service": {true, false},
		"?detail=node": {},
	} {
		code, text := scrape(query)
		if code != 200 || !strings.Contains(text, node+"\n") {
			t.Errorf("%q: answer %d without %s", query, code, node)
		}
		for _, line := range counted {
			if strings.Contains(text, line+"\n") != want.services {
				t.Errorf("%q: services are told: %v; %s", query, want.services, line)
			}
		}
		if strings.Contains(text, "sextant_service_packets_total{") != want.services ||
			strings.Contains(text, `backend="b0"`) != want.backends {
			t.Errorf("%q: want services %v, backends %v:\n%s", query, want.services, want.backends,
				text)
		}
	}
	if code, text := scrape("?detail=all"); code != 400 ||
		!strings.Contains(text, "node, service or backend") {
		t.Errorf("an unknown detail: answer %d: %s", code, text)
	}
}
