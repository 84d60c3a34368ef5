package config_test

import (
	"fmt"
	"strings"
	"testing"

	"sextant/config"
)

// A node file holds what an edge does: 65,535 services with a backend, or 10,000 with health checks
// and ten backends that name weights and agents, as people write them. One service more is refused.
func TestWholeEdgesFitTheNodeFile(t *testing.T) {
	for _, test := range []struct {
		services, backends int
		more, each         string
	}{
		{65535, 1, "      maxBackends: 10\n", ""},
		{10000, 10, "      check: {kind: http, path: /healthz, interval: 60s, timeout: 2s}\n",
			`, weight: 10, agent: "[fd00:5e::1:1:1]:9477"`},
	} {
		var b strings.Builder
		b.WriteString("node: wide1\nsecret: 00112233445566778899aabbccddeeff\n" +
			"domain: {block: \"fcbb:bb00::/32\", infrastructure: [\"fd00:5e::/48\"]}\nedge:\n" +
			"  source: fd00:5e::e1\n  interfaces: [{name: edge0}]\n  services:\n")
		for s := range test.services {
			fmt.Fprintf(&b, "    - name: service-%d\n      vip: 2001:db8:80::%x:%x\n"+
				"      port: 80\n%s      backends:\n", s, s>>16, s&0xffff, test.more)
			for i := range test.backends {
				fmt.Fprintf(&b, "        - {name: b%d, sid: \"fcbb:bb00:%x::\"%s}\n", i,
					1+(s*test.backends+i)%50000, test.each)
			}
		}
		n, err := config.Parse("node.yaml", []byte(b.String()))
		if err != nil {
			t.Errorf("%d services, %d bytes: %v", test.services, b.Len(), err)
		} else if len(n.Edge.Services) != test.services {
			t.Errorf("%d services of %d were read", len(n.Edge.Services), test.services)
		}
	}
}
