package monitoring

// Rule is an alert, and what shows that it fires when it should, and only then.
type Rule struct {
	Name     string // without Sextant in front
	Expr     string
	For      string // how long, as Prometheus writes durations
	Severity Severity
	// Summary and Description may name labels by {{ $labels.NAME }}.
	Summary, Description string
	// Bad are series with which the alert fires after ten minutes, Good series with which it does
	// not. Their values are in promtool's notation, one each 30 seconds.
	Bad, Good []Series
	Fires     map[string]string // labels of the alert that Bad gives
}

// Severity says how soon an operator must look.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // traffic is or will be lost: now
	Warning  Severity = "warning"  // in working hours
)

// Series is a time series of a test.
type Series struct{ Name, Values string }

func series(pairs ...string) (list []Series) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, Series{pairs[i], pairs[i+1]})
	}
	return list
}

func labels(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// Rules are the alerts, by subject.
func Rules() []Group {
	return []Group{
		{"node", nodeRules}, {"services", serviceRules}, {"routing", routingRules},
		{"paths", pathRules}, {"controller", controllerRules},
	}
}

// Group is a list of alerts about one subject.
type Group struct {
	Name  string
	Rules []Rule
}

var nodeRules = []Rule{
	{
		Name: "AgentDown", Expr: `up{job="sextant"} == 0`, For: "1m", Severity: Critical,
		Summary: "The agent of {{ $labels.instance }} does not answer.",
		Description: "Packets are forwarded on as before, but health checks, BGP and changes " +
			"stand still. See: systemctl status sextant.",
		Bad:   series(`up{job="sextant",instance="e1"}`, "0x20"),
		Good:  series(`up{job="sextant",instance="e1"}`, "1x20"),
		Fires: labels("job", "sextant", "instance", "e1"),
	},
	{
		Name: "ConfigurationStale", Expr: `sextant_config_last_reload_successful == 0`, For: "1m",
		Severity: Warning, Summary: "{{ $labels.instance }} runs an older node file.",
		Description: "The file applied last was refused. See: sextant check -f FILE.",
		Bad:         series(`sextant_config_last_reload_successful{instance="e1"}`, "0x20"),
		Good:        series(`sextant_config_last_reload_successful{instance="e1"}`, "1x20"),
		Fires:       labels("instance", "e1"),
	},
	{
		Name: "ProgramDetached", Expr: `sextant_program_attached == 0`, For: "1m",
		Severity: Critical,
		Summary: "Program {{ $labels.name }} does not run on {{ $labels.interface }} of " +
			"{{ $labels.instance }}.",
		Description: "Packets of that interface pass the load balancer by. See: sextant doctor.",
		Bad: series(`sextant_program_attached{instance="e1",name="edge",interface="eth0"}`,
			"0x20"),
		Good: series(`sextant_program_attached{instance="e1",name="edge",interface="eth0"}`,
			"1x20"),
		Fires: labels("instance", "e1", "name", "edge", "interface", "eth0"),
	},
	{
		Name: "DropsRising",
		Expr: `sum by (instance, role) (rate(sextant_drops_total[5m])) > 0.01 * ` +
			`sum by (instance, role) (rate(sextant_packets_total[5m]))`,
		For: "2m", Severity: Warning,
		Summary: "Role {{ $labels.role }} of {{ $labels.instance }} drops more than 1 % of its " +
			"packets.",
		Description: "sextant status has the reasons; what each means and how to fix it is in " +
			"docs/reference/dataplane.md.",
		Bad: series(`sextant_drops_total{instance="e1",role="edge",reason="no_route"}`, "0+90x20",
			`sextant_packets_total{instance="e1",role="edge",outcome="transmitted"}`, "0+3000x20"),
		Good: series(`sextant_drops_total{instance="e1",role="edge",reason="no_route"}`, "0+9x20",
			`sextant_packets_total{instance="e1",role="edge",outcome="transmitted"}`, "0+3000x20"),
		Fires: labels("instance", "e1", "role", "edge"),
	},
	{
		Name: "TableFilling",
		Expr: `sextant_map_entries{map!~"flow_choices|flow_paths|flow_places|fragments|hmac_known"} / ` +
			`sextant_map_capacity > 0.9`,
		For: "5m", Severity: Warning,
		Summary: "Table {{ $labels.map }} of {{ $labels.instance }} is more than 90 % full.",
		Description: "What does not fit is refused. docs/reference/limits.md says what sizes the " +
			"table. Tables that forget the entry used least recently are left out.",
		Bad: series(`sextant_map_entries{instance="e1",role="edge",map="services"}`, "95x20",
			`sextant_map_capacity{instance="e1",role="edge",map="services"}`, "100x20"),
		Good: series(`sextant_map_entries{instance="e1",role="edge",map="fragments"}`, "95x20",
			`sextant_map_capacity{instance="e1",role="edge",map="fragments"}`, "100x20"),
		Fires: labels("instance", "e1", "role", "edge", "map", "services"),
	},
	{
		Name: "StateNotKept", Expr: `sextant_state_kept == 0`, For: "5m", Severity: Warning,
		Summary: "{{ $labels.instance }} can't write its state.",
		Description: "A restart would lose the changes made at run time. Make room on the disk " +
			"of the state directory, or mend it.",
		Bad:   series(`sextant_state_kept{instance="e1"}`, "0x20"),
		Good:  series(`sextant_state_kept{instance="e1"}`, "1x20"),
		Fires: labels("instance", "e1"),
	},
	{
		Name: "MetricsIncomplete", Expr: `sextant_collection_successful == 0`, For: "5m",
		Severity: Warning,
		Summary:  "{{ $labels.instance }} can't read its metrics of part {{ $labels.part }}.",
		Description: "Other alerts that need them do not fire. The machine is overloaded, or " +
			"tables in the kernel can't be read. See: sextant status.",
		Bad:   series(`sextant_collection_successful{instance="e1",part="services"}`, "0x20"),
		Good:  series(`sextant_collection_successful{instance="e1",part="services"}`, "1x20"),
		Fires: labels("instance", "e1", "part", "services"),
	},
	{
		Name: "ListenerFull",
		Expr: `increase(sextant_listener_refused_connections_total[5m]) > 0`,
		For:  "1m", Severity: Warning,
		Summary: "Listener {{ $labels.listener }} of {{ $labels.instance }} refuses connections.",
		Description: "Too many clients ask the agent at once: in all or from one source, by " +
			"label limit.",
		Bad: series(`sextant_listener_refused_connections_total{instance="e1",`+
			`listener="metrics",limit="source"}`, "0+1x20"),
		Good: series(`sextant_listener_refused_connections_total{instance="e1",`+
			`listener="metrics",limit="source"}`, "7x20"),
		Fires: labels("instance", "e1", "listener", "metrics", "limit", "source"),
	},
	{
		Name: "FileDescriptors",
		Expr: `process_open_fds{job="sextant"} / process_max_fds > 0.8`,
		For:  "5m", Severity: Warning,
		Summary: "The agent of {{ $labels.instance }} has used 80 % of its file descriptors.",
		Description: "New connections to it will be refused. Raise LimitNOFILE of the unit, and " +
			"see which listener is full.",
		Bad: series(`process_open_fds{job="sextant",instance="e1"}`, "900x20",
			`process_max_fds{job="sextant",instance="e1"}`, "1024x20"),
		Good: series(`process_open_fds{job="sextant",instance="e1"}`, "90x20",
			`process_max_fds{job="sextant",instance="e1"}`, "1024x20"),
		Fires: labels("job", "sextant", "instance", "e1"),
	},
}

var serviceRules = []Rule{
	{
		Name: "ServiceWithoutBackends",
		Expr: `sum by (instance, service) (sextant_backend_up) == 0`, For: "30s",
		Severity:    Critical,
		Summary:     "Service {{ $labels.service }} of {{ $labels.instance }} has no backend.",
		Description: "New connections fail. See: sextant backend list {{ $labels.service }}.",
		Bad: series(`sextant_backend_up{instance="e1",service="web",backend="web1"}`, "0x20",
			`sextant_backend_up{instance="e1",service="web",backend="web2"}`, "0x20"),
		Good: series(`sextant_backend_up{instance="e1",service="web",backend="web1"}`, "0x20",
			`sextant_backend_up{instance="e1",service="web",backend="web2"}`, "1x20"),
		Fires: labels("instance", "e1", "service", "web"),
	},
	{
		Name: "ServicePanic", Expr: `sextant_service_panic == 1`, For: "1m", Severity: Critical,
		Summary: "Too few backends of {{ $labels.service }} are healthy.",
		Description: "{{ $labels.instance }} uses failing backends too, since those that are " +
			"healthy are fewer than the service's threshold.",
		Bad:   series(`sextant_service_panic{instance="e1",service="web"}`, "1x20"),
		Good:  series(`sextant_service_panic{instance="e1",service="web"}`, "0x20"),
		Fires: labels("instance", "e1", "service", "web"),
	},
	{
		Name: "BackendFailing", Expr: `sextant_backend_healthy == 0`, For: "2m", Severity: Warning,
		Summary: "Backend {{ $labels.backend }} of {{ $labels.service }} fails its checks.",
		Description: "{{ $labels.instance }} gives it no new connections. See: sextant backend " +
			"list {{ $labels.service }} -o wide.",
		Bad: series(`sextant_backend_healthy{instance="e1",service="web",backend="web1"}`,
			"0x20"),
		Good: series(`sextant_backend_healthy{instance="e1",service="web",backend="web1"}`,
			"1x20"),
		Fires: labels("instance", "e1", "service", "web", "backend", "web1"),
	},
	{
		Name: "BackendFlapping", Expr: `changes(sextant_backend_healthy[15m]) > 4`, For: "0s",
		Severity: Warning,
		Summary:  "Backend {{ $labels.backend }} of {{ $labels.service }} comes and goes.",
		Description: "Raise rise and fall of the check, or look at the server: its health " +
			"changed more than four times in 15 minutes.",
		Bad: series(`sextant_backend_healthy{instance="e1",service="web",backend="web1"}`,
			"0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 0 0 1 1 1"),
		Good: series(`sextant_backend_healthy{instance="e1",service="web",backend="web1"}`,
			"1 1 0 0 1 1x15"),
		Fires: labels("instance", "e1", "service", "web", "backend", "web1"),
	},
	{
		Name: "NewConnectionsRefused",
		Expr: `sum by (instance, service) (rate(sextant_new_connections_total` +
			`{decision="refused"}[5m])) > 0`,
		For: "5m", Severity: Warning,
		Summary: "{{ $labels.service }} has more new connections than its limit at " +
			"{{ $labels.instance }}.",
		Description: "SYNs above newConnections of the service are dropped: an attack, or a " +
			"limit that is too low.",
		Bad: series(`sextant_new_connections_total{instance="e1",service="web",`+
			`decision="refused"}`, "0+30x20"),
		Good: series(`sextant_new_connections_total{instance="e1",service="web",`+
			`decision="refused"}`, "30x20"),
		Fires: labels("instance", "e1", "service", "web"),
	},
	{
		Name: "ServersSaturated",
		Expr: `sum by (instance, service) (rate(sextant_offers_total{decision="forced"}[5m])) > ` +
			`0.05 * sum by (instance, service) (rate(sextant_offers_total[5m]))`,
		For: "5m", Severity: Warning,
		Summary: "More than 5 % of the connections of {{ $labels.service }} are forced on " +
			"{{ $labels.instance }}.",
		Description: "All candidates of these were busy: servers are missing, or the threshold " +
			"is too low.",
		Bad: series(`sextant_offers_total{instance="h1",service="web",family="ipv6",`+
			`decision="forced"}`, "0+10x20",
			`sextant_offers_total{instance="h1",service="web",family="ipv6",`+
				`decision="accepted"}`, "0+90x20"),
		Good: series(`sextant_offers_total{instance="h1",service="web",family="ipv6",`+
			`decision="forced"}`, "0+1x20",
			`sextant_offers_total{instance="h1",service="web",family="ipv6",`+
				`decision="accepted"}`, "0+90x20"),
		Fires: labels("instance", "h1", "service", "web"),
	},
}

var routingRules = []Rule{
	{
		Name: "BGPSessionDown", Expr: `sextant_bgp_session_up == 0`, For: "1m", Severity: Critical,
		Summary: "{{ $labels.instance }} has no BGP session to {{ $labels.peer }}.",
		Description: "Its VIPs are not announced there, and its backends not learned. See: " +
			"sextant bgp peers.",
		Bad:   series(`sextant_bgp_session_up{instance="e1",peer="fd00::1"}`, "0x20"),
		Good:  series(`sextant_bgp_session_up{instance="e1",peer="fd00::1"}`, "1x20"),
		Fires: labels("instance", "e1", "peer", "fd00::1"),
	},
	{
		Name: "EtcdSilent",
		Expr: `time() - sextant_etcd_last_success_timestamp_seconds > 60`, For: "1m",
		Severity: Warning, Summary: "{{ $labels.instance }} has not reached etcd for a minute.",
		Description: "Chains are not shared: if another edge takes over meanwhile, connections " +
			"of changed services may end.",
		Bad:   series(`sextant_etcd_last_success_timestamp_seconds{instance="e1"}`, "30x20"),
		Good:  series(`sextant_etcd_last_success_timestamp_seconds{instance="e1"}`, "0+30x20"),
		Fires: labels("instance", "e1"),
	},
	{
		Name: "RoutesNotTaken", Expr: `sextant_vrf_failing == 1`, For: "1m", Severity: Warning,
		Summary: "The kernel of {{ $labels.instance }} refuses routes of VRF {{ $labels.vrf }}.",
		Description: "What routing says and what the kernel does differ. See: sextant status, " +
			"sextant route list.",
		Bad:   series(`sextant_vrf_failing{instance="r1",vrf="red"}`, "1x20"),
		Good:  series(`sextant_vrf_failing{instance="r1",vrf="red"}`, "0x20"),
		Fires: labels("instance", "r1", "vrf", "red"),
	},
}

var pathRules = []Rule{
	{
		Name: "SegmentListDown", Expr: `sextant_policy_list_up == 0`, For: "1m", Severity: Warning,
		Summary: "Segment list {{ $labels.list }} of {{ $labels.policy }} carries no packets.",
		Description: "{{ $labels.instance }} uses the policy's other lists. See: sextant policy " +
			"show {{ $labels.policy }}.",
		Bad:   series(`sextant_policy_list_up{instance="r1",policy="p",list="a"}`, "0x20"),
		Good:  series(`sextant_policy_list_up{instance="r1",policy="p",list="a"}`, "1x20"),
		Fires: labels("instance", "r1", "policy", "p", "list", "a"),
	},
	{
		Name: "ProtectionDegraded",
		Expr: `sextant_protection_state{state=~"degraded|unprotected"} == 1`, For: "1m",
		Severity: Warning,
		Summary:  "Protection {{ $labels.protection }} is {{ $labels.state }}.",
		Description: "Fewer copies of its packets have paths than were asked for: one more " +
			"failure may lose packets. See: sextant protect show {{ $labels.protection }}.",
		Bad: series(`sextant_protection_state{instance="r1",protection="a",state="degraded"}`,
			"1x20"),
		Good: series(`sextant_protection_state{instance="r1",protection="a",state="protected"}`,
			"1x20",
			`sextant_protection_state{instance="r1",protection="a",state="degraded"}`, "0x20"),
		Fires: labels("instance", "r1", "protection", "a", "state", "degraded"),
	},
	{
		Name: "PathSilent", Expr: `sextant_merge_path_silent == 1`, For: "1m", Severity: Warning,
		Summary: "No copies come by path {{ $labels.flow }} of {{ $labels.sid }}.",
		Description: "Packets of the protected flow come by other paths only. See: sextant merge " +
			"at {{ $labels.instance }}.",
		Bad:   series(`sextant_merge_path_silent{instance="r2",sid="fcbb::/48",flow="1"}`, "1x20"),
		Good:  series(`sextant_merge_path_silent{instance="r2",sid="fcbb::/48",flow="1"}`, "0x20"),
		Fires: labels("instance", "r2", "sid", "fcbb::/48", "flow", "1"),
	},
}

var controllerRules = []Rule{
	{
		Name: "TelemetrySilent", Expr: `rate(sextant_controller_reports_total[2m]) == 0`,
		For: "3m", Severity: Warning,
		Summary: "No telemetry reaches the controller {{ $labels.instance }}.",
		Description: "It moves no flow away from full queues. See that the reports' address is " +
			"the controller's.",
		Bad:   series(`sextant_controller_reports_total{instance="c1"}`, "5x20"),
		Good:  series(`sextant_controller_reports_total{instance="c1"}`, "0+5x20"),
		Fires: labels("instance", "c1"),
	},
	{
		Name: "LinksDown", Expr: `sextant_controller_links_down > 0`, For: "1m", Severity: Warning,
		Summary: "Links of the topology of controller {{ $labels.instance }} are down.",
		Description: "Flows take other paths, as far as there are any. See: sextant controller " +
			"status.",
		Bad:   series(`sextant_controller_links_down{instance="c1"}`, "2x20"),
		Good:  series(`sextant_controller_links_down{instance="c1"}`, "0x20"),
		Fires: labels("instance", "c1"),
	},
	{
		Name: "FlowsMoveOften",
		Expr: `rate(sextant_controller_decisions_total{verdict="moved"}[5m]) > 10`, For: "5m",
		Severity: Warning,
		Summary:  "The controller {{ $labels.instance }} moves more than 10 flows per second.",
		Description: "Paths may be chasing one another: raise the controller's threshold or its " +
			"waiting times.",
		Bad: series(`sextant_controller_decisions_total{instance="c1",verdict="moved"}`,
			"0+600x20"),
		Good: series(`sextant_controller_decisions_total{instance="c1",verdict="moved"}`,
			"0+60x20"),
		Fires: labels("instance", "c1", "verdict", "moved"),
	},
}
