package agent

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/southbound"
	"sextant/config"
)

var (
	policyPackets = description("policy_packets_total",
		"IP packets sent along a segment list of a policy's path, copies too.",
		"policy", "path", "list")
	policyBytes = description("policy_bytes_total",
		"Bytes of the same packets, without outer headers.", "policy", "path", "list")
	policyNumbered = description("policy_numbered_packets_total",
		"Packets of a policy that were given a number; copies have the same.",
		"policy")
	policyActive = description("policy_path_active",
		"Whether a policy's path is the one that packets take.", "policy", "path")
	policyListUp = description("policy_list_up",
		"Whether a segment list is known to carry packets.", "policy", "list")
)

func (h *headendRoom) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	h.protections.collect(ctx, out)
	links, err := ask(ctx, &h.loop, func() ([]southbound.Link, error) {
		return h.controllers.links(), nil
	})
	if err == nil {
		h.controllers.collect(out, links)
	}
	policies, err := h.Policies(ctx)
	if err != nil {
		return
	}
	for _, p := range policies {
		counter(out, policyNumbered, p.NumberedPackets, p.Name)
		up := map[string]float64{}
		for _, path := range p.Paths {
			gauge(out, policyActive, oneIf(path.Active), p.Name, path.Name)
			for _, l := range path.Lists {
				counter(out, policyPackets, l.Packets, p.Name, path.Name, l.Name)
				counter(out, policyBytes, l.Bytes, p.Name, path.Name, l.Name)
				up[l.Name] = oneIf(l.State == config.ListUp)
			}
		}
		for list, is := range up {
			gauge(out, policyListUp, is, p.Name, list)
		}
	}
}
