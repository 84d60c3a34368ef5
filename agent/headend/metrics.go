package headend

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/agent/southbound"
	"sextant/config"
)

var (
	policyPackets = metrics.Description("policy_packets_total",
		"IP packets sent along a segment list of a policy's path, copies too.",
		"policy", "path", "list")
	policyBytes = metrics.Description("policy_bytes_total",
		"Bytes of the same packets, without outer headers.", "policy", "path", "list")
	policyNumbered = metrics.Description("policy_numbered_packets_total",
		"Packets of a policy that were given a number; copies have the same.",
		"policy")
	policyActive = metrics.Description("policy_path_active",
		"Whether a policy's path is the one that packets take.", "policy", "path")
	policyListUp = metrics.Description("policy_list_up",
		"Whether a segment list is known to carry packets.", "policy", "list")
)

// Collect is metrics.Collector.
func (h *Room) Collect(out chan<- prometheus.Metric) {
	metrics.Part(out, string(h.Name), func(ctx context.Context) error {
		return errors.Join(h.Protecting.collect(ctx, out), h.collectControllers(ctx, out),
			h.collectPolicies(ctx, out))
	})
}

func (h *Room) collectControllers(ctx context.Context, out chan<- prometheus.Metric) error {
	links, err := role.Ask(ctx, &h.Loop, func() ([]southbound.Link, error) {
		return h.controllers.links(), nil
	})
	if err == nil {
		h.controllers.collect(out, links)
	}
	return err
}

func (h *Room) collectPolicies(ctx context.Context, out chan<- prometheus.Metric) error {
	policies, err := h.Policies(ctx)
	for _, p := range policies {
		metrics.Counter(out, policyNumbered, p.NumberedPackets, p.Name)
		up := map[string]float64{}
		for _, path := range p.Paths {
			metrics.Gauge(out, policyActive, metrics.OneIf(path.Active), p.Name, path.Name)
			for _, l := range path.Lists {
				metrics.Counter(out, policyPackets, l.Packets, p.Name, path.Name, l.Name)
				metrics.Counter(out, policyBytes, l.Bytes, p.Name, path.Name, l.Name)
				up[l.Name] = metrics.OneIf(l.State == config.ListUp)
			}
		}
		for list, is := range up {
			metrics.Gauge(out, policyListUp, is, p.Name, list)
		}
	}
	return err
}
