package e2e_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/node"
)

// A pod whose readiness gate is ours is ready when it takes packets of its Service, and not before.
func (w *world) testReadinessGate() {
	o := &corev1.Pod{ObjectMeta: objectMeta("gated"), Spec: corev1.PodSpec{NodeName: "node1",
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: node.Gate}},
		Containers:     []corev1.Container{{Name: "web", Image: "web"}}}}
	w.create(o)
	condition := func() (status corev1.ConditionStatus) {
		var p corev1.Pod
		must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), &p))
		for _, c := range p.Status.Conditions {
			if c.Type == node.Gate {
				status = c.Status
			}
		}
		return status
	}
	p := w.newPodAs(1, o.UID).serve()
	p.name = o.Name
	w.eventually("the gate is closed while no Service names the pod", 60*time.Second,
		func() bool { return condition() == corev1.ConditionFalse })
	w.service("gated", 80, nil)
	w.slices("gated", 8080, func(v6 bool) []discoveryv1.Endpoint {
		return []discoveryv1.Endpoint{p.endpoint(v6, false, false, false)}
	})
	w.eventually("the gate is open", 60*time.Second,
		func() bool { return condition() == corev1.ConditionTrue })
	w.slices("gated", 8080, ready(p))
	for _, url := range w.urls("gated") {
		w.eventually(url+" answers", 60*time.Second, func() bool {
			_, err := w.get(url)
			return err == nil
		})
	}
	must(w.t, w.client.Delete(w.t.Context(), &corev1.Service{ObjectMeta: objectMeta("gated")}))
	must(w.t, w.client.Delete(w.t.Context(), o, client.GracePeriodSeconds(0)))
	p.kill()
}
