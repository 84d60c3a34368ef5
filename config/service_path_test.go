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
		{"carrier", "path: [\"fcbb:bb00:a1::\"]\n      depth: 6", "state: up",
			"edge.services[0].path",
			"with 1 and chains with 6 SIDs take 2 + 12 = 14 bytes, and 12 are behind the block"},
		{"srh", "depth: 5", `path: ["fd00::1", "fd00::2"]`, "edge.services[0].backends[1].path",
			"take 32 + 80 = 112 bytes, and 96 are for SIDs in the segment routing header"},
		{"carrier", "candidates: 5", `path: ["fcbb:bb00:a1::", "fcbb:bb00:a2::"]`,
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
