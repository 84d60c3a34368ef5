package config_test

import (
	"errors"
	"net/netip"
	"testing"

	"sextant/config"
)

const declaredNode = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      depth: 4
      newConnections: {rate: 100, burst: 10}
      check: {kind: tcp}
      backends: [{name: web1, sid: "fcbb:bb00:1::", weight: 3, state: draining, site: a}, {name: web2, sid: "fcbb:bb00:2::"}]
    - {name: dns, vip: 2001:db8:80::53, port: any, protocol: udp}
`

// declared is declaredNode after a declaration, as a list of differences.
func declared(t *testing.T, set []config.Declared, remove ...string) []string {
	t.Helper()
	n, err := config.Parse("node.yaml", []byte(declaredNode))
	if err != nil {
		t.Fatal(err)
	}
	next, err := config.Declare(n, set, remove)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{}
	for _, c := range config.Diff(n, next) {
		lines = append(lines, c.String())
	}
	return lines
}

// What says the same of a service changes nothing, and what a declaration can't say stays.
func TestDeclareSame(t *testing.T) {
	n, err := config.Parse("node.yaml", []byte(declaredNode))
	if err != nil {
		t.Fatal(err)
	}
	var set []config.Declared
	for _, s := range n.Edge.Services {
		set = append(set, s.Declaration())
	}
	if changes := declared(t, set, "gone"); len(changes) > 0 {
		t.Errorf("declaring what is there changes %q", changes)
	}
}

// One declaration adds, changes and removes; backends that it does not name go.
func TestDeclare(t *testing.T) {
	vip, port := netip.MustParseAddr("2001:db8:80::81"), uint16(443)
	sid := netip.MustParseAddr("fcbb:bb00:2::")
	changes := declared(t, []config.Declared{
		{Name: "web", Backends: []config.DeclaredBackend{
			{Name: "web2", BackendChange: config.BackendChange{SID: &sid}}}},
		{Name: "tls", ServiceChange: config.ServiceChange{VIP: &vip, Port: &port}},
	}, "dns")
	const as = ", policy offer, table rendezvous, candidates 2)"
	want := []string{
		"- service web: backend web1 (sid fcbb:bb00:1::, weight 3, state draining)",
		"- service dns (vip [2001:db8:80::53]:any/udp" + as,
		"+ service tls (vip [2001:db8:80::81]:443/tcp" + as,
	}
	if len(changes) != len(want) {
		t.Fatalf("it changed %q, want %q", changes, want)
	}
	for i := range want {
		if changes[i] != want[i] {
			t.Errorf("change %d is %q, want %q", i, changes[i], want[i])
		}
	}
}

// A declaration with a fault is refused whole.
func TestDeclareRefused(t *testing.T) {
	n, err := config.Parse("node.yaml", []byte(declaredNode))
	if err != nil {
		t.Fatal(err)
	}
	vip, port := netip.MustParseAddr("2001:db8:80::80"), uint16(80)
	for name, d := range map[string]config.Declared{
		"no vip":  {Name: "a", ServiceChange: config.ServiceChange{Port: &port}},
		"no port": {Name: "a", ServiceChange: config.ServiceChange{VIP: &vip}},
		"taken":   {Name: "a", ServiceChange: config.ServiceChange{VIP: &vip, Port: &port}},
		"no sid":  {Name: "web", Backends: []config.DeclaredBackend{{Name: "b"}}},
	} {
		_, err := config.Declare(n, []config.Declared{d}, nil)
		if p := new(config.Problem); !errors.As(err, &p) {
			t.Errorf("%s: %v, want a problem", name, err)
		}
	}
}
