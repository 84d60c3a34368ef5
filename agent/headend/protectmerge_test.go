package headend

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/agent/pathprobe"
	"sextant/agent/peer"
	"sextant/config"
	"sextant/packet/flow"
	"sextant/te/protection"
)

// bank is a protection of three copies and a spare, as it runs.
func bank() *RunningProtection {
	c := config.NewProtection("bank", "r7", netip.MustParseAddr("fcbb:bb00:7:f::"))
	c.Copies, c.Spares, c.Flow = 3, 1, 32776
	c.Agent = netip.MustParseAddrPort("[fd00:5e::7]:9477")
	x := &RunningProtection{Protection: c, Intent: IntentOf(c, &config.Protect{})}
	var paths []protection.Path
	for _, router := range []string{"b1", "b2", "b3", "b4"} {
		paths = append(paths, protection.Path{
			Links: []protection.Link{{From: "r1", To: router}, {From: router, To: "r7"}}})
	}
	x.Begin(protection.Plan{Paths: paths})
	x.carries = x.State.Carrying()
	return x
}

func mergedAt(sid string, flows ...uint32) api.MergedFlow {
	return api.MergedFlow{SID: netip.MustParsePrefix(sid), Flows: flows}
}

// egressOf is the agent of an egress.
func egressOf(t *testing.T, secret flow.Secret, flows ...api.MergedFlow) netip.AddrPort {
	t.Helper()
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(api.List[api.MergedFlow]{Items: flows}); err != nil {
			t.Error(err)
		}
	}
	s := httptest.NewServer(peer.NewChallenges().Answer(
		func(context.Context) (flow.Secret, error) { return secret, nil },
		http.HandlerFunc(answer)))
	t.Cleanup(s.Close)
	return netip.MustParseAddrPort(s.Listener.Addr().String())
}

// The state of a protection is what the egress does with its copies.
func TestEgressThatLacksFlows(t *testing.T) {
	const sid = "fcbb:bb00:7:f::/64"
	for _, c := range []struct {
		name   string
		merged []api.MergedFlow
		state  api.ProtectionState
		lacks  string
	}{
		{"all are merged", []api.MergedFlow{mergedAt(sid, 32776, 32777, 32778, 32779),
			mergedAt(sid, 32780, 32781, 32782, 32783)}, api.Protected, ""},
		{"those of another protection are merged",
			[]api.MergedFlow{mergedAt(sid, 32768, 32769, 32770, 32771)}, api.Unprotected,
			"32776,32777,32778,32779,32780,32781,32782,32783"},
		{"they are merged at another SID", []api.MergedFlow{mergedAt("fcbb:bb00:7:e::/64", 32776,
			32777, 32778, 32779, 32780, 32781, 32782, 32783)}, api.Unprotected,
			"32776,32777,32778,32779,32780,32781,32782,32783"},
		{"they are merged at a shorter prefix than the one that takes them", []api.MergedFlow{
			mergedAt("fcbb:bb00:7::/48", 32776, 32777, 32778, 32779, 32780, 32781, 32782, 32783),
			mergedAt(sid, 32768)}, api.Unprotected,
			"32776,32777,32778,32779,32780,32781,32782,32783"},
		{"nothing is merged", nil, api.Unprotected,
			"32776,32777,32778,32779,32780,32781,32782,32783"},
		{"one that carries is lacking", []api.MergedFlow{mergedAt(sid, 32776, 32777, 32779, 32780,
			32781, 32782, 32783)}, api.Degraded, "32778"},
		{"a spare is lacking", []api.MergedFlow{mergedAt(sid, 32776, 32777, 32778, 32780, 32781,
			32782, 32783)}, api.Protected, "32779"},
	} {
		x := bank()
		x.merging = mergingOf(x.Protection, c.merged)
		state, reason := x.standing("", "")
		if state != c.state || reason != x.mergeText() {
			t.Errorf("%s: %s: %s", c.name, state, reason)
		}
		if (c.lacks == "") != (reason == "") || !strings.Contains(reason, "flows "+c.lacks) &&
			c.lacks != "" {
			t.Errorf("%s: said: %q", c.name, reason)
		}
	}
	x := bank()
	if state, reason := x.standing("", ""); state != api.Degraded || !strings.Contains(reason,
		"has not said yet that it merges flows 32776,") {
		t.Errorf("before the egress answered: %s: %s", state, reason)
	}
	x.Redundancy = config.NotNumbered // so nothing is to be merged
	if state, reason := x.standing("", ""); state != api.Protected || reason != "" {
		t.Errorf("copies without numbers: %s: %s", state, reason)
	}
	x = bank()
	x.Agent = netip.AddrPort{}
	if state, reason := x.standing("", ""); state != api.Protected || reason != "" {
		t.Errorf("of an egress whose agent is not known: %s: %s", state, reason)
	}
}

// What an egress tells of another SID, with the same flow ids, is of another head-end's copies.
func TestEgressTellsOfOtherSIDs(t *testing.T) {
	x := bank()
	told := func(sid string, packets uint64) api.MergedFlow {
		f := mergedAt(sid, 32776, 32777)
		for _, flow := range f.Flows {
			f.Paths = append(f.Paths, api.MergedPath{Flow: flow, Packets: packets})
		}
		return f
	}
	ours, other := told("fcbb:bb00:7:f::/64", 5), told("fcbb:bb00:7:e::/64", 700)
	for _, all := range [][]api.MergedFlow{{ours, other}, {other, ours}} {
		// with a prober, nothing is decided
		p := Protections{Running: []*RunningProtection{x}, prober: &pathprobe.Prober{}}
		p.egressTold(x.Agent, all)
		for _, flow := range ours.Flows {
			if came := x.came[flow].Packets; came != 5 {
				t.Errorf("%d packets came of flow %d, not 5", came, flow)
			}
		}
	}
}

// A protection whose copies the egress would drop is refused, unless the egress can't be asked.
func TestUnmergedProtectionIsRefused(t *testing.T) {
	secret := flow.Secret{1}
	ctx := t.Context()
	x := bank()
	x.Agent = egressOf(t, secret, mergedAt("fcbb:bb00:7:f::/64", 32768, 32769))
	var refused *api.Error
	if err := x.refuseUnmerged(ctx, secret); !errors.As(err, &refused) ||
		refused.Code != api.Conflict || !strings.Contains(refused.Message, "32776,32777") {
		t.Errorf("flows that the egress lacks: %v", err)
	}
	var all []uint32
	for _, f := range bank().Flows() {
		all = append(all, uint32(f))
	}
	x = bank()
	x.Agent = egressOf(t, secret, mergedAt("fcbb:bb00:7:f::/64", all...))
	if err := x.refuseUnmerged(ctx, secret); err != nil {
		t.Errorf("flows that it merges: %v", err)
	}
	x.Agent = egressOf(t, flow.Secret{2}) // does not believe who asks
	if err := x.refuseUnmerged(ctx, secret); err != nil {
		t.Errorf("an egress that can't be asked: %v", err)
	}
}
