package headend

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
	"sextant/agent/monitoring"
)

var (
	protectionCopies = metrics.Description("protection_copies",
		"Copies of each packet that a protection asks for.", "protection")
	protectionPaths = metrics.Description("protection_carrying_paths",
		"Paths that carry copies of a protection now.", "protection")
	protectionState = metrics.Description("protection_state",
		"Whether a protection is in the state.",
		"protection", "state")
	protectionMoves = metrics.Description("protection_replacements_total",
		"How often other paths than before came to carry a protection.",
		"protection")
	protectionCarries = metrics.Description("protection_path_carries",
		"Whether a path of a protection carries.", "protection", "list")
	protectionRTT = metrics.Description("protection_path_rtt_seconds",
		"Round-trip time of probes over a path and back.", "protection", "list")
	protectionLoss = metrics.Description("protection_path_probe_loss_ratio",
		"Share of the latest probes over a path that did not come back.",
		"protection", "list")
	protectionCopyLoss = metrics.Description("protection_path_copy_loss_ratio",
		"Share of the latest copies on a path that did not come, as the egress says.", "protection",
		"list")
	protectionDelay = metrics.Description("protection_path_copy_delay_seconds",
		"One-way delay of the latest copies on a path, as the egress says.",
		"protection", "list")
)

var computeSeconds = monitoring.Define(monitoring.Histogram, "path_compute_duration_seconds",
	"Durations of computations of the paths of all protections, with proofs or without.", "proven")

func newComputations() *prometheus.HistogramVec {
	return computeSeconds.Histograms(prometheus.ExponentialBuckets(0.0001, 4, 10))
}

var protectionStates = []api.ProtectionState{api.Planning, api.Protected, api.Degraded,
	api.Unprotected, api.Suspended}

func (p *Protections) collect(ctx context.Context, out chan<- prometheus.Metric) error {
	protections, err := p.Protections(ctx)
	if len(protections) > 0 {
		p.computations.Collect(out)
	}
	for _, p := range protections {
		carrying := 0
		for _, path := range p.Paths {
			if path.Role == api.Carries {
				carrying++
			}
			collectProtectedPath(out, p.Name, path)
		}
		metrics.Gauge(out, protectionCopies, float64(p.Copies), p.Name)
		metrics.Gauge(out, protectionPaths, float64(carrying), p.Name)
		metrics.Counter(out, protectionMoves, p.Replacements, p.Name)
		for _, state := range protectionStates {
			metrics.Gauge(out, protectionState, metrics.OneIf(p.State == state), p.Name,
				string(state))
		}
	}
	return err
}

func collectProtectedPath(out chan<- prometheus.Metric, name string, p api.ProtectedPath) {
	metrics.Gauge(out, protectionCarries, metrics.OneIf(p.Role == api.Carries), name, p.List)
	if p.RTTMs > 0 {
		metrics.Gauge(out, protectionRTT, p.RTTMs/1000, name, p.List)
		metrics.Gauge(out, protectionLoss, p.Loss, name, p.List)
	}
	if p.CopyLoss != nil {
		metrics.Gauge(out, protectionCopyLoss, *p.CopyLoss, name, p.List)
	}
	if p.CopyDelayMs != nil {
		metrics.Gauge(out, protectionDelay, *p.CopyDelayMs/1000, name, p.List)
	}
}
