//go:build conformance

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/tcpserver"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/udpechoserver"
)

// echoKind is the variable by which this program is a server of the conformance tests.
const echoKind = "SEXTANT_E2E_ECHO"

func init() { servers[echoKind] = runEcho }

func runEcho(kind string) {
	switch kind {
	case "TCP_ECHO_SERVER":
		tcpserver.Main()
	case "UDP_ECHO_SERVER":
		runUDPEcho()
	case "coredns":
		answer := dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
			_ = w.WriteMsg(new(dns.Msg).SetReply(question)) // the client asks again
		})
		fmt.Fprintln(os.Stderr, dns.ListenAndServe(":53", "udp", answer))
	}
}

// runUDPEcho answers as the server of the conformance tests does, but from the address that was
// asked, as servers must to whom clients come by an address of a service; theirs answers from its
// own.
func runUDPEcho() {
	socket, err := net.ListenPacket("udp4", ":8080")
	if err != nil {
		panic(err)
	}
	c := ipv4.NewPacketConn(socket)
	if err := c.SetControlMessage(ipv4.FlagDst, true); err != nil {
		panic(err)
	}
	buffer := make([]byte, 1<<16)
	for {
		n, asked, client, err := c.ReadFrom(buffer)
		if err != nil {
			panic(err)
		}
		answer, err := json.Marshal(udpechoserver.EchoResponse{Request: string(buffer[:n]),
			Context: udpechoserver.Context{Namespace: os.Getenv("NAMESPACE"),
				Service: os.Getenv("SERVICE_NAME"), Pod: os.Getenv("POD_NAME")}})
		if err != nil {
			panic(err)
		}
		// The client asks again if the answer is lost.
		_, _ = c.WriteTo(answer, &ipv4.ControlMessage{Src: asked.Dst}, client)
	}
}

// A kubelet makes the pods of Deployments, and the EndpointSlices of Services, as the parts of
// Kubernetes do that do not run here. It has the main goroutine of the test.
type kubelet struct {
	w    *world
	pods map[types.UID][]*deployed // by Deployment
}

// deployed is a pod of a Deployment. Those whose servers the tests do not ask are objects alone.
type deployed struct {
	*pod
	object *corev1.Pod
	born   time.Time
	ready  bool
}

// probe is how long a pod is not ready: nodes let it take packets meanwhile, as they do while
// containers start.
const probe = 3 * time.Second

// run works until the channel is closed.
func (k *kubelet) run(ended <-chan struct{}) {
	k.pods = map[types.UID][]*deployed{}
	for {
		k.deployments()
		ready := k.probes()
		k.services()
		k.tell(ready)
		select {
		case <-ended:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (k *kubelet) deployments() {
	var list appsv1.DeploymentList
	must(k.w.t, k.w.client.List(k.w.t.Context(), &list))
	there := map[types.UID]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		there[d.UID] = true
		if _, ok := k.pods[d.UID]; ok || d.DeletionTimestamp != nil || d.Namespace == namespace {
			continue
		}
		for n := range *d.Spec.Replicas {
			k.pods[d.UID] = append(k.pods[d.UID], k.deploy(d, int(n)))
		}
	}
	for uid, pods := range k.pods {
		if there[uid] {
			continue
		}
		for _, p := range pods {
			if p.pod != nil {
				p.kill()
			}
			err := k.w.client.Delete(k.w.t.Context(), p.object, client.GracePeriodSeconds(0))
			must(k.w.t, client.IgnoreNotFound(err))
		}
		delete(k.pods, uid)
	}
}

// deploy makes a pod of a Deployment.
func (k *kubelet) deploy(d *appsv1.Deployment, n int) *deployed {
	name := fmt.Sprintf("%s-%s-%d", d.Name, "7d4b9c6f5d", n)
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name,
		Labels: d.Spec.Template.Labels}, Spec: *d.Spec.Template.Spec.DeepCopy()}
	one := &deployed{object: o, born: time.Now()}
	env := map[string]string{}
	for _, v := range d.Spec.Template.Spec.Containers[0].Env {
		env[v.Name] = v.Value
	}
	kind := ""
	for _, known := range []string{"TCP_ECHO_SERVER", "UDP_ECHO_SERVER"} {
		if env[known] != "" {
			kind = known
		}
	}
	if d.Name == "coredns" {
		kind = d.Name
	}
	if kind != "" {
		one.pod = k.w.newPod(1 + len(k.pods)%2)
		one.name = name
		env["POD_NAME"], env["NAMESPACE"], env[echoKind] = name, d.Namespace, kind
		for key, value := range env {
			one.env = append(one.env, key+"="+value)
		}
		one.run(os.Args[0])
		o.UID = one.uid
	}
	// The tests ask whether pods are ready; nothing asks for their volumes.
	o.Spec.Volumes, o.Spec.Containers[0].VolumeMounts = nil, nil
	must(k.w.t, k.w.client.Create(k.w.t.Context(), o))
	return one
}

// probes returns the pods that are ready now, and were not.
func (k *kubelet) probes() (list []*deployed) {
	for _, pods := range k.pods {
		for _, p := range pods {
			if !p.ready && time.Since(p.born) >= probe {
				p.ready = true
				list = append(list, p)
			}
		}
	}
	return list
}

// tell says of pods that they are ready.
func (k *kubelet) tell(list []*deployed) {
	for _, p := range list {
		p.object.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady,
			Status: corev1.ConditionTrue}}
		must(k.w.t, k.w.client.Status().Update(k.w.t.Context(), p.object))
	}
}

func (k *kubelet) services() {
	var list corev1.ServiceList
	must(k.w.t, k.w.client.List(k.w.t.Context(), &list))
	for i := range list.Items {
		if s := &list.Items[i]; len(s.Spec.Selector) > 0 && s.DeletionTimestamp == nil {
			k.slice(s)
		}
	}
}

// slice writes the EndpointSlice of a Service, of the family of its cluster address.
func (k *kubelet) slice(s *corev1.Service) {
	v6 := s.Spec.IPFamilies[0] == corev1.IPv6Protocol
	o := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace,
		Name: s.Name + "-x7f2p", Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: s.Name,
			UID: s.UID}}},
		AddressType: discoveryv1.AddressType(s.Spec.IPFamilies[0])}
	for _, p := range s.Spec.Ports {
		target := p.TargetPort.IntVal
		o.Ports = append(o.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &target,
			Protocol: &p.Protocol})
	}
	selects := labels.SelectorFromSet(maps.Clone(s.Spec.Selector))
	for _, pods := range k.pods {
		for _, p := range pods {
			if p.pod != nil && p.object.Namespace == s.Namespace &&
				selects.Matches(labels.Set(p.object.Labels)) {
				e := p.endpoint(v6, p.ready, p.ready, false)
				e.TargetRef.Namespace, e.TargetRef.UID = s.Namespace, p.uid
				o.Endpoints = append(o.Endpoints, e)
			}
		}
	}
	var old discoveryv1.EndpointSlice
	err := k.w.client.Get(k.w.t.Context(), client.ObjectKeyFromObject(o), &old)
	switch {
	case apierrors.IsNotFound(err):
		err = k.w.client.Create(k.w.t.Context(), o)
	case err == nil && readyIn(&old) != readyIn(o):
		o.ResourceVersion = old.ResourceVersion
		err = k.w.client.Update(k.w.t.Context(), o)
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // it is gone, or comes again
		must(k.w.t, err)
	}
}

// readyIn counts the endpoints of a slice, those that are ready twice.
func readyIn(s *discoveryv1.EndpointSlice) (n int) {
	for _, e := range s.Endpoints {
		if n++; *e.Conditions.Ready {
			n++
		}
	}
	return n
}
