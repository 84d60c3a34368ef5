package config_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"sextant/config"
	"sextant/packet/flow"
)

func TestDiffOfEverything(t *testing.T) {
	a, b := load(t, "edge"), load(t, "edge")
	b.Name = "edge2"
	b.Domain.MTU = 9000
	b.Domain.Infrastructure = []netip.Prefix{netip.MustParsePrefix("fd00:5f::/48")}
	b.Domain.Locators = []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")}
	b.Secret = flow.Secret{1}
	b.State = "/srv"
	b.API = config.API{Socket: "/run/s.sock"}
	b.Edge.HopLimit = 32
	b.Edge.Etcd = &config.Etcd{Endpoints: []string{"http://[fd00:5e::3]:2379",
		"http://[fd00:5e::4]:2379"}, Prefix: "/sextant"}
	b.Edge.Encapsulation = config.SRH
	b.Edge.Interfaces = []config.EdgeInterface{{Name: "eth0", Side: config.External,
		Mode: config.Auto},
		{Name: "eth1", Side: config.Internal, Mode: config.Native}}
	b.Edge.Services[0].Backends[1] = config.Backend{Name: "web4",
		SID: netip.MustParseAddr("fcbb:bb00:4::"), Weight: 1,
		State: config.Up}
	b.Edge.Services[0].Port = 8080
	golden(t, "testdata/diff-edge.txt", lines(config.Diff(a, b))+"\n")
}

func TestDiffOfRoles(t *testing.T) {
	edge, host, both := load(t, "edge"), load(t, "host"), load(t, "both")
	golden(t, "testdata/diff-roles.txt",
		lines(config.Diff(edge, host))+"\n\n"+lines(config.Diff(host, both))+"\n")
}

func TestDiffIgnoresOrder(t *testing.T) {
	a, b := load(t, "host"), load(t, "host")
	b.Host.Services[0], b.Host.Services[1] = b.Host.Services[1], b.Host.Services[0]
	b.Host.SIDs[0], b.Host.SIDs[1] = b.Host.SIDs[1], b.Host.SIDs[0]
	if got := config.Diff(a, b); len(got) > 0 {
		t.Errorf("Diff = %v, want none", got)
	}
}

func TestChangeAsJSON(t *testing.T) {
	got, err := json.Marshal(config.Change{Operation: config.Modify, Object: "service web",
		Field: "port", From: "80",
		To: "81"})
	const want = `{"operation":"modify","object":"service web","field":"port","from":"80","to":"81"}`
	if err != nil || string(got) != want {
		t.Errorf("JSON %s, error %v, want %s", got, err, want)
	}
}

func TestFingerprint(t *testing.T) {
	print := func(n *config.Node) string {
		t.Helper()
		s, err := config.Fingerprint(n)
		if err != nil || len(s) != 16 {
			t.Fatalf("Fingerprint = %q, %v", s, err)
		}
		return s
	}
	for _, name := range []string{"edge", "host"} {
		a, b := load(t, name), load(t, name)
		if print(a) != print(b) {
			t.Errorf("%s: equal nodes have fingerprints %s and %s", name, print(a), print(b))
		}
		b.Secret[0] ^= 1
		if print(a) == print(b) {
			t.Errorf("%s: another secret has the same fingerprint", name)
		}
	}
}

func TestRedact(t *testing.T) {
	n := load(t, "edge")
	if r := config.Redact(n); r.Secret != (flow.Secret{}) || n.Secret == (flow.Secret{}) {
		t.Error("Redact keeps the copy's secret or takes the node's")
	}
}
