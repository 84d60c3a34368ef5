// Package monitoring defines all metrics of the daemons in one list, from which their reference
// page is made, and what each daemon shows of itself.
package monitoring

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Kind is the type of a metric, as Prometheus names it.
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// prefix is that of the names of all metrics that are not those of the Go runtime or the process.
const prefix = "sextant_"

// Metric is the definition of a metric.
type Metric struct {
	Name   string // with the prefix
	Help   string
	Kind   Kind
	Labels []string
}

// defined are all metrics; packages add theirs when the program starts.
var defined []Metric

// Define defines a metric that is no constant one. The name has no prefix. It is for variables of
// packages: it panics if a name is defined twice.
func Define(kind Kind, name, help string, labels ...string) Metric {
	m := Metric{prefix + name, help, kind, labels}
	if slices.ContainsFunc(defined, func(o Metric) bool { return o.Name == m.Name }) {
		panic("the metric " + m.Name + " is defined twice")
	}
	defined = append(defined, m)
	return m
}

// New defines a counter, whose name ends in _total, or a gauge, for what is read when it is asked
// for. The name has no prefix. It is for variables of packages.
func New(name, help string, labels ...string) *prometheus.Desc {
	kind := Gauge
	if strings.HasSuffix(name, "_total") {
		kind = Counter
	}
	return Define(kind, name, help, labels...).Desc()
}

// Desc describes the metric to Prometheus' client library.
func (m Metric) Desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// Gauge makes a gauge without labels.
func (m Metric) Gauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: m.Name, Help: m.Help})
}

// Histogram makes a histogram without labels with these upper bounds.
func (m Metric) Histogram(bounds []float64) prometheus.Histogram {
	return prometheus.NewHistogram(
		prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: bounds})
}

// Histograms makes a histogram with these upper bounds for each set of values of the labels.
func (m Metric) Histograms(bounds []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: bounds}, m.Labels)
}

// All returns the definitions of all metrics in the order of their names, except those of
// RuntimeCollectors.
func All() []Metric {
	list := slices.Clone(defined)
	slices.SortFunc(list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return list
}

var buildInfo = Define(Gauge, "build_info", "The binary that runs: 1.",
	"version", "revision", "goversion")

// NewRegistry makes a registry that has what each daemon shows: its build, the Go runtime, and the
// process as the kernel sees it.
func NewRegistry(version string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: buildInfo.Name, Help: buildInfo.Help,
		ConstLabels: prometheus.Labels{"version": version, "revision": Revision(version),
			"goversion": runtime.Version()},
	}, func() float64 { return 1 })
	registry.MustRegister(append(RuntimeCollectors(), build)...)
	return registry
}

// RuntimeCollectors are the usual metrics go_ and process_.
func RuntimeCollectors() []prometheus.Collector {
	return []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
}

// revision is set by the linker: -X sextant/agent/monitoring.revision=...
var revision string

// Revision names the commit that the binary was built from: as the linker was told, as Go noted
// it, or as the version says behind its plus sign; "unknown" if nothing says it.
func Revision(version string) string {
	if revision != "" {
		return revision
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" && s.Value != "" {
				return s.Value
			}
		}
	}
	if _, commit, has := strings.Cut(version, "+"); has && commit != "" {
		return commit
	}
	return "unknown"
}
