package e2e_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/linux"
)

// get asks a URL from the client's node, and waits for as long as others take.
func (w *world) get(url string) (string, error) { return w.getWithin(url, "0.15") }

func (w *world) getWithin(url, seconds string) (string, error) {
	cmd := exec.Command("curl", "-sS", "-i", "-g", "--max-time", seconds, url)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := linux.Start(cmd, w.netns("client"), nil); err != nil {
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), nil
}

// serve starts a web server that says the pod's name, on another port than Services have.
func (p *pod) serve() *pod {
	p.run(programs.sextant, "emulate", "--name", p.name, "--listen", "[::]:8080", "--cores", "4",
		"--workers", "64")
	return p
}

// ready are pods as endpoints that are ready.
func ready(pods ...*pod) func(v6 bool) []discoveryv1.Endpoint {
	return func(v6 bool) (list []discoveryv1.Endpoint) {
		for _, p := range pods {
			list = append(list, p.endpoint(v6, true, true, false))
		}
		return list
	}
}

// ingress is the status of a Service.
func (w *world) ingress(name string) []corev1.LoadBalancerIngress {
	w.t.Helper()
	var s corev1.Service
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &s))
	return s.Status.LoadBalancer.Ingress
}

// The parts of this test are of one cluster, in this order.
func TestCluster(t *testing.T) {
	w := newWorld(t)
	w.startController()
	nodes := []*process{w.startNode(1), w.startNode(2)}
	pods := []*pod{w.newPod(1).serve(), w.newPod(2).serve(), w.newPod(1).serve(),
		w.newPod(1).serve()}
	w.slices("web", 8080, ready(pods...))
	w.eventually("the controller serves", 60*time.Second, w.edgesReady)
	for _, part := range []struct {
		name string
		test func()
	}{
		{"a Service", w.testService},
		{"a Gateway", w.testGateway},
		{"status", func() { w.testStatus(pods) }},
		{"a pod that fails", w.testProblem},
		{"BGP", w.testPeering},
		{"a readiness gate", w.testReadinessGate},
		{"an excluded node", func() { w.testExcludedNode(pods) }},
		{"a node's daemon starts again", func() { w.testNodeRestarts(nodes[0], pods) }},
		{"an absent controller", func() { w.testAbsentController(pods[:3]) }},
		{"hostile objects", func() { w.testHostile(pods[:3]) }},
		{"rights", w.testRights},
		{"a rolling update", w.testRollingUpdate},
	} {
		begun := time.Now()
		part.test()
		t.Logf("%s: %v", part.name, time.Since(begun))
	}
}

// A Service of our class becomes a virtual address that works, in both families.
func (w *world) testService() {
	begun := time.Now()
	w.service("web", 80, nil)
	w.eventually("the Service has addresses", 60*time.Second,
		func() bool { return len(w.ingress("web")) == 2 })
	w.t.Logf("addresses after %v", time.Since(begun))
	for _, url := range w.urls("web") {
		w.eventually(url+" answers", 60*time.Second, func() bool {
			_, err := w.get(url)
			return err == nil
		})
		w.t.Logf("%s answers after %v", url, time.Since(begun))
	}
	addresses := w.ingress("web")
	w.eventually("an event tells its addresses and edges", 60*time.Second, func() bool {
		return w.event("web", "Announced", addresses[0].IP+", "+addresses[1].IP+
			" served by edge1, edge2")
	})
	var s corev1.Service
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, &s))
	if want := []string{"sextant.dev/load-balancer"}; !slices.Equal(s.Finalizers, want) {
		w.t.Errorf("finalizers %q, want %q", s.Finalizers, want)
	}
}

// urls are those of a Service's addresses.
func (w *world) urls(service string) (list []string) {
	for _, in := range w.ingress(service) {
		if strings.Contains(in.IP, ":") {
			in.IP = "[" + in.IP + "]"
		}
		list = append(list, "http://"+in.IP+"/")
	}
	return list
}

// edgesReady reports whether all Edges are current.
func (w *world) edgesReady() bool {
	for _, e := range w.edges() {
		for _, c := range e.Status.Conditions {
			if c.Type != "Ready" || c.Status != "True" {
				return false
			}
		}
		if len(e.Status.Conditions) == 0 {
			return false
		}
	}
	return true
}
