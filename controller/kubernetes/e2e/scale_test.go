package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/agent/api"
	"sextant/agent/southbound/southboundtest"
	"sextant/controller/kubernetes/kubetest"
	"sextant/controller/kubernetes/v1alpha1"
	"sextant/linux/linuxtest"
)

const (
	manyServices = 10000
	podsOfEach   = 10
	manyNodes    = 1000
)

// sink is an edge's API that takes whatever it is told, so that the controller alone is measured.
type sink struct {
	mu       sync.Mutex
	services map[string]int // backends
	prints   int
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodGet {
		list := api.DeclaredList{Fingerprint: fmt.Sprint(s.prints), Items: []api.Declared{}}
		for name := range s.services {
			list.Items = append(list.Items, api.Declared{Name: name})
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	var d api.Declaration
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, one := range d.Set {
		s.services[one.Name] = len(one.Backends)
	}
	for _, name := range d.Remove {
		delete(s.services, name)
	}
	s.prints++
	_ = json.NewEncoder(w).Encode(api.DeclarationMade{Fingerprint: fmt.Sprint(s.prints)})
}

// whole reports whether all services are there with all their backends.
func (s *sink) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.services {
		if n != podsOfEach {
			return false
		}
	}
	return len(s.services) == manyServices
}

// A controller starts in a cluster of 10,000 Services with 100,000 endpoints on 1,000 nodes: how
// long it takes until an edge has all, and until all have an address, and its memory.
func BenchmarkScale(t *testing.B) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	kubetest.Programs(t, "kube-apiserver", "etcd")
	build(t)
	ns, _ := linuxtest.Netns(t)
	must(t, ns.Do(func() error { return linuxtest.IP("link set lo up") }))
	dir := t.TempDir()
	w := &world{t: t, scheme: runtime.NewScheme()}
	w.cluster = kubetest.Start(t, ns, nil)
	w.cluster.InstallCRDs("../deploy/chart/crds")
	must(t, clientgoscheme.AddToScheme(w.scheme))
	must(t, v1alpha1.AddToScheme(w.scheme))
	var err error
	w.client, err = client.NewWithWatch(w.cluster.Config, client.Options{Scheme: w.scheme})
	must(t, err)
	w.apply("../deploy/namespace.yaml")
	edge := w.sink(ns, dir)
	begun := time.Now()
	w.fill()
	t.Logf("%d Services with %d endpoints on %d nodes are made in %v", manyServices,
		manyServices*podsOfEach, manyNodes, time.Since(begun).Round(time.Second))
	begun = time.Now()
	cmd := exec.Command(programs.kubernetes, "controller", "--kubeconfig",
		w.cluster.Kubeconfig("controller", "127.0.0.1:6443", "admin"), "--namespace", namespace,
		"--metrics", "127.0.0.1:8080", "--health", "127.0.0.1:8081", "--leader-elect=false")
	log, err := os.Create(filepath.Join(dir, "log"))
	must(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	must(t, ns.Do(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	w.eventually("the edge has all services", 10*time.Minute, edge.whole)
	t.ReportMetric(time.Since(begun).Seconds(), "s/edge")
	w.eventually("all Services have addresses", 10*time.Minute, func() bool {
		time.Sleep(time.Second)
		var list corev1.ServiceList
		must(t, w.client.List(t.Context(), &list))
		n := 0
		for i := range list.Items {
			if len(list.Items[i].Status.LoadBalancer.Ingress) > 0 {
				n++
			}
		}
		return n == manyServices
	})
	t.ReportMetric(time.Since(begun).Seconds(), "s/addresses")
	t.ReportMetric(memory(t, cmd.Process.Pid), "MB")
	t.ReportMetric(0, "ns/op")
}

// memory is what a process has had at most, in MB.
func memory(t testing.TB, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	_, peak, _ := strings.Cut(string(text), "VmHWM:")
	var kilobytes float64
	_, err = fmt.Sscan(peak, &kilobytes)
	must(t, err)
	return kilobytes / 1000
}

// sink starts the API of an edge, with the objects that lead there.
func (w *world) sink(ns interface{ Do(func() error) error }, dir string) *sink {
	authority := southboundtest.NewAuthority(w.t, dir)
	leaf := authority.Leaf(w.t, "edge", netip.MustParseAddr("127.0.0.1"))
	pair, err := tls.LoadX509KeyPair(leaf.Certificate, leaf.Key)
	must(w.t, err)
	var listener net.Listener
	must(w.t, ns.Do(func() (err error) {
		listener, err = tls.Listen("tcp", "127.0.0.1:9479", &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
		return err
	}))
	s := &sink{services: map[string]int{}}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	w.t.Cleanup(func() { server.Close() })
	ca, err := os.ReadFile(leaf.CA)
	must(w.t, err)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edges"},
		Data: map[string][]byte{"token": []byte("token"), "ca.crt": ca}})
	w.create(&v1alpha1.Edge{ObjectMeta: metav1.ObjectMeta{Name: "edge1"},
		Spec: v1alpha1.EdgeSpec{Address: "127.0.0.1:9479", SecretName: "edges"}})
	w.create(&v1alpha1.VIPPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"},
		Spec: v1alpha1.VIPPoolSpec{Addresses: []string{"2001:db8:80::/64"}}})
	return s
}

// fill makes the objects.
func (w *world) fill() {
	pods := make([][]v1alpha1.HostEndpoint, manyNodes)
	slicesOf := make([]*discoveryv1.EndpointSlice, manyServices)
	name, protocol, port := "http", corev1.ProtocolTCP, int32(8080)
	for i := range slicesOf {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name:   fmt.Sprintf("s%d-x", i),
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", i)}},
			AddressType: discoveryv1.AddressTypeIPv6,
			Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port,
				Protocol: &protocol}}}
		for j := range podsOfEach {
			n := i*podsOfEach + j
			node := fmt.Sprintf("node%d", n%manyNodes)
			a := fmt.Sprintf("fd00:10:%x::%x", n%manyNodes, n/manyNodes+1)
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a},
				NodeName: &node, TargetRef: &corev1.ObjectReference{Kind: "Pod",
					Namespace: "default", Name: fmt.Sprintf("s%d-%d", i, j),
					UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))}})
			pods[n%manyNodes] = append(pods[n%manyNodes], v1alpha1.HostEndpoint{Address: a,
				SID: fmt.Sprintf("fd00:c0de:%x::%x", n%manyNodes, n/manyNodes+1),
				// As when the controller was here before: addresses are given in this order.
				Serves: []string{fmt.Sprintf("[2001:db8:80::%x]:80/tcp", i+1)}})
		}
		slicesOf[i] = s
	}
	w.parallel(manyNodes, func(ctx context.Context, i int) error {
		h := &v1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node%d", i)}}
		if err := w.client.Create(ctx, h); err != nil {
			return err
		}
		h.Status = v1alpha1.HostStatus{Locator: fmt.Sprintf("fd00:c0de:%x::/64", i),
			Endpoints: pods[i]}
		return w.client.Status().Update(ctx, h)
	})
	w.parallel(manyServices, func(ctx context.Context, i int) error {
		class, no, single := "sextant.dev/srv6", false, corev1.IPFamilyPolicySingleStack
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name: fmt.Sprintf("s%d", i), Annotations: map[string]string{
				"sextant.dev/addresses": fmt.Sprintf("2001:db8:80::%x", i+1)}},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
				LoadBalancerClass: &class, AllocateLoadBalancerNodePorts: &no,
				IPFamilyPolicy: &single,
				IPFamilies:     []corev1.IPFamily{corev1.IPv6Protocol},
				Ports:          []corev1.ServicePort{{Name: "http", Port: 80}}}}
		if err := w.client.Create(ctx, s); err != nil {
			return err
		}
		return w.client.Create(ctx, slicesOf[i])
	})
}

// parallel does things at once, 32 at a time.
func (w *world) parallel(count int, do func(context.Context, int) error) {
	var work sync.WaitGroup
	next := make(chan int)
	for range 32 {
		work.Go(func() {
			for i := range next {
				if err := do(w.t.Context(), i); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	work.Wait()
}
