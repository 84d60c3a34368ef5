package config

import (
	"strings"
	"testing"
)

const orderFile = `node: edge
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 6d1b0c8f4e2a97d35c80f1ba2e497d06
edge:
  interfaces: [{name: eth0, side: external}]
  source: "fd00:5e::e1"
  site: north
  services:
    - name: web
      vip: "2001:db8:80::80"
      port: 80
      SETTINGS
      backends:
        - {name: web1, sid: "fcbb:bb00:1::", site: north, agent: "[fd00:5e::11]:9477"}
        - {name: web2, sid: "fcbb:bb00:2::", site: south}
        - {name: web3, sid: "fcbb:bb00:3::", site: south}
`

func TestOrder(t *testing.T) {
	tests := map[string]struct{ settings, fault, warning, without string }{
		"by site alone": {settings: "depth: 6"},
		"by load": {settings: "order: [load]",
			warning: `backend "web2" has no agent that could tell its load`},
		"by load, UDP": {settings: "protocol: udp\n      order: [load]",
			warning: "its flows change their server whenever the order does"},
		"by load, QUIC": {settings: "protocol: udp\n      quic: {configs: [{rotation: 0, " +
			"serverIDLength: 2, nonceLength: 6}]}\n      order: [load]",
			warning: `backend "web2" has no agent`, without: "its flows change their server"},
		"by path without a way": {settings: "order: [path, load]",
			fault: "without a way the cost of paths is not known"},
		"twice": {settings: "order: [load, load]", fault: "load is given twice"},
		"unknown": {settings: "order: [lode]",
			fault: "load"},
		"exact": {settings: "table: exact",
			fault: "candidates of policy offer with table exact have no order and no sites"},
		"one candidate": {settings: "candidates: 1",
			fault: "a bucket with one candidate has nothing to put in order"},
		"chains too short": {settings: "depth: 2",
			warning: "an edge that starts without memory does not know who had a bucket"},
	}
	for name, test := range tests {
		text := strings.Replace(orderFile, "SETTINGS", test.settings, 1)
		n, err := Parse("edge.yaml", []byte(text))
		switch {
		case test.fault != "":
			if err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: %v, want %q", name, err, test.fault)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", name, err)
			continue
		}
		warnings := strings.Join(Warnings(n), "; ")
		if test.warning == "" && warnings != "" || !strings.Contains(warnings, test.warning) ||
			test.without != "" && strings.Contains(warnings, test.without) {
			t.Errorf("%s: warnings %q, want %q", name, warnings, test.warning)
		}
	}
}
