// Package metrics serves Prometheus metrics. Counters of packets are read from the kernel when they
// are asked for.
package metrics

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"

	"sextant/agent/api"
	"sextant/agent/monitoring"
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
	m.Handler = sharedMetrics(http.HandlerFunc(m.scrape), time.Now)
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

// sharedMetrics serves the metrics in a detail that is known; all scrapes of the same second that
// are under way share one compressed copy.
func sharedMetrics(plain http.Handler, now func() time.Time) http.Handler {
	var shared SharedCopies[scrape]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := detailOf(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
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

// scrape answers with the metrics. Those of services are written in text here, which takes a
// fraction of what the client library needs for ten thousand of them; the library writes other
// formats, and what is asked for by name.
func (m *Metrics) scrape(w http.ResponseWriter, r *http.Request) {
	d, _ := detailOf(r) // sharedMetrics has looked
	services, part := m.services(d)
	gatherers := prometheus.Gatherers{m.registry, part}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
	if format.FormatType() != expfmt.TypeTextPlain || r.URL.Query().Has("name[]") {
		part.MustRegister(services)
		promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{DisableCompression: true}).
			ServeHTTP(w, r)
		return
	}
	others, err := gatherers.Gather()
	if err != nil {
		http.Error(w, "An error has occurred while serving metrics:\n\n"+err.Error(),
			http.StatusInternalServerError)
		return
	}
	w.Header().Add("Vary", "Accept")
	w.Header().Set("Content-Type", string(format))
	_ = writeText(w, others, services) // the client has gone
}

// services reads those of all services, and returns a registry that says whether it could.
func (m *Metrics) services(d detail) (page, *prometheus.Registry) {
	part := prometheus.NewRegistry()
	if d == detailNode {
		return page{}, part
	}
	ctx, cancel := context.WithTimeout(context.Background(), partTimeout)
	defer cancel()
	services, err := m.answers.Services(ctx)
	part.MustRegister(prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		Part(out, "services", func(context.Context) error { return err })
	}))
	return servicesPage(services, d), part
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

// Collect is prometheus.Collector. Services are not in it: see scrape.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
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
