package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
)

// hostile makes objects that the API server may take, and nobody means well with.
type hostile struct {
	*rand.Rand
	pods []*pod // whose addresses they name
}

// texts are values of annotations.
var texts = []string{"", " ", "-1", "0", "7", "NaN", "99999999999999999999", "2001:db8:80::80",
	"2001:db8:80::80,198.51.100.16", "198.51.100.17,198.51.100.18", "0.0.0.0", "::",
	"::ffff:198.51.100.17", "fe80::1%eth0", "8.8.8.8", "pool", "no such pool", "\u202e\t\n\x7f",
	strings.Repeat("9", 100000), strings.Repeat("198.51.100.17,", 5000)}

func (h hostile) text() string { return texts[h.IntN(len(texts))] }

func (h hostile) some(one int) bool { return h.IntN(one) == 0 }

func (h hostile) protocol() corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP,
		corev1.ProtocolSCTP}[h.IntN(3)]
}

func (h hostile) service(i int) *corev1.Service {
	class := plan.Class
	s := &corev1.Service{ObjectMeta: objectMeta(fmt.Sprintf("hostile-%d", i)),
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class}}
	s.Annotations = map[string]string{}
	for _, key := range []string{plan.AnnotationAddresses, plan.AnnotationPool,
		plan.AnnotationSharingKey, plan.AnnotationCandidates, plan.AnnotationMaxBackends,
		plan.AnnotationSlowStart} {
		if h.some(4) {
			s.Annotations[key] = h.text()
		}
	}
	for p := range 1 + h.IntN(4) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", p),
			Port: int32(1 + h.IntN(100)), Protocol: h.protocol()})
	}
	s.Spec.IPFamilies = [][]corev1.IPFamily{nil, {corev1.IPv4Protocol}, {corev1.IPv6Protocol},
		{corev1.IPv6Protocol, corev1.IPv4Protocol}}[h.IntN(4)]
	if policy := corev1.IPFamilyPolicyPreferDualStack; h.some(2) {
		s.Spec.IPFamilyPolicy = &policy
	}
	if h.some(8) {
		s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	}
	if h.some(8) {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if h.some(4) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	if h.some(4) {
		s.Spec.LoadBalancerIP = h.text()
	}
	return s
}

// slice is an EndpointSlice of a hostile Service.
func (h hostile) slice(i int) *discoveryv1.EndpointSlice {
	maybe := func() *bool {
		return []*bool{nil, new(true), new(false)}[h.IntN(3)]
	}
	s := &discoveryv1.EndpointSlice{ObjectMeta: objectMeta(fmt.Sprintf("hostile-%d-x", i)),
		AddressType: discoveryv1.AddressTypeIPv6}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("hostile-%d",
		h.IntN(i+1))}
	s.Annotations = map[string]string{plan.AnnotationWeight: h.text()}
	v6 := !h.some(3)
	if !v6 {
		s.AddressType = discoveryv1.AddressTypeIPv4
	}
	for p := range h.IntN(4) {
		name, protocol, port := fmt.Sprintf("p%d", p), h.protocol(), int32(1+h.IntN(100))
		s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol,
			Port: []*int32{nil, &port}[h.IntN(2)]})
	}
	for range h.IntN(20) {
		p := h.pods[h.IntN(len(h.pods))]
		e := p.endpoint(v6, true, true, false)
		e.Conditions = discoveryv1.EndpointConditions{Ready: maybe(), Serving: maybe(),
			Terminating: maybe()}
		switch h.IntN(5) {
		case 0:
			e.TargetRef = nil
		case 1:
			e.TargetRef.UID, e.TargetRef.Name = "../../../../etc/sextant", "../-"
		case 2:
			e.NodeName = new("no-such-node")
		case 3:
			e.NodeName, e.Zone = nil, nil
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	return s
}

func (h hostile) gateway(i int) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: objectMeta(fmt.Sprintf("hostile-%d", i)),
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "sextant"}}
	g.Annotations = map[string]string{plan.AnnotationPool: h.text(),
		plan.AnnotationCandidates: h.text()}
	for n := range 1 + h.IntN(8) {
		protocols := []gatewayv1.ProtocolType{"TCP", "UDP", "HTTP", "example.net/own"}
		l := gatewayv1.Listener{Name: gatewayv1.SectionName(fmt.Sprintf("l%d", n)),
			Port: gatewayv1.PortNumber(1 + h.IntN(4)), Protocol: protocols[h.IntN(4)]}
		if h.some(4) {
			l.AllowedRoutes = &gatewayv1.AllowedRoutes{Kinds: []gatewayv1.RouteGroupKind{
				{Kind: "TCPRoute"}, {Kind: "Secret", Group: new(gatewayv1.Group(""))}}}
		}
		g.Spec.Listeners = append(g.Spec.Listeners, l)
	}
	if h.some(4) {
		g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "8.8.8.8"}}
	}
	return g
}

func (h hostile) route(i int) *gatewayv1.TCPRoute {
	r := &gatewayv1.TCPRoute{ObjectMeta: objectMeta(fmt.Sprintf("hostile-%d", i))}
	for range 1 + h.IntN(3) {
		r.Spec.ParentRefs = append(r.Spec.ParentRefs, gatewayv1.ParentReference{
			Name:        gatewayv1.ObjectName(fmt.Sprintf("hostile-%d", h.IntN(12))),
			SectionName: new(gatewayv1.SectionName(fmt.Sprintf("l%d", h.IntN(9))))})
	}
	rule := gatewayv1.TCPRouteRule{}
	for range 1 + h.IntN(4) {
		b := gatewayv1.BackendRef{Weight: new(int32(h.IntN(3) * h.IntN(1000000)))}
		b.Name = gatewayv1.ObjectName(fmt.Sprintf("hostile-%d", h.IntN(60)))
		b.Port = new(int32(1 + h.IntN(100)))
		switch h.IntN(4) {
		case 0:
			b.Kind = new(gatewayv1.Kind("Secret"))
		case 1:
			b.Namespace = new(gatewayv1.Namespace("kube-system"))
		}
		rule.BackendRefs = append(rule.BackendRefs, b)
	}
	r.Spec.Rules = []gatewayv1.TCPRouteRule{rule}
	return r
}

// try creates an object unless the API server refuses it.
func (w *world) try(o client.Object) bool {
	w.t.Helper()
	err := w.client.Create(w.t.Context(), o)
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// Hostile objects are refused with a reason, and nothing else suffers from them.
func (w *world) testHostile(pods []*pod) {
	seed := uint64(time.Now().UnixNano())
	w.t.Logf("seed %d", seed)
	h := hostile{rand.New(rand.NewPCG(seed, 0)), pods}
	before := w.controller
	var all, services, gateways []client.Object
	add := func(list *[]client.Object, o client.Object) {
		if w.try(o) {
			all = append(all, o)
			if list != nil {
				*list = append(*list, o)
			}
		}
	}
	dead := &v1alpha1.Edge{ObjectMeta: objectMeta("dead"), Spec: v1alpha1.EdgeSpec{
		Address: "[fd00:5e::ff]:1", SecretName: "edges"}}
	overlap := &v1alpha1.VIPPool{ObjectMeta: objectMeta("overlap"),
		Spec: v1alpha1.VIPPoolSpec{Addresses: []string{"2001:db8::/32"}}}
	wrong := &v1alpha1.VIPPool{ObjectMeta: objectMeta("wrong"),
		Spec: v1alpha1.VIPPoolSpec{Addresses: []string{"198.51.100.9-2001:db8::1"}}}
	for _, o := range []client.Object{dead, overlap, wrong} {
		o.SetNamespace("")
		add(nil, o)
	}
	for i := range 60 {
		add(&services, h.service(i))
		add(nil, h.slice(i))
	}
	for i := range 12 {
		add(&gateways, h.gateway(i))
		add(nil, h.route(i))
	}
	w.t.Logf("%d Services and %d Gateways were taken", len(services), len(gateways))
	w.eventually("each Service has an address or an event that says why not", 60*time.Second,
		func() bool { return w.toldOf(services) })
	for _, o := range gateways {
		w.eventually("Gateway "+o.GetName()+" has conditions", 60*time.Second, func() bool {
			var g gatewayv1.Gateway
			must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), &g))
			c := meta.FindStatusCondition(g.Status.Conditions, "Programmed")
			return c != nil && (c.Reason != "Pending" || c.Message != "Waiting for controller")
		})
	}
	w.eventually("pools that are wrong say so", 60*time.Second, func() bool {
		return w.poolReason("overlap") == "Overlap" && w.poolReason("wrong") == "Invalid"
	})

	w.slices("after", 8080, ready(pods[:1]...))
	w.service("after", 80, nil)
	w.eventually("another Service is served", 60*time.Second, func() bool {
		return len(w.ingress("after")) == 2
	})
	for _, url := range append(w.urls("web"), w.urls("after")...) {
		w.eventually(url+" answers beside hostile objects", 30*time.Second, func() bool {
			_, err := w.getWithin(url, "1")
			return err == nil
		})
	}
	for _, o := range all {
		must(w.t, client.IgnoreNotFound(w.client.Delete(w.t.Context(), o)))
	}
	w.eventually("edges have nothing hostile any more", 60*time.Second, func() bool {
		for _, edge := range []string{"edge1", "edge2"} {
			for _, d := range w.declared(edge).Items {
				if strings.Contains(d.Name, "hostile") {
					return false
				}
			}
		}
		return w.edgesReady()
	})
	select {
	case <-before.ended:
		w.t.Error("the controller has ended")
	default:
	}
}

// toldOf reports whether each Service has an address, or a warning that is about it.
func (w *world) toldOf(services []client.Object) bool {
	var events eventsv1.EventList
	must(w.t, w.client.List(w.t.Context(), &events))
	warned := map[types.UID]bool{}
	for _, e := range events.Items {
		warned[e.Regarding.UID] = warned[e.Regarding.UID] || e.Type == corev1.EventTypeWarning
	}
	for _, o := range services {
		var s corev1.Service
		must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(o), &s))
		if len(s.Status.LoadBalancer.Ingress) == 0 && !warned[s.UID] {
			return false
		}
	}
	return true
}

func (w *world) poolReason(name string) string {
	var p v1alpha1.VIPPool
	must(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Name: name}, &p))
	if c := meta.FindStatusCondition(p.Status.Conditions, "Ready"); c != nil {
		return c.Reason
	}
	return ""
}
