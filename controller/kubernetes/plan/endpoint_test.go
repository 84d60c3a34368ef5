package plan_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sextant/config"
	"sextant/controller/kubernetes/plan"
)

func slice(name string, port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name},
		AddressType: discoveryv1.AddressTypeIPv6, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Port: &port}}}
}

func endpoint(address string, ready, serving, terminating *bool) discoveryv1.Endpoint {
	node := "node1"
	return discoveryv1.Endpoint{Addresses: []string{address}, NodeName: &node,
		Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving,
			Terminating: terminating}}
}

// The conditions of an endpoint and what it is given: nil is true, true and false (KEP-1672).
func TestStates(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		ready, serving, terminating *bool
		want                        config.BackendState // "": not there
	}{
		{nil, nil, nil, config.Up},
		{&yes, nil, nil, config.Up},
		{&yes, &yes, &no, config.Up},
		{&no, &yes, &yes, config.Draining},
		{nil, &yes, &yes, config.Draining},
		{&no, &no, &yes, config.Draining}, // its connections may last
		{&no, &no, &no, ""},
		{&no, nil, nil, ""},
		{&no, &yes, &no, config.Draining},
	} {
		list, faults := plan.Endpoints([]*discoveryv1.EndpointSlice{
			slice("s", 80, endpoint("2001:db8::1", c.ready, c.serving, c.terminating))}, "",
			corev1.ProtocolTCP, true)
		got := config.BackendState("")
		if len(list) == 1 {
			got = list[0].State
		}
		if got != c.want || len(faults) > 0 {
			t.Errorf("%v %v %v: %q, want %q, %v", c.ready, c.serving, c.terminating, got, c.want,
				faults)
		}
	}
}

// where takes all packets, at a SID that is made of the pod's address.
func where(_ string, pod netip.Addr, _ config.Endpoint) (plan.Place, string) {
	sid := netip.MustParseAddr("fd00:c0de::").As16()
	of := pod.As16()
	copy(sid[8:], of[8:])
	return plan.Place{SID: netip.AddrFrom16(sid)}, ""
}

// Weights of groups are shares of connections, however many endpoints each has; a group without
// weight gets nothing new.
func TestWeightsOfGroups(t *testing.T) {
	group := func(weight, from, count int) plan.Group {
		g := plan.Group{Weight: weight}
		for i := range count {
			a := netip.MustParseAddr("2001:db8::").As16()
			a[14], a[15] = byte(from), byte(i+1)
			g.Endpoints = append(g.Endpoints, plan.Endpoint{Name: netip.AddrFrom16(a).String(),
				Address: netip.AddrFrom16(a), State: config.Up, Weight: 1})
		}
		return g
	}
	f := plan.Frontend{Name: "k8s.a", Endpoint: config.Endpoint{
		VIP: netip.MustParseAddr("2001:db8:80::80"), Protocol: config.TCP, Port: 80},
		Groups: []plan.Group{group(90, 1, 7), group(10, 2, 100), group(0, 3, 5)}}
	r := f.Build(where)
	sums, total := map[byte]int{}, 0
	for _, b := range r.For("").Backends {
		if *b.State != config.Up {
			if b.SID.As16()[14] != 3 {
				t.Errorf("%s is %s", b.Name, *b.State)
			}
			continue
		}
		sums[b.SID.As16()[14]] += *b.Weight
		total += *b.Weight
	}
	for g, want := range map[byte]float64{1: 0.9, 2: 0.1, 3: 0} {
		if got := float64(sums[g]) / float64(total); got < want-0.005 || got > want+0.005 {
			t.Errorf("group %d has %.4f of new connections, want %.2f", g, got, want)
		}
	}
}
