package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
	"sextant/config"
)

// fakeAgent answers what metrics ask for; err: its services can't be read.
type fakeAgent struct {
	services []api.Service
	err      error
}

func (f fakeAgent) Services(context.Context, ...string) ([]api.Service, error) {
	return f.services, f.err
}

func (f fakeAgent) Counters(context.Context) ([]api.Counters, error) {
	return []api.Counters{{Role: api.Edge, PassedPackets: 7}}, nil
}

func (f fakeAgent) Maps(context.Context) ([]api.Map, error)    { return nil, nil }
func (f fakeAgent) Status(context.Context) (api.Status, error) { return api.Status{}, nil }

// shown is what a scrape of an agent gets.
func shown(t testing.TB, f fakeAgent) string {
	t.Helper()
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "updates"})
	answer := httptest.NewRecorder()
	metrics.New("1", histogram, f).Handler.ServeHTTP(answer,
		httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("answer %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// A part that can't be read is told, and what can be is there.
func TestFailedPartIsTold(t *testing.T) {
	for text, err := range map[string]error{"1": nil, "0": errors.New("no answer in time")} {
		got := shown(t, fakeAgent{err: err})
		for _, line := range []string{
			`sextant_collection_successful{part="services"} ` + text,
			`sextant_collection_successful{part="counters"} 1`,
			`sextant_packets_total{outcome="passed",role="edge"} 7`,
		} {
			if !strings.Contains(got, line+"\n") {
				t.Errorf("with error %v there is no %s", err, line)
			}
		}
	}
}

// manyServices have the same names of backends, and are not in the order of their own names.
func manyServices(services, backends int) (list []api.Service) {
	for i := range services {
		s := api.Service{Name: fmt.Sprintf("s%d", i), Role: api.Edge, Edge: &api.EdgeService{}}
		for j := range backends {
			s.Edge.Backends = append(s.Edge.Backends, api.Backend{Service: s.Name,
				Name: fmt.Sprintf("b%d", j), Packets: uint64(100*i + j), Weight: 1,
				Effective: config.Up})
		}
		list = append(list, s)
	}
	return list
}

// Whatever their order, each service and backend has its series, with its own values.
func TestSeriesOfManyServices(t *testing.T) {
	list := manyServices(30, 12)
	got := shown(t, fakeAgent{services: list})
	if list[2].Name != "s2" {
		t.Errorf("the list was changed: its third service is %s", list[2].Name)
	}
	for i := range 30 {
		for j := range 12 {
			line := fmt.Sprintf("sextant_backend_packets_total{backend=\"b%d\","+
				"service=\"s%d\"} %d\n", j, i, 100*i+j)
			if strings.Count(got, line) != 1 {
				t.Errorf("%d times: %s", strings.Count(got, line), line)
			}
		}
	}
	if n := strings.Count(got, "\nsextant_backend_up{"); n != 30*12 {
		t.Errorf("%d series say who is up, not %d", n, 30*12)
	}
}

// BenchmarkScrape is a scrape of 10,000 services with 10 backends each, without the reading of
// their counters.
func BenchmarkScrape(b *testing.B) {
	f := fakeAgent{services: manyServices(10000, 10)}
	for b.Loop() {
		shown(b, f)
	}
}
