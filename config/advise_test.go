package config_test

import (
	"strings"
	"testing"

	"sextant/config"
)

const idleFile = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0, side: external}]
  source: "fd00:5e::e1"
  services:
    - {name: web, vip: "2001:db8:80::80", port: 80, backends: [BACKENDS]}
`

// A service that nobody serves is named; one backend is enough, and BGP may tell of some.
func TestServicesThatNobodyServes(t *testing.T) {
	const (
		none  = `service "web": it has no backend`
		tired = `service "web": none of its backends takes new connections`
		bgp   = "bgp: {asn: 64512, routerID: 192.0.2.1, neighbors: [{address: \"2001:db8::1\", " +
			"asn: 64512}]}\n"
	)
	one := func(state string) string {
		return `{name: a, sid: "fcbb:bb00:1::", ` + state + `}`
	}
	up := `, {name: b, sid: "fcbb:bb00:2::"}`
	for _, c := range []struct{ backends, more, want string }{
		{"", "", none},
		{"", bgp, ""},
		{one("weight: 0"), "", tired},
		{one("weight: 0"), bgp, ""},
		{one("state: down"), "", tired},
		{one("state: maintenance"), "", tired},
		{one("state: draining"), "", tired},
		{one("state: up"), "", ""},
		{one("weight: 0") + up, "", ""},
		{one("state: down") + up, "", ""},
	} {
		n, err := config.Parse("e1.yaml",
			[]byte(strings.Replace(idleFile, "BACKENDS", c.backends, 1)+c.more))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(config.Warnings(n), "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("backends [%s] %s: %q, want %q", c.backends, c.more, got, c.want)
		}
	}
}
