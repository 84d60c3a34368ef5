package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/controller/kubernetes/v1alpha1"
)

// A node's daemon that starts again takes no pod away meanwhile, and pods that left in its absence
// leave nothing behind.
func (w *world) testNodeRestarts(node *process, pods []*pod) {
	w.eventually("node1 takes packets for its pods", 60*time.Second,
		func() bool { return len(w.hostAddresses("node1")) == 6 })
	seen := w.watchHost("node1")
	node.stop(syscall.SIGTERM)
	gone, left := pods[3], pods[:3]
	w.slices("web", 8080, ready(left...))
	w.eventually("edges do not send to the pod any more", 60*time.Second,
		func() bool { return w.backends("web") == len(left) })
	gone.kill()
	for _, url := range w.urls("web") {
		if _, err := w.getWithin(url, "5"); err != nil {
			w.t.Errorf("without a daemon: %v", err)
		}
	}
	started := strings.Count(w.logOf("node1"), "pod takes packets") + 2
	w.startNode(1)
	w.eventually("the pods that are left have been looked at", 30*time.Second, func() bool {
		return strings.Count(w.logOf("node1"), "pod takes packets") == started
	})
	dir := filepath.Join(w.cluster.Dir, "node1", string(gone.uid))
	w.eventually("what the other pod was given is gone", 60*time.Second, func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
	stays := []string{pods[0].v4.String(), pods[2].v4.String(), pods[0].v6.String(),
		pods[2].v6.String()}
	for _, e := range seen() {
		for _, address := range stays {
			if !slices.Contains(e, address) {
				w.t.Errorf("the Host of node1 lost %s meanwhile: %v", address, e)
			}
		}
	}
	if got := w.hostAddresses("node1"); !slices.Equal(got, stays) {
		w.t.Errorf("the Host of node1 has %v, want %v", got, stays)
	}
}

func (w *world) logOf(name string) string {
	text, err := os.ReadFile(filepath.Join(w.cluster.Dir, name+".log"))
	must(w.t, err)
	return string(text)
}

func (w *world) hostAddresses(node string) []string {
	w.t.Helper()
	var host v1alpha1.Host
	must(w.t, client.IgnoreNotFound(w.client.Get(w.t.Context(), types.NamespacedName{Name: node},
		&host)))
	return addressesOf(&host)
}

func addressesOf(host *v1alpha1.Host) (list []string) {
	for _, e := range host.Status.Endpoints {
		list = append(list, e.Address)
	}
	return list
}

// watchHost follows what a node says; the function ends that, and returns all that it said.
func (w *world) watchHost(node string) func() [][]string {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	follow, err := w.client.Watch(ctx, &v1alpha1.HostList{}, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", node)})
	must(w.t, err)
	var list [][]string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range follow.ResultChan() {
			if host, ok := e.Object.(*v1alpha1.Host); ok {
				list = append(list, addressesOf(host))
			}
		}
	}()
	return func() [][]string {
		follow.Stop()
		cancel()
		<-ended
		return list
	}
}
