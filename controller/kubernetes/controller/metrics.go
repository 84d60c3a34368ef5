package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sextant/controller/kubernetes/edges"
)

var (
	servicesAt = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sextant_kubernetes_edge_services",
		Help: "Services of this cluster that an edge has: one for each address and port."},
		[]string{"edge"})
	waitingAt = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sextant_kubernetes_edge_services_waiting",
		Help: "Services of this cluster that an edge is not told of yet, or refuses."},
		[]string{"edge"})
)

func init() { metrics.Registry.MustRegister(servicesAt, waitingAt) }

// measure shows what an edge reports; nil: it is gone.
func measure(edge string, r *edges.Report) {
	if r == nil {
		servicesAt.DeleteLabelValues(edge)
		waitingAt.DeleteLabelValues(edge)
		return
	}
	servicesAt.WithLabelValues(edge).Set(float64(r.Services))
	waitingAt.WithLabelValues(edge).Set(float64(r.Waiting))
}
