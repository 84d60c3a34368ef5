package e2e_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/controller"
	"sextant/linux"
)

// status is what "sextant-kubernetes status" says of a Service, as text and as JSON.
func (w *world) status(service string) (text string, r controller.Report) {
	w.t.Helper()
	file := w.cluster.Kubeconfig("operator", "127.0.0.1:6443", "admin")
	run := func(args ...string) string {
		cmd := exec.Command(programs.kubernetes, append([]string{"status", service, "--kubeconfig",
			file}, args...)...)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		must(w.t, linux.Start(cmd, w.netns("control"), nil))
		if err := cmd.Wait(); err != nil {
			w.t.Fatalf("status %s: %v: %s", service, err, errs.String())
		}
		return out.String()
	}
	must(w.t, json.Unmarshal([]byte(run("-o", "json")), &r))
	return run(), r
}

// event reports whether an event about an object has a reason and a text.
func (w *world) event(object, reason, text string) bool {
	w.t.Helper()
	var list eventsv1.EventList
	must(w.t, w.client.List(w.t.Context(), &list))
	for _, e := range list.Items {
		if e.Regarding.Name == object && e.Reason == reason && strings.Contains(e.Note, text) {
			return true
		}
	}
	return false
}

// An operator asks about a Service that is served, and about one of another class, which is left
// alone.
func (w *world) testStatus(pods []*pod) {
	var text string
	var r controller.Report
	w.eventually("all pods serve", 60*time.Second, func() bool {
		text, r = w.status("web")
		return len(r.Ports) == 2 && r.Ports[0].Serving+r.Ports[1].Serving == 2*len(pods)
	})
	if len(r.Problems) > 0 || len(r.Addresses) != 2 || len(r.Ports) != 2 || len(r.Edges) != 2 {
		w.t.Errorf("web is served: %+v", r)
	}
	for _, p := range r.Ports {
		if p.Serving != len(pods) || len(p.Endpoints) != len(pods) {
			w.t.Errorf("%s is served by %d, and has %d endpoints, want %d: %+v", p.Endpoint,
				p.Serving, len(p.Endpoints), len(pods), p)
		}
	}
	for _, want := range []string{"edge1", "edge2", pods[0].name, "event Announced: ",
		r.Addresses[0]} {
		if !strings.Contains(text, want) {
			w.t.Errorf("status does not name %q:\n%s", want, text)
		}
	}
	other := "example.net/other"
	w.service("foreign", 80, func(s *corev1.Service) { s.Spec.LoadBalancerClass = &other })
	_, r = w.status("foreign")
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], other) {
		w.t.Errorf("a Service of another class: %q", r.Problems)
	}
	var s corev1.Service
	must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default",
		Name: "foreign"}, &s))
	if len(s.Finalizers) > 0 || len(s.Status.LoadBalancer.Ingress) > 0 {
		w.t.Errorf("a Service of another class was touched: %v, %v", s.Finalizers,
			s.Status.LoadBalancer)
	}
}

// A pod that can't take packets: why is in its Service's status and events, not in a log alone.
func (w *world) testProblem() {
	p := w.newPod(1)
	must(w.t, p.ns.Do(func() error {
		return linux.WriteSysctl("net.ipv6.conf.all.disable_ipv6", "1")
	}))
	p.run(programs.sextant, "emulate", "--name", p.name, "--listen", "0.0.0.0:8080")
	w.slices("four", 8080, func(v6 bool) []discoveryv1.Endpoint {
		if v6 {
			return nil
		}
		return ready(p)(v6)
	})
	w.service("four", 80, nil)
	w.eventually("an event tells why the pod gets nothing", 30*time.Second, func() bool {
		return w.event("four", "NoTarget", p.name+": node node1: the pod has IPv4 alone")
	})
	if text, _ := w.status("four"); !strings.Contains(text, "set net.ipv6.conf.*.disable_ipv6") {
		w.t.Errorf("status does not tell why:\n%s", text)
	}
	must(w.t, p.ns.Do(func() error {
		return linux.WriteSysctl("net.ipv6.conf.all.disable_ipv6", "0")
	}))
	w.eventually("the pod serves", 30*time.Second, func() bool {
		_, r := w.status("four")
		return len(r.Ports) == 2 && r.Ports[0].Serving+r.Ports[1].Serving == 1
	})
	p.kill()
	must(w.t, w.client.Delete(w.t.Context(), &corev1.Service{ObjectMeta: objectMeta("four")}))
}

// The pods of a node with the exclusion label get no new connections, and do again without it.
func (w *world) testExcludedNode(pods []*pod) {
	label := func(edit func(map[string]string)) {
		var n corev1.Node
		must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Name: "node1"}, &n))
		before := n.DeepCopy()
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		edit(n.Labels)
		must(w.t, w.client.Patch(w.t.Context(), &n, client.MergeFrom(before)))
	}
	var there []*pod
	for _, p := range pods {
		if p.node == 1 {
			there = append(there, p)
		}
	}
	label(func(l map[string]string) { l[corev1.LabelNodeExcludeBalancers] = "" })
	w.eventually("edges offer nothing to pods of the node", 30*time.Second,
		func() bool { return !w.offers("web", there) })
	w.eventually("an event tells it", 30*time.Second, func() bool {
		return w.event("web", "NodeExcluded", corev1.LabelNodeExcludeBalancers)
	})
	for _, url := range w.urls("web") {
		for range 5 {
			if body, err := w.getWithin(url, "5"); err != nil || !strings.Contains(body,
				pods[1].name) {
				w.t.Errorf("%s, of which %s alone may serve: %q, %v", url, pods[1].name, body, err)
			}
		}
	}
	_, r := w.status("web")
	if p := r.Ports[0]; p.Serving != len(pods)-len(there) || p.Leaving != len(there) {
		w.t.Errorf("status: %d serve and %d leave", p.Serving, p.Leaving)
	}
	label(func(l map[string]string) { delete(l, corev1.LabelNodeExcludeBalancers) })
	w.eventually("edges offer to pods of the node again", 30*time.Second,
		func() bool { return w.offers("web", there) })
}
