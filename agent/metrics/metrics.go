// Package metrics serves Prometheus metrics. Counters of packets are read from the kernel when they
// are asked for.
package metrics

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/monitoring"
	"sextant/config"
)

// Metrics are the agent's Prometheus metrics. Counters of packets are read from the kernel when
// they are asked for.
type Metrics struct {
	answers    metered
	collectors []Collector // beside what answers tell
	registry   *prometheus.Registry
	reloadOK   prometheus.Gauge
	reloaded   prometheus.Gauge
	Handler    http.Handler
}

// Collector adds metrics that other roles do not have. It asks the owner goroutine.
type Collector interface {
	// Collect is metrics.Collector.
	Collect(out chan<- prometheus.Metric)
}

// metered is what metrics show of all roles.
type metered interface {
	Services(ctx context.Context, names ...string) ([]api.Service, error)
	Counters(context.Context) ([]api.Counters, error)
	Maps(context.Context) ([]api.Map, error)
	Status(context.Context) (api.Status, error)
}

// New makes the metrics of an agent of a version: updates, what answers tell, and the collectors'.
func New(version string, updates prometheus.Histogram, answers metered,
	collectors ...Collector) *Metrics {
	m := &Metrics{
		answers: answers, collectors: collectors,
		registry: monitoring.NewRegistry(version),
		reloadOK: reloadSuccessful.Gauge(), reloaded: reloadTime.Gauge(),
	}
	m.registry.MustRegister(updates, m.reloadOK, m.reloaded, m)
	m.Handler = sharedMetrics(m.registry, time.Now)
	return m
}

// Reload notes whether a node file was carried out.
func (m *Metrics) Reload(err error) {
	if err != nil {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	m.reloaded.SetToCurrentTime()
}

// scrape is what two requests must have in common to get one answer.
type scrape struct {
	second        int64 // when they came: none gets an older answer
	accept, query string
}

// sharedMetrics serves the metrics; all scrapes of the same second that are under way share one
// compressed copy.
func sharedMetrics(registry *prometheus.Registry, now func() time.Time) http.Handler {
	var shared SharedCopies[scrape]
	plain := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := scrape{now().Unix(), r.Header.Get("Accept"), r.URL.RawQuery}
		answer, release, err := shared.Take(key, func(h http.Header, out io.Writer) error {
			return recordAnswer(plain, r, h, out)
		})
		if err != nil {
			Unanswered(w, err)
			return
		}
		defer release()
		answer.Send(w, r)
	})
}

// Description describes a metric, whose name gets the prefix sextant_.
func Description(name, help string, labels ...string) *prometheus.Desc {
	return monitoring.New(name, help, labels...)
}

var (
	reloadSuccessful = monitoring.Define(monitoring.Gauge, "config_last_reload_successful",
		"Whether the node file last applied is what runs.")
	reloadTime = monitoring.Define(monitoring.Gauge, "config_last_reload_timestamp_seconds",
		"When a node file was last carried out.")
	servicePackets = Description("service_packets_total",
		"IP packets of a service: sent to backends (edge) or taken (host).",
		"role", "service", "family")
	serviceBytes = Description("service_bytes_total",
		"Bytes of the same packets, without encapsulation.", "role", "service", "family")
	backendPackets = Description("backend_packets_total", "IP packets offered to a backend first.",
		"service", "backend")
	backendBytes = Description("backend_bytes_total",
		"Bytes of the same packets, without encapsulation.", "service", "backend")
	uncounted = Description("service_uncounted_packets_total",
		"IP packets of a service offered first to backends that have no counter of their own: "+
			"there are too many.", "service")
	checkSeconds = monitoring.Define(monitoring.Histogram, "backend_check_duration_seconds",
		"Durations of a backend's health checks.", "service", "backend").Desc()
	checksTotal = Description("backend_checks_total", "Health checks of a backend.", "service",
		"backend", "result")
	backendHealthy = Description("backend_healthy", "Whether a backend's health checks succeed.",
		"service", "backend")
	servicePanic = Description("service_panic",
		"Whether so few backends are healthy that all that should be up are used.", "service")
	backendUp = Description("backend_up", "Whether a backend takes new connections.",
		"service", "backend")
	backendWeight = Description("backend_weight",
		"A backend's share of new connections in relation to the others.", "service", "backend")
	busyGauge = Description("service_busy_connections",
		"Open connections of a service on this host.", "service", "family")
	thresholdGauge = Description("accept_threshold",
		"Below how many open connections this host accepts a new one.", "service", "family")
	offersTotal = Description("offers_total",
		"Connections that were opened towards this host, by what it decided.",
		"service", "family", "decision")
	newConnectionRate = Description("new_connections_limit",
		"How many TCP connections may be opened to a service per second at this edge.",
		"service")
	newConnectionsSeen = Description("new_connections_total",
		"SYNs to a service with such a limit, by what became of them.",
		"service", "decision")
	establishedTotal = Description("established_connections_total",
		"TCP connections established on this host, by service.",
		"service", "family")
	resetsTotal = Description("resets_total", "TCP resets that this host sent for a service.",
		"service", "family")
	synAcksTotal = Description("learning_syn_acks_total",
		"SYN-ACKs that edges with a flow cache asked for, by the way that they took.",
		"service", "family", "way")
	passedOnTotal = Description("passed_on_packets_total",
		"IP packets of a service that were passed on to the next candidate.",
		"service", "family")
	packetsTotal = Description("packets_total",
		"Packets that were not dropped, by what became of them.", "role", "outcome")
	cacheTotal = Description("flow_cache_packets_total",
		"Packets for which the edge's flow cache did something, by what.", "event")
	dropsTotal = Description("drops_total", "Packets dropped, by reason.", "role", "reason")
	mapEntries = Description("map_entries",
		"Entries of a table in the kernel; of an array there is no number.", "role", "map")
	mapCapacity = Description("map_capacity", "Entries that a table in the kernel can have.",
		"role", "map")
	// BgpUp is 1 or 0, by peer.
	BgpUp = Description("bgp_session_up",
		"Whether the BGP session to a neighbor is established.", "peer")
	// BgpIgnored counts routes by reason.
	BgpIgnored = Description("bgp_ignored_routes_total",
		"Routes of hosts that were of no use, by reason.", "reason")
	// BgpFaults counts messages by handling.
	BgpFaults = Description("bgp_malformed_updates_total",
		"BGP messages that broke the rules, by what became of them.", "handling")
	// PastIgnored counts places in chains.
	PastIgnored = Description("past_ignored_places_total",
		"Places in chains of peers, etcd or the disk that name nobody known here.")
	// StateKept is 1 or 0.
	StateKept = Description("state_kept", "Whether changes and chains are kept on disk.")
	// EtcdSuccess is a time in seconds since 1970.
	EtcdSuccess = Description("etcd_last_success_timestamp_seconds",
		"When etcd answered last; 0 if it never did.")
	// EtcdFailures counts requests.
	EtcdFailures = Description("etcd_failures_total", "Requests to etcd that failed.")
	// EtcdRestored counts records that had to be written again.
	EtcdRestored = Description("etcd_restored_records_total",
		"Records that etcd had lost, or that another hand had changed, and that were written "+
			"again.")
	collected = Description("collection_successful",
		"Whether a part of these metrics could be read; the series of one that could not are "+
			"missing in this answer.", "part")
	programInfo = Description("program_info", "Programs in the kernel.", "name", "tag",
		"interface", "mode")
	programAttached = Description("program_attached",
		"Whether a program runs where it should: 0 while the kernel says that it does not.", "name",
		"interface")
)

// Describe is prometheus.Collector. No description: which services there are changes.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// partTimeout bounds how long a part of a scrape waits for the owner goroutine. Scrapers give up
// sooner, by default after 10 s, so that none takes an answer without that part for a whole one.
const partTimeout = 30 * time.Second

// Part adds the metrics of a part of the agent, and whether they could be read: one without them is
// seen, and does not take those of others along.
func Part(out chan<- prometheus.Metric, name string, read func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), partTimeout)
	defer cancel()
	Gauge(out, collected, OneIf(read(ctx) == nil), name)
}

// Collect is prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	Part(out, "services", func(ctx context.Context) error {
		services, err := m.answers.Services(ctx)
		collectServices(out, services)
		return err
	})
	Part(out, "counters", func(ctx context.Context) error {
		counters, err := m.answers.Counters(ctx)
		for _, c := range counters {
			collectCounters(out, c)
		}
		return err
	})
	Part(out, "maps", func(ctx context.Context) error {
		maps, err := m.answers.Maps(ctx)
		for _, table := range maps {
			if table.Entries != nil {
				Gauge(out, mapEntries, float64(*table.Entries), string(table.Role), table.Name)
			}
			Gauge(out, mapCapacity, float64(table.Capacity), string(table.Role), table.Name)
		}
		return err
	})
	for _, c := range m.collectors {
		c.Collect(out)
	}
	Part(out, "status", func(ctx context.Context) error {
		status, err := m.answers.Status(ctx)
		for _, p := range status.Programs {
			Gauge(out, programInfo, 1, p.Name, p.Tag, p.Interface+p.Cgroup, string(p.Mode))
			Gauge(out, programAttached, OneIf(p.Fault == ""), p.Name, p.Interface+p.Cgroup)
		}
		return err
	})
}

// Counter sends the value of a counter.
func Counter(out chan<- prometheus.Metric, d *prometheus.Desc, v uint64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// Gauge sends the value of a gauge.
func Gauge(out chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func family(s *api.Service) string {
	if s.VIP.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// collectServices sends metrics of services, and of backends in the order in which the client
// library sorts their series: that of a hundred thousand takes it a second if they come in another.
func collectServices(out chan<- prometheus.Metric, services []api.Service) {
	services = slices.Clone(services)
	slices.SortStableFunc(services, func(a, b api.Service) int {
		return strings.Compare(a.Name, b.Name)
	})
	var backends []*api.Backend
	for i := range services {
		collectService(out, &services[i])
		if s := &services[i]; s.Edge != nil {
			for j := range s.Edge.Backends {
				backends = append(backends, &s.Edge.Backends[j])
			}
		}
	}
	slices.SortStableFunc(backends, func(a, b *api.Backend) int {
		return strings.Compare(a.Name, b.Name) // then by service, as they are
	})
	for _, b := range backends {
		Counter(out, backendPackets, b.Packets, b.Service, b.Name)
		Counter(out, backendBytes, b.Bytes, b.Service, b.Name)
		Gauge(out, backendUp, OneIf(b.Effective == config.Up), b.Service, b.Name)
		collectHealth(out, b)
		Gauge(out, backendWeight, float64(b.Weight), b.Service, b.Name)
	}
}

func collectService(out chan<- prometheus.Metric, s *api.Service) {
	Counter(out, servicePackets, s.Packets, string(s.Role), s.Name, family(s))
	Counter(out, serviceBytes, s.Bytes, string(s.Role), s.Name, family(s))
	if s.Edge != nil {
		if s.Edge.Check != "" {
			Gauge(out, servicePanic, OneIf(s.Edge.Panic), s.Name)
		}
		if n := s.Edge.NewConnections; n != nil {
			Gauge(out, newConnectionRate, float64(n.Rate), s.Name)
			Counter(out, newConnectionsSeen, n.Taken, s.Name, "taken")
			Counter(out, newConnectionsSeen, n.Refused, s.Name, "refused")
		}
		Counter(out, uncounted, s.Edge.UncountedPackets, s.Name)
	}
	if h := s.Host; h != nil {
		Gauge(out, busyGauge, float64(h.Busy), s.Name, family(s))
		Gauge(out, thresholdGauge, float64(h.Threshold), s.Name, family(s))
		Counter(out, offersTotal, h.Accepted, s.Name, family(s), "accepted")
		Counter(out, offersTotal, h.Refused, s.Name, family(s), "refused")
		Counter(out, offersTotal, h.Forced, s.Name, family(s), "forced")
		Counter(out, establishedTotal, h.Established, s.Name, family(s))
		Counter(out, resetsTotal, h.Resets, s.Name, family(s))
		Counter(out, synAcksTotal, h.ByEdge, s.Name, family(s), "by_edge")
		Counter(out, synAcksTotal, h.NotRouted, s.Name, family(s), "not_routed")
		Counter(out, passedOnTotal, h.PassedOnPackets, s.Name, family(s))
	}
}

func collectHealth(out chan<- prometheus.Metric, b *api.Backend) {
	h := b.Health
	if h == nil {
		return
	}
	d := h.Durations
	out <- prometheus.MustNewConstHistogram(checkSeconds, d.Count, d.SumSeconds, d.Buckets(),
		b.Service, b.Name)
	Gauge(out, backendHealthy, OneIf(h.Status == health.Healthy.String()), b.Service, b.Name)
	Counter(out, checksTotal, h.SucceededChecks, b.Service, b.Name, "success")
	Counter(out, checksTotal, h.FailedChecks, b.Service, b.Name, "failure")
}

// OneIf is 1 for true and 0 for false.
func OneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func collectCounters(out chan<- prometheus.Metric, c api.Counters) {
	role := string(c.Role)
	Counter(out, packetsTotal, c.PassedPackets, role, "passed")
	Counter(out, packetsTotal, c.HandedToKernelPackets, role, "handed_to_kernel")
	Counter(out, packetsTotal, c.TransmittedPackets, role, "transmitted")
	Counter(out, packetsTotal, c.RedirectedPackets, role, "redirected")
	Counter(out, packetsTotal, c.TakenPackets, role, "taken")
	Counter(out, packetsTotal, c.EchoedPackets, role, "echoed")
	Counter(out, packetsTotal, c.TooBigAnsweredPackets, role, "too_big_answered")
	Counter(out, packetsTotal, c.TranslatedPackets, role, "translated")
	Counter(out, packetsTotal, c.CopiedPackets, role, "copied")
	Counter(out, packetsTotal, c.LearnedPackets, role, "learned")
	for _, e := range c.FlowCache {
		Counter(out, cacheTotal, e.Packets, e.Event)
	}
	for _, d := range c.Drops {
		Counter(out, dropsTotal, d.Packets, role, d.Reason)
	}
}
