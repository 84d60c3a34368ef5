package controller

import (
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sextant/controller/kubernetes/edges"
)

// What an edge has and lacks is measured until the edge is gone.
func TestMeasure(t *testing.T) {
	measured := func() (list []string) {
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == "one" {
					list = append(list, fmt.Sprint(f.GetName(), " ", m.GetGauge().GetValue()))
				}
			}
		}
		return list
	}
	measure("one", &edges.Report{Services: 7, Waiting: 2})
	want := []string{"sextant_kubernetes_edge_services 7",
		"sextant_kubernetes_edge_services_waiting 2"}
	if got := measured(); !slices.Equal(got, want) {
		t.Errorf("measured %q, want %q", got, want)
	}
	if measure("one", nil); len(measured()) > 0 {
		t.Errorf("of an edge that is gone is measured %q", measured())
	}
}
