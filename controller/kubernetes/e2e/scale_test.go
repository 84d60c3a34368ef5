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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundtest"
	"sextant/controller/kubernetes/v1alpha1"
	"sextant/lab"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// agentPods are the pods that Services share where the edge is an agent, at most: it has numbers
// for 65,535.
const agentPods = 65_000

// sink is an edge's API that takes whatever it is told, so that the controller alone is measured.
type sink struct {
	want, of int // services, and backends of each
	mu       sync.Mutex
	services map[string]api.Declared
	prints   int
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/v1/edge/services" { // it has no BGP neighbors
		_ = json.NewEncoder(w).Encode(api.NeighborList{Items: []api.Neighbor{}})
		return
	}
	if r.Method == http.MethodGet {
		list := api.DeclaredList{Fingerprint: fmt.Sprint(s.prints), Items: []api.Declared{}}
		for _, one := range s.services {
			list.Items = append(list.Items, one)
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
		s.services[one.Name] = one
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
	for _, one := range s.services {
		if len(one.Backends) != s.of {
			return false
		}
	}
	return len(s.services) == s.want
}

// scaleText is a lab of one edge, beside whose agent the API server runs.
const scaleText = `
name: NAME
topology:
  nodes:
    router: {addresses: ["fd00:5e::ff"]}
    edge:
      addresses: ["fd00:5e::e1"]
      sextant:
        node: edge1
        domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"],
          locators: ["fd00:c0de::/32"]}
        secret: 41d7f0a96b3e85c2097ce1d4b8a35f6e
        state: "{dir}/state"
        api:
          socket: "{dir}/agent.sock"
          listen:
            {address: "127.0.0.1:9479", certificate: CERTIFICATE, key: KEY, tokens: TOKENS}
        edge: {interfaces: [{name: eth0}], source: "fd00:5e::e1", encapsulation: srh}
  links:
    - endpoints: ["edge:eth0", "router:edge"]
`

// A controller starts in a cluster of up to 10,000 Services with 100,000 endpoints on 1,000 nodes:
// how long it takes until all Services have an address and the edge all of them, and its memory.
// The edge is one that takes whatever it is told, so that the controller alone is measured, or an
// agent, which computes chains and writes them into the kernel.
func BenchmarkScale(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root to make network namespaces: run with sudo")
	}
	kubePrograms(b, "kube-apiserver", "etcd")
	build(b)
	for _, size := range []struct{ services, endpoints int }{{1000, 10}, {1000, 65}, {10000, 10}} {
		for _, edge := range []string{"none", "agent"} {
			b.Run(fmt.Sprintf("services=%d/endpoints=%d/edge=%s", size.services, size.endpoints,
				edge), func(b *testing.B) {
				scale(b, size.services, size.endpoints, edge == "agent")
			})
		}
	}
}

// scale measures Services with so many endpoints each.
func scale(b *testing.B, services, of int, real bool) {
	dir := b.TempDir()
	authority := southboundtest.NewAuthority(b, dir)
	leaf := authority.Leaf(b, "edge", netip.MustParseAddr("127.0.0.1"))
	w := &world{t: b, scheme: runtime.NewScheme()}
	token, ns := "token", (*linux.Netns)(nil)
	var edge *sink
	agent := 0
	if real {
		token = w.scaledEdge(dir, leaf)
		ns, agent = w.netns("edge"), w.agentOf("edge")
	} else {
		ns, _ = linuxtest.Netns(b)
		must(b, ns.Do(func() error { return linuxtest.IP("link set lo up") }))
		edge = w.sink(ns, leaf, services, of)
	}
	w.cluster = startCluster(b, ns, nil)
	w.cluster.InstallCRDs("../deploy/chart/crds")
	must(b, clientgoscheme.AddToScheme(w.scheme))
	must(b, v1alpha1.AddToScheme(w.scheme))
	config := rest.CopyConfig(w.cluster.Config)
	config.QPS = -1 // as many as the API server takes
	var err error
	w.client, err = client.NewWithWatch(config, client.Options{Scheme: w.scheme})
	must(b, err)
	w.apply("../deploy/namespace.yaml")
	w.edgeAndPool(leaf, token)
	begun := time.Now()
	if edge == nil {
		w.fill(services, of, min(agentPods, services*of))
	} else {
		w.fill(services, of, services*of)
	}
	b.Logf("made in %v", time.Since(begun).Round(time.Second))
	addressed := w.addressed()
	used := processorTime(b, w.cluster.Server)
	begun = time.Now()
	pid, stop := w.scaledController(ns, dir)
	w.eventually("the edge has all services", 20*time.Minute, func() bool {
		time.Sleep(100 * time.Millisecond)
		list := w.edges()
		return (edge == nil || edge.whole()) && w.edgesReady() &&
			int(list[0].Status.Services) == services
	})
	b.ReportMetric(time.Since(begun).Seconds(), "s/edge")
	w.eventually("all Services have addresses", 10*time.Minute, func() bool {
		time.Sleep(100 * time.Millisecond)
		return int(addressed.Load()) == services
	})
	b.ReportMetric(time.Since(begun).Seconds(), "s/addresses")
	w.eventually("all Services have an event", 10*time.Minute, func() bool {
		time.Sleep(time.Second)
		return w.events() >= services
	})
	b.ReportMetric(time.Since(begun).Seconds(), "s/events")
	b.ReportMetric(processorTime(b, w.cluster.Server)-used, "cpu-s-apiserver")
	b.ReportMetric(memory(b, pid), "MB")
	b.ReportMetric(processorTime(b, pid), "cpu-s")
	if edge == nil {
		b.ReportMetric(memory(b, agent), "MB-agent")
		b.ReportMetric(processorTime(b, agent), "cpu-s-agent")
	} else {
		b.ReportMetric(w.loseEndpoint(edge, 0), "s/change")
		stop()
		_, _ = w.scaledController(ns, dir)
		b.ReportMetric(w.loseEndpoint(edge, 1), "s/restart")
	}
	b.ReportMetric(0, "ns/op")
}

// scaledController starts a controller, and returns its process, and what stops it.
func (w *world) scaledController(ns *linux.Netns, dir string) (pid int, stop func()) {
	cmd := exec.Command(programs.kubernetes, "controller", "--kubeconfig",
		w.cluster.Kubeconfig("controller", "127.0.0.1:6443", "admin"), "--namespace", namespace,
		"--metrics", "127.0.0.1:8080", "--health", "127.0.0.1:8081", "--leader-elect=false")
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(w.t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	must(w.t, linux.Start(cmd, ns, nil))
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	w.t.Cleanup(stop)
	return cmd.Process.Pid, stop
}

// loseEndpoint takes an endpoint from a Service, and returns how many seconds it takes until the
// edge has lost it.
func (w *world) loseEndpoint(edge *sink, service int) float64 {
	w.t.Helper()
	var s discoveryv1.EndpointSlice
	must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default",
		Name: fmt.Sprintf("s%d-x", service)}, &s))
	before := s.DeepCopy()
	s.Endpoints = s.Endpoints[1:]
	begun := time.Now()
	must(w.t, w.client.Patch(w.t.Context(), &s, client.MergeFrom(before)))
	w.eventually("the edge has an endpoint less", 10*time.Minute, func() bool {
		edge.mu.Lock()
		defer edge.mu.Unlock()
		for name, one := range edge.services {
			if len(one.Backends) == edge.of-1 &&
				strings.Contains(name, fmt.Sprintf(".s%d.", service)) {
				return true
			}
		}
		return false
	})
	return time.Since(begun).Seconds()
}

// scaledEdge starts an edge, and returns a token for it.
func (w *world) scaledEdge(dir string, leaf southbound.Files) string {
	token, secret, err := access.NewToken("kubernetes", api.Admin, time.Time{})
	must(w.t, err)
	tokens := filepath.Join(dir, "tokens")
	must(w.t, access.EditTokens(tokens, func([]access.Token) ([]access.Token, error) {
		return []access.Token{token}, nil
	}))
	text := strings.NewReplacer("NAME", fmt.Sprintf("k8ss%d", os.Getpid()%100000),
		"CERTIFICATE", leaf.Certificate, "KEY", leaf.Key, "TOKENS", tokens).Replace(scaleText)
	spec, err := lab.Parse("scale.yaml", []byte(text))
	must(w.t, err)
	w.lab, err = lab.Up(w.t.Context(), spec, lab.Options{Self: programs.sextant})
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, lab.Down(w.lab.Name, nil)) })
	return secret
}

// agentOf is the process of a node's agent, which has the node's cgroup to itself.
func (w *world) agentOf(node string) (pid int) {
	n, err := w.lab.Node(node)
	must(w.t, err)
	text, err := os.ReadFile(filepath.Join(n.Cgroup, "cgroup.procs"))
	must(w.t, err)
	_, err = fmt.Sscan(string(text), &pid)
	must(w.t, err)
	return pid
}

// addressed counts the Services that have an address, from now on. It watches, since to list
// thousands again and again would keep the API server busy.
func (w *world) addressed() *atomic.Int64 {
	var list corev1.ServiceList
	watch, err := w.client.Watch(w.t.Context(), &list)
	must(w.t, err)
	w.t.Cleanup(watch.Stop)
	var n atomic.Int64
	go func() {
		have := map[string]bool{}
		for e := range watch.ResultChan() {
			if s, ok := e.Object.(*corev1.Service); ok && len(s.Status.LoadBalancer.Ingress) > 0 {
				have[s.Name] = true
				n.Store(int64(len(have)))
			}
		}
	}()
	return &n
}

// events is how many events there are.
func (w *world) events() int {
	var list eventsv1.EventList
	must(w.t, w.client.List(w.t.Context(), &list, client.Limit(1)))
	if list.RemainingItemCount == nil {
		return len(list.Items)
	}
	return len(list.Items) + int(*list.RemainingItemCount)
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

// processorTime is what a process has had so far, in seconds.
func processorTime(t testing.TB, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	var user, system float64
	_, err = fmt.Sscan(fields[12]+" "+fields[13], &user, &system) // of proc_pid_stat(5): 14, 15
	must(t, err)
	return (user + system) / 100
}

// sink starts the API of an edge that takes whatever it is told.
func (w *world) sink(ns *linux.Netns, leaf southbound.Files, want, of int) *sink {
	pair, err := tls.LoadX509KeyPair(leaf.Certificate, leaf.Key)
	must(w.t, err)
	var listener net.Listener
	must(w.t, ns.Do(func() (err error) {
		listener, err = tls.Listen("tcp", "127.0.0.1:9479", &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
		return err
	}))
	s := &sink{want: want, of: of, services: map[string]api.Declared{}}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	w.t.Cleanup(func() { server.Close() })
	return s
}

// edgeAndPool makes the objects that lead to an edge.
func (w *world) edgeAndPool(leaf southbound.Files, token string) {
	ca, err := os.ReadFile(leaf.CA)
	must(w.t, err)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edges"},
		Data: map[string][]byte{"token": []byte(token), "ca.crt": ca}})
	w.create(&v1alpha1.Edge{ObjectMeta: metav1.ObjectMeta{Name: "edge1"},
		Spec: v1alpha1.EdgeSpec{Address: "127.0.0.1:9479", SecretName: "edges"}})
	w.create(&v1alpha1.VIPPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"},
		Spec: v1alpha1.VIPPoolSpec{Addresses: []string{"2001:db8:80::/64"}}})
}

// fill makes the objects. Services share pods if there are fewer than endpoints.
func (w *world) fill(manyServices, of, manyPods int) {
	manyNodes := manyServices / 10
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
		for j := range of {
			n := (i*of + j) % manyPods
			node, place := fmt.Sprintf("node%d", n%manyNodes), n/manyNodes
			a := fmt.Sprintf("fd00:10:%x::%x", n%manyNodes+1, place+1)
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a},
				NodeName: &node, TargetRef: &corev1.ObjectReference{Kind: "Pod",
					Namespace: "default", Name: fmt.Sprintf("p%d", n),
					UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))}})
			of := &pods[n%manyNodes]
			if place == len(*of) {
				*of = append(*of, v1alpha1.HostEndpoint{Address: a,
					SID: fmt.Sprintf("fd00:c0de:%x::%x", n%manyNodes+1, place+1)})
			}
			// As when the controller was here before: addresses are given in this order.
			(*of)[place].Serves = append((*of)[place].Serves,
				"["+addressOf(i)+"]:80/tcp")
		}
		slicesOf[i] = s
	}
	w.parallel(manyNodes, func(ctx context.Context, i int) error {
		h := &v1alpha1.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node%d", i)}}
		if err := w.client.Create(ctx, h); err != nil {
			return err
		}
		h.Status = v1alpha1.HostStatus{Locator: fmt.Sprintf("fd00:c0de:%x::/64", i+1),
			Endpoints: pods[i]}
		return w.client.Status().Update(ctx, h)
	})
	w.parallel(manyServices, func(ctx context.Context, i int) error {
		s := scaledService(fmt.Sprintf("s%d", i), i)
		if err := w.client.Create(ctx, s); err != nil {
			return err
		}
		return w.client.Create(ctx, slicesOf[i])
	})
}

// scaledService is a Service that wishes for an address, so that it has the same at each run.
func scaledService(name string, i int) *corev1.Service {
	class, no, single := "sextant.dev/srv6", false, corev1.IPFamilyPolicySingleStack
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Annotations: map[string]string{"sextant.dev/addresses": addressOf(i)}},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class,
			AllocateLoadBalancerNodePorts: &no, IPFamilyPolicy: &single,
			IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Port: 80}}}}
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
