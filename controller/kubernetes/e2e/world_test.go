package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/agent/southbound/southboundtest"
	"sextant/controller/kubernetes/v1alpha1"
	"sextant/lab"
	"sextant/linux"
)

const namespace = "sextant-system"

// programs are built once for all tests.
var programs struct {
	once                sync.Once
	sextant, kubernetes string
	err                 error
}

func build(t testing.TB) {
	t.Helper()
	programs.once.Do(func() {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("sextant-e2e-%d", os.Getpid()))
		programs.err = os.MkdirAll(dir, 0o755)
		for _, p := range []struct {
			path         *string
			dir, pkg, of string
		}{{&programs.sextant, "../../..", "./cmd/sextant", "sextant"},
			{&programs.kubernetes, "..", "./cmd/sextant-kubernetes", "sextant-kubernetes"}} {
			*p.path = filepath.Join(dir, p.of)
			cmd := exec.Command("go", "build", "-o", *p.path, p.pkg)
			cmd.Dir = p.dir
			if out, err := cmd.CombinedOutput(); err != nil && programs.err == nil {
				programs.err = fmt.Errorf("%w: %s", err, out)
			}
		}
	})
	must(t, programs.err)
}

// servers are what this program is in pods, by the variable that says so.
var servers = map[string]func(string){webName: runWeb}

func TestMain(m *testing.M) {
	for variable, run := range servers {
		if value := os.Getenv(variable); value != "" {
			run(value)
			return
		}
	}
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if programs.sextant != "" {
		os.RemoveAll(filepath.Dir(programs.sextant))
	}
	os.Exit(code)
}

// A world is a cluster with its network.
type world struct {
	t       testing.TB
	cluster *Cluster
	client  client.WithWatch
	lab     *lab.Lab
	scheme  *runtime.Scheme
	serial  int
	uids    []types.UID            // of pods
	agents  map[string]*api.Client // of edges
	// controller works alone, without a lease
	controller *process
}

const labText = `
name: NAME
topology:
  nodes:
    client:
      addresses: ["2001:db8:c::1", "203.0.113.1"]
      announce: ["2001:db8:c::/112", "203.0.113.0/24"]
      local: ["2001:db8:c::/112", "203.0.113.0/24"]
    router:
      addresses: ["fd00:5e::ff"]
      sysctls: {net.ipv6.fib_multipath_hash_policy: "1", net.ipv4.fib_multipath_hash_policy: "1"}
    control:
      addresses: ["fd00:5e::9"]
    edge:
      count: 2
      addresses: ["fd00:5e::e{i}"]
      announce: ["2001:db8:80::/64", "198.51.100.0/24"]
      sextant:
        node: edge{i}
        domain: &domain
          block: "fcbb:bb00::/32"
          infrastructure: ["fd00:5e::/48"]
          locators: ["fd00:c0de::/32"]
        secret: &secret 41d7f0a96b3e85c2097ce1d4b8a35f6e
        state: "{dir}/state"
        api:
          socket: "{dir}/agent.sock"
          listen:
            {address: "[fd00:5e::e{i}]:9479", certificate: CERTIFICATE, key: KEY, tokens: TOKENS}
        edge:
          interfaces: [{name: eth0}]
          source: "fd00:5e::e{i}"
          encapsulation: srh
        bgp: {asn: 64512, routerID: "192.0.2.{i}"}
    node:
      count: 2
      addresses: ["fd00:5e::1{i}"]
      announce: ["fd00:c0de:{i}::/64", "fd00:10:{i}::/64", "10.10.{i}.0/24"]
  links:
    - endpoints: ["client:eth0", "router:client"]
    - endpoints: ["control:eth0", "router:control"]
    - endpoints: ["edge{i}:eth0", "router:edge{i}"]
    - endpoints: ["node{i}:eth0", "router:node{i}"]
`

const nodeTemplate = `
node: template
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"], locators: ["fd00:c0de::/32"]}
secret: 41d7f0a96b3e85c2097ce1d4b8a35f6e
host:
  interfaces: [{name: eth0}]
  sids: [{prefix: "fd00:c0de::/128", behavior: End.OFFER}]
  services: [{name: any, vip: 192.0.2.1, port: any, accept: {policy: average}}]
`

// newWorld brings up the network with its agents, and the API server.
func newWorld(t testing.TB) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	kubePrograms(t, "kube-apiserver", "etcd")
	build(t)
	w := &world{t: t, agents: map[string]*api.Client{}, scheme: runtime.NewScheme()}
	t.Cleanup(w.removePins) // the first, so that it comes last
	dir := t.TempDir()
	authority := southboundtest.NewAuthority(t, dir)
	leaf := authority.Leaf(t, "edge", netip.MustParseAddr("fd00:5e::e1"),
		netip.MustParseAddr("fd00:5e::e2"))
	token, secret, err := access.NewToken("kubernetes", api.Admin, time.Time{})
	must(t, err)
	tokens := filepath.Join(dir, "tokens")
	must(t, access.EditTokens(tokens, func([]access.Token) ([]access.Token, error) {
		return []access.Token{token}, nil
	}))
	text := strings.NewReplacer("NAME", fmt.Sprintf("k8s%d", os.Getpid()%100000),
		"CERTIFICATE", leaf.Certificate, "KEY", leaf.Key, "TOKENS", tokens).Replace(labText)
	spec, err := lab.Parse("world.yaml", []byte(text))
	must(t, err)
	w.lab, err = lab.Up(t.Context(), spec, lab.Options{Self: programs.sextant})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			w.logs()
		}
		must(t, lab.Down(w.lab.Name, nil))
	})
	w.cluster = startCluster(t, w.netns("control"), Users{
		"controller": "system:serviceaccount:" + namespace + ":sextant-controller",
		"node":       "system:serviceaccount:" + namespace + ":sextant-node"})
	w.relay()
	w.cluster.InstallCRDs(append(GatewayCRDs(t), "../deploy/chart/crds")...)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme,
		v1alpha1.AddToScheme, gatewayv1.Install} {
		must(t, add(w.scheme))
	}
	w.client, err = client.NewWithWatch(w.cluster.Config, client.Options{Scheme: w.scheme})
	must(t, err)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	must(t, err)
	w.apply("../deploy/namespace.yaml")
	w.apply("../deploy/sextant.yaml")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edges"},
		Data: map[string][]byte{"token": []byte(secret), "ca.crt": ca}})
	for i := 1; i <= 2; i++ {
		w.create(&v1alpha1.Edge{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("edge%d", i)},
			Spec: v1alpha1.EdgeSpec{Address: fmt.Sprintf("[fd00:5e::e%d]:9479", i),
				SecretName: "edges", Zone: fmt.Sprintf("zone%d", i)}})
		w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node%d", i),
			Annotations: map[string]string{
				"sextant.dev/locator": fmt.Sprintf("fd00:c0de:%d::/64", i)}}})
	}
	w.create(&v1alpha1.VIPPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"},
		Spec: v1alpha1.VIPPoolSpec{Addresses: []string{"2001:db8:80::80-2001:db8:80::ff",
			"198.51.100.16-198.51.100.250"}}})
	return w
}

func (w *world) netns(node string) *linux.Netns {
	w.t.Helper()
	n, err := w.lab.Node(node)
	must(w.t, err)
	ns, err := linux.OpenNetns(n.Namespace)
	must(w.t, err)
	w.t.Cleanup(func() { ns.Close() })
	return ns
}

// relay lets nodes reach the API server, which listens on its loopback address, by the address of
// its node.
func (w *world) relay() {
	w.t.Helper()
	ns := w.netns("control")
	var listener net.Listener
	must(w.t, ns.Do(func() (err error) {
		listener, err = net.Listen("tcp", "[fd00:5e::9]:6443")
		return err
	}))
	w.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			var out net.Conn
			if ns.Do(func() (err error) {
				out, err = net.Dial("tcp", w.cluster.Address)
				return err
			}) != nil {
				in.Close()
				continue
			}
			go copyTo(in, out)
			go copyTo(out, in)
		}
	}()
}

func copyTo(to, from net.Conn) {
	_, _ = io.Copy(to, from) // one of them ends
	to.Close()
	from.Close()
}

// apply creates the objects of a manifest.
func (w *world) apply(file string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	must(w.t, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if err == io.EOF {
			return
		}
		must(w.t, err)
		w.create(o)
	}
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	must(w.t, w.client.Create(w.t.Context(), o))
}

// process is a program that runs until the test ends, or it is stopped.
type process struct {
	w     *world
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
}

// stop sends a signal, and waits for the end.
func (p *process) stop(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.w.t.Errorf("%s does not end", p.name)
		_ = p.cmd.Process.Kill()
	}
}

// start starts a program on a node.
func (w *world) start(node, name, program string, args ...string) *process {
	w.t.Helper()
	file := filepath.Join(w.cluster.Dir, name+".log")
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(w.t, err)
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(w.t, linux.Start(cmd, w.netns(node), nil))
	p := &process{w, name, cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its log says why
		close(p.ended)
	}()
	w.t.Cleanup(func() { p.stop(syscall.SIGTERM) })
	return p
}

func (w *world) startController() {
	w.t.Helper()
	w.controller = w.start("control", "controller", programs.kubernetes, "controller",
		"--kubeconfig", w.cluster.Kubeconfig("controller", "127.0.0.1:6443", "controller"),
		"--namespace", namespace,
		"--metrics", "127.0.0.1:8080", "--health", "127.0.0.1:8081", "--leader-elect=false")
}

// inContainer runs a program as in a container: with few capabilities, and sysctls that can't be
// written at first.
const inContainer = `mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
exec setpriv --bounding-set=-all%s "$@"`

func (w *world) startNode(i int) *process {
	w.t.Helper()
	name := fmt.Sprintf("node%d", i)
	template := filepath.Join(w.cluster.Dir, "template.yaml")
	must(w.t, os.WriteFile(template, []byte(nodeTemplate), 0o600))
	var set appsv1.DaemonSet
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace,
		Name: "sextant-node"}, &set))
	capabilities := ""
	for _, c := range set.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Add {
		capabilities += ",+" + strings.ToLower(string(c))
	}
	return w.start(name, name, "unshare", "--mount", "sh", "-ec",
		fmt.Sprintf(inContainer, capabilities), "sh", programs.kubernetes, "node", "--node", name,
		"--template", template,
		"--sextant", programs.sextant, "--dir", filepath.Join(w.cluster.Dir, name),
		"--kubeconfig", w.cluster.Kubeconfig(name, "[fd00:5e::9]:6443", "node"))
}

// logs shows what programs said last, and the errors of all the time before.
func (w *world) logs() {
	if w.cluster == nil {
		return
	}
	for _, pattern := range []string{filepath.Join(w.cluster.Dir, "[cn]*.log"),
		filepath.Join(w.cluster.Dir, "node*", "*", "log"), filepath.Join(w.lab.Dir, "logs", "*")} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			text, _ := os.ReadFile(file)
			if len(text) == 0 {
				continue
			}
			last := max(0, len(text)-3000)
			for line := range strings.Lines(string(text[:last])) {
				if strings.Contains(line, `"level":"ERROR"`) {
					w.t.Logf("%s: %s", file, line)
				}
			}
			w.t.Logf("%s:\n%s", file, text[last:])
		}
	}
}

// eventually waits until a condition holds, and says how long that took.
func (w *world) eventually(what string, within time.Duration, ok func() bool) time.Duration {
	w.t.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) > within {
			w.t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begun)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) edges() []v1alpha1.Edge {
	w.t.Helper()
	var list v1alpha1.EdgeList
	must(w.t, w.client.List(w.t.Context(), &list))
	return list.Items
}
