package monitoring

import (
	"encoding/json"
	"strings"
)

// Dashboard is a page of panels.
type Dashboard struct {
	Name, Title string
	Rows        []Row
}

// Row is a line of panels below a title.
type Row struct {
	Title  string
	Panels []Panel
}

// Panel is a diagram of time series, or a number if it is a stat.
type Panel struct {
	Title   string
	Unit    string // as Grafana names units
	Stat    bool
	Queries []Query
}

// Query is what a panel shows: PromQL, and what each series is called.
type Query struct{ Expr, Legend string }

func panel(title, unit string, queries ...string) Panel {
	p := Panel{Title: title, Unit: unit}
	for i := 0; i < len(queries); i += 2 {
		p.Queries = append(p.Queries, Query{queries[i], queries[i+1]})
	}
	return p
}

func stat(title, unit, expr string) Panel {
	return Panel{Title: title, Unit: unit, Stat: true, Queries: []Query{{expr, ""}}}
}

// chosen selects the instances that the reader of a dashboard has chosen.
const chosen = `instance=~"$instance"`

// Dashboards are the pages: an overview of all nodes, edges and hosts, and paths.
func Dashboards() []Dashboard {
	return []Dashboard{
		{"sextant-overview", "Sextant: overview", overview},
		{"sextant-services", "Sextant: services", services},
		{"sextant-paths", "Sextant: paths and routing", paths},
	}
}

var overview = []Row{
	{"Now", []Panel{
		stat("Agents that answer", "short", `sum(up{job="sextant",`+chosen+`})`),
		stat("Backends that take connections", "short", `sum(sextant_backend_up{`+chosen+`})`),
		stat("Failing backends", "short",
			`count(sextant_backend_healthy{`+chosen+`} == 0) or vector(0)`),
		stat("Programs that do not run", "short",
			`count(sextant_program_attached{`+chosen+`} == 0) or vector(0)`),
	}},
	{"Traffic", []Panel{
		panel("Packets of services", "pps",
			`sum by (service) (rate(sextant_service_packets_total{role="edge",`+chosen+
				`}[$__rate_interval]))`, "{{service}}"),
		panel("Bytes of services", "Bps",
			`sum by (service) (rate(sextant_service_bytes_total{role="edge",`+chosen+
				`}[$__rate_interval]))`, "{{service}}"),
		panel("What became of packets", "pps",
			`sum by (role, outcome) (rate(sextant_packets_total{`+chosen+
				`}[$__rate_interval])) > 0`, "{{role}} {{outcome}}"),
		panel("Drops by reason", "pps",
			`sum by (role, reason) (rate(sextant_drops_total{`+chosen+
				`}[$__rate_interval])) > 0`, "{{role}} {{reason}}"),
	}},
	{"Agents", []Panel{
		panel("CPU", "percentunit",
			`rate(process_cpu_seconds_total{job="sextant",`+chosen+`}[$__rate_interval])`,
			"{{instance}}"),
		panel("Memory", "bytes",
			`process_resident_memory_bytes{job="sextant",`+chosen+`}`, "{{instance}}"),
		panel("Time of changes, 99th percentile", "s",
			`histogram_quantile(0.99, sum by (instance, le) `+
				`(rate(sextant_map_update_duration_seconds_bucket{`+chosen+
				`}[$__rate_interval])))`, "{{instance}}"),
		panel("Fill of tables", "percentunit",
			`sextant_map_entries{`+chosen+`} / sextant_map_capacity`,
			"{{instance}} {{role}} {{map}}"),
	}},
}

var services = []Row{
	{"Edges", []Panel{
		panel("Packets of backends", "pps",
			`sum by (service, backend) (rate(sextant_backend_packets_total{`+chosen+
				`}[$__rate_interval]))`, "{{service}} {{backend}}"),
		panel("Bytes of backends", "Bps",
			`sum by (service, backend) (rate(sextant_backend_bytes_total{`+chosen+
				`}[$__rate_interval]))`, "{{service}} {{backend}}"),
		panel("Backends that take connections", "short",
			`sum by (instance, service) (sextant_backend_up{`+chosen+`})`,
			"{{instance}} {{service}}"),
		panel("New connections under a limit", "cps",
			`sum by (service, decision) (rate(sextant_new_connections_total{`+chosen+
				`}[$__rate_interval]))`, "{{service}} {{decision}}"),
	}},
	{"Health checks", []Panel{
		panel("Health", "short", `sextant_backend_healthy{`+chosen+`}`,
			"{{instance}} {{service}} {{backend}}"),
		panel("Failed checks", "ops",
			`sum by (service, backend) (rate(sextant_backend_checks_total{result="failure",`+
				chosen+`}[$__rate_interval]))`, "{{service}} {{backend}}"),
		panel("Duration of checks, median and 99th percentile", "s",
			`histogram_quantile(0.5, sum by (service, le) `+
				`(rate(sextant_backend_check_duration_seconds_bucket{`+chosen+
				`}[$__rate_interval])))`, "{{service}} 50 %",
			`histogram_quantile(0.99, sum by (service, le) `+
				`(rate(sextant_backend_check_duration_seconds_bucket{`+chosen+
				`}[$__rate_interval])))`, "{{service}} 99 %"),
	}},
	{"Hosts", []Panel{
		panel("Open connections and threshold", "short",
			`sextant_service_busy_connections{`+chosen+`}`, "{{instance}} {{service}} open",
			`sextant_accept_threshold{`+chosen+`}`, "{{instance}} {{service}} threshold"),
		panel("Decisions on offers", "cps",
			`sum by (service, decision) (rate(sextant_offers_total{`+chosen+
				`}[$__rate_interval]))`, "{{service}} {{decision}}"),
		panel("Resets", "cps",
			`sum by (instance, service) (rate(sextant_resets_total{`+chosen+
				`}[$__rate_interval]))`, "{{instance}} {{service}}"),
	}},
}

var paths = []Row{
	{"Routing", []Panel{
		panel("BGP sessions", "short", `sextant_bgp_session_up{`+chosen+`}`,
			"{{instance}} {{peer}}"),
		panel("Routes over SRv6", "short", `sextant_route_source_routes{`+chosen+`}`,
			"{{instance}} {{source}}"),
	}},
	{"SR policies", []Panel{
		panel("Packets of segment lists", "pps",
			`sum by (policy, list) (rate(sextant_policy_packets_total{`+chosen+
				`}[$__rate_interval]))`, "{{policy}} {{list}}"),
		panel("Segment lists that carry", "short", `sextant_policy_list_up{`+chosen+`}`,
			"{{policy}} {{list}}"),
	}},
	{"Protections", []Panel{
		panel("Paths that carry", "short", `sextant_protection_carrying_paths{`+chosen+`}`,
			"{{protection}}"),
		panel("Round-trip time of paths", "s", `sextant_protection_path_rtt_seconds{`+chosen+`}`,
			"{{protection}} {{list}}"),
		panel("Copies that were lost", "percentunit",
			`sextant_protection_path_copy_loss_ratio{`+chosen+`}`, "{{protection}} {{list}}"),
		panel("Duration of path computation, 99th percentile", "s",
			`histogram_quantile(0.99, sum by (proven, le) `+
				`(rate(sextant_path_compute_duration_seconds_bucket{`+chosen+
				`}[$__rate_interval])))`, "proven {{proven}}"),
	}},
	{"Controller", []Panel{
		panel("Reports", "ops", `rate(sextant_controller_reports_total{`+chosen+
			`}[$__rate_interval])`, "{{instance}}"),
		panel("Decisions", "ops", `sum by (verdict) (rate(sextant_controller_decisions_total{`+
			chosen+`}[$__rate_interval]))`, "{{verdict}}"),
	}},
}

// Sizes of panels on Grafana's grid.
const (
	gridWidth   = 24
	statHeight  = 4
	panelHeight = 8
	perLine     = 2 // diagrams
)

// object is one of JSON.
type object map[string]any

// JSON writes the dashboard as Grafana imports it, since version 11.
func (d Dashboard) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(object{
		"uid": d.Name, "title": d.Title, "tags": []string{"sextant"}, "schemaVersion": 39,
		"editable": true, "refresh": "30s", "timezone": "browser",
		"time":       object{"from": "now-1h", "to": "now"},
		"templating": object{"list": variables()}, "panels": d.panels(),
	}, "", "  ")
	return append(text, '\n'), err
}

// variables are what a reader chooses above the panels.
func variables() []object {
	return []object{
		{"name": "datasource", "label": "Data source", "type": "datasource",
			"query": "prometheus"},
		{"name": "instance", "label": "Instance", "type": "query", "multi": true,
			"includeAll": true, "allValue": ".*", "refresh": 2, "datasource": source(),
			"current": object{"text": "All", "value": "$__all"},
			"query":   "label_values(sextant_build_info, instance)"},
	}
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func (d Dashboard) panels() (list []object) {
	y := 0
	add := func(o object, x, width, height int) {
		o["id"] = len(list) + 1
		o["gridPos"] = object{"x": x, "y": y, "w": width, "h": height}
		list = append(list, o)
	}
	for _, row := range d.Rows {
		add(object{"type": "row", "title": row.Title, "collapsed": false,
			"panels": []object{}}, 0, gridWidth, 1)
		y++
		x, height := 0, 0
		for _, p := range row.Panels {
			width, tall := gridWidth/perLine, panelHeight
			if p.Stat {
				width, tall = gridWidth/len(row.Panels), statHeight
			}
			if x+width > gridWidth {
				x, y = 0, y+height
			}
			add(p.object(), x, width, tall)
			x, height = x+width, tall
		}
		y += height
	}
	return list
}

func (p Panel) object() object {
	kind, options := "timeseries", object{
		"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
	if p.Stat {
		kind, options = "stat", object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}}
	}
	var targets []object
	for i, q := range p.Queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "expr": q.Expr,
			"legendFormat": q.Legend, "datasource": source()})
	}
	return object{
		"type": kind, "title": p.Title, "datasource": source(), "targets": targets,
		"options": options,
		"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0},
			"overrides": []object{}},
	}
}

// Filled is the query's PromQL with a value for each variable.
func (q Query) Filled() string {
	return strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(q.Expr)
}
