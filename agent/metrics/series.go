package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/monitoring"
)

// mostLabels is how many labels a wide metric has at most.
const mostLabels = 3

// wide is a metric of services or backends, of which a node may have a hundred thousand: its series
// are kept and written here, since the client library makes several objects of each.
type wide struct {
	monitoring.Metric
	places [mostLabels]int // of the labels in the definition, in the order of their names
}

func defineWide(kind monitoring.Kind, name, help string, labels ...string) *wide {
	w := &wide{Metric: monitoring.Define(kind, name, help, labels...)}
	sorted := slices.Sorted(slices.Values(labels))
	for i, label := range sorted {
		w.places[i] = slices.Index(labels, label)
	}
	return w
}

func wideCounter(name, help string, labels ...string) *wide {
	return defineWide(monitoring.Counter, name, help, labels...)
}

func wideGauge(name, help string, labels ...string) *wide {
	return defineWide(monitoring.Gauge, name, help, labels...)
}

// series is one line of a page, or of a histogram several.
type series struct {
	labels    [mostLabels]string // values, in the order of the labels' names
	value     float64
	durations *api.Durations // of a histogram
}

func (s series) compare(o series) int {
	for i := range s.labels {
		if c := strings.Compare(s.labels[i], o.labels[i]); c != 0 {
			return c
		}
	}
	return 0
}

// page has the series of all wide metrics.
type page map[*wide][]series

func (p page) add(w *wide, value float64, labels ...string) {
	p[w] = append(p[w], w.series(value, nil, labels...))
}

func (p page) addDurations(w *wide, d *api.Durations, labels ...string) {
	p[w] = append(p[w], w.series(0, d, labels...))
}

func (w *wide) series(value float64, d *api.Durations, labels ...string) series {
	s := series{value: value, durations: d}
	for i := range labels {
		s.labels[i] = labels[w.places[i]]
	}
	return s
}

// sorted returns the metrics that have series in the order of their names, with their series in the
// order of their labels.
func (p page) sorted() (metrics []*wide) {
	for w, list := range p {
		if len(list) == 0 {
			continue
		}
		metrics = append(metrics, w)
		if !slices.IsSortedFunc(list, series.compare) {
			slices.SortFunc(list, series.compare)
		}
	}
	slices.SortFunc(metrics, func(a, b *wide) int { return strings.Compare(a.Name, b.Name) })
	return metrics
}

// Describe is prometheus.Collector. No description: which services there are changes.
func (p page) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector, for formats that the client library writes.
func (p page) Collect(out chan<- prometheus.Metric) {
	for w, list := range p {
		desc := w.Desc()
		for _, s := range list {
			labels := make([]string, len(w.Labels))
			for i := range labels {
				labels[w.places[i]] = s.labels[i]
			}
			switch w.Kind {
			case monitoring.Counter:
				out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.value,
					labels...)
			case monitoring.Gauge:
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.value,
					labels...)
			case monitoring.Histogram:
				out <- prometheus.MustNewConstHistogram(desc, s.durations.Count,
					s.durations.SumSeconds, s.durations.Buckets(), labels...)
			}
		}
	}
}
