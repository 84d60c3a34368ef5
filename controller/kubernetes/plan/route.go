package plan

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A Route is a TCPRoute or a UDPRoute.
type Route struct {
	Kind gatewayv1.Kind
	types.NamespacedName
	Born       metav1.Time
	Generation int64
	Parents    []gatewayv1.ParentReference
	Backends   []gatewayv1.BackendRef
}

// TCP makes a Route of a TCPRoute.
func TCP(r *gatewayv1.TCPRoute) *Route {
	one := &Route{TCPRoute, types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		r.CreationTimestamp, r.Generation, r.Spec.ParentRefs, nil}
	for _, rule := range r.Spec.Rules {
		one.Backends = append(one.Backends, rule.BackendRefs...)
	}
	return one
}

// UDP makes a Route of a UDPRoute.
func UDP(r *gatewayv1.UDPRoute) *Route {
	one := &Route{UDPRoute, types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		r.CreationTimestamp, r.Generation, r.Spec.ParentRefs, nil}
	for _, rule := range r.Spec.Rules {
		one.Backends = append(one.Backends, rule.BackendRefs...)
	}
	return one
}

// Accepted keeps of what a route names the Gateways that have accepted it.
func (r *Route) Accepted(parents []gatewayv1.RouteParentStatus) *Route {
	one := *r
	one.Parents = nil
	for _, s := range parents {
		if s.ControllerName == GatewayController &&
			meta.IsStatusConditionTrue(s.Conditions, string(gatewayv1.RouteConditionAccepted)) {
			one.Parents = append(one.Parents, s.ParentRef)
		}
	}
	return &one
}

// Gateways are the Gateways that a route names.
func (r *Route) Gateways() (list []types.NamespacedName) {
	for i := range r.Parents {
		if n, ok := r.parent(&r.Parents[i]); ok && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// parent is the Gateway that a reference names; false: it names something else.
func (r *Route) parent(p *gatewayv1.ParentReference) (types.NamespacedName, bool) {
	if p.Group != nil && *p.Group != gatewayv1.GroupName || p.Kind != nil && *p.Kind != "Gateway" {
		return types.NamespacedName{}, false
	}
	n := types.NamespacedName{Namespace: r.Namespace, Name: string(p.Name)}
	if p.Namespace != nil {
		n.Namespace = string(*p.Namespace)
	}
	return n, true
}

// before orders routes by age, the oldest first: of several at a listener, that one is served.
func (r *Route) before(o *Route) int {
	return cmp.Or(r.Born.Compare(o.Born.Time), cmp.Compare(r.Namespace, o.Namespace),
		cmp.Compare(r.Name, o.Name))
}

// protocol is that of the Services' ports to which the route sends.
func (r *Route) protocol() corev1.Protocol {
	if r.Kind == UDPRoute {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// A Backend is a Service's port to which a route sends.
type Backend struct {
	Service types.NamespacedName
	Port    string // its name
	Weight  int
	Fault   *RefFault // why nothing is sent there
}

// A RefFault is what is wrong with a reference.
type RefFault struct {
	Reason gatewayv1.RouteConditionReason
	Text   string
}

// Services finds a Service; nil: there is none.
type Services func(types.NamespacedName) *corev1.Service

// BackendsOf reads the references of a route to Services.
func BackendsOf(r *Route, services Services, grants []gatewayv1.ReferenceGrant) []Backend {
	list := make([]Backend, len(r.Backends))
	for i := range list {
		ref := &r.Backends[i]
		b := &list[i]
		b.Weight = 1
		if ref.Weight != nil {
			b.Weight = int(*ref.Weight)
		}
		b.Service = types.NamespacedName{Namespace: r.Namespace, Name: string(ref.Name)}
		if ref.Namespace != nil {
			b.Service.Namespace = string(*ref.Namespace)
		}
		b.Port, b.Fault = portOf(r, ref, b.Service, services, grants)
	}
	return list
}

func portOf(r *Route, ref *gatewayv1.BackendRef, to types.NamespacedName, services Services,
	grants []gatewayv1.ReferenceGrant) (string, *RefFault) {
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Service" {
		return "", &RefFault{gatewayv1.RouteReasonInvalidKind,
			fmt.Sprintf("backend %s is no Service", ref.Name)}
	}
	if to.Namespace != r.Namespace && !granted(r, to, grants) {
		return "", &RefFault{gatewayv1.RouteReasonRefNotPermitted,
			fmt.Sprintf("no ReferenceGrant in namespace %s lets %ss of namespace %s name "+
				"Service %s", to.Namespace, r.Kind, r.Namespace, to.Name)}
	}
	s := services(to)
	if s == nil {
		return "", &RefFault{gatewayv1.RouteReasonBackendNotFound,
			fmt.Sprintf("there is no Service %s", to)}
	}
	for _, p := range s.Spec.Ports {
		if ref.Port != nil && p.Port == *ref.Port &&
			cmp.Or(p.Protocol, corev1.ProtocolTCP) == r.protocol() {
			return p.Name, nil
		}
	}
	port := int32(0)
	if ref.Port != nil {
		port = *ref.Port
	}
	return "", &RefFault{gatewayv1.RouteReasonBackendNotFound,
		fmt.Sprintf("Service %s has no port %d of protocol %s", to, port, r.protocol())}
}

// granted reports whether a route may name a Service of another namespace.
func granted(r *Route, to types.NamespacedName, grants []gatewayv1.ReferenceGrant) bool {
	return slices.ContainsFunc(grants, func(g gatewayv1.ReferenceGrant) bool {
		return g.Namespace == to.Namespace &&
			slices.ContainsFunc(g.Spec.From, func(f gatewayv1.ReferenceGrantFrom) bool {
				return f.Group == gatewayv1.GroupName && f.Kind == r.Kind &&
					string(f.Namespace) == r.Namespace
			}) &&
			slices.ContainsFunc(g.Spec.To, func(t gatewayv1.ReferenceGrantTo) bool {
				return t.Group == "" && t.Kind == "Service" &&
					(t.Name == nil || string(*t.Name) == to.Name)
			})
	})
}

// attach finds the listeners of a Gateway that a reference of a route attaches to, and why it does
// not.
func (r *Route) attach(p *gatewayv1.ParentReference, gateway string, listeners []Listener,
	labelsOf func(string) labels.Set) (numbers []int, reason gatewayv1.RouteConditionReason) {
	reason = gatewayv1.RouteReasonNoMatchingParent
	for i := range listeners {
		l := &listeners[i]
		if p.SectionName != nil && *p.SectionName != l.Name || p.Port != nil && *p.Port != l.Port {
			continue
		}
		if reason == gatewayv1.RouteReasonNoMatchingParent {
			reason = gatewayv1.RouteReasonNotAllowedByListeners
		}
		if l.admits(r, gateway, labelsOf) {
			numbers, reason = append(numbers, i), gatewayv1.RouteReasonAccepted
		}
	}
	return numbers, reason
}

// parentStatus is what the route's status says of a reference.
func (r *Route) parentStatus(p *gatewayv1.ParentReference, reason gatewayv1.RouteConditionReason,
	backends []Backend) gatewayv1.RouteParentStatus {
	accepted := condition(gatewayv1.RouteConditionAccepted, reason, "listeners take the route")
	switch reason {
	case gatewayv1.RouteReasonNoMatchingParent:
		refuseBy(&accepted, reason, "the Gateway has no such listener: see sectionName and port")
	case gatewayv1.RouteReasonNotAllowedByListeners:
		refuseBy(&accepted, reason, "no listener that is named takes this kind of route from this "+
			"namespace: see its protocol and allowedRoutes")
	}
	resolved := condition(gatewayv1.RouteConditionResolvedRefs, gatewayv1.RouteReasonResolvedRefs,
		"all backends are Services")
	for _, b := range backends {
		if b.Fault != nil {
			refuseBy(&resolved, b.Fault.Reason, b.Fault.Text)
			break
		}
	}
	list := []metav1.Condition{accepted, resolved}
	for i := range list {
		list[i].ObservedGeneration = r.Generation
	}
	return gatewayv1.RouteParentStatus{ParentRef: *p, ControllerName: GatewayController,
		Conditions: list}
}
