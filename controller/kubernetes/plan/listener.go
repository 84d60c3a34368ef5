package plan

import (
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"sextant/config"
	"sextant/controller/kubernetes/v1alpha1"
)

// GatewayController is what GatewayClasses name that are served.
const GatewayController gatewayv1.GatewayController = v1alpha1.Group + "/gateway-controller"

// Kinds of routes that edges know.
const (
	TCPRoute gatewayv1.Kind = "TCPRoute"
	UDPRoute gatewayv1.Kind = "UDPRoute"
)

// A Listener is a port of a Gateway, with what is wrong with it.
type Listener struct {
	gatewayv1.Listener
	Kinds    []gatewayv1.RouteGroupKind // of routes that may attach
	Attached int                        // routes
	// Unserved is why no edge serves the listener: a reason of the condition Accepted; "": it is.
	Unserved gatewayv1.ListenerConditionReason
	// BadKinds says that it allows kinds of routes that it can't have.
	BadKinds bool
}

// protocol is how edges call the listener's; false: they do not know it.
func (l *Listener) protocol() (config.Protocol, gatewayv1.Kind, bool) {
	switch l.Protocol {
	case gatewayv1.TCPProtocolType:
		return config.TCP, TCPRoute, true
	case gatewayv1.UDPProtocolType:
		return config.UDP, UDPRoute, true
	}
	return "", "", false
}

// endpoint is where clients of the listener connect to.
func (l *Listener) endpoint(vip netip.Addr) config.Endpoint {
	protocol, _, _ := l.protocol()
	return config.Endpoint{VIP: vip, Protocol: protocol, Port: uint16(l.Port)}
}

// Listeners reads those of a Gateway.
func Listeners(g *gatewayv1.Gateway) []Listener {
	list := make([]Listener, len(g.Spec.Listeners))
	for i := range list {
		l := &list[i]
		l.Listener = g.Spec.Listeners[i]
		l.Kinds = []gatewayv1.RouteGroupKind{}
		_, kind, ok := l.protocol()
		switch {
		case !ok:
			l.Unserved = gatewayv1.ListenerReasonUnsupportedProtocol
			continue
		case l.Port < 1 || l.Port > 65535:
			l.Unserved = gatewayv1.ListenerReasonPortUnavailable
		case slices.ContainsFunc(list[:i], func(o Listener) bool {
			return o.Port == l.Port && o.Protocol == l.Protocol
		}):
			l.Unserved = gatewayv1.ListenerReasonPortUnavailable
		}
		own := gatewayv1.RouteGroupKind{Group: new(gatewayv1.Group(gatewayv1.GroupName)),
			Kind: kind}
		if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
			l.Kinds = append(l.Kinds, own)
			continue
		}
		for _, k := range l.AllowedRoutes.Kinds {
			if k.Kind != kind || k.Group != nil && *k.Group != gatewayv1.GroupName {
				l.BadKinds = true
			} else if len(l.Kinds) == 0 {
				l.Kinds = append(l.Kinds, own)
			}
		}
	}
	return list
}

// admits reports whether a route may attach. labelsOf are those of a namespace; without it, routes
// of all namespaces may.
func (l *Listener) admits(r *Route, gateway string, labelsOf func(string) labels.Set) bool {
	if !slices.ContainsFunc(l.Kinds, func(k gatewayv1.RouteGroupKind) bool {
		return k.Kind == r.Kind
	}) {
		return false
	}
	if labelsOf == nil {
		return true
	}
	from := gatewayv1.NamespacesFromSame
	var selector *metav1.LabelSelector
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil {
		n := l.AllowedRoutes.Namespaces
		selector = n.Selector
		if n.From != nil {
			from = *n.From
		}
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return r.Namespace == gateway
	case gatewayv1.NamespacesFromSelector:
		s, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && s.Matches(labelsOf(r.Namespace))
	}
	return false
}

// status is what the Gateway's status says of the listener; why it is not programmed, if it is not.
func (l *Listener) status(generation int64, why string) gatewayv1.ListenerStatus {
	s := gatewayv1.ListenerStatus{Name: l.Name, SupportedKinds: l.Kinds,
		AttachedRoutes: int32(l.Attached)}
	accepted := condition(gatewayv1.ListenerConditionAccepted, gatewayv1.ListenerReasonAccepted,
		"edges can serve it")
	conflict := condition(gatewayv1.ListenerConditionConflicted,
		gatewayv1.ListenerReasonNoConflicts, "no other listener has its port")
	conflict.Status = metav1.ConditionFalse
	resolved := condition(gatewayv1.ListenerConditionResolvedRefs,
		gatewayv1.ListenerReasonResolvedRefs, "all kinds of routes can attach")
	programmed := condition(gatewayv1.ListenerConditionProgrammed,
		gatewayv1.ListenerReasonProgrammed, "edges serve it")
	if l.BadKinds {
		refuseBy(&resolved, gatewayv1.ListenerReasonInvalidRouteKinds,
			fmt.Sprintf("allowedRoutes.kinds: a listener of protocol %s takes %ss alone",
				l.Protocol, l.kind()))
	}
	switch l.Unserved {
	case gatewayv1.ListenerReasonUnsupportedProtocol:
		refuseBy(&accepted, l.Unserved, fmt.Sprintf("protocol %s: edges know TCP and UDP",
			l.Protocol))
	case gatewayv1.ListenerReasonPortUnavailable:
		refuseBy(&accepted, l.Unserved, fmt.Sprintf("port %d: another listener has it, or it is "+
			"no port", l.Port))
	}
	switch {
	case l.Unserved != "":
		refuseBy(&programmed, gatewayv1.ListenerReasonInvalid, accepted.Message)
	case why != "":
		refuseBy(&programmed, gatewayv1.ListenerReasonPending, why)
	}
	s.Conditions = []metav1.Condition{accepted, conflict, resolved, programmed}
	for i := range s.Conditions {
		s.Conditions[i].ObservedGeneration = generation
	}
	return s
}

func (l *Listener) kind() string {
	_, kind, _ := l.protocol()
	return string(kind)
}

func condition[T, R ~string](kind T, reason R, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue,
		Reason: string(reason), Message: Message(message)}
}

func refuseBy[R ~string](c *metav1.Condition, reason R, message string) {
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(reason), Message(message)
}
