package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"sextant/config"
	"sextant/controller/kubernetes/v1alpha1"
)

// Annotations on EndpointSlices: shares of new connections. Cilium's is read where ours is not.
const (
	AnnotationWeight = v1alpha1.Group + "/weight"
	weightOfCilium   = "service.cilium.io/weight"
)

// What an agent takes: FuzzService and FuzzGateway hold these against its own checks.
const (
	maxWeight     = 65535
	maxName       = 63 // letters
	maxCandidates = 6
	maxBackends   = 10000
)

// An Endpoint is a pod that may serve a port.
type Endpoint struct {
	Name    string // of the pod, or its address
	Address netip.Addr
	Node    string
	Zone    string
	// ForZones and ForNodes are those whose clients should have it; none: all.
	ForZones, ForNodes []string
	State              config.BackendState
	Weight             int
	// LastResort says that it terminates and still serves: it gets new connections if no endpoint
	// is ready (KEP-1669).
	LastResort bool
}

// A Place is where a node takes packets for a pod.
type Place struct {
	SID netip.Addr
	// Excluded is why the node gets no new connections; "": it does.
	Excluded string
}

// Where tells where a node takes packets for a pod's address and a service's endpoint; why says
// what is missing if it does not.
type Where func(node string, pod netip.Addr, e config.Endpoint) (at Place, why string)

// stateOf maps the conditions of an endpoint: nil is true for ready and serving, false for
// terminating. What serves but is not ready gets nothing new, and keeps its connections; a pod that
// does not serve is left as one that was never there, unless it terminates.
func stateOf(c discoveryv1.EndpointConditions) (state config.BackendState, lastResort bool) {
	ready := c.Ready == nil || *c.Ready
	serving := ready
	if c.Serving != nil {
		serving = *c.Serving
	}
	terminating := c.Terminating != nil && *c.Terminating
	switch {
	case serving && !terminating && ready:
		return config.Up, false
	case serving || terminating:
		return config.Draining, serving && terminating
	}
	return config.Down, false
}

// weightOf is the weight of a slice's endpoints, and what is wrong with how it is written.
func weightOf(s *discoveryv1.EndpointSlice) (int, error) {
	for _, key := range []string{AnnotationWeight, weightOfCilium} {
		text, ok := s.Annotations[key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxWeight {
			return 1, fmt.Errorf("%s %q of EndpointSlice %s is no weight: write 0 to %d", key, text,
				s.Name, maxWeight)
		}
		return n, nil
	}
	return 1, nil
}

// Endpoints are those of a service's port in slices of one family, in the order of their addresses,
// and what is wrong with slices. Of an endpoint that is in several slices, as it may be while it
// moves from one to another, the better state counts.
func Endpoints(slicesOf []*discoveryv1.EndpointSlice, port string, protocol corev1.Protocol,
	v6 bool) (list []Endpoint, faults []string) {
	family := discoveryv1.AddressTypeIPv4
	if v6 {
		family = discoveryv1.AddressTypeIPv6
	}
	found := map[netip.Addr]Endpoint{}
	for _, s := range slicesOf {
		if s.AddressType != family {
			continue
		}
		if !hasPort(s, port, protocol) {
			continue
		}
		weight, err := weightOf(s)
		if err != nil {
			faults = append(faults, err.Error())
		}
		for _, e := range s.Endpoints {
			one, fault := endpointOf(e, v6)
			if fault != "" {
				faults = append(faults, fault+" in EndpointSlice "+s.Name)
				continue
			}
			one.Weight = weight
			if weight == 0 && one.State == config.Up {
				one.State, one.Weight = config.Draining, 1
			}
			one.LastResort = one.LastResort && weight > 0
			if old, ok := found[one.Address]; one.State == config.Down ||
				ok && old.State == config.Up {
				continue
			}
			found[one.Address] = one
		}
	}
	for _, e := range found {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Endpoint) int { return a.Address.Compare(b.Address) })
	return named(list), faults
}

func hasPort(s *discoveryv1.EndpointSlice, port string, protocol corev1.Protocol) bool {
	for _, p := range s.Ports {
		name, of := "", corev1.ProtocolTCP
		if p.Name != nil {
			name = *p.Name
		}
		if p.Protocol != nil {
			of = *p.Protocol
		}
		if name == port && of == protocol && p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
			return true
		}
	}
	return false
}

func endpointOf(e discoveryv1.Endpoint, v6 bool) (one Endpoint, fault string) {
	if len(e.Addresses) == 0 {
		return one, "an endpoint without an address"
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || address.Zone() != "" || address.Is4In6() || address.Is6() != v6 ||
		!address.IsGlobalUnicast() {
		return one, fmt.Sprintf("address %q of an endpoint", e.Addresses[0])
	}
	one = Endpoint{Name: address.String(), Address: address}
	one.State, one.LastResort = stateOf(e.Conditions)
	if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && e.TargetRef.Name != "" {
		one.Name = e.TargetRef.Name
	}
	if e.NodeName != nil {
		one.Node = *e.NodeName
	}
	if e.Zone != nil {
		one.Zone = *e.Zone
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			one.ForZones = append(one.ForZones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			one.ForNodes = append(one.ForNodes, n.Name)
		}
	}
	return one, ""
}

// named gives each endpoint a name that no other has and that an agent takes.
func named(list []Endpoint) []Endpoint {
	count := map[string]int{}
	for i := range list {
		list[i].Name = agentName(list[i].Name)
		count[list[i].Name]++
	}
	for i := range list {
		if count[list[i].Name] > 1 {
			list[i].Name = agentName(list[i].Name + "@" + list[i].Address.String())
		}
	}
	return list
}

// backends are those of endpoints whose nodes take packets for them, and why others are not there.
func backends(list []Endpoint, e config.Endpoint, where Where) (
	taken []placed, missing []Missing) {
	for _, one := range list {
		at, why := where(one.Node, one.Address, e)
		if why != "" {
			missing = append(missing, Missing{one.Name, one.Node, why, false})
			continue
		}
		if at.Excluded != "" {
			missing = append(missing, Missing{one.Name, one.Node, at.Excluded, true})
			one.State, one.LastResort = config.Draining, false
		}
		taken = append(taken, placed{one, at.SID})
	}
	slices.SortFunc(taken, func(a, b placed) int { return cmp.Compare(a.Name, b.Name) })
	return taken, missing
}

// placed is an endpoint that can be reached.
type placed struct {
	Endpoint
	sid netip.Addr
}

// Missing is an endpoint that gets nothing, and why.
type Missing struct {
	Name, Node, Why string
	Excluded        bool // its node is, and it keeps its connections
}
