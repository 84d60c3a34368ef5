package node

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"sextant/config"
	"sextant/controller/kubernetes/plan"
	"sextant/controller/kubernetes/v1alpha1"
	"sextant/datapath"
	"sextant/packet/srv6"
)

// podPrefix begins the names of services in the node files of pods.
const podPrefix = "pod"

// A Pod is one that shall take packets.
type Pod struct {
	UID, Name string // Name with its namespace
	Addresses []netip.Addr
	Serves    []Served
}

// has reports whether an endpoint of a Host is one of the pod's addresses.
func (p Pod) has(e v1alpha1.HostEndpoint) bool {
	return slices.ContainsFunc(p.Addresses, func(a netip.Addr) bool {
		return a.String() == e.Address
	})
}

// servesAt are the endpoints that are of the family of one of the pod's addresses.
func (p Pod) servesAt(a netip.Addr) (list []string) {
	for _, s := range p.Serves {
		if s.VIP.Is6() == a.Is6() {
			list = append(list, s.Endpoint.String())
		}
	}
	return list
}

// Served is an endpoint that clients connect to, with the Service that it is of.
type Served struct {
	Name string
	config.Endpoint
	Target uint16 // port on which the pod listens
}

// socket is where the pod's socket is.
func (s Served) socket() config.Endpoint {
	at := s.Endpoint
	at.Port = s.Target
	return at
}

// A Use is a Service whose endpoints serve, by the name of its port.
type Use struct {
	Service types.NamespacedName
	Ports   map[string][]Served
}

// UsesOfServices are those of Services with addresses.
func UsesOfServices(services []*corev1.Service, class string, isDefault bool) (list []Use) {
	for _, s := range services {
		if !plan.Ours(s, class, isDefault) || s.DeletionTimestamp != nil {
			continue
		}
		if of := portsOf(s); len(of) > 0 {
			list = append(list, Use{types.NamespacedName{Namespace: s.Namespace, Name: s.Name}, of})
		}
	}
	return list
}

// UsesOfTargets are those of what routes of Gateways name.
func UsesOfTargets(targets []plan.Target) (list []Use) {
	for _, t := range targets {
		list = append(list, Use{t.Service, map[string][]Served{
			t.Port: {{Name: t.Name, Endpoint: t.At}}}})
	}
	return list
}

// Wanted are the pods of a node that are to take packets, in the order of their UIDs, and why
// endpoints of the node are left out. A pod is wanted as long as a slice has it, whatever its
// conditions: what terminates has connections.
func Wanted(node string, uses []Use,
	slicesOf func(types.NamespacedName) []*discoveryv1.EndpointSlice) (list []Pod, left []string) {
	pods := map[string]*Pod{}
	for _, u := range uses {
		for _, slice := range slicesOf(u.Service) {
			for _, e := range slice.Endpoints {
				if e.NodeName == nil || *e.NodeName != node {
					continue
				}
				if why := add(pods, slice, e, u.Ports); why != "" {
					left = append(left, fmt.Sprintf("%s: %s", u.Service, why))
				}
			}
		}
	}
	for _, p := range pods {
		slices.SortFunc(p.Addresses, netip.Addr.Compare)
		slices.SortFunc(p.Serves, func(a, b Served) int {
			return strings.Compare(a.Endpoint.String(), b.Endpoint.String())
		})
		p.Serves = slices.CompactFunc(p.Serves, func(a, b Served) bool {
			return a.Endpoint == b.Endpoint
		})
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Pod) int { return strings.Compare(a.UID, b.UID) })
	slices.Sort(left)
	return list, slices.Compact(left)
}

// targets are the ports that a pod listens on elsewhere, and of UDP those that share the socket of
// one.
func (p Pod) targets() (list []datapath.TargetPort) {
	elsewhere := map[config.Endpoint]bool{}
	for _, s := range p.Serves {
		if s.Target != s.Port {
			elsewhere[s.socket()] = true
		}
	}
	for _, s := range p.Serves {
		if s.Target == s.Port && (s.Protocol != config.UDP || !elsewhere[s.socket()]) {
			continue
		}
		own := slices.IndexFunc(p.Addresses, func(a netip.Addr) bool {
			return a.Is6() == s.VIP.Is6()
		})
		list = append(list, datapath.TargetPort{ServiceKey: datapath.ServiceKey{VIP: s.VIP,
			Port: s.Port, Protocol: protocolNumbers[s.Protocol]}, Address: p.Addresses[own],
			Target: s.Target})
	}
	return list
}

var protocolNumbers = map[config.Protocol]uint8{config.TCP: unix.IPPROTO_TCP,
	config.UDP: unix.IPPROTO_UDP}

func add(pods map[string]*Pod, slice *discoveryv1.EndpointSlice, e discoveryv1.Endpoint,
	of map[string][]Served) string {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || e.TargetRef.UID == "" {
		return "an endpoint of EndpointSlice " + slice.Name + " is no pod"
	}
	if len(e.Addresses) == 0 {
		return "an endpoint of EndpointSlice " + slice.Name + " has no address"
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || !address.IsGlobalUnicast() {
		return fmt.Sprintf("address %q in EndpointSlice %s", e.Addresses[0], slice.Name)
	}
	uid := string(e.TargetRef.UID)
	if !plainUID(uid) {
		return fmt.Sprintf("uid %q in EndpointSlice %s", uid, slice.Name)
	}
	p := pods[uid]
	if p == nil {
		p = &Pod{UID: uid, Name: slice.Namespace + "/" + e.TargetRef.Name}
		pods[uid] = p
	}
	if !slices.Contains(p.Addresses, address) {
		p.Addresses = append(p.Addresses, address)
	}
	for _, port := range slice.Ports {
		name := ""
		if port.Name != nil {
			name = *port.Name
		}
		for _, s := range of[name] {
			if port.Port == nil || *port.Port < 1 || *port.Port > 65535 ||
				s.VIP.Is6() != address.Is6() || protocolOf(port.Protocol) != s.Protocol {
				continue
			}
			s.Target = uint16(*port.Port)
			p.Serves = append(p.Serves, s)
		}
	}
	return ""
}

func protocolOf(p *corev1.Protocol) config.Protocol {
	if p == nil {
		return config.TCP
	}
	protocol, _ := plan.ProtocolOf(*p)
	return protocol
}

// plainUID keeps what is no UID out of names of files: hexadecimal digits and dashes.
func plainUID(uid string) bool {
	for _, r := range uid {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r == '-') {
			return false
		}
	}
	return uid != "" && len(uid) <= 40
}

func portsOf(s *corev1.Service) map[string][]Served {
	of := map[string][]Served{}
	for _, in := range s.Status.LoadBalancer.Ingress {
		vip, err := netip.ParseAddr(in.IP)
		if err != nil {
			continue
		}
		for _, p := range s.Spec.Ports {
			protocol, ok := plan.ProtocolOf(p.Protocol)
			if !ok || p.Port < 1 || p.Port > 65535 {
				continue
			}
			at := config.Endpoint{VIP: vip, Protocol: protocol, Port: uint16(p.Port)}
			of[p.Name] = append(of[p.Name], Served{
				Name: plan.FrontendName(podPrefix, s.Namespace, s.Name, at), Endpoint: at})
		}
	}
	return of
}

// SIDOf is where packets for a pod's address are sent: the locator, and behind it what tells the
// address from others of the node, which is the rest of an IPv6 address, or an IPv4 address behind
// the number 4.
func SIDOf(locator netip.Prefix, pod netip.Addr) netip.Addr {
	sid, of := locator.Masked().Addr().As16(), pod.As16()
	if pod.Is4() {
		of = [16]byte{}
		of[9] = 4
		four := pod.As4()
		copy(of[12:], four[:])
	}
	for i := locator.Bits(); i < 128; i++ {
		bit := byte(1) << (7 - i%8)
		sid[i/8] |= of[i/8] & bit
	}
	return netip.AddrFrom16(sid)
}

// CheckLocator says why a prefix can't be a node's locator.
func CheckLocator(p netip.Prefix, d config.Domain) error {
	switch {
	case !p.IsValid() || !p.Addr().Is6() || p.Bits() > 64:
		return fmt.Errorf("locator %s is not an IPv6 prefix of 64 bits or less: the rest "+
			"tells pods apart", p)
	case !slices.ContainsFunc(d.Locators, func(l netip.Prefix) bool {
		return l.Overlaps(p) && l.Bits() <= p.Bits()
	}) && !(d.Block.Prefix().Overlaps(p) && d.Block.Prefix().Bits() <= p.Bits()):
		return fmt.Errorf("locator %s lies in none of domain.locators: name it there, at edges "+
			"too, so that no packet from outside goes there", p)
	}
	return nil
}

// File is the node file of a pod's agent: the template, which has what is the same at all nodes of
// the domain, with the pod's part.
func (p Pod) File(template *config.Node, locator netip.Prefix, iface, cgroup, dir string) (
	[]byte, error) {
	n := template.Clone()
	n.Name = "pod-" + p.UID
	n.State = dir + "/state"
	n.API = config.API{Socket: dir + "/agent.sock"}
	accept := template.Host
	n.Host = &config.Host{Interfaces: []config.HostInterface{{Name: iface, Mode: config.Auto}},
		Cgroup: cgroup}
	if accept != nil {
		n.Host.HMAC, n.Host.Learners, n.Host.Source = accept.HMAC, accept.Learners, accept.Source
	}
	for _, a := range p.Addresses {
		n.Host.SIDs = append(n.Host.SIDs, config.SID{
			Prefix: netip.PrefixFrom(SIDOf(locator, a), 128), Behavior: srv6.EndOFFER})
	}
	for _, s := range p.Serves {
		n.Host.Services = append(n.Host.Services, config.HostService{Name: s.Name,
			Endpoint: s.Endpoint, Accept: acceptOf(template)})
	}
	text, err := config.Marshal(n)
	if err != nil {
		return nil, err
	}
	_, err = config.Parse("pod-"+p.UID, text)
	return text, err
}

// acceptOf is the acceptance policy of the template's first service, or the default.
func acceptOf(template *config.Node) config.Accept {
	if template.Host != nil && len(template.Host.Services) > 0 {
		return template.Host.Services[0].Accept
	}
	return config.Accept{Policy: config.Average}
}
