package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sextant/config"
)

const pathNode = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  encapsulation: %s
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      %s
      backends: [{name: web1, sid: "fcbb:bb00:1::"}, {name: web2, sid: "fcbb:bb00:2::", %s}]
`

func parsePaths(encapsulation, service, backend string) (*config.Node, error) {
	return config.Parse("node.yaml", fmt.Appendf(nil, pathNode, encapsulation, service, backend))
}

// Chains leave room for the longest path where nothing else is said; UDP and policies without
// chains have more of it. A backend's own path goes before that of the service.
func TestPathsLeaveRoom(t *testing.T) {
	const a, b = `"fcbb:bb00:a1::"`, `"fcbb:bb00:a2::"`
	for _, test := range []struct {
		service, backend string
		depth, first     int // SIDs on the path to the first backend
		second           int
	}{
		{"", "state: up", 6, 0, 0},
		{"path: [" + a + "]", "state: up", 5, 1, 1},
		{"path: [" + a + "]", "path: [" + a + ", " + b + "]", 4, 1, 2},
		{"table: exact", "path: [" + a + ", " + b + ", " + a + ", " + b + "]", 2, 0, 4},
		{"{path: [" + a + "], depth: 3}", "state: up", 3, 1, 1},
		{"{path: [" + a + "], policy: ecmp}", "state: up", 6, 1, 1},
	} {
		service := strings.Trim(test.service, "{}")
		if service != test.service {
			service = strings.ReplaceAll(service, "], ", "]\n      ")
		}
		n, err := parsePaths("carrier", service, test.backend)
		if err != nil {
			t.Errorf("%q, %q: %v", test.service, test.backend, err)
			continue
		}
		s := n.Edge.Services[0]
		if got := len(s.PathTo(s.Backends[0])); s.Depth != test.depth || got != test.first ||
			len(s.PathTo(s.Backends[1])) != test.second {
			t.Errorf("%q, %q: depth %d, paths of %d and %d SIDs, want %d, %d and %d", test.service,
				test.backend, s.Depth, got, len(s.PathTo(s.Backends[1])), test.depth, test.first,
				test.second)
		}
	}
}

// What does not fit, or leads nowhere, is refused, with the bytes.
func TestPathsThatAreRefused(t *testing.T) {
	for _, test := range []struct{ encapsulation, service, backend, path, want string }{
		{"srh", "depth: 5", `path: ["fd00::1", "fd00::2"]`, "edge.services[0].backends[1].path",
			"take 32 + 80 = 112 bytes, and 96 are for SIDs in the segment routing header"},
		{"srh-reduced", "candidates: 5", `path: ["fcbb:bb00:a1::", "fcbb:bb00:a2::"]`,
			"edge.services[0].backends[1].path", "write candidates: 4 and depth: 4"},
		{"carrier", `path: ["fd00::1"]`, "state: up", "edge.services[0].path[0]",
			"not in the SID block"},
		{"carrier", `path: ["fcbb:bb00:a1:a2::"]`, "state: up", "edge.services[0].path[0]",
			"not one global identifier"},
		{"carrier", `path: ["fcbb:bb00:2::"]`, "state: up", "edge.services[0].path[0]",
			"that of a backend"},
		{"srh", `path: ["fd00::1", "fd00::2", "fd00::3", "fd00::4", "fd00::5"]`, "state: up",
			"edge.services[0].path", "name 4 at most"},
	} {
		_, err := parsePaths(test.encapsulation, test.service, test.backend)
		var problem *config.Problem
		if !errors.As(err, &problem) || problem.Path != test.path ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %s: %v, want %s: %q", test.service, test.backend, err, test.path,
				test.want)
		}
	}
}

// Path and chain that one address can't hold are in two, which take 24 bytes more of the domain's.
func TestTwoCarriersTakeMore(t *testing.T) {
	for service, want := range map[string]int{"path: [\"fcbb:bb00:a1::\"]": 40,
		"path: [\"fcbb:bb00:a1::\"]\n      depth: 6": 64, "depth: 6": 40} {
		n, err := parsePaths("carrier", service, "state: up")
		if err != nil || n.Domain.Overhead != want {
			t.Errorf("%s: %v, overhead %d, want %d", service, err, n.Domain.Overhead, want)
		}
	}
	text := fmt.Sprintf(pathNode, "carrier", "path: [\"fcbb:bb00:a1::\"]\n      depth: 6",
		"state: up")
	text = strings.Replace(text, "domain: {", "domain: {overhead: 40, ", 1)
	if _, err := config.Parse("node.yaml", []byte(text)); err == nil ||
		!strings.Contains(err.Error(), "6 SIDs at most, which one address holds") {
		t.Errorf("an overhead of 40 bytes for 64: %v", err)
	}
}

// Ways want a topology, and name what they avoid.
func TestWays(t *testing.T) {
	const network = "network: {topology: /n.graph, node: e1%s}\n  services:"
	parse := func(network, encapsulation, way string) (*config.Node, error) {
		text := fmt.Sprintf(pathNode, encapsulation, "way: "+way, "node: R2")
		if network != "" {
			text = strings.Replace(text, "services:", network, 1)
		}
		return config.Parse("node.yaml", []byte(text))
	}
	plain := fmt.Sprintf(network, "")
	n, err := parse(plain, "carrier", `{by: delay, avoid: ["R1>R2", R3, risk 7], sids: 3}`)
	if err != nil {
		t.Fatal(err)
	}
	s := n.Edge.Services[0]
	if !s.HasPaths() || s.Depth != 3 || s.Way.Disjoint != 1 || s.Backends[1].Node != "R2" {
		t.Errorf("way %+v, depth %d, want room for 3 SIDs", s.Way, s.Depth)
	}
	n, err = parse(plain, "carrier", "{disjoint: 2}\n      copies: [syn, data]")
	if err != nil || n.Edge.Services[0].Depth != 3 || !n.Edge.HasCopies() {
		t.Errorf("copies: %v, want room for two SIDs and the mark", err)
	}
	for mtu, warned := range map[int]bool{3400: false, 3401: true} {
		n.Domain.MTU = mtu
		if said := strings.Join(config.Warnings(n), "; "); strings.Contains(said,
			"packets of more than 3400 bytes with the outer header go once") != warned {
			t.Errorf("domain.mtu %d with copies: warnings %q", mtu, said)
		}
	}
	for _, test := range []struct{ network, encapsulation, way, want string }{
		{"", "carrier", "{by: delay}", "knows no topology"},
		{plain, "carrier", "{by: telemetry}", "no controller is named"},
		{plain, "carrier", "{by: luck}", "write igp, delay or telemetry"},
		{plain, "carrier", `{avoid: ["R1>"]}`, `"R1>" names nothing`},
		{plain, "carrier", `{avoid: [risk x]}`, `"risk x" names nothing`},
		{plain, "carrier", "{disjoint: 3}", "1 to 2"},
		{plain, "carrier", "{sids: 5}", "1 to 4"},
		{plain, "srh", "{sids: 2}\n      depth: 6", "take 32 + 96 = 128 bytes"},
		{plain, "carrier", "{sids: 2}\n      copies: [syn]", "add way: {disjoint: 2}"},
		{plain, "srh", "{disjoint: 2}\n      copies: [syn]", "no place for the mark"},
		{plain, "carrier", "{disjoint: 2}\n      copies: [syn, syn]", "syn is given twice"},
		{plain, "carrier", "{disjoint: 2}\n      copies: [all, syn]", "write all alone"},
		{plain, "carrier", "{disjoint: 2}\n      copies: [ack]", "write all, syn or data"},
		{plain, "carrier", "{disjoint: 2}\n      copies: [all]\n      path: [\"fcbb:bb00:a1::\"]",
			"path of their own have no second one"},
		{plain, "carrier", "{disjoint: 2}\n      copies: [all]\n      depth: 4",
			"take 7 identifiers, and an address has room for 6; write depth: 3"},
		{fmt.Sprintf(network, ", controller: c.sock"), "carrier", "{by: telemetry}",
			"not an absolute path"},
	} {
		if _, err := parse(test.network, test.encapsulation, test.way); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %s: %v, want %q", test.encapsulation, test.way, err, test.want)
		}
	}
}
