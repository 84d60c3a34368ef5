package soak

import (
	"slices"
	"strings"
	"testing"

	"sextant/config"
	"sextant/examples"
	"sextant/lab"
)

// What signing makes of the lab's configurations is right, and the edge and the hosts have the same
// key file.
func TestSign(t *testing.T) {
	spec, err := lab.Parse("soak.yaml", examples.Soak)
	if err != nil {
		t.Fatal(err)
	}
	if err := sign(spec); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]*config.Node{}
	for _, n := range spec.Nodes {
		if n.Sextant == "" {
			continue
		}
		dir := t.TempDir()
		if !slices.Contains(n.Files, keyFile) {
			t.Errorf("%s has the files %v, no key", n.Name, n.Files)
		}
		text := strings.NewReplacer("{dir}", dir, "{cgroup}", dir).Replace(n.Sextant)
		if nodes[n.Name], err = config.Parse(n.Name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	edge := nodes["edge1"].Edge
	if edge.HMAC == nil || edge.Encapsulation != config.SRH {
		t.Fatalf("the edge signs with %v, encapsulation %v", edge.HMAC, edge.Encapsulation)
	}
	for name, n := range nodes {
		if n.Host == nil {
			continue
		}
		if h := n.Host.HMAC; h == nil || h.Require != config.HMACRequireSRH || len(h.Keys) != 1 ||
			h.Keys[0].ID != edge.HMAC.ID {
			t.Errorf("%s verifies %+v", name, h)
		}
	}
	if len(nodes) != 1+hosts {
		t.Errorf("%d nodes", len(nodes))
	}
}
