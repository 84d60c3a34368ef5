package api_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
)

func (m *memory) Topology(context.Context) (api.Topology, error) {
	return api.Topology{Source: "bgp", NodeLink: "{}"}, m.fail
}

func (m *memory) Protections(context.Context) ([]api.Protection, error) {
	return []api.Protection{{Name: "video", State: api.Protected}}, m.fail
}

// Protect has no way to R9.
func (m *memory) Protect(_ context.Context, name string, spec api.ProtectionSpec,
	dryRun bool) (api.Protection, error) {
	if spec.To == "R9" {
		return api.Protection{}, &api.Error{Code: api.Conflict, Message: "there is 1 path only"}
	}
	p, err := spec.Config(name)
	state := api.Protected
	if dryRun {
		state = api.Planning
	}
	return api.Protection{Name: name, Match: p.MatchText(), Copies: p.Copies, SIDs: p.SIDs,
		Model: p.Model, State: state}, err
}

func TestProtections(t *testing.T) {
	c, _, _ := start(t, nodeFile)
	ctx := t.Context()
	list, err := c.Protections(ctx)
	if err != nil || len(list) != 1 || list[0].State != api.Protected {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := c.Protection(ctx, "bank"); codeOf(err) != api.NotFound {
		t.Errorf("one that is not there: %v", err)
	}
	dscp := 46
	spec := api.ProtectionSpec{To: "R7", Egress: netip.MustParseAddr("fcbb:bb00:7:f::"),
		Match: []api.Traffic{
			{Destination: "2001:db8:7::/48", Protocol: "udp", DestinationPorts: "5000-5010"},
			{DSCP: &dscp},
		}}
	got, err := c.Protect(ctx, "bank", spec, true)
	want := api.Protection{
		Name: "bank", Copies: 2, SIDs: 4, Model: "adjacency", State: api.Planning,
		Match: "destination 2001:db8:7::/48 protocol udp destinationPorts 5000-5010, or dscp 46",
	}
	if diff := cmp.Diff(want, got,
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	spec.To = "R9"
	if _, err := c.Protect(ctx, "bank", spec, false); codeOf(err) != api.Conflict {
		t.Errorf("without paths: %v", err)
	}
	spec.Match[0].Destination = "everywhere"
	spec.To = "R7"
	if _, err := c.Protect(ctx, "bank", spec, false); codeOf(err) != api.Invalid {
		t.Errorf("with a match that can't be read: %v", err)
	}
	if _, err := c.DeleteProtection(ctx, "bank"); codeOf(err) != api.Conflict {
		t.Errorf("on a node without a topology: %v", err)
	}
	if topology, err := c.Topology(ctx); err != nil || topology.Source != "bgp" {
		t.Errorf("%+v, %v", topology, err)
	}
}
