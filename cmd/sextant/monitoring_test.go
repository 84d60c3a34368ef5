package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/monitoring"
	"sextant/packet/lists"
)

const monitoringFolder = "../../packaging/monitoring"

// made writes a file that is made from the program, or sees that it is as it should be.
func made(t *testing.T, file string, want []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the program says (-want +got, go test -args -update writes "+
			"it):\n%s",
			file, diff)
	}
}

// The page of metrics is that of the program and of the alerts, and the dashboards are made.
func TestMonitoring(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(monitoringFolder, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var alerts alertFile
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	page, err := metricsPage(alerts)
	made(t, "../../docs/reference/metrics.md", []byte(page), err)
	for _, d := range dashboards() {
		text, err := d.JSON()
		made(t, filepath.Join(monitoringFolder, d.Name+".json"), text, err)
	}
}

// Panels of a dashboard have their own ids, and do not lie over one another.
func TestDashboardsAreLaidOut(t *testing.T) {
	type panel struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
	}
	for _, d := range dashboards() {
		text, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var page struct{ Panels []panel }
		if err := json.Unmarshal(text, &page); err != nil {
			t.Fatal(err)
		}
		taken, ids := map[[2]int]string{}, map[int]bool{}
		for _, p := range page.Panels {
			if g := p.GridPos; g.X+g.W > 24 || ids[p.ID] {
				t.Errorf("%s: panel %q reaches beyond the page, or has an id of another", d.Name,
					p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := taken[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: panels %q and %q overlap", d.Name, other, p.Title)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

// alertFile is what the page says of the alerts.
type alertFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr, For string
			Labels           map[string]string
		}
	}
}

// metricsPage writes the reference of all metrics in Markdown.
func metricsPage(alerts alertFile) (string, error) {
	var b strings.Builder
	b.WriteString(pageIntro)
	for _, title := range []string{"Node", "Services and backends", "Routing",
		"Head-end and egress", "Controller", "Telemetry collector"} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | meaning |\n"+
			"| --- | --- | --- | --- |\n", title)
		for _, m := range monitoring.All() {
			if sectionOf(m) == title {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind,
					strings.Join(lists.Map(m.Labels, quoted), ", "), m.Help)
			}
		}
	}
	rest, err := runtimeMetrics()
	if err != nil {
		return "", err
	}
	b.WriteString("\n## Go runtime and process\n\nThose of Prometheus' client library.\n\n" +
		"| metric | type | meaning |\n| --- | --- | --- |\n")
	for _, m := range rest {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, m.Kind, m.Help)
	}
	b.WriteString("\n## Alerts\n\n| alert | for | severity | fires if |\n| --- | --- | --- | --- " +
		"|\n")
	for _, group := range alerts.Groups {
		for _, r := range group.Rules {
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", r.Alert, r.For, r.Labels["severity"],
				strings.ReplaceAll(r.Expr, "|", `\|`))
		}
	}
	return b.String(), nil
}

const pageIntro = `# Metrics

Prometheus reads them at ` + "`api.metrics`" + ` of a node file or of a controller's, path
` + "`/metrics`" + `; the API socket has them too. Units are in the names. Values of labels are
names of the node file, or come from fixed lists: no addresses of clients. The series of a service
or backend end when it is deleted.

The [alert rules](../../packaging/monitoring/alerts.yaml) lie beside series with which they fire and
others with which they do not. This page is made from them and from the program, and so are the
[dashboards](../../packaging/monitoring/sextant-overview.json) for Grafana:
` + "`go test ./cmd/sextant -run TestMonitoring -args -update`" + `. How to use them:
[operate](../howto/operate.md#metrics).
`

// sections are the subjects of metrics by how their names begin, behind the common prefix.
var sections = []struct{ title, begins string }{
	{"Controller", "controller_"},
	{"Telemetry collector", "collector_"},
	{"Head-end and egress", "headend_ policy_ protection_ path_ merge_ cflb_"},
	{"Routing", "bgp_ route_ routes_ fpm_ kernel_routes_ vrf_ etcd_ past_"},
	{"Services and backends", "service_ backend_ accept_ offers_ new_connections_ established_ " +
		"resets_ learning_ passed_on_ flow_cache_"},
}

func sectionOf(m monitoring.Metric) string {
	for _, s := range sections {
		for begin := range strings.FieldsSeq(s.begins) {
			if strings.HasPrefix(m.Name, "sextant_"+begin) {
				return s.title
			}
		}
	}
	return "Node"
}

func quoted(text string) string { return "`" + text + "`" }

// runtimeMetrics are the metrics that RuntimeCollectors show now.
func runtimeMetrics() (list []monitoring.Metric, err error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(monitoring.RuntimeCollectors()...)
	families, err := registry.Gather()
	for _, f := range families {
		list = append(list, monitoring.Metric{Name: f.GetName(), Help: f.GetHelp(),
			Kind: monitoring.Kind(strings.ToLower(f.GetType().String()))})
	}
	return list, err
}
