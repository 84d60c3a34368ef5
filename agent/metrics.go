package agent

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/monitoring"
	"sextant/config"
)

// metrics are the agent's Prometheus metrics. Counters of packets are read from the kernel when
// they are asked for.
type metrics struct {
	*core
	answers    metered
	collectors []collector // beside what answers tell
	registry   *prometheus.Registry
	reloadOK   prometheus.Gauge
	reloaded   prometheus.Gauge
	handler    http.Handler
}

// metered is what metrics show of all roles.
type metered interface {
	Services(context.Context) ([]api.Service, error)
	Counters(context.Context) ([]api.Counters, error)
	Maps(context.Context) ([]api.Map, error)
	Status(context.Context) (api.Status, error)
}

func newMetrics(c *core, answers metered, collectors ...collector) *metrics {
	m := &metrics{
		core: c, answers: answers, collectors: collectors,
		registry: monitoring.NewRegistry(c.options.Version),
		reloadOK: reloadSuccessful.Gauge(), reloaded: reloadTime.Gauge(),
	}
	m.registry.MustRegister(c.updates, m.reloadOK, m.reloaded, m)
	m.handler = sharedMetrics(m.registry, time.Now)
	return m
}

// reload notes whether a node file was carried out.
func (m *metrics) reload(err error) {
	if err != nil {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	m.reloaded.SetToCurrentTime()
}

// Metrics is what api.Agent says.
func (a *Agent) Metrics() http.Handler { return a.metrics.handler }

// scrape is what two requests must have in common to get one answer.
type scrape struct {
	second        int64 // when they came: none gets an older answer
	accept, query string
}

// sharedMetrics serves the metrics; all scrapes of the same second that are under way share one
// compressed copy.
func sharedMetrics(registry *prometheus.Registry, now func() time.Time) http.Handler {
	var shared sharedCopies[scrape]
	plain := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := scrape{now().Unix(), r.Header.Get("Accept"), r.URL.RawQuery}
		answer, release, err := shared.take(key, func(h http.Header, out io.Writer) error {
			return recordAnswer(plain, r, h, out)
		})
		if err != nil {
			unanswered(w, err)
			return
		}
		defer release()
		answer.send(w, r)
	})
}

func description(name, help string, labels ...string) *prometheus.Desc {
	return monitoring.New(name, help, labels...)
}

var (
	reloadSuccessful = monitoring.Define(monitoring.Gauge, "config_last_reload_successful",
		"Whether the node file last applied is what runs.")
	reloadTime = monitoring.Define(monitoring.Gauge, "config_last_reload_timestamp_seconds",
		"When a node file was last carried out.")
	servicePackets = description("service_packets_total",
		"IP packets of a service: sent to backends (edge) or taken (host).",
		"role", "service", "family")
	serviceBytes = description("service_bytes_total",
		"Bytes of the same packets, without encapsulation.", "role", "service", "family")
	backendPackets = description("backend_packets_total", "IP packets offered to a backend first.",
		"service", "backend")
	backendBytes = description("backend_bytes_total",
		"Bytes of the same packets, without encapsulation.", "service", "backend")
	uncounted = description("service_uncounted_packets_total",
		"IP packets of a service offered first to backends that have no counter of their own: "+
			"there are too many.", "service")
	checkSeconds = monitoring.Define(monitoring.Histogram, "backend_check_duration_seconds",
		"Durations of a backend's health checks.", "service", "backend").Desc()
	checksTotal = description("backend_checks_total", "Health checks of a backend.", "service",
		"backend", "result")
	backendHealthy = description("backend_healthy", "Whether a backend's health checks succeed.",
		"service", "backend")
	servicePanic = description("service_panic",
		"Whether so few backends are healthy that all that should be up are used.", "service")
	backendUp = description("backend_up", "Whether a backend takes new connections.",
		"service", "backend")
	backendWeight = description("backend_weight",
		"A backend's share of new connections in relation to the others.", "service", "backend")
	busyGauge = description("service_busy_connections",
		"Open connections of a service on this host.", "service", "family")
	thresholdGauge = description("accept_threshold",
		"Below how many open connections this host accepts a new one.", "service", "family")
	offersTotal = description("offers_total",
		"Connections that were opened towards this host, by what it decided.",
		"service", "family", "decision")
	newConnectionRate = description("new_connections_limit",
		"How many TCP connections may be opened to a service per second at this edge.",
		"service")
	newConnectionsSeen = description("new_connections_total",
		"SYNs to a service with such a limit, by what became of them.",
		"service", "decision")
	establishedTotal = description("established_connections_total",
		"TCP connections established on this host, by service.",
		"service", "family")
	resetsTotal = description("resets_total", "TCP resets that this host sent for a service.",
		"service", "family")
	synAcksTotal = description("learning_syn_acks_total",
		"SYN-ACKs that edges with a flow cache asked for, by the way that they took.",
		"service", "family", "way")
	passedOnTotal = description("passed_on_packets_total",
		"IP packets of a service that were passed on to the next candidate.",
		"service", "family")
	packetsTotal = description("packets_total",
		"Packets that were not dropped, by what became of them.", "role", "outcome")
	cacheTotal = description("flow_cache_packets_total",
		"Packets for which the edge's flow cache did something, by what.", "event")
	dropsTotal = description("drops_total", "Packets dropped, by reason.", "role", "reason")
	mapEntries = description("map_entries",
		"Entries of a table in the kernel; of an array there is no number.", "role", "map")
	mapCapacity = description("map_capacity", "Entries that a table in the kernel can have.",
		"role", "map")
	bgpUp = description("bgp_session_up",
		"Whether the BGP session to a neighbor is established.", "peer")
	bgpIgnored = description("bgp_ignored_routes_total",
		"Routes of hosts that were of no use, by reason.", "reason")
	bgpFaults = description("bgp_malformed_updates_total",
		"BGP messages that broke the rules, by what became of them.", "handling")
	pastIgnored = description("past_ignored_places_total",
		"Places in chains of peers, etcd or the disk that name nobody known here.")
	stateKept   = description("state_kept", "Whether changes and chains are kept on disk.")
	etcdSuccess = description("etcd_last_success_timestamp_seconds",
		"When etcd answered last; 0 if it never did.")
	etcdFailures = description("etcd_failures_total", "Requests to etcd that failed.")
	etcdRestored = description("etcd_restored_records_total",
		"Records that etcd had lost, or that another hand had changed, and that were written "+
			"again.")
	programInfo = description("program_info", "Programs in the kernel.", "name", "tag",
		"interface", "mode")
	programAttached = description("program_attached",
		"Whether a program runs where it should: 0 while the kernel says that it does not.", "name",
		"interface")
)

// Describe is prometheus.Collector. No description: which services there are changes.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// scrapeTimeout bounds how long a scrape waits for the owner goroutine.
const scrapeTimeout = 5 * time.Second

// Collect is prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	services, err := m.answers.Services(ctx)
	if err == nil {
		for _, s := range services {
			collectService(out, s)
		}
	}
	counters, err := m.answers.Counters(ctx)
	if err == nil {
		for _, c := range counters {
			collectCounters(out, c)
		}
	}
	maps, err := m.answers.Maps(ctx)
	if err == nil {
		for _, table := range maps {
			if table.Entries != nil {
				gauge(out, mapEntries, float64(*table.Entries), string(table.Role), table.Name)
			}
			gauge(out, mapCapacity, float64(table.Capacity), string(table.Role), table.Name)
		}
	}
	for _, c := range m.collectors {
		c.Collect(out)
	}
	status, err := m.answers.Status(ctx)
	if err == nil {
		for _, p := range status.Programs {
			gauge(out, programInfo, 1, p.Name, p.Tag, p.Interface+p.Cgroup, string(p.Mode))
			gauge(out, programAttached, oneIf(p.Fault == ""), p.Name, p.Interface+p.Cgroup)
		}
	}
}

func counter(out chan<- prometheus.Metric, d *prometheus.Desc, v uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func family(s api.Service) string {
	if s.VIP.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

func collectService(out chan<- prometheus.Metric, s api.Service) {
	counter(out, servicePackets, s.Packets, string(s.Role), s.Name, family(s))
	counter(out, serviceBytes, s.Bytes, string(s.Role), s.Name, family(s))
	if s.Edge != nil {
		if s.Edge.Check != "" {
			gauge(out, servicePanic, oneIf(s.Edge.Panic), s.Name)
		}
		if n := s.Edge.NewConnections; n != nil {
			gauge(out, newConnectionRate, float64(n.Rate), s.Name)
			counter(out, newConnectionsSeen, n.Taken, s.Name, "taken")
			counter(out, newConnectionsSeen, n.Refused, s.Name, "refused")
		}
		counter(out, uncounted, s.Edge.UncountedPackets, s.Name)
		for _, b := range s.Edge.Backends {
			counter(out, backendPackets, b.Packets, s.Name, b.Name)
			counter(out, backendBytes, b.Bytes, s.Name, b.Name)
			gauge(out, backendUp, oneIf(b.Effective == config.Up), s.Name, b.Name)
			collectHealth(out, s.Name, b)
			gauge(out, backendWeight, float64(b.Weight), s.Name, b.Name)
		}
	}
	if h := s.Host; h != nil {
		gauge(out, busyGauge, float64(h.Busy), s.Name, family(s))
		gauge(out, thresholdGauge, float64(h.Threshold), s.Name, family(s))
		counter(out, offersTotal, h.Accepted, s.Name, family(s), "accepted")
		counter(out, offersTotal, h.Refused, s.Name, family(s), "refused")
		counter(out, offersTotal, h.Forced, s.Name, family(s), "forced")
		counter(out, establishedTotal, h.Established, s.Name, family(s))
		counter(out, resetsTotal, h.Resets, s.Name, family(s))
		counter(out, synAcksTotal, h.ByEdge, s.Name, family(s), "by_edge")
		counter(out, synAcksTotal, h.NotRouted, s.Name, family(s), "not_routed")
		counter(out, passedOnTotal, h.PassedOnPackets, s.Name, family(s))
	}
}

func collectHealth(out chan<- prometheus.Metric, service string, b api.Backend) {
	h := b.Health
	if h == nil {
		return
	}
	d := h.Durations
	out <- prometheus.MustNewConstHistogram(checkSeconds, d.Count, d.SumSeconds, d.Buckets(),
		service, b.Name)
	gauge(out, backendHealthy, oneIf(h.Status == health.Healthy.String()), service, b.Name)
	counter(out, checksTotal, h.SucceededChecks, service, b.Name, "success")
	counter(out, checksTotal, h.FailedChecks, service, b.Name, "failure")
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func collectCounters(out chan<- prometheus.Metric, c api.Counters) {
	role := string(c.Role)
	collectVRFs(out, c.VRFs)
	collectChoices(out, c.CFLB)
	collectTelemetry(out, c.Telemetry)
	counter(out, packetsTotal, c.PassedPackets, role, "passed")
	counter(out, packetsTotal, c.HandedToKernelPackets, role, "handed_to_kernel")
	counter(out, packetsTotal, c.TransmittedPackets, role, "transmitted")
	counter(out, packetsTotal, c.RedirectedPackets, role, "redirected")
	counter(out, packetsTotal, c.TakenPackets, role, "taken")
	counter(out, packetsTotal, c.EchoedPackets, role, "echoed")
	counter(out, packetsTotal, c.TooBigAnsweredPackets, role, "too_big_answered")
	counter(out, packetsTotal, c.TranslatedPackets, role, "translated")
	counter(out, packetsTotal, c.CopiedPackets, role, "copied")
	counter(out, packetsTotal, c.LearnedPackets, role, "learned")
	for _, e := range c.FlowCache {
		counter(out, cacheTotal, e.Packets, e.Event)
	}
	for _, d := range c.Drops {
		counter(out, dropsTotal, d.Packets, role, d.Reason)
	}
}
