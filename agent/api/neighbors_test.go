package api_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

const withNeighbors = nodeFile + `
bgp:
  asn: 64512
  routerID: 192.0.2.1
  routeTarget: "64500:1"
  neighbors:
    - {address: 2001:db8::1, asn: 64512, bfd: {interval: 50ms, multiplier: 5}, local: 2001:db8::ff}
    - {address: 2001:db8::2, asn: 64513, name: k8s.old, holdTime: 9s, multihop: 3}
`

func neighborsOf(t *testing.T, client *api.Client) (api.NeighborList, error) {
	return api.Ask[api.NeighborList](t.Context(), client, "GET", "/v1/bgp/neighbors", nil, nil)
}

func declareNeighbors(t *testing.T, client *api.Client, d api.NeighborDeclaration) (
	api.DeclarationMade, error) {
	return api.Ask[api.DeclarationMade](t.Context(), client, "PATCH", "/v1/bgp/neighbors", nil, d)
}

// What is read of neighbors, declared, changes nothing; one declaration sets and removes, and
// leaves those alone that have no name.
func TestDeclareNeighbors(t *testing.T) {
	client, agent, _ := start(t, withNeighbors)
	before := agent.node.BGP.Neighbors
	list, err := neighborsOf(t, client)
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v; want two neighbors", list, err)
	}
	made, err := declareNeighbors(t, client, api.NeighborDeclaration{Set: list.Items[1:]})
	if err != nil || made.Changes != 0 || made.Fingerprint != list.Fingerprint {
		t.Errorf("declaring what is there: %+v, %v; want no change of %s", made, err,
			list.Fingerprint)
	}
	unnamed := list.Items[0]
	if _, err := declareNeighbors(t, client,
		api.NeighborDeclaration{Set: []api.Neighbor{unnamed}}); err == nil {
		t.Error("a neighbor without a name is declared")
	}
	unnamed.Name = "mine"
	_, err = declareNeighbors(t, client, api.NeighborDeclaration{Set: []api.Neighbor{unnamed}})
	if err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("the address of another neighbor: %v", err)
	}
	made, err = declareNeighbors(t, client, api.NeighborDeclaration{Fingerprint: list.Fingerprint,
		Set: []api.Neighbor{{Name: "k8s.new", Address: netip.MustParseAddr("2001:db8::3"),
			ASN: 64514}}, Remove: []string{"k8s.old", "gone", ""}})
	if err != nil || made.Changes != 2 {
		t.Fatalf("%+v, %v; want one neighbor to come and one to go", made, err)
	}
	after := agent.node.BGP.Neighbors
	want, err := config.Parse("want.yaml", []byte(strings.Replace(withNeighbors,
		"::2, asn: 64513, name: k8s.old, holdTime: 9s, multihop: 3",
		"::3, asn: 64514, name: k8s.new", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if changes := config.Diff(want, agent.node); len(changes) > 0 || len(after) != 2 ||
		!slices.Equal(before[0].Families, after[0].Families) {
		t.Errorf("neighbors are %+v, want %+v", after, want.BGP.Neighbors)
	}
}

// A node that speaks no BGP says what it needs.
func TestDeclareNeighborsWithoutBGP(t *testing.T) {
	client, _, _ := start(t, nodeFile)
	_, err := declareNeighbors(t, client, api.NeighborDeclaration{Set: []api.Neighbor{{Name: "a",
		Address: netip.MustParseAddr("2001:db8::3"), ASN: 64514}}})
	if err == nil || !strings.Contains(err.Error(), "routerID") {
		t.Errorf("without bgp: %v", err)
	}
	list, err := neighborsOf(t, client)
	if err != nil || list.Items == nil || len(list.Items) > 0 {
		t.Errorf("neighbors without bgp: %+v, %v", list, err)
	}
}
