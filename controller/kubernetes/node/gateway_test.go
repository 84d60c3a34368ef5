package node

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/plan"
)

// read is a cache that has what it is given.
type read struct {
	cache.Cache
	from client.Reader
}

func (r read) Get(ctx context.Context, key client.ObjectKey, o client.Object,
	options ...client.GetOption) error {
	return r.from.Get(ctx, key, o, options...)
}

func (r read) List(ctx context.Context, list client.ObjectList,
	options ...client.ListOption) error {
	return r.from.List(ctx, list, options...)
}

// A node takes packets of a Gateway's addresses for the Services that accepted routes name: not for
// those of a route that has been accepted by another Gateway, by another controller, or not at all,
// nor for those of a Gateway of another class or without addresses.
func TestTargets(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, gatewayv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ours, other := plan.GatewayController, gatewayv1.GatewayController("example.net/other")
	var objects []client.Object
	for name, controller := range map[string]gatewayv1.GatewayController{
		"ours": ours, "other": other} {
		objects = append(objects, &gatewayv1.GatewayClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       gatewayv1.GatewayClassSpec{ControllerName: controller}})
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name}
	}
	for _, g := range []struct{ name, class, address string }{
		{"one", "ours", "192.0.2.1"}, {"two", "ours", "2001:db8:80::2"},
		{"new", "ours", ""}, {"alien", "other", "192.0.2.3"},
	} {
		o := &gatewayv1.Gateway{ObjectMeta: meta(g.name)}
		o.Spec.GatewayClassName = gatewayv1.ObjectName(g.class)
		o.Spec.Listeners = []gatewayv1.Listener{{Name: "t", Protocol: "TCP", Port: 80},
			{Name: "u", Protocol: "UDP", Port: 53}}
		if g.address != "" {
			o.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: g.address}}
		}
		objects = append(objects, o)
	}
	type parents map[string]metav1.ConditionStatus
	status := func(by gatewayv1.GatewayController, p parents) (s gatewayv1.RouteStatus) {
		for name, accepted := range p {
			s.Parents = append(s.Parents, gatewayv1.RouteParentStatus{ControllerName: by,
				ParentRef:  gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)},
				Conditions: []metav1.Condition{{Type: "Accepted", Status: accepted}}})
		}
		return s
	}
	backend := func(service string) []gatewayv1.BackendRef {
		var b gatewayv1.BackendRef
		b.Name, b.Port = gatewayv1.ObjectName(service), new(gatewayv1.PortNumber(1000))
		return []gatewayv1.BackendRef{b}
	}
	for _, r := range []struct {
		name string
		by   gatewayv1.GatewayController
		in   parents
	}{
		{"first", ours, parents{"one": "True", "two": "False", "new": "True", "alien": "True"}},
		{"second", ours, parents{"two": "True"}},
		{"third", other, parents{"one": "True", "two": "True"}},
	} {
		tcp := &gatewayv1.TCPRoute{ObjectMeta: meta(r.name)}
		tcp.Status.RouteStatus = status(r.by, r.in)
		tcp.Spec.Rules = []gatewayv1.TCPRouteRule{{BackendRefs: backend(r.name)}}
		objects = append(objects, tcp, &corev1.Service{ObjectMeta: meta(r.name),
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "t", Port: 1000},
				{Name: "u", Port: 1000, Protocol: corev1.ProtocolUDP}}}})
	}
	udp := &gatewayv1.UDPRoute{ObjectMeta: meta("both")}
	udp.Status.RouteStatus = status(ours, parents{"one": "True", "two": "True"})
	udp.Spec.Rules = []gatewayv1.UDPRouteRule{{BackendRefs: backend("first")}}
	objects = append(objects, udp)
	d := &Daemon{Cache: read{from: fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).Build()}}
	targets, err := d.targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range targets {
		got = append(got, fmt.Sprintf("%s %s %s", one.At, one.Service.Name, one.Port))
	}
	slices.Sort(got)
	want := []string{"192.0.2.1:53/udp first u", "192.0.2.1:80/tcp first t",
		"[2001:db8:80::2]:53/udp first u", "[2001:db8:80::2]:80/tcp second t"}
	if !slices.Equal(got, want) {
		t.Errorf("targets are %q, want %q", got, want)
	}
}
