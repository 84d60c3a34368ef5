package monitoring

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
)

// Page writes the reference of all metrics in Markdown.
func Page() (string, error) {
	var b strings.Builder
	b.WriteString(pageIntro)
	for _, title := range []string{"Node", "Services and backends", "Routing",
		"Head-end and egress", "Controller", "Telemetry collector"} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | meaning |\n"+
			"| --- | --- | --- | --- |\n", title)
		for _, m := range All() {
			if m.section() == title {
				b.WriteString(m.row())
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
	for _, group := range Rules() {
		for _, r := range group.Rules {
			fmt.Fprintf(&b, "| `Sextant%s` | %s | %s | `%s` |\n", r.Name, r.For, r.Severity,
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

This page, the [alert rules](../../packaging/monitoring/alerts.yaml) with their tests and the
[dashboards](../../packaging/monitoring/sextant-overview.json) for Grafana are made from the
program:
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

func (m Metric) section() string {
	for _, s := range sections {
		for begin := range strings.FieldsSeq(s.begins) {
			if strings.HasPrefix(m.Name, prefix+begin) {
				return s.title
			}
		}
	}
	return "Node"
}

func (m Metric) row() string {
	names := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		names[i] = "`" + label + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(names, ", "),
		m.Help)
}

// runtimeMetrics are the metrics that RuntimeCollectors show now.
func runtimeMetrics() (list []Metric, err error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(RuntimeCollectors()...)
	families, err := registry.Gather()
	for _, f := range families {
		list = append(list, Metric{Name: f.GetName(), Help: f.GetHelp(),
			Kind: Kind(strings.ToLower(f.GetType().String()))})
	}
	return list, err
}

// Names returns the names of the metrics that an expression of PromQL reads, those of histograms
// without the end that Prometheus adds.
func Names(expr string) []string {
	names := regexp.MustCompile(`\b(?:sextant|go|process)_[a-z_]+\b`).FindAllString(expr, -1)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "_bucket")
	}
	return names
}

const generated = "# Made from agent/monitoring: " +
	"go test ./cmd/sextant -run TestMonitoring -args -update\n"

type yamlMap = yaml.MapSlice

// AlertRules writes the alerts as Prometheus reads them.
func AlertRules() ([]byte, error) {
	var groups []yamlMap
	for _, g := range Rules() {
		var rules []yamlMap
		for _, r := range g.Rules {
			rules = append(rules, yamlMap{
				{Key: "alert", Value: "Sextant" + r.Name}, {Key: "expr", Value: r.Expr},
				{Key: "for", Value: r.For},
				{Key: "labels", Value: map[string]string{"severity": string(r.Severity)}},
				{Key: "annotations", Value: yamlMap{
					{Key: "summary", Value: r.Summary},
					{Key: "description", Value: r.Description}}},
			})
		}
		groups = append(groups, yamlMap{{Key: "name", Value: "sextant-" + g.Name},
			{Key: "rules", Value: rules}})
	}
	return asYAML(yamlMap{{Key: "groups", Value: groups}})
}

// AlertTests writes the tests of the alerts as promtool reads them: each alert fires with its bad
// series, and none of its name with its good ones. File is that of the alerts.
func AlertTests(file string) ([]byte, error) {
	var tests []yamlMap
	for _, g := range Rules() {
		for _, r := range g.Rules {
			tests = append(tests, r.test("fires", r.Bad, []yamlMap{{
				{Key: "exp_labels", Value: r.firedLabels()},
				{Key: "exp_annotations", Value: yamlMap{
					{Key: "summary", Value: r.fill(r.Summary)},
					{Key: "description", Value: r.fill(r.Description)}}},
			}}), r.test("is silent", r.Good, []yamlMap{}))
		}
	}
	return asYAML(yamlMap{{Key: "rule_files", Value: []string{file}},
		{Key: "evaluation_interval", Value: "30s"}, {Key: "tests", Value: tests}})
}

func (r Rule) test(what string, series []Series, alerts []yamlMap) yamlMap {
	var input []yamlMap
	for _, s := range series {
		input = append(input, yamlMap{{Key: "series", Value: s.Name},
			{Key: "values", Value: s.Values}})
	}
	return yamlMap{
		{Key: "name", Value: "Sextant" + r.Name + " " + what}, {Key: "interval", Value: "30s"},
		{Key: "input_series", Value: input},
		{Key: "alert_rule_test", Value: []yamlMap{{
			{Key: "eval_time", Value: "10m"}, {Key: "alertname", Value: "Sextant" + r.Name},
			{Key: "exp_alerts", Value: alerts}}}},
	}
}

func (r Rule) firedLabels() yamlMap {
	all := maps.Clone(r.Fires)
	all["severity"] = string(r.Severity)
	var list yamlMap
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, yaml.MapItem{Key: name, Value: all[name]})
	}
	return list
}

// fill puts the labels of the fired alert into a text, as Prometheus does.
func (r Rule) fill(text string) string {
	for name, value := range r.Fires {
		text = strings.ReplaceAll(text, "{{ $labels."+name+" }}", value)
	}
	return text
}

func asYAML(value yamlMap) ([]byte, error) {
	out := bytes.NewBufferString(generated)
	err := yaml.NewEncoder(out, yaml.IndentSequence(true)).Encode(value)
	return out.Bytes(), err
}
