package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Of two replicas one works. While none runs, connections go on, and Services and pods change, in
// number as within an hour; then edges have all of it at once.
func (w *world) testAbsentController(pods []*pod) {
	const before, after = 6, 18
	name := func(i int) string { return fmt.Sprintf("shop-%d", i) }
	endpoints := func(i int) []*pod { return pods[i%len(pods) : i%len(pods)+1] }
	for i := range before {
		w.slices(name(i), 8080, ready(endpoints(i)...))
		w.service(name(i), 80, nil)
	}
	w.controller.stop(syscall.SIGTERM)
	first := w.startReplica(1)
	second := w.startReplica(2)
	w.eventually("the first Services have addresses", 60*time.Second, func() bool {
		return w.served(before, name)
	})
	w.eventually("an edge tells new things", 60*time.Second, w.edgesReady)
	first.stop(syscall.SIGTERM)
	w.slices(name(0), 8080, ready(endpoints(1)...))
	w.eventually("the other replica goes on", 60*time.Second, func() bool {
		return slices.Equal(w.backendsOf(name(0)), names(endpoints(1)))
	})
	second.stop(syscall.SIGTERM)

	for i := range before / 2 {
		must(w.t, w.client.Delete(w.t.Context(), &corev1.Service{ObjectMeta: objectMeta(name(i))}))
	}
	for i := before; i < after; i++ {
		w.slices(name(i), 8080, ready(pods...))
		w.service(name(i), 80, nil)
		for range 10 { // pods come and go
			w.slices(name(i), 8080, ready(pods...))
			w.slices(name(i), 8080, ready(endpoints(i)...))
		}
	}
	for i := before / 2; i < before; i++ {
		w.slices(name(i), 8080, ready(endpoints(i+1)...))
	}
	for _, url := range w.urls("web") {
		if _, err := w.getWithin(url, "5"); err != nil {
			w.t.Errorf("without a controller: %v", err)
		}
	}
	begun := time.Now()
	w.startController()
	w.eventually("Services that were deleted are gone", 60*time.Second, func() bool {
		for i := range before / 2 {
			err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default",
				Name: name(i)}, &corev1.Service{})
			if !apierrors.IsNotFound(err) || w.backendsOf(name(i)) != nil {
				return false
			}
		}
		return true
	})
	w.eventually("edges have what changed", 60*time.Second, func() bool {
		for i := before / 2; i < after; i++ {
			want := endpoints(i)
			if i < before {
				want = endpoints(i + 1)
			}
			if !slices.Equal(w.backendsOf(name(i)), names(want)) {
				return false
			}
		}
		return true
	})
	w.t.Logf("%d changes are at the edges %v after the controller starts", 3+(after-before)*22+3,
		time.Since(begun))
	for i := before / 2; i < after; i++ {
		must(w.t, w.client.Delete(w.t.Context(), &corev1.Service{ObjectMeta: objectMeta(name(i))}))
	}
}

// served reports whether the first Services, of a number, have addresses.
func (w *world) served(count int, name func(int) string) bool {
	for i := range count {
		if len(w.ingress(name(i))) != 2 {
			return false
		}
	}
	return true
}

// startReplica starts one of several controllers, of which one works.
func (w *world) startReplica(i int) *process {
	w.t.Helper()
	return w.start("control", fmt.Sprintf("controller-%d", i), programs.kubernetes, "controller",
		"--kubeconfig", w.cluster.Kubeconfig("controller", "127.0.0.1:6443", "controller"),
		"--namespace", namespace, "--metrics", "0", "--health", "0")
}

func names(pods []*pod) (list []string) {
	for _, p := range pods {
		list = append(list, p.name)
	}
	return list
}

// backendsOf are those that all edges have of all ports of a Service; nil if one has it not, or
// another list.
func (w *world) backendsOf(service string) (list []string) {
	w.t.Helper()
	count := 0
	for _, edge := range []string{"edge1", "edge2"} {
		for _, d := range w.declared(edge).Items {
			if !strings.Contains(d.Name, ".default."+service+".") {
				continue
			}
			var names []string
			for _, b := range d.Backends {
				names = append(names, b.Name)
			}
			if count++; count > 1 && !slices.Equal(names, list) {
				return nil
			}
			list = names
		}
	}
	if count != 4 { // two edges, two families
		return nil
	}
	return list
}
