package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const monitoringFolder = "../../packaging/monitoring"

// alertRules are the alerts, and alertTests is what promtool is told of them.
type alertRules struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations struct{ Summary, Description string }
		}
	}
}

type alertTests struct {
	Files []string `yaml:"rule_files"`
	Tests []struct {
		Series []struct{ Series, Values string } `yaml:"input_series"`
		Rules  []struct {
			Alert    string           `yaml:"alertname"`
			Expected []map[string]any `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// dashboard is a page of panels, as Grafana reads it.
type dashboard struct {
	UID    string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// readMonitoring reads a file of the folder; JSON is YAML, too.
func readMonitoring[T any](t *testing.T, name string) (as T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoringFolder, name))
	if err == nil {
		err = yaml.Unmarshal(text, &as)
	}
	if err != nil {
		t.Fatal(err)
	}
	return as
}

// expressions are all of alerts and dashboards, by where they stand, with a value for each variable
// of Grafana.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, g := range readMonitoring[alertRules](t, "alerts.yaml").Groups {
		for _, r := range g.Rules {
			list["alert "+r.Alert] = r.Expr
		}
	}
	filled := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, name := range []string{"overview", "services", "paths"} {
		d := readMonitoring[dashboard](t, "sextant-"+name+".json")
		for _, p := range d.Panels {
			for i, q := range p.Targets {
				list[fmt.Sprintf("%s: %s %d", d.UID, p.Title, i)] = filled.Replace(q.Expr)
			}
		}
	}
	return list
}

// metricNames are the names of the metrics that an expression of PromQL reads, those of histograms
// without the end that Prometheus adds.
func metricNames(expr string) []string {
	names := regexp.MustCompile(`\b(?:sextant|go|process)_[a-z_]+\b`).FindAllString(expr, -1)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "_bucket")
	}
	return names
}

// Each metric that an alert or a dashboard reads is one that the program or its Go runtime has.
func TestMonitoringReadsMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for where, expr := range expressions(t) {
		names := metricNames(expr)
		if len(names) == 0 && !strings.Contains(expr, "up{") {
			t.Errorf("%s reads no metric: %s", where, expr)
		}
		for _, name := range names {
			if !bytes.Contains(page, []byte("\n| `"+name+"` |")) {
				t.Errorf("%s reads %s, which does not exist", where, name)
			}
		}
	}
}

// Each alert has series with which it fires and others with which it does not, and promtool agrees.
func TestAlerts(t *testing.T) {
	tests := readMonitoring[alertTests](t, "alerts_test.yaml")
	if !slices.Equal(tests.Files, []string{"alerts.yaml"}) {
		t.Errorf("the tests are those of %q", tests.Files)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, r := range test.Rules {
			switch {
			case len(test.Series) == 0:
				t.Errorf("a test of %s has no series", r.Alert)
			case len(r.Expected) > 0:
				fires[r.Alert] = true
			default:
				silent[r.Alert] = true
			}
		}
	}
	for _, g := range readMonitoring[alertRules](t, "alerts.yaml").Groups {
		for _, r := range g.Rules {
			if !fires[r.Alert] || !silent[r.Alert] || r.Annotations.Summary == "" ||
				r.Annotations.Description == "" {
				t.Errorf("alert %s lacks series, summary or description", r.Alert)
			}
			severity := r.Labels["severity"]
			if !strings.HasPrefix(r.Alert, "Sextant") || severity != "critical" &&
				severity != "warning" {
				t.Errorf("alert %s: its name or severity %q", r.Alert, severity)
			}
		}
	}
	promtool(t, "test", "rules", filepath.Join(monitoringFolder, "alerts_test.yaml"))
	promtool(t, "check", "rules", filepath.Join(monitoringFolder, "alerts.yaml"))
}

// What panels show is PromQL.
func TestDashboardsArePromQL(t *testing.T) {
	var rules []string
	for where, expr := range expressions(t) {
		rules = append(rules, fmt.Sprintf("{record: 'r%d', expr: %q, labels: {where: %q}}",
			len(rules), expr, where))
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	text := "groups: [{name: panels, rules: [" + strings.Join(rules, ",\n") + "]}]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// promtool is in Debian's package prometheus, which scripts/deps.sh fetches.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
