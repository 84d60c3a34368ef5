package plan

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/config"
)

// Around is what a Gateway's decision looks at beside the Gateway.
type Around struct {
	Routes   []*Route // that name it
	Grants   []gatewayv1.ReferenceGrant
	Services Services
	// Labels are those of a namespace; nil: Routes are all accepted.
	Labels func(namespace string) labels.Set
	// Slices are the EndpointSlices of a Service.
	Slices func(types.NamespacedName) []*discoveryv1.EndpointSlice
}

// A GatewayPlan is what becomes of a Gateway and its routes.
type GatewayPlan struct {
	Listeners []Listener
	// Uses are the Services that are named.
	Uses []types.NamespacedName
	// Wrong is what is wrong with EndpointSlices and annotations.
	Wrong  []string
	served []*Route    // by listener; nil: none
	names  [][]Backend // of the routes
}

// Gateway decides on a Gateway.
func Gateway(g *gatewayv1.Gateway, around Around) GatewayPlan {
	p := GatewayPlan{Listeners: Listeners(g), served: make([]*Route, len(g.Spec.Listeners)),
		names: make([][]Backend, len(around.Routes))}
	own := types.NamespacedName{Namespace: g.Namespace, Name: g.Name}
	for i, r := range around.Routes {
		p.names[i] = BackendsOf(r, around.Services, around.Grants)
		for _, b := range p.names[i] {
			if !slices.Contains(p.Uses, b.Service) {
				p.Uses = append(p.Uses, b.Service)
			}
		}
		attached := map[int]bool{}
		for j := range r.Parents {
			if n, ok := r.parent(&r.Parents[j]); ok && n == own {
				numbers, _ := r.attach(&r.Parents[j], g.Namespace, p.Listeners, around.Labels)
				for _, n := range numbers {
					attached[n] = true
				}
			}
		}
		for n := range attached {
			p.Listeners[n].Attached++
			if old := p.served[n]; old == nil || r.before(old) < 0 {
				p.served[n] = r
			}
		}
	}
	return p
}

// Valid are the listeners that edges can serve.
func (p *GatewayPlan) Valid() (list []*Listener) {
	for i := range p.Listeners {
		if p.Listeners[i].Unserved == "" {
			list = append(list, &p.Listeners[i])
		}
	}
	return list
}

// Frontends are those of a Gateway that has addresses.
func (p *GatewayPlan) Frontends(prefix string, g *gatewayv1.Gateway, around Around,
	addresses []netip.Addr) (list []Frontend) {
	options, told := OptionsOf(g.Annotations)
	for _, t := range told {
		p.Wrong = append(p.Wrong, t.Text)
	}
	for i := range p.Listeners {
		l := &p.Listeners[i]
		if l.Unserved != "" {
			continue
		}
		for _, vip := range addresses {
			at := l.endpoint(vip)
			f := Frontend{Name: gatewayName(prefix, g, at), Endpoint: at, Options: options}
			if r := p.served[i]; r != nil {
				f.Groups = p.groups(r, around, vip.Is6())
			}
			if len(f.Groups) > 1 && f.Candidates == 0 {
				f.Candidates = 1 // a second candidate would have shares follow the load
			}
			list = append(list, f)
		}
	}
	slices.Sort(p.Wrong)
	p.Wrong = slices.Compact(p.Wrong)
	return list
}

// A Target is a Service's port that may serve an endpoint.
type Target struct {
	Service types.NamespacedName
	Port    string // its name
	At      config.Endpoint
	Name    string // of the endpoint, on hosts
}

// Targets are those of a Gateway that has addresses.
func (p *GatewayPlan) Targets(prefix string, g *gatewayv1.Gateway, around Around,
	addresses []netip.Addr) (list []Target) {
	for i := range p.Listeners {
		l, r := &p.Listeners[i], p.served[i]
		if r == nil || l.Unserved != "" {
			continue
		}
		for _, b := range p.names[slices.Index(around.Routes, r)] {
			for _, vip := range addresses {
				if at := l.endpoint(vip); b.Fault == nil {
					list = append(list, Target{b.Service, b.Port, at,
						gatewayName(prefix, g, at)})
				}
			}
		}
	}
	return list
}

// gatewayName is what a frontend of a Gateway is called.
func gatewayName(prefix string, g *gatewayv1.Gateway, at config.Endpoint) string {
	return FrontendName(prefix, g.Namespace, "gateway."+g.Name, at)
}

// groups are the endpoints of a route's Services, with their weights.
func (p *GatewayPlan) groups(r *Route, around Around, v6 bool) (list []Group) {
	for _, b := range p.names[slices.Index(around.Routes, r)] {
		if b.Fault != nil {
			continue
		}
		endpoints, wrong := Endpoints(around.Slices(b.Service), b.Port, r.protocol(), v6)
		p.Wrong = append(p.Wrong, wrong...)
		for i := range endpoints {
			if b.Weight == 0 {
				endpoints[i].State, endpoints[i].LastResort = config.Draining, false
			}
		}
		list = append(list, Group{Weight: b.Weight, Endpoints: endpoints})
	}
	return list
}

// Status is what the Gateway's status says beside conditions of others, which it keeps: with why
// none of its addresses is served, if none is.
func (p *GatewayPlan) Status(g *gatewayv1.Gateway, addresses []netip.Addr, refused *Refusal,
	why string) gatewayv1.GatewayStatus {
	s := *g.Status.DeepCopy()
	s.Addresses, s.Listeners = nil, nil
	kind := gatewayv1.IPAddressType
	for _, a := range addresses {
		s.Addresses = append(s.Addresses, gatewayv1.GatewayStatusAddress{Type: &kind,
			Value: a.String()})
	}
	accepted := condition(gatewayv1.GatewayConditionAccepted, gatewayv1.GatewayReasonAccepted,
		"edges can serve all listeners")
	programmed := condition(gatewayv1.GatewayConditionProgrammed,
		gatewayv1.GatewayReasonProgrammed, "edges serve it")
	switch valid := len(p.Valid()); {
	case valid == 0:
		refuseBy(&accepted, gatewayv1.GatewayReasonListenersNotValid, "no listener can be served")
		refuseBy(&programmed, gatewayv1.GatewayReasonInvalid, accepted.Message)
	case valid < len(p.Listeners):
		accepted.Reason = string(gatewayv1.GatewayReasonListenersNotValid)
		accepted.Message = "some listeners can't be served"
	}
	switch {
	case programmed.Status == metav1.ConditionFalse:
	case refused != nil && refused.Reason == string(gatewayv1.GatewayReasonUnsupportedAddress):
		refuseBy(&accepted, gatewayv1.GatewayReasonUnsupportedAddress, refused.Text)
		refuseBy(&programmed, gatewayv1.GatewayReasonInvalid, refused.Text)
	case refused != nil && len(g.Spec.Addresses) > 0:
		refuseBy(&programmed, gatewayv1.GatewayReasonAddressNotUsable, refused.Text)
	case refused != nil:
		refuseBy(&programmed, gatewayv1.GatewayReasonAddressNotAssigned, refused.Text)
	case why != "":
		refuseBy(&programmed, gatewayv1.GatewayReasonPending, why)
	}
	unserved := ""
	if programmed.Status == metav1.ConditionFalse {
		unserved = programmed.Message
	}
	for _, c := range []*metav1.Condition{&accepted, &programmed} {
		c.ObservedGeneration = g.Generation
		setCondition(&s.Conditions, *c)
	}
	for i := range p.Listeners {
		one := p.Listeners[i].status(g.Generation, unserved)
		keepTimes(g.Status.Listeners, &one)
		s.Listeners = append(s.Listeners, one)
	}
	return s
}

// Addresses are those that a Gateway's status has.
func Addresses(g *gatewayv1.Gateway) (list []netip.Addr) {
	for _, a := range g.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Value); err == nil {
			list = append(list, addr)
		}
	}
	return list
}

// WishedOf are the addresses that a Gateway asks for.
func WishedOf(g *gatewayv1.Gateway) (list []netip.Addr, refused *Refusal) {
	for _, a := range g.Spec.Addresses {
		if a.Type != nil && *a.Type != gatewayv1.IPAddressType {
			return nil, refuse(string(gatewayv1.GatewayReasonUnsupportedAddress),
				"addresses of type %s: write an IP address of a VIPPool", *a.Type)
		}
		if a.Value == "" {
			continue
		}
		addr, err := netip.ParseAddr(a.Value)
		if err != nil || addr.Zone() != "" || addr.Is4In6() || slices.ContainsFunc(list,
			func(b netip.Addr) bool { return b.Is6() == addr.Is6() }) {
			return nil, refuse(string(gatewayv1.GatewayReasonUnsupportedAddress),
				"address %q: write one IP address of each family at most", a.Value)
		}
		list = append(list, addr)
	}
	return list, nil
}

// FamiliesOf are those in which a Gateway wants addresses: those of the addresses it asks for, or
// both.
func FamiliesOf(wished []netip.Addr) (v4, v6 bool) {
	for _, a := range wished {
		v4, v6 = v4 || a.Is4(), v6 || a.Is6()
	}
	return v4 || len(wished) == 0, v6 || len(wished) == 0
}

// setCondition replaces the condition of a type; its time changes with its status alone.
func setCondition(list *[]metav1.Condition, c metav1.Condition) {
	i := slices.IndexFunc(*list, func(o metav1.Condition) bool { return o.Type == c.Type })
	if i < 0 {
		*list = append(*list, c)
		return
	}
	if (*list)[i].Status == c.Status {
		c.LastTransitionTime = (*list)[i].LastTransitionTime
	}
	(*list)[i] = c
}

// keepTimes takes over when conditions of a listener changed.
func keepTimes(before []gatewayv1.ListenerStatus, s *gatewayv1.ListenerStatus) {
	i := slices.IndexFunc(before, func(o gatewayv1.ListenerStatus) bool { return o.Name == s.Name })
	if i >= 0 {
		keepConditionTimes(before[i].Conditions, s.Conditions)
	}
}

func keepConditionTimes(before, now []metav1.Condition) {
	for i := range now {
		for _, o := range before {
			if o.Type == now[i].Type && o.Status == now[i].Status {
				now[i].LastTransitionTime = o.LastTransitionTime
			}
		}
	}
}

// RouteStatus is what a route's status says: our own of the Gateways that are ours, and what other
// controllers said. gatewayOf returns nil for a Gateway that is not ours.
func RouteStatus(r *Route, before []gatewayv1.RouteParentStatus,
	gatewayOf func(types.NamespacedName) *gatewayv1.Gateway,
	around Around) []gatewayv1.RouteParentStatus {
	list := []gatewayv1.RouteParentStatus{}
	for _, s := range before {
		if s.ControllerName != GatewayController {
			list = append(list, s)
		}
	}
	backends := BackendsOf(r, around.Services, around.Grants)
	for j := range r.Parents {
		ref := &r.Parents[j]
		n, ok := r.parent(ref)
		if !ok {
			continue
		}
		g := gatewayOf(n)
		if g == nil {
			continue
		}
		_, reason := r.attach(ref, g.Namespace, Listeners(g), around.Labels)
		s := r.parentStatus(ref, reason, backends)
		i := slices.IndexFunc(before, func(o gatewayv1.RouteParentStatus) bool {
			return o.ControllerName == GatewayController && sameParent(o.ParentRef, s.ParentRef)
		})
		if i >= 0 {
			keepConditionTimes(before[i].Conditions, s.Conditions)
		}
		list = append(list, s)
	}
	return list
}

func sameParent(a, b gatewayv1.ParentReference) bool {
	return a.Name == b.Name && same(a.Group, b.Group) && same(a.Kind, b.Kind) &&
		same(a.Namespace, b.Namespace) && same(a.SectionName, b.SectionName) && same(a.Port, b.Port)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// stamp gives conditions without a time the present one.
func stamp(list []metav1.Condition, now metav1.Time) {
	for i := range list {
		if list[i].LastTransitionTime.IsZero() {
			list[i].LastTransitionTime = now
		}
	}
}

// StampGateway gives new conditions of a Gateway their time.
func StampGateway(s *gatewayv1.GatewayStatus, now metav1.Time) {
	stamp(s.Conditions, now)
	for i := range s.Listeners {
		stamp(s.Listeners[i].Conditions, now)
	}
}

// StampClass gives new conditions of a GatewayClass their time.
func StampClass(c *gatewayv1.GatewayClass, now metav1.Time) { stamp(c.Status.Conditions, now) }

// StampRoute gives new conditions of a route their time.
func StampRoute(list []gatewayv1.RouteParentStatus, now metav1.Time) {
	for i := range list {
		stamp(list[i].Conditions, now)
	}
}

// AcceptClass says whether a GatewayClass that names us is served.
func AcceptClass(c *gatewayv1.GatewayClass) {
	accepted := condition(gatewayv1.GatewayClassConditionStatusAccepted,
		gatewayv1.GatewayClassReasonAccepted, "Gateways of this class are served")
	if c.Spec.ParametersRef != nil {
		refuseBy(&accepted, gatewayv1.GatewayClassReasonInvalidParameters,
			"parametersRef: there are no parameters")
	}
	accepted.ObservedGeneration = c.Generation
	setCondition(&c.Status.Conditions, accepted)
}
