package agent_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// What dashboards and alerts stand on is there, and named as Prometheus wants it.
func TestMetrics(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	text := a.metrics()
	for _, name := range []string{
		"sextant_build_info{", "sextant_service_packets_total{", "sextant_service_bytes_total{",
		"sextant_backend_up{",
		"sextant_backend_weight{", "sextant_backend_packets_total{",
		"sextant_service_busy_connections{", "sextant_accept_threshold{",
		"sextant_offers_total{", "sextant_packets_total{", "sextant_drops_total{",
		"sextant_map_entries{", "sextant_map_capacity{",
		"sextant_map_update_duration_seconds_count", reloaded,
		"sextant_config_last_reload_timestamp_seconds", "sextant_program_info{",
	} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("there is no %s", name)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
