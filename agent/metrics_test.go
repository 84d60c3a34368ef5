package agent_test

import (
	"bufio"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"sextant/agent/api"
	"sextant/agent/monitoring"
)

var (
	shownType   = regexp.MustCompile(`^# TYPE (sextant_\S+) (\S+)$`)
	shownSample = regexp.MustCompile(`^(sextant_\S+?)(?:\{(.*)\})? \S+$`)
	shownLabel  = regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
)

// seeDefined wants each metric that is shown to have its type and its labels in the list of all.
func seeDefined(t *testing.T, text string) {
	t.Helper()
	defined := map[string]monitoring.Metric{}
	for _, m := range monitoring.All() {
		defined[m.Name] = m
	}
	kind := monitoring.Kind("")
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if found := shownType.FindStringSubmatch(line); found != nil {
			kind = defined[found[1]].Kind
			if string(kind) != found[2] {
				t.Errorf("%s is a %s, but was defined as %q", found[1], found[2], kind)
			}
		}
		found := shownSample.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		var labels []string
		for _, l := range shownLabel.FindAllStringSubmatch(found[2], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		name := found[1]
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if kind == monitoring.Histogram {
				name = strings.TrimSuffix(name, end)
			}
		}
		want := slices.Sorted(slices.Values(defined[name].Labels))
		if slices.Sort(labels); !slices.Equal(labels, want) {
			t.Errorf("%s has the labels %q, but was defined with %q", name, labels, want)
		}
	}
}

// The series of a backend and of a service end when they are deleted, health checks' too.
func TestSeriesEndWithTheirObjects(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	a := m.start(strings.Replace(nodeText, "      port: 80\n", "      port: 80\n      "+
		"check: {kind: tcp, port: 9, interval: 100ms, timeout: 50ms, fall: 1, rise: 1}\n", 1))
	defer a.stop()
	checked := `sextant_backend_check_duration_seconds_count{backend="web1",service="web"}`
	for a.metric(checked) == "" || a.metric(checked) == "0" {
		if t.Context().Err() != nil {
			t.Fatal("no check has ended")
		}
	}
	if !strings.Contains(a.metrics(), `backend="web1"`) {
		t.Fatal("there are no series of web1")
	}
	if _, err := a.DeleteBackend(t.Context(), "web", "web1"); err != nil {
		t.Fatal(err)
	}
	if text := a.metrics(); strings.Contains(text, `backend="web1"`) ||
		!strings.Contains(text, `backend="web2"`) {
		t.Error("after deleting web1 there are series of it, or none of web2")
	}
	if _, err := a.DeleteService(t.Context(), "web", api.Edge); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(a.metrics(), `service="web"`) {
		t.Error("after deleting web there are series of it")
	}
}

// The probes of the metrics port tell a node that forwards as it should from one that does not.
func TestProbes(t *testing.T) {
	m := newMachine(t)
	must(t, m.ns.Do(upLoopback))
	a := m.start(strings.Replace(nodeText, "api: {", `api: {metrics: "127.0.0.1:9477", `, 1))
	defer a.stop()
	probe := func(path string) (int, string) {
		response, body := m.get(t, "http://127.0.0.1:9477"+path)
		return response.StatusCode, body
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := probe(path); status != http.StatusOK || body != "ok\n" {
			t.Errorf("%s of a node that runs: %d %q", path, status, body)
		}
	}
	must(t, m.ns.Do(func() error { return removeLink("edge0") }))
	for status := http.StatusOK; status == http.StatusOK; {
		var body string
		if status, body = probe("/readyz"); status != http.StatusOK &&
			!strings.Contains(body, "edge") {
			t.Errorf("/readyz without an interface: %d %q", status, body)
		}
	}
	if status, _ := probe("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz of a node without an interface: %d", status)
	}
}

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
	for _, name := range []string{"go_goroutines ", "process_open_fds ",
		"process_cpu_seconds_total "} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("there is no %s", name)
		}
	}
	if !strings.Contains(text, `revision="`) || strings.Contains(text, `revision=""`) {
		t.Error("the build does not name its revision")
	}
	seeDefined(t, text)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
