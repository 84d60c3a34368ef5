package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sextant/agent/monitoring"
)

const monitoringFolder = "../../packaging/monitoring"

// expressions are all of alerts and dashboards, by where they stand.
func expressions() map[string]string {
	list := map[string]string{}
	for _, g := range monitoring.Rules() {
		for _, r := range g.Rules {
			list["alert "+r.Name] = r.Expr
		}
	}
	for _, d := range monitoring.Dashboards() {
		for _, row := range d.Rows {
			for _, p := range row.Panels {
				for i, q := range p.Queries {
					list[fmt.Sprintf("%s: %s %d", d.Name, p.Title, i)] = q.Filled()
				}
			}
		}
	}
	return list
}

// Each metric that an alert or a dashboard reads is one that the program or its Go runtime has.
func TestMonitoringReadsMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for where, expr := range expressions() {
		names := monitoring.Names(expr)
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
	for _, g := range monitoring.Rules() {
		for _, r := range g.Rules {
			if len(r.Bad) == 0 || len(r.Good) == 0 || r.Summary == "" || r.Description == "" {
				t.Errorf("alert %s lacks series, summary or description", r.Name)
			}
		}
	}
	promtool(t, "test", "rules", filepath.Join(monitoringFolder, "alerts_test.yaml"))
	promtool(t, "check", "rules", filepath.Join(monitoringFolder, "alerts.yaml"))
}

// What panels show is PromQL.
func TestDashboardsArePromQL(t *testing.T) {
	var rules []string
	for where, expr := range expressions() {
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
