package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// fakeRouter is head-end and egress.
const fakeRouter = `
node: pe1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
headend:
  interfaces: [{name: eth0}]
  uplinks: [eth1, eth2]
  source: fd00:5e::1
  policies:
    - name: video
      color: 100
      endpoint: fd00:5e::2
      paths:
        - name: both
          action: mirror
          leastLists: 2
          lists:
            - &north {name: north, segments: ["fcbb:bb00:11::", "fcbb:bb00:2:f::"]}
            - &south {name: south, segments: ["fcbb:bb00:12::", "fcbb:bb00:2:f::"], reduced: true}
        - {name: one, action: mirror, lists: [*north, *south]}
    - name: web
      dropIfInvalid: true
      paths: [{name: spread, action: split-flow, lists: [{name: a, segments: ["fcbb:bb00:11:2:d6::"], weight: 3}, {name: b, segments: ["fcbb:bb00:2:d6::"]}]}]
  rules:
    - {policy: video, destination: 2001:db8:b::/64, protocol: udp, destinationPorts: 5000-5010, dscp: 46}
merge:
  interfaces: [{name: eth1}, {name: eth2}]
  sids: [{prefix: "fcbb:bb00:1:f::/80", flows: [1, 2]}, {prefix: "fcbb:bb00:1:e::/80", form: sid, flows: [4711], mark: 10}]
`

// Policies have counters made up; a path is active if it is the first with enough lists up.
func (f *fakeAgent) Policies(context.Context) ([]api.Policy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node.Headend == nil {
		return nil, nil
	}
	var list []api.Policy
	for i, p := range f.node.Headend.Policies {
		v := api.Policy{
			Name: p.Name, Index: uint32(i), Color: uint32(p.Color), Endpoint: p.Endpoint,
			DropIfInvalid: p.DropIfInvalid, MTU: p.InnerMTU(f.node.Domain),
			Rules: []string{}, NumberedPackets: 1000,
		}
		for _, r := range f.node.Headend.Rules {
			if r.Policy == p.Name {
				v.Rules = append(v.Rules, r.Match())
			}
		}
		for _, path := range p.Paths {
			v.Paths = append(v.Paths, fakePath(&v, path))
		}
		list = append(list, v)
	}
	return append(list, api.Policy{Name: "protect-x", Index: 2, Computed: true, Rules: []string{},
		Paths: []api.PolicyPath{}}), nil
}

func fakePath(v *api.Policy, p config.CandidatePath) api.PolicyPath {
	up := 0
	for _, l := range p.Lists {
		if l.State == config.ListUp {
			up++
		}
	}
	path := api.PolicyPath{
		Name: p.Name, Preference: uint32(p.Preference), Action: p.Action, LeastLists: p.LeastLists,
		Why:    fmt.Sprintf("%d lists up", up),
		Active: v.ActivePath == "" && up >= p.LeastLists,
	}
	if path.Active {
		v.ActivePath = p.Name
	}
	for i, l := range p.Lists {
		path.Lists = append(path.Lists, api.PolicyList{
			Name: l.Name, Segments: l.Segments, Reduced: l.Reduced, Weight: uint32(l.Weight),
			Redundancy: l.Redundancy, State: l.State,
			Used: path.Active && l.State == config.ListUp, HeaderBytes: l.HeaderBytes(),
			Share: 1 / float64(len(p.Lists)), Packets: 100, Bytes: 12345,
		})
		if l.Redundancy != config.NotNumbered {
			path.Lists[i].Flow = 64*v.Index + uint32(i) + 1
		}
		v.Packets += 100
		v.Bytes += 12345
	}
	return path
}

func (f *fakeAgent) MarkList(_ context.Context, policy, list string,
	down bool) ([]config.Change, error) {
	return []config.Change{{Operation: config.Modify, Object: "policy " + policy + ": list " + list,
		Field: "down", From: fmt.Sprint(!down), To: fmt.Sprint(down)}}, nil
}

func (f *fakeAgent) Merge(context.Context) ([]api.MergedFlow, error) {
	if f.node.Merge == nil {
		return nil, nil
	}
	delay, least, most, loss, now, long := 0.00125, 0.001, 0.002, 0.125, 0.01, 3.2
	return []api.MergedFlow{
		{SID: netip.MustParsePrefix("fcbb:bb00:1:f::/80"), Flows: []uint32{1, 2},
			Form: config.NumberedInTLV, HistoryPackets: 8192, PassedPackets: 1000,
			DuplicatePackets: 870, ExpectedPackets: 1001, MissingPackets: 1,
			Paths: []api.MergedPath{
				{Flow: 1, Packets: 1000, Bytes: 64000, FirstPackets: 999, LostPackets: 1,
					SilentSeconds: &now, DelaySeconds: &delay, DelayLeastSeconds: &least,
					DelayMostSeconds: &most, DelayPackets: 1000, DelaySumSeconds: 1.25,
					RecentDelaySeconds: &delay},
				{Flow: 2, Packets: 870, Bytes: 55680, FirstPackets: 1, LostPackets: 131,
					SilentSeconds: &long, Silent: true, RecentLoss: &loss},
			}},
		{SID: netip.MustParsePrefix("fcbb:bb00:1:e::/80"), Flows: []uint32{4711},
			Form: config.NumberedInSID, Mark: 10, HistoryPackets: 8192,
			Paths: []api.MergedPath{{Flow: 4711}}},
	}, nil
}

func TestPolicySessions(t *testing.T) {
	for name, lines := range map[string][]string{
		"policy": {
			"policy list", "policy list -o wide", "policy list -o json", "policy list -o name",
			"policy show video", "policy show video -o wide", "policy show web -o yaml",
			"policy show nobody", "policy show", "policy",
		},
		"policy-switch": {
			"policy down video north", "policy show video", "policy down video north",
			"policy down video south -o json", "policy list", "policy up video north",
			"policy down video west", "policy down audio north", "policy up protect-x any",
			"policy up video", "policy up",
		},
		"merge": {"merge list", "merge list -o wide", "merge list -o json",
			"merge list -o name", "merge", "merge list all"},
		"router": {"status --brief", "service list", "sid list", "config show"},
		"policy-completion": {"__complete policy show ", "__complete policy down video ",
			"__complete policy down video north ", "__complete merge list "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fakeRouter)
			var text strings.Builder
			for _, line := range lines {
				words := strings.Fields(line)
				if strings.HasSuffix(line, " ") {
					words = append(slices.Clone(words), "")
				}
				text.WriteString(w.run(words...))
			}
			golden(t, name, text.String())
		})
	}
}
