package listener

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sextant/agent/monitoring"
	"sextant/controller/collector"
)

// metricsPatience is how long a scrape waits for the event loop.
const metricsPatience = 5 * time.Second

func description(name, help string, labels ...string) *prometheus.Desc {
	return monitoring.New("collector_"+name, help, labels...)
}

func histogramOf(name, help string) *prometheus.Desc {
	return monitoring.Define(monitoring.Histogram, "collector_"+name, help, link...).Desc()
}

var (
	datagramsTotal = description("datagrams_total", "Datagrams that came.")
	reportsTotal   = description("reports_total", "Reports in them that were taken.")
	eventsTotal    = description("events_total", "IOAM events of the kernel.")
	packetsTotal   = description("packets_total", "Packets with hop-by-hop options that were seen.")
	samplesTotal   = description("samples_total", "What single nodes said in them.")
	droppedTotal   = description("dropped_total",
		"Datagrams, reports and parts of them that were not taken.", "reason")
	linesLostTotal = description("lines_lost_total",
		"Reports that were not written as JSON, as the reader of the lines is too slow.")
	pathsKnown    = description("paths", "Flows whose last path is known.")
	pathsReplaced = description("paths_replaced_total",
		"Flows whose path gave way to that of another flow.")
	ipfixMessages = description("ipfix_messages_total", "IPFIX messages by result.", "result")
	ipfixRecords  = description("ipfix_records_total", "IPFIX data records.", "record")
	exporterLost  = description("exporter_lost_total", "Datagrams that did not come.", exporter...)
	exporterTaken = description("exporter_received_total", "Datagrams that came.", exporter...)
	linkQueue     = histogramOf("link_queue_bytes", "Queue before a packet.")
	linkLatency   = histogramOf("link_latency_seconds", "Time of a packet in the node.")
	linkUse       = histogramOf("link_utilization_ratio", "Used part of the link's rate.")
	linkDrops     = description("link_drops_total", "Packets reported as dropped.", link...)
	linkAge       = description("link_age_seconds", "Time since the last report.", link...)
	exporter      = []string{"address", "node", "hardware"}
	link          = []string{"node", "egress"}
)

// metered answers Prometheus from the event loop.
type metered struct{ listener *Listener }

func (l *Listener) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metered{l})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe is prometheus.Collector: which links there are depends on reports.
func (m metered) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector.
func (m metered) Collect(out chan<- prometheus.Metric) {
	m.listener.servers.Collect(out)
	ctx, cancel := context.WithTimeout(context.Background(), metricsPatience)
	defer cancel()
	var all []prometheus.Metric
	if m.listener.do(ctx, func() { all = m.listener.measure(collector.Now().SteadyNS) }) != nil {
		return
	}
	for _, metric := range all {
		out <- metric
	}
}

// measure reads the table.
func (l *Listener) measure(nowNS int64) (all []prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, kind, v, labels...))
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		send(d, prometheus.CounterValue, float64(v), labels...)
	}
	t := l.table
	counter(datagramsTotal, t.Datagrams)
	counter(reportsTotal, t.Reports)
	counter(eventsTotal, t.Events)
	counter(packetsTotal, t.Packets)
	counter(samplesTotal, t.Samples)
	counter(linesLostTotal, l.linesLost)
	for reason, n := range t.Dropped {
		counter(droppedTotal, n, collector.Drop(reason).String())
	}
	send(pathsKnown, prometheus.GaugeValue, float64(t.Paths()))
	counter(pathsReplaced, t.PathsReplaced())
	if e := l.export; e != nil {
		counter(ipfixMessages, e.messages, "sent")
		counter(ipfixMessages, e.fails, "failed")
		counter(ipfixRecords, e.flows, "flow")
		counter(ipfixRecords, e.links, "link")
	}
	t.EachExporter(func(e collector.Exporter, s *collector.Sequence, _ int64) {
		labels := []string{e.Address.String(), strconv.FormatUint(uint64(e.Node), 10),
			strconv.Itoa(int(e.Hardware))}
		counter(exporterLost, s.Lost, labels...)
		counter(exporterTaken, s.Received, labels...)
	})
	t.EachLink(func(k collector.Link, s *collector.LinkState, seenNS int64) {
		labels := []string{strconv.FormatUint(k.Node, 10), egressText(k.Egress)}
		all = append(all, histogram(linkQueue, &s.QueueBytes, 1, labels),
			histogram(linkLatency, &s.LatencyNS, 1e9, labels),
			histogram(linkUse, &s.UtilizationPPM, 1e6, labels))
		counter(linkDrops, s.Drops, labels...)
		send(linkAge, prometheus.GaugeValue, time.Duration(nowNS-seenNS).Seconds(), labels...)
	})
	return all
}

// egressText is a label; an interface that the node does not tell is empty.
func egressText(egress uint32) string {
	if egress == unknownInterface {
		return ""
	}
	return strconv.FormatUint(uint64(egress), 10)
}

// histogram is one of Prometheus in units of per values.
func histogram(d *prometheus.Desc, h *collector.Histogram, per float64,
	labels []string) prometheus.Metric {
	counts := map[float64]uint64{}
	for upper, n := range h.Cumulative() {
		counts[upper/per] = n
	}
	return prometheus.MustNewConstHistogram(d, h.Count, float64(h.Sum)/per, counts, labels...)
}
