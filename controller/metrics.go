package controller

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sextant/agent/httpserver"
	"sextant/agent/monitoring"
	"sextant/te/reroute"
)

// scraper answers Prometheus from the event loop.
type scraper struct{ controller *Controller }

// metricsPatience is how long a scrape waits for the event loop.
const metricsPatience = 5 * time.Second

var (
	reportsTotal = monitoring.New("controller_reports_total",
		"Reports of telemetry that were taken.")
	refusedTotal = monitoring.New("controller_refused_reports_total",
		"Reports about what the topology does not have.")
	decisionsTotal = monitoring.New("controller_decisions_total",
		"Decisions on flows, by what became of them.", "verdict")
	flowsKnown = monitoring.New("controller_flows",
		"Flows that were looked at and not forgotten.")
	flowsReplaced = monitoring.New("controller_flows_replaced_total",
		"Flows that were forgotten for others, as too many were known.")
	linksDown = monitoring.New("controller_links_down",
		"Links, of one direction each, that are down.")
	journalLost = monitoring.New("controller_journal_lost_total",
		"Decisions that the journal's file does not have.")
	applySeconds = monitoring.Define(monitoring.Histogram, "controller_apply_seconds",
		"Time from a decision to the head-end's word that the path is in force.")
)

// newApplySeconds has buckets from 0.1 ms to 0.8 s.
func newApplySeconds() prometheus.Histogram {
	return applySeconds.Histogram(prometheus.ExponentialBuckets(0.0001, 2, 14))
}

func (c *Controller) metrics() http.Handler {
	registry := monitoring.NewRegistry(c.options.Version)
	registry.MustRegister(scraper{c}, c.applySeconds)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// metricsPort is what the controller answers at the metrics port.
func (c *Controller) metricsPort(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	httpserver.HandleProbes(mux, func(ctx context.Context) (list []string, err error) {
		err = c.do(ctx, func() {
			if c.problem != "" {
				list = []string{"topology: " + c.problem}
			}
		})
		return list, err
	})
	return mux
}

// Describe is prometheus.Collector: which metrics there are depends on what runs.
func (m scraper) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector.
func (m scraper) Collect(out chan<- prometheus.Metric) {
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
	counter(flowsReplaced, s.FlowsReplaced)
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
