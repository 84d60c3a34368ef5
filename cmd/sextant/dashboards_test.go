package main

import "encoding/json"

// dashboard is a page of panels.
type dashboard struct {
	Name, Title string
	Rows        []dashboardRow
}

// dashboardRow is a line of panels below a title.
type dashboardRow struct {
	Title  string
	Panels []panel
}

// panel is a diagram of time series, or a number if it is a stat.
type panel struct {
	Title   string
	Unit    string // as Grafana names units
	Stat    bool
	Queries []panelQuery
}

// panelQuery is what a panel shows: PromQL, and what each series is called.
type panelQuery struct{ Expr, Legend string }

func diagram(title, unit string, queries ...string) panel {
	p := panel{Title: title, Unit: unit}
	for i := 0; i < len(queries); i += 2 {
		p.Queries = append(p.Queries, panelQuery{queries[i], queries[i+1]})
	}
	return p
}

func stat(title, unit, expr string) panel {
	return panel{Title: title, Unit: unit, Stat: true, Queries: []panelQuery{{expr, ""}}}
}

// ofInstances selects the instances that the reader of a dashboard has chosen.
const ofInstances = `instance=~"$instance"`

// dashboards are the pages: an overview of all nodes, edges and hosts, and paths.
func dashboards() []dashboard {
	return []dashboard{
		{"sextant-overview", "Sextant: overview", overviewRows},
		{"sextant-services", "Sextant: services", serviceRows},
		{"sextant-paths", "Sextant: paths and routing", pathRows},
	}
}

var overviewRows = []dashboardRow{
	{"Now", []panel{
		stat("Agents that answer", "short", `sum(up{job="sextant",`+ofInstances+`})`),
		stat("Backends that take connections", "short", `sum(sextant_backend_up{`+ofInstances+`})`),
		stat("Failing backends", "short",
			`count(sextant_backend_healthy{`+ofInstances+`} == 0) or vector(0)`),
		stat("Programs that do not run", "short",
			`count(sextant_program_attached{`+ofInstances+`} == 0) or vector(0)`),
	}},
	{"Traffic", []panel{
		diagram("Packets of services", "pps",
			`sum by (service) (rate(sextant_service_packets_total{role="edge",`+ofInstances+
				`}[$__rate_interval]))`, "{{service}}"),
		diagram("Bytes of services", "Bps",
			`sum by (service) (rate(sextant_service_bytes_total{role="edge",`+ofInstances+
				`}[$__rate_interval]))`, "{{service}}"),
		diagram("What became of packets", "pps",
			`sum by (role, outcome) (rate(sextant_packets_total{`+ofInstances+
				`}[$__rate_interval])) > 0`, "{{role}} {{outcome}}"),
		diagram("Drops by reason", "pps",
			`sum by (role, reason) (rate(sextant_drops_total{`+ofInstances+
				`}[$__rate_interval])) > 0`, "{{role}} {{reason}}"),
	}},
	{"Agents", []panel{
		diagram("CPU", "percentunit",
			`rate(process_cpu_seconds_total{job="sextant",`+ofInstances+`}[$__rate_interval])`,
			"{{instance}}"),
		diagram("Memory", "bytes",
			`process_resident_memory_bytes{job="sextant",`+ofInstances+`}`, "{{instance}}"),
		diagram("Time of changes, 99th percentile", "s",
			`histogram_quantile(0.99, sum by (instance, le) `+
				`(rate(sextant_map_update_duration_seconds_bucket{`+ofInstances+
				`}[$__rate_interval])))`, "{{instance}}"),
		diagram("Fill of tables", "percentunit",
			`sextant_map_entries{`+ofInstances+`} / sextant_map_capacity`,
			"{{instance}} {{role}} {{map}}"),
	}},
}

var serviceRows = []dashboardRow{
	{"Edges", []panel{
		diagram("Packets of backends", "pps",
			`sum by (service, backend) (rate(sextant_backend_packets_total{`+ofInstances+
				`}[$__rate_interval]))`, "{{service}} {{backend}}"),
		diagram("Bytes of backends", "Bps",
			`sum by (service, backend) (rate(sextant_backend_bytes_total{`+ofInstances+
				`}[$__rate_interval]))`, "{{service}} {{backend}}"),
		diagram("Backends that take connections", "short",
			`sum by (instance, service) (sextant_backend_up{`+ofInstances+`})`,
			"{{instance}} {{service}}"),
		diagram("New connections under a limit", "cps",
			`sum by (service, decision) (rate(sextant_new_connections_total{`+ofInstances+
				`}[$__rate_interval]))`, "{{service}} {{decision}}"),
	}},
	{"Health checks", []panel{
		diagram("Health", "short", `sextant_backend_healthy{`+ofInstances+`}`,
			"{{instance}} {{service}} {{backend}}"),
		diagram("Failed checks", "ops",
			`sum by (service, backend) (rate(sextant_backend_checks_total{result="failure",`+
				ofInstances+`}[$__rate_interval]))`, "{{service}} {{backend}}"),
		diagram("Duration of checks, median and 99th percentile", "s",
			`histogram_quantile(0.5, sum by (service, le) `+
				`(rate(sextant_backend_check_duration_seconds_bucket{`+ofInstances+
				`}[$__rate_interval])))`, "{{service}} 50 %",
			`histogram_quantile(0.99, sum by (service, le) `+
				`(rate(sextant_backend_check_duration_seconds_bucket{`+ofInstances+
				`}[$__rate_interval])))`, "{{service}} 99 %"),
	}},
	{"Hosts", []panel{
		diagram("Open connections and threshold", "short",
			`sextant_service_busy_connections{`+ofInstances+`}`, "{{instance}} {{service}} open",
			`sextant_accept_threshold{`+ofInstances+`}`, "{{instance}} {{service}} threshold"),
		diagram("Decisions on offers", "cps",
			`sum by (service, decision) (rate(sextant_offers_total{`+ofInstances+
				`}[$__rate_interval]))`, "{{service}} {{decision}}"),
		diagram("Resets", "cps",
			`sum by (instance, service) (rate(sextant_resets_total{`+ofInstances+
				`}[$__rate_interval]))`, "{{instance}} {{service}}"),
	}},
}

var pathRows = []dashboardRow{
	{"Routing", []panel{
		diagram("BGP sessions", "short", `sextant_bgp_session_up{`+ofInstances+`}`,
			"{{instance}} {{peer}}"),
		diagram("Routes over SRv6", "short", `sextant_route_source_routes{`+ofInstances+`}`,
			"{{instance}} {{source}}"),
	}},
	{"SR policies", []panel{
		diagram("Packets of segment lists", "pps",
			`sum by (policy, list) (rate(sextant_policy_packets_total{`+ofInstances+
				`}[$__rate_interval]))`, "{{policy}} {{list}}"),
		diagram("Segment lists that carry", "short", `sextant_policy_list_up{`+ofInstances+`}`,
			"{{policy}} {{list}}"),
	}},
	{"Protections", []panel{
		diagram("Paths that carry", "short", `sextant_protection_carrying_paths{`+ofInstances+`}`,
			"{{protection}}"),
		diagram("Round-trip time of paths", "s", `sextant_protection_path_rtt_seconds{`+ofInstances+`}`,
			"{{protection}} {{list}}"),
		diagram("Copies that were lost", "percentunit",
			`sextant_protection_path_copy_loss_ratio{`+ofInstances+`}`, "{{protection}} {{list}}"),
		diagram("Duration of path computation, 99th percentile", "s",
			`histogram_quantile(0.99, sum by (proven, le) `+
				`(rate(sextant_path_compute_duration_seconds_bucket{`+ofInstances+
				`}[$__rate_interval])))`, "proven {{proven}}"),
	}},
	{"Controller", []panel{
		diagram("Reports", "ops", `rate(sextant_controller_reports_total{`+ofInstances+
			`}[$__rate_interval])`, "{{instance}}"),
		diagram("Decisions", "ops", `sum by (verdict) (rate(sextant_controller_decisions_total{`+
			ofInstances+`}[$__rate_interval]))`, "{{verdict}}"),
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
func (d dashboard) JSON() ([]byte, error) {
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

func (d dashboard) panels() (list []object) {
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

func (p panel) object() object {
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
