package controller

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sextant/te/reroute"
)

// collector answers Prometheus from the event loop.
type collector struct{ controller *Controller }

// metricsPatience is how long a scrape waits for the event loop.
const metricsPatience = 5 * time.Second

var (
	reportsTotal = prometheus.NewDesc("sextant_controller_reports_total",
		"Reports of telemetry that were taken.", nil, nil)
	refusedTotal = prometheus.NewDesc("sextant_controller_refused_reports_total",
		"Reports about what the topology does not have.", nil, nil)
	decisionsTotal = prometheus.NewDesc("sextant_controller_decisions_total",
		"Decisions on flows, by what became of them.", []string{"verdict"}, nil)
	flowsKnown = prometheus.NewDesc("sextant_controller_flows",
		"Flows that were looked at and not forgotten.", nil, nil)
	linksDown = prometheus.NewDesc("sextant_controller_links_down",
		"Links, of one direction each, that are down.", nil, nil)
	journalLost = prometheus.NewDesc("sextant_controller_journal_lost_total",
		"Decisions that the journal's file does not have.", nil, nil)
)

func (c *Controller) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{c})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe is prometheus.Collector: which metrics there are depends on what runs.
func (m collector) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector.
func (m collector) Collect(out chan<- prometheus.Metric) {
	c := m.controller
	c.servers.Collect(out)
	ctx, cancel := context.WithTimeout(context.Background(), metricsPatience)
	defer cancel()
	var s Status
	if c.do(ctx, func() { s = c.status() }) != nil {
		return
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	counter(reportsTotal, s.Reports)
	counter(refusedTotal, s.Refused)
	counter(journalLost, s.JournalLost)
	for _, v := range s.Verdicts {
		counter(decisionsTotal, v.Count, v.Verdict)
	}
	out <- prometheus.MustNewConstMetric(flowsKnown, prometheus.GaugeValue, float64(s.Flows))
	out <- prometheus.MustNewConstMetric(linksDown, prometheus.GaugeValue, float64(s.LinksDown))
}

// sortedVerdicts are all that a decision can be.
func sortedVerdicts() []reroute.Verdict {
	return []reroute.Verdict{reroute.Moved, reroute.NotLighter, reroute.Exported,
		reroute.BackingOff, reroute.OnlyPath, reroute.NoPath, reroute.Pinned, reroute.NoChance,
		reroute.NoPolicy}
}
