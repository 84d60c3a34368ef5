package plan_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/kubernetes/plan"
)

const edgeFile = `
node: edge1
domain:
  block: fcbb:bb00::/32
  locators: [fd00:c0de::/32]
  infrastructure: [fd00:5e::/48]
secret: 00112233445566778899aabbccddeeff
edge: {interfaces: [{name: eth0}], source: "fd00:5e::e1", encapsulation: srh}
`

// Whatever a Service and its EndpointSlices say, what is planned is either refused here, or an
// edge's own checks take it.
func FuzzService(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"web","namespace":"default"},"spec":{"type":"LoadBalancer",`+
		`"ports":[{"port":80},{"name":"dns","port":53,"protocol":"UDP"},{"port":9,"protocol":"SCTP"}]}}`),
		[]byte(`{"addressType":"IPv6","ports":[{"port":80}],"endpoints":[{"addresses":["fd00:10::1"],`+
			`"nodeName":"n","targetRef":{"kind":"Pod","name":"a"}},{"addresses":["fd00:10::2"],`+
			`"conditions":{"ready":false,"serving":true,"terminating":true}}]}`))
	f.Add([]byte(`{"metadata":{"annotations":{"sextant.dev/candidates":"9"}},"spec":{"ports":[`+
		`{"port":70000}]}}`), []byte(`{"metadata":{"annotations":{"sextant.dev/weight":"-1"}},`+
		`"addressType":"IPv6","ports":[{"port":80}],"endpoints":[{"addresses":["fd00:10::1"],`+
		`"targetRef":{"kind":"Pod","name":"-ü/"}},{"addresses":["::"]},{"addresses":[]}]}`))
	node, err := config.Parse("edge.yaml", []byte(edgeFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, service, slice []byte) {
		var s corev1.Service
		var e discoveryv1.EndpointSlice
		if json.Unmarshal(service, &s) != nil || json.Unmarshal(slice, &e) != nil {
			return
		}
		// What the API server does not let through.
		s.Name, s.Namespace = plan.FrontendName("a", "b", s.Name, config.Endpoint{}), "default"
		seen := map[config.Endpoint]bool{}
		for _, p := range s.Spec.Ports {
			protocol, _ := plan.ProtocolOf(p.Protocol)
			at := config.Endpoint{Port: uint16(p.Port), Protocol: protocol}
			if seen[at] || p.Port < 1 {
				return
			}
			seen[at] = true
		}
		plan.Admit(&s)
		vip := netip.MustParseAddr("2001:db8:80::80")
		frontends, _ := plan.Service("k8s", &s, []*discoveryv1.EndpointSlice{&e, &e},
			[]netip.Addr{vip})
		var set []config.Declared
		var results []plan.Result
		for _, one := range frontends {
			r := one.Build(where)
			results = append(results, r)
			set = append(set, declared(r.For("zone1")))
		}
		plan.Ingress(&s, []netip.Addr{vip}, results, true)
		if _, err := config.Declare(node, set, nil); err != nil {
			t.Errorf("an edge refuses it: %v", err)
		}
	})
}

// declared is what an agent makes of what it is told.
func declared(d api.Declared) config.Declared {
	c := config.Declared{Name: d.Name, ServiceChange: config.ServiceChange{VIP: d.VIP,
		Port: d.Port, Protocol: d.Protocol, Candidates: d.Candidates},
		MaxBackends: d.MaxBackends}
	for _, b := range d.Backends {
		c.Backends = append(c.Backends, config.DeclaredBackend{Name: b.Name,
			BackendChange: config.BackendChange{SID: b.SID, Weight: b.Weight, State: b.State}})
	}
	return c
}
