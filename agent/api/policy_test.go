package api_test

import (
	"net/netip"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

var merged = netip.MustParsePrefix("fcbb:bb00:1:f::/80")

const routerFile = `
node: pe1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
headend:
  interfaces: [{name: eth0}]
  source: fd00:5e::1
  policies: [{name: video, paths: [{name: one, action: path, lists: [{name: north, segments: ["fcbb:bb00:2:f::"]}]}]}]
merge:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:1:f::/80", flows: [1]}, {prefix: "fcbb:bb00:1:f::/80", flows: [2]}]
`

// A list of the node file changes there; one of a policy that the agent made is marked.
func TestSetList(t *testing.T) {
	client, _, _ := start(t, routerFile)
	for _, c := range []struct {
		policy, list string
		state        config.ListState
		code         api.Code
		want         string
	}{
		{"video", "north", config.ListDown, "",
			"~ policy video: path one: list north: state up -> down"},
		{"video", "north", config.ListDown, "", ""},
		{"video", "south", config.ListDown, api.NotFound,
			`there is no segment list "south"; known: north`},
		{"audio", "north", config.ListUp, api.NotFound, `there is no policy "audio"; known: video`},
		{"video", "north", "gone", api.Invalid,
			`unknown state "gone" of a segment list; write up or down`},
		{"protected", "any", config.ListDown, "", "~ protected/any:  none -> true"},
	} {
		changes, err := client.SetList(t.Context(), c.policy, c.list, api.ListSpec{State: c.state})
		if codeOf(err) != c.code || (err != nil && err.Error() != c.want) ||
			(err == nil && text(changes) != c.want) {
			t.Errorf("%s %s %s: %q, error %v; want %q", c.policy, c.list, c.state, text(changes),
				err, c.want)
		}
	}
}

func TestReadsOfRouter(t *testing.T) {
	client, m, _ := start(t, routerFile)
	ctx := t.Context()
	policies, err := client.Policies(ctx)
	if err != nil || len(policies) != 1 || policies[0].Name != "protected" {
		t.Errorf("policies %+v, error %v", policies, err)
	}
	flows, err := client.Merge(ctx)
	if err != nil || len(flows) != 1 || flows[0].PassedPackets != 7 {
		t.Errorf("protected flows %+v, error %v", flows, err)
	}
	sids, err := client.SIDs(ctx)
	if err != nil || len(sids) != 1 || sids[0].Behavior != "End.MERGE" {
		t.Errorf("SIDs %+v, error %v; want the one, once", sids, err)
	}
	m.fail = &api.Error{Code: api.Internal, Message: "no map"}
	if _, err := client.Policies(ctx); err == nil || !strings.Contains(err.Error(), "no map") {
		t.Errorf("error %v", err)
	}
}

func TestEventText(t *testing.T) {
	for want, e := range map[string]api.Event{
		"service web: backend web1: failing (refused)": {Service: "web", Backend: "web1",
			Status: "failing", Reason: "refused"},
		"policy video: path both: active (over north)": {Policy: "video", Path: "both",
			Status: "active", Reason: "over north"},
		"policy video: list north: silent": {Policy: "video", List: "north",
			Status: "silent"},
		"sid fcbb:bb00:1:f::/80: flow 2: back (packets again)": {SID: merged, Flow: 2,
			Status: "back", Reason: "packets again"},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
