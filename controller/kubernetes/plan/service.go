package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"sextant/config"
	"sextant/controller/kubernetes/address"
	"sextant/controller/kubernetes/v1alpha1"
)

// Class is the loadBalancerClass of Services that are served, by default.
const Class = v1alpha1.Group + "/srv6"

// Annotations on Services.
const (
	AnnotationAddresses   = v1alpha1.Group + "/addresses"    // wished, with commas between
	AnnotationPool        = v1alpha1.Group + "/pool"         // from which addresses are wished
	AnnotationSharingKey  = v1alpha1.Group + "/sharing-key"  // of those who share addresses
	AnnotationCandidates  = v1alpha1.Group + "/candidates"   // pods that a connection is offered to
	AnnotationMaxBackends = v1alpha1.Group + "/max-backends" // that tables are made for
	AnnotationSlowStart   = v1alpha1.Group + "/slow-start"   // seconds
)

// Reasons of events, of conditions and of errors of ports.
const (
	ReasonUnsupported = "Unsupported"
	ReasonInvalid     = "Invalid"
	ReasonIgnored     = "Ignored"
	ReasonNoTarget    = "NoTarget"
)

// A Refusal is why an object, or a port of it, is not served.
type Refusal = address.Refusal

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Ours reports whether a Service asks for a load balancer of a class.
func Ours(s *corev1.Service, class string, isDefault bool) bool {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return false
	}
	if s.Spec.LoadBalancerClass == nil {
		return isDefault
	}
	return *s.Spec.LoadBalancerClass == class
}

// Admit refuses a Service that asks for what no edge does; what is only told are settings that make
// no difference.
func Admit(s *corev1.Service) (told []Refusal, refused *Refusal) {
	if len(s.Spec.LoadBalancerSourceRanges) > 0 {
		return nil, refuse(ReasonUnsupported, "loadBalancerSourceRanges are not enforced, and a "+
			"Service that wants them would be open to all: remove them, and filter before the "+
			"edges or by a NetworkPolicy")
	}
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		return nil, refuse(ReasonUnsupported, "sessionAffinity ClientIP is not kept: connections "+
			"of one client go to several pods; set it to None")
	}
	for _, p := range s.Spec.Ports {
		if _, ok := ProtocolOf(p.Protocol); !ok {
			told = append(told, *refuse(ReasonUnsupported,
				"port %d of protocol %s is not served: edges know TCP and UDP", p.Port, p.Protocol))
		}
	}
	if s.Spec.LoadBalancerIP != "" {
		told = append(told, *refuse(ReasonIgnored, "spec.loadBalancerIP is deprecated and not "+
			"looked at: write the annotation %s", AnnotationAddresses))
	}
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		told = append(told, *refuse(ReasonIgnored, "externalTrafficPolicy Local makes no "+
			"difference: pods see the clients' addresses in any case, and packets go straight to "+
			"the pods' nodes"))
	}
	if p := s.Spec.InternalTrafficPolicy; p != nil &&
		*p == corev1.ServiceInternalTrafficPolicyLocal {
		told = append(told, *refuse(ReasonIgnored, "internalTrafficPolicy Local makes no "+
			"difference to what edges do: the cluster's own traffic does not pass them"))
	}
	return told, nil
}

// Families are those in which a Service wants addresses, the first first.
func Families(s *corev1.Service) []corev1.IPFamily {
	if len(s.Spec.IPFamilies) > 0 {
		return s.Spec.IPFamilies
	}
	return []corev1.IPFamily{corev1.IPv4Protocol}
}

// OptionsOf reads the annotations of an object. Those with a fault have no effect, and are told.
func OptionsOf(annotations map[string]string) (o Options, told []Refusal) {
	number := func(key string, low, high int) int {
		text, ok := annotations[key]
		if !ok {
			return 0
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			told = append(told, *refuse(ReasonInvalid,
				"annotation %s %q is ignored: write a number from %d to %d", key, text, low, high))
			return 0
		}
		return n
	}
	o.Candidates = number(AnnotationCandidates, 1, maxCandidates)
	o.MaxBackends = number(AnnotationMaxBackends, 1, maxBackends)
	o.SlowStart = float64(number(AnnotationSlowStart, 1, 3600))
	return o, told
}

// Wished reads the addresses that an object asks for.
func Wished(annotations map[string]string) (list []netip.Addr, refused *Refusal) {
	text := strings.TrimSpace(annotations[AnnotationAddresses])
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(part))
		if err != nil || a.Zone() != "" || a.Is4In6() {
			return nil, refuse(ReasonInvalid, "annotation %s: %q is no address: write addresses "+
				"of pools, with commas between", AnnotationAddresses, part)
		}
		if slices.ContainsFunc(list, func(b netip.Addr) bool { return a.Is6() == b.Is6() }) {
			return nil, refuse(ReasonInvalid, "annotation %s names two addresses of a family: "+
				"write one of each at most", AnnotationAddresses)
		}
		list = append(list, a)
	}
	return list, nil
}

// ProtocolOf is how edges call a protocol; false: they do not know it.
func ProtocolOf(p corev1.Protocol) (config.Protocol, bool) {
	switch p {
	case corev1.ProtocolTCP, "":
		return config.TCP, true
	case corev1.ProtocolUDP:
		return config.UDP, true
	}
	return "", false
}

// Service makes the frontends of a Service that has addresses.
func Service(prefix string, s *corev1.Service, slicesOf []*discoveryv1.EndpointSlice,
	addresses []netip.Addr) (list []Frontend, faults []string) {
	options, _ := OptionsOf(s.Annotations)
	d := s.Spec.TrafficDistribution
	options.NearZones = d != nil && (*d == corev1.ServiceTrafficDistributionPreferSameZone ||
		*d == corev1.ServiceTrafficDistributionPreferClose)
	for _, vip := range addresses {
		for _, p := range s.Spec.Ports {
			protocol, ok := ProtocolOf(p.Protocol)
			if !ok || p.Port < 1 || p.Port > 65535 {
				continue
			}
			at := config.Endpoint{VIP: vip, Protocol: protocol, Port: uint16(p.Port)}
			endpoints, wrong := Endpoints(slicesOf, p.Name,
				cmp.Or(p.Protocol, corev1.ProtocolTCP), vip.Is6())
			faults = append(faults, wrong...)
			list = append(list, Frontend{Name: FrontendName(prefix, s.Namespace, s.Name, at),
				Endpoint: at, Options: options, Groups: []Group{{Endpoints: endpoints}}})
		}
	}
	slices.Sort(faults)
	return list, slices.Compact(faults)
}

// Ingress is what a Service's status says of its addresses. It says nothing while no edge serves
// them.
func Ingress(s *corev1.Service, addresses []netip.Addr, results []Result,
	served bool) []corev1.LoadBalancerIngress {
	if !served {
		return nil
	}
	var list []corev1.LoadBalancerIngress
	mode := corev1.LoadBalancerIPModeVIP
	for _, a := range addresses {
		in := corev1.LoadBalancerIngress{IP: a.String(), IPMode: &mode}
		for _, p := range s.Spec.Ports {
			of := corev1.PortStatus{Port: p.Port, Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP)}
			if text := portError(a, p, results); text != "" {
				of.Error = &text
			}
			in.Ports = append(in.Ports, of)
		}
		list = append(list, in)
	}
	return list
}

// portError names why a port gets no packets though there are pods for it.
func portError(a netip.Addr, p corev1.ServicePort, results []Result) string {
	protocol, ok := ProtocolOf(p.Protocol)
	if !ok {
		return v1alpha1.Group + "/" + ReasonUnsupported
	}
	at := config.Endpoint{VIP: a, Protocol: protocol, Port: uint16(p.Port)}
	for _, r := range results {
		if r.At == at && r.Serving+r.Leaving == 0 && len(r.Missing) > 0 {
			return v1alpha1.Group + "/" + ReasonNoTarget
		}
	}
	return ""
}
