package e2e_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// A pod is a network namespace behind a veth of a node, as most network plugins make it, and a
// cgroup as kubelets name it.
type pod struct {
	w      *world
	name   string
	uid    types.UID
	node   int
	v6, v4 netip.Addr
	ns     *linux.Netns
	group  *linux.Cgroup
	cmd    *exec.Cmd
	env    []string
	ended  chan struct{}
}

const podWiring = `
link add POD type veth peer name eth0 netns NS
link set POD up
addr add 169.254.1.1/32 dev POD
-6 addr add fe80::1/64 dev POD nodad
-4 route add V4/32 dev POD
-6 route add V6/128 dev POD
-n NS link set lo up
-n NS link set eth0 up
-n NS addr add V4/32 dev eth0
-n NS addr add V6/128 dev eth0 nodad
-n NS -4 route add 169.254.1.1 dev eth0
-n NS -4 route add default via 169.254.1.1 dev eth0
-n NS -6 route add default via fe80::1 dev eth0
`

// podsOfThisProcess is how the UIDs of all its pods begin, but of those that are objects.
func podsOfThisProcess() string { return fmt.Sprintf("%08d-0000-4000-8000-", os.Getpid()) }

// removePins removes what the agents of pods leave pinned, once nothing of the world runs any more.
func (w *world) removePins() {
	w.t.Helper()
	bpffs, _, err := linux.BPFFS()
	must(w.t, err)
	for _, uid := range w.uids {
		must(w.t, os.RemoveAll(filepath.Join(bpffs, "sextant", "pod-"+string(uid))))
		must(w.t, os.RemoveAll(filepath.Join(bpffs, "sextant-kubernetes", string(uid))))
	}
	_ = os.Remove(filepath.Join(bpffs, "sextant-kubernetes")) // another run may have pins there
}

// newPod makes a pod on a node, without a process.
func (w *world) newPod(node int) *pod {
	w.t.Helper()
	return w.newPodAs(node, types.UID(fmt.Sprintf("%s%012d", podsOfThisProcess(), w.serial+1)))
}

func (w *world) newPodAs(node int, uid types.UID) *pod {
	w.t.Helper()
	w.serial++
	n := w.serial
	w.uids = append(w.uids, uid)
	p := &pod{w: w, name: fmt.Sprintf("web-%d", n), node: node, uid: uid,
		v6: netip.MustParseAddr(fmt.Sprintf("fd00:10:%d::%x", node, 0x100+n)),
		v4: netip.AddrFrom4([4]byte{10, 10, byte(node), byte(n)})}
	var name string
	p.ns, name = linuxtest.Netns(w.t)
	must(w.t, p.ns.Do(func() error { return quiet() }))
	must(w.t, w.netns(fmt.Sprintf("node%d", node)).Do(func() error {
		return linuxtest.IP(strings.NewReplacer("POD", "pod"+fmt.Sprint(n), "NS", name,
			"V6", p.v6.String(), "V4", p.v4.String()).Replace(podWiring))
	}))
	host, err := w.lab.Node(fmt.Sprintf("node%d", node))
	must(w.t, err)
	p.group, err = linux.CreateCgroup(filepath.Join(host.Cgroup, "kubepods-pod"+
		strings.ReplaceAll(string(p.uid), "-", "_")+".slice"))
	must(w.t, err)
	return p
}

// quiet sets what a pod's namespace of a kubelet has.
func quiet() error {
	for name, value := range map[string]string{"net.ipv6.conf.all.accept_dad": "0",
		"net.ipv6.conf.default.accept_dad": "0"} {
		if err := linux.WriteSysctl(name, value); err != nil {
			return err
		}
	}
	return nil
}

// run starts the pod's server.
func (p *pod) run(program string, args ...string) {
	p.w.t.Helper()
	p.cmd = exec.Command(program, args...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(p.w.t, linux.Start(p.cmd, p.ns, p.group))
	p.ended = make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	p.w.t.Cleanup(p.kill)
}

// kill ends the pod's processes, as a kubelet does at last.
func (p *pod) kill() {
	if p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
	p.cmd = nil
	_ = p.group.Remove()
}

// endpoint is the pod in an EndpointSlice.
func (p *pod) endpoint(v6, ready, serving, terminating bool) discoveryv1.Endpoint {
	node, zone, address := fmt.Sprintf("node%d", p.node), fmt.Sprintf("zone%d", p.node), p.v4
	if v6 {
		address = p.v6
	}
	return discoveryv1.Endpoint{Addresses: []string{address.String()}, NodeName: &node, Zone: &zone,
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving,
			Terminating: &terminating},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: p.name,
			UID: p.uid}}
}

// objectMeta is the metadata of an object in the namespace of the tests' Services.
func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

// service makes a Service with both families.
func (w *world) service(name string, port int32, edit func(*corev1.Service)) *corev1.Service {
	w.t.Helper()
	class, both := "sextant.dev/srv6", corev1.IPFamilyPolicyRequireDualStack
	no, families := false, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	s := &corev1.Service{ObjectMeta: objectMeta(name),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class,
			IPFamilyPolicy: &both, IPFamilies: families,
			AllocateLoadBalancerNodePorts: &no,
			Ports:                         []corev1.ServicePort{{Name: "http", Port: port}}}}
	if edit != nil {
		edit(s)
	}
	w.create(s)
	return s
}

// slices writes the EndpointSlices of a Service, one of each family.
func (w *world) slices(service string, port int32,
	endpoint func(v6 bool) []discoveryv1.Endpoint) {
	w.t.Helper()
	name, protocol := "http", corev1.ProtocolTCP
	for _, v6 := range []bool{true, false} {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
			Name:   fmt.Sprintf("%s-%v", service, map[bool]int{true: 6, false: 4}[v6]),
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port,
				Protocol: &protocol}},
			Endpoints: endpoint(v6)}
		if v6 {
			s.AddressType = discoveryv1.AddressTypeIPv6
		}
		var old discoveryv1.EndpointSlice
		err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(s), &old)
		if err != nil {
			w.create(s)
			continue
		}
		s.ResourceVersion = old.ResourceVersion
		must(w.t, w.client.Update(w.t.Context(), s))
	}
}
