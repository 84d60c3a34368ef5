package packettest

import (
	"testing"

	"sextant/config"
)

// EdgeOuter is what an edge writes into outer headers by default, but for the hop limit.
func EdgeOuter(t testing.TB, hopLimit int) config.EdgeOuter {
	t.Helper()
	n, err := config.Parse("edge.yaml", []byte(`{node: edge1, secret: 00112233445566778899aabbccddeeff,
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]},
edge: {interfaces: [{name: eth0}], source: "fd00:5e::e1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	n.Edge.HopLimit = hopLimit
	return n.Edge.EdgeOuter
}
