package metrics_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/metrics"
)

// byLibrary is the page as the client library writes it: its own text of a protobuf answer.
func byLibrary(t *testing.T, f fakeAgent) string {
	t.Helper()
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	answer := httptest.NewRecorder()
	metrics.New("1", prometheus.NewHistogram(prometheus.HistogramOpts{Name: "updates"}), f).
		Handler.ServeHTTP(answer, request)
	var text strings.Builder
	decoder := expfmt.NewDecoder(answer.Body, expfmt.ResponseFormat(answer.Header()))
	for {
		var family dto.MetricFamily
		err := decoder.Decode(&family)
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err == nil {
			_, err = expfmt.MetricFamilyToText(&text, &family)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ownLines are the lines of the project's own metrics: others change between two scrapes.
func ownLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "sextant_") {
			lines = append(lines, line)
		}
	}
	return lines
}

// oddServices have each metric of services, names that are escaped, and values of all sizes.
func oddServices() (list []api.Service) {
	values := []uint64{0, 1, 999_999, 1_000_000, 123_456_789, math.MaxUint64}
	for i, name := range []string{"b", "a", `q"\`, "n\nl", "ü", "a1"} {
		packets := values[i%len(values)]
		edge := &api.EdgeService{Check: "tcp", Panic: i%2 == 0, UncountedPackets: packets,
			NewConnections: &api.NewConnections{Rate: 5, Burst: 5, Taken: packets, Refused: 7}}
		for j := range 3 {
			h := &api.Health{Status: health.Healthy.String(), SucceededChecks: packets}
			for n := range i * j {
				h.Durations.Add(time.Duration(n*n*n) * 3 * time.Millisecond)
			}
			edge.Backends = append(edge.Backends, api.Backend{Service: name, Health: h,
				Name: fmt.Sprintf("b%d", 2-j), Packets: packets, Bytes: values[j], Weight: j})
		}
		list = append(list,
			api.Service{Name: name, Role: api.Edge, Edge: edge, Packets: packets,
				VIP: netip.MustParseAddr([]string{"192.0.2.1", "2001:db8::1"}[i%2])},
			api.Service{Name: name, Role: api.Host, Bytes: packets,
				Host: &api.HostService{Accepted: packets, Refused: 2, Threshold: 3}})
	}
	return list
}

// TestTextIsTheLibrarys: what is written of services by itself is what the client library would
// write, in the same order.
func TestTextIsTheLibrarys(t *testing.T) {
	for name, f := range map[string]fakeAgent{"odd": {services: oddServices()}, "none": {},
		"many": {services: manyServices(40, 12)}} {
		got, want := ownLines(shown(t, f)), ownLines(byLibrary(t, f))
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%s: line %d is\n%swant\n%s", name, i, got[min(i, len(got)-1)],
					want[min(i, len(want)-1)])
			}
		}
		if len(got) < 20 {
			t.Errorf("%s: only %d lines are compared", name, len(got))
		}
	}
}

// A scraper that names metrics gets these alone.
func TestScrapeByName(t *testing.T) {
	answer := httptest.NewRecorder()
	metrics.New("1", prometheus.NewHistogram(prometheus.HistogramOpts{Name: "updates"}),
		fakeAgent{services: oddServices()}).Handler.ServeHTTP(answer,
		httptest.NewRequest("GET", "/metrics?name[]=sextant_service_panic", nil))
	want := "# HELP sextant_service_panic "
	if text := answer.Body.String(); !strings.HasPrefix(text, want) ||
		strings.Count(text, "\n") != 2+6 {
		t.Errorf("by name:\n%s", text)
	}
}
