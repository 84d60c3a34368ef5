package plan_test

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"sextant/config"
	"sextant/controller/kubernetes/plan"
)

const gatewayText = `
metadata: {name: g, namespace: ns, generation: 7}
spec:
  gatewayClassName: sextant
  listeners:
    - {name: tcp, protocol: TCP, port: 80}
    - {name: udp, protocol: UDP, port: 80}
    - {name: http, protocol: HTTP, port: 8080}
    - {name: bad, protocol: TCP, port: 81, allowedRoutes: {kinds: [{kind: Nonsense}]}}
    - name: half
      protocol: UDP
      port: 82
      allowedRoutes: {kinds: [{kind: TCPRoute}, {kind: UDPRoute}], namespaces: {from: All}}
    - name: some
      protocol: TCP
      port: 83
      allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {in: "yes"}}}}
`

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// labelsOf are the labels of namespaces of these tests.
func labelsOf(namespace string) labels.Set {
	return labels.Set{"in": map[string]string{"in": "yes"}[namespace]}
}

// services are two with a port of each protocol, in each namespace.
func services(n types.NamespacedName) *corev1.Service {
	if n.Name != "a" && n.Name != "b" {
		return nil
	}
	return &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "t", Port: 1000}, {Name: "u", Port: 1000, Protocol: corev1.ProtocolUDP}}}}
}

func conditionsOf(list []metav1.Condition) string {
	var texts []string
	for _, c := range list {
		texts = append(texts, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return strings.Join(texts, " ")
}

// What the conformance tests of all Gateways ask for, with the protocols that edges have: each
// listener says why it is not served, and which kinds of routes attach.
func TestGateway(t *testing.T) {
	g := read[gatewayv1.Gateway](t, gatewayText)
	around := plan.Around{Services: services, Labels: labelsOf}
	p := plan.Gateway(g, around)
	s := p.Status(g, []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil, "")
	if got, want := conditionsOf(s.Conditions),
		"Accepted=True/ListenersNotValid Programmed=True/Programmed"; got != want {
		t.Errorf("the Gateway is %s, want %s", got, want)
	}
	for i, want := range []string{
		"TCPRoute Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Programmed=True/Programmed",
		"UDPRoute Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Programmed=True/Programmed",
		" Accepted=False/UnsupportedProtocol ResolvedRefs=True/ResolvedRefs " +
			"Programmed=False/Invalid",
		" Accepted=True/Accepted ResolvedRefs=False/InvalidRouteKinds Programmed=True/Programmed",
		"UDPRoute Accepted=True/Accepted ResolvedRefs=False/InvalidRouteKinds " +
			"Programmed=True/Programmed",
		"TCPRoute Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs Programmed=True/Programmed",
	} {
		l := s.Listeners[i]
		var kinds []string
		for _, k := range l.SupportedKinds {
			kinds = append(kinds, string(k.Kind))
		}
		got := strings.Join(kinds, ",") + " " + strings.Replace(conditionsOf(l.Conditions),
			" Conflicted=False/NoConflicts", "", 1)
		if got != want || l.SupportedKinds == nil {
			t.Errorf("listener %s is\n%s, want\n%s", l.Name, got, want)
		}
		for _, c := range l.Conditions {
			if c.ObservedGeneration != 7 {
				t.Errorf("listener %s: %s is of generation %d", l.Name, c.Type,
					c.ObservedGeneration)
			}
		}
	}
	g.Spec.Listeners = g.Spec.Listeners[2:3]
	p = plan.Gateway(g, around)
	if got, want := conditionsOf(p.Status(g, nil, nil, "").Conditions),
		"Accepted=False/ListenersNotValid Programmed=False/Invalid"; got != want {
		t.Errorf("a Gateway of HTTP alone is %s, want %s", got, want)
	}
}

// Which listeners a route attaches to, and what it is told where it does not.
func TestRoutes(t *testing.T) {
	g := read[gatewayv1.Gateway](t, gatewayText)
	for _, c := range []struct{ namespace, parent, want string }{
		{"ns", "{name: g}", "Accepted"},
		{"ns", "{name: g, sectionName: tcp}", "Accepted"},
		{"ns", "{name: g, port: 80}", "Accepted"},
		{"ns", "{name: g, sectionName: udp}", "NotAllowedByListeners"},
		{"ns", "{name: g, sectionName: http}", "NotAllowedByListeners"},
		{"ns", "{name: g, sectionName: bad}", "NotAllowedByListeners"},
		{"ns", "{name: g, sectionName: none}", "NoMatchingParent"},
		{"ns", "{name: g, sectionName: tcp, port: 81}", "NoMatchingParent"},
		{"ns", "{name: g, port: 9}", "NoMatchingParent"},
		{"other", "{name: g, namespace: ns}", "NotAllowedByListeners"},
		{"other", "{name: g, namespace: ns, sectionName: some}", "NotAllowedByListeners"},
		{"in", "{name: g, namespace: ns, sectionName: some}", "Accepted"},
		{"in", "{name: g, namespace: ns}", "Accepted"},
		{"other", "{name: g}", ""},
		{"ns", "{name: g, kind: Service, group: \"\"}", ""},
	} {
		r := plan.TCP(read[gatewayv1.TCPRoute](t, "metadata: {name: r, namespace: "+c.namespace+
			"}\nspec: {parentRefs: ["+c.parent+"], rules: [{backendRefs: [{name: a, "+
			"port: 1000}]}]}"))
		got := plan.RouteStatus(r, []gatewayv1.RouteParentStatus{{ControllerName: "other"}},
			func(n types.NamespacedName) *gatewayv1.Gateway {
				if n != (types.NamespacedName{Namespace: "ns", Name: "g"}) {
					return nil
				}
				return g
			}, plan.Around{Services: services, Labels: labelsOf})
		if got[0].ControllerName != "other" {
			t.Error("what another controller said is gone")
		}
		reason := ""
		if len(got) == 2 {
			reason = got[1].Conditions[0].Reason
		}
		if reason != c.want {
			t.Errorf("%s in %s: %q, want %q", c.parent, c.namespace, reason, c.want)
		}
	}
}

// References to Services, and the grants that those of other namespaces need.
func TestBackendsOf(t *testing.T) {
	grant := read[gatewayv1.ReferenceGrant](t, `
metadata: {name: x, namespace: in}
spec:
  from: [{group: gateway.networking.k8s.io, kind: TCPRoute, namespace: ns}]
  to: [{group: "", kind: Service, name: a}]
`)
	for ref, want := range map[string]string{
		"{name: a, port: 1000}":                             "t",
		"{name: a, port: 1000, kind: Service, group: \"\"}": "t",
		"{name: a}":                        "BackendNotFound",
		"{name: a, port: 1001}":            "BackendNotFound",
		"{name: c, port: 1000}":            "BackendNotFound",
		"{name: a, port: 1000, kind: Pod}": "InvalidKind",
		"{name: a, port: 1000, kind: ServiceImport, group: example.net}": "InvalidKind",
		"{name: a, port: 1000, namespace: in}":                           "t",
		"{name: b, port: 1000, namespace: in}":                           "RefNotPermitted",
		"{name: a, port: 1000, namespace: other}":                        "RefNotPermitted",
	} {
		text := "metadata: {name: r, namespace: ns}\nspec: {rules: [{backendRefs: [" + ref + "]}]}"
		r := plan.TCP(read[gatewayv1.TCPRoute](t, text))
		b := plan.BackendsOf(r, services, []gatewayv1.ReferenceGrant{*grant})[0]
		got := b.Port
		if b.Fault != nil {
			got = string(b.Fault.Reason)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
		u := plan.UDP(read[gatewayv1.UDPRoute](t, text))
		b = plan.BackendsOf(u, services, []gatewayv1.ReferenceGrant{*grant})[0]
		if strings.Contains(ref, "namespace: in") &&
			(b.Fault == nil || b.Fault.Reason != gatewayv1.RouteReasonRefNotPermitted) {
			t.Errorf("%s: a UDPRoute uses the grant of TCPRoutes", ref)
		}
	}
}

// Of two routes at a listener the older one is served, and both are counted; weights are shares,
// and a weight of 0 is none, also of a single backend.
func TestGatewayFrontends(t *testing.T) {
	g := read[gatewayv1.Gateway](t, gatewayText)
	route := func(name, born, backends string) *plan.Route {
		return plan.TCP(read[gatewayv1.TCPRoute](t, "metadata: {name: "+name+
			", namespace: ns, creationTimestamp: "+born+"}\nspec: {parentRefs: [{name: g, "+
			"sectionName: tcp}], rules: [{backendRefs: ["+backends+"]}]}"))
	}
	around := plan.Around{Services: services, Labels: labelsOf, Routes: []*plan.Route{
		route("new", "2026-01-02T00:00:00Z", "{name: c, port: 1000}"),
		route("old", "2026-01-01T00:00:00Z", "{name: a, port: 1000, weight: 3}, "+
			"{name: b, port: 1000, weight: 1}, {name: a, port: 1000, namespace: in, weight: 0}")},
		Slices: func(n types.NamespacedName) []*discoveryv1.EndpointSlice {
			address := "2001:db8::" + n.Name
			s := slice(n.Name, 1000, endpoint(address, nil, nil, nil))
			s.Ports[0].Name = new("t")
			return []*discoveryv1.EndpointSlice{s}
		},
		Grants: []gatewayv1.ReferenceGrant{*read[gatewayv1.ReferenceGrant](t, `
metadata: {name: x, namespace: in}
spec:
  from: [{group: gateway.networking.k8s.io, kind: TCPRoute, namespace: ns}]
  to: [{group: "", kind: Service}]
`)}}
	p := plan.Gateway(g, around)
	if got := p.Listeners[0].Attached; got != 2 {
		t.Errorf("%d routes are attached, want 2", got)
	}
	vip := netip.MustParseAddr("2001:db8:80::80")
	list := p.Frontends("k8s", g, around, []netip.Addr{vip})
	if len(list) != 5 {
		t.Fatalf("there are %d frontends, want those of 5 listeners", len(list))
	}
	weights := map[string]int{}
	d := list[0].Build(where).For("")
	for _, b := range d.Backends {
		if *b.State == config.Up {
			weights[b.SID.String()] += *b.Weight
		}
	}
	a, b := weights["fd00:c0de::a"], weights["fd00:c0de::b"]
	if len(weights) != 2 || cmp.Compare(a, 3*b) != 0 {
		t.Errorf("weights are %v, want three to one", weights)
	}
	if d.Candidates == nil || *d.Candidates != 1 {
		t.Error("a second candidate would take shares from the first")
	}
	around.Routes = []*plan.Route{route("off", "2026-01-01T00:00:00Z",
		"{name: a, port: 1000, weight: 0}")}
	p = plan.Gateway(g, around)
	yes, no := true, false
	for _, e := range []discoveryv1.Endpoint{endpoint("2001:db8::a", &yes, nil, nil),
		endpoint("2001:db8::a", &no, &yes, &yes)} {
		s := slice("a", 1000, e)
		s.Ports[0].Name = new("t")
		around.Slices = func(types.NamespacedName) []*discoveryv1.EndpointSlice {
			return []*discoveryv1.EndpointSlice{s}
		}
		r := p.Frontends("k8s", g, around, []netip.Addr{vip})[0].Build(where)
		if r.Serving != 0 || r.Leaving != 1 {
			t.Errorf("of weight 0: %d serve and %d leave, want 0 and 1", r.Serving, r.Leaving)
		}
	}
	targets := p.Targets("pod", g, around, []netip.Addr{vip})
	if len(targets) != 1 || targets[0].At != list[0].Endpoint || targets[0].Port != "t" {
		t.Errorf("hosts are told of %v", targets)
	}
}

// Whatever Gateways, routes and grants say, an edge takes what is planned.
func FuzzGateway(f *testing.F) {
	node, err := config.Parse("edge.yaml", []byte(edgeFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(gatewayText), []byte("metadata: {name: r, namespace: ns}\nspec: {parentRefs: "+
		"[{name: g}], rules: [{backendRefs: [{name: a, port: 1000, weight: 70}, {name: b, "+
		"port: 1000, weight: 30}]}]}"), []byte(`metadata: {name: x}`))
	f.Fuzz(func(t *testing.T, gateway, route, grant []byte) {
		var g gatewayv1.Gateway
		var r gatewayv1.TCPRoute
		var x gatewayv1.ReferenceGrant
		for text, o := range map[*[]byte]any{&gateway: &g, &route: &r, &grant: &x} {
			asJSON, err := yaml.YAMLToJSON(*text)
			if err != nil || json.Unmarshal(asJSON, o) != nil {
				return
			}
		}
		g.Name, g.Namespace = "g", "ns"
		tcp := plan.TCP(&r)
		u := *tcp
		u.Kind = plan.UDPRoute
		around := plan.Around{Services: services, Labels: labelsOf,
			Routes: []*plan.Route{tcp, &u}, Grants: []gatewayv1.ReferenceGrant{x},
			Slices: func(n types.NamespacedName) []*discoveryv1.EndpointSlice {
				s := slice(n.Name, 1000, endpoint("2001:db8::1", nil, nil, nil))
				s.Ports[0].Name = new("t")
				return []*discoveryv1.EndpointSlice{s}
			}}
		p := plan.Gateway(&g, around)
		vip := netip.MustParseAddr("2001:db8:80::80")
		var set []config.Declared
		for _, one := range p.Frontends("k8s", &g, around, []netip.Addr{vip}) {
			set = append(set, declared(one.Build(where).For("")))
		}
		s := p.Status(&g, []netip.Addr{vip}, nil, "")
		if len(s.Listeners) != len(g.Spec.Listeners) {
			t.Errorf("%d listeners have a status, of %d", len(s.Listeners), len(g.Spec.Listeners))
		}
		if _, err := config.Declare(node, set, nil); err != nil {
			t.Errorf("an edge refuses it: %v", err)
		}
	})
}
