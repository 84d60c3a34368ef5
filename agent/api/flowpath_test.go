package api_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/agent/api"
)

// What is set comes back, until it is removed.
func TestFlowPaths(t *testing.T) {
	client, _, _ := start(t, nodeFile)
	f := api.Flow{Source: netip.MustParseAddrPort("[2001:db8::1]:4000"),
		Destination: netip.MustParseAddrPort("[2001:db8::2]:443"), Protocol: "tcp"}
	want := api.FlowPath{Flow: f, Segments: []netip.Addr{netip.MustParseAddr("fcbb::1")},
		Seconds: 2.5}
	if err := client.SetFlowPath(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := client.FlowPaths(t.Context())
	if err != nil || !cmp.Equal(got, []api.FlowPath{want},
		cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{})) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := client.RemoveFlowPath(t.Context(), f); err != nil {
		t.Error(err)
	}
	if got, err := client.FlowPaths(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
