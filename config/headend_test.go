package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/config"
)

func drawHeadend(t *rapid.T) *config.Headend {
	h := &config.Headend{
		Interfaces: []config.XDPInterface{{Name: "p0", Side: pick(t, config.External,
			config.Internal, config.Mixed), Mode: pick(t, config.Auto, config.Native)}},
		Source: netip.MustParseAddr("fd00:5e::3"), HopLimit: rapid.IntRange(1, 255).Draw(t,
			"outer hop limit"),
	}
	if rapid.Bool().Draw(t, "uplinks") {
		h.Uplinks, h.Local = []string{"m0", "u1"}, []string{"u1"}
	}
	if rapid.Bool().Draw(t, "southbound") {
		h.Flows = rapid.IntRange(64, 1<<24).Draw(t, "flows")
		h.Spread = pick(t, 0, 64, 65536)
		h.Southbound = &config.Southbound{
			Controllers: []string{"[fd00:5e::9]:9478", "controller.example:1"},
			Router:      pick(t, "", "leaf1"), TokenFile: "/etc/token",
			Datagrams: rapid.Bool().Draw(t, "datagrams"),
			TLS: config.TLSFiles{CA: "/etc/ca.pem", Certificate: "/etc/c.pem",
				Key: "/etc/k.pem"}}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "policies") {
		h.Policies = append(h.Policies, drawPolicy(t, i))
		h.Rules = append(h.Rules, drawRule(t, h.Policies[i].Name))
	}
	return h
}

func drawPolicy(t *rapid.T, i int) config.SRPolicy {
	p := config.SRPolicy{
		Name: fmt.Sprintf("p%d", i), Color: rapid.IntRange(0, 1<<32-1).Draw(t, "color"),
		DropIfInvalid: rapid.Bool().Draw(t, "drop"),
		Endpoint:      pick(t, netip.Addr{}, netip.AddrFrom16([16]byte{0xfd, 15: byte(i + 1)})),
		MTU:           pick(t, 0, 1280, 9000),
	}
	form := pick(t, config.NotNumbered, config.NumberedInTLV, config.NumberedInSID)
	var lists []config.SegmentList
	for j := range rapid.IntRange(1, 3).Draw(t, "lists") {
		l := config.SegmentList{
			Name: fmt.Sprintf("l%d", j), Reduced: rapid.Bool().Draw(t, "reduced"),
			Weight: rapid.IntRange(1, 65535).Draw(t, "list weight"),
			Segments: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:1%d::", j)),
				netip.MustParseAddr("fcbb:bb00:2:f::")},
			Redundancy: form, State: pick(t, config.ListUp, config.ListDown),
		}
		if form != config.NotNumbered {
			l.Flow = pick(t, 0, 100*i+j+1)
		}
		lists = append(lists, l)
	}
	for j := range rapid.IntRange(1, 3).Draw(t, "paths") {
		p.Paths = append(p.Paths, config.CandidatePath{
			Name: fmt.Sprintf("c%d", j), Preference: rapid.IntRange(0, 1<<32-1).Draw(t,
				"preference"), Lists: lists,
			Action: pick(t, config.ActionPath, config.ActionSplitFlow, config.ActionSplitPacket,
				config.ActionMirror),
			LeastLists: rapid.IntRange(1, len(lists)).Draw(t, "least"),
		})
	}
	return p
}

func drawRule(t *rapid.T, policy string) config.SteeringRule {
	r := config.SteeringRule{
		Policy: policy, Destination: pick(t, netip.Prefix{}, netip.MustParsePrefix("2001:db8::/32"),
			netip.MustParsePrefix("192.0.2.0/24")),
		Protocol: rapid.IntRange(0, 255).Draw(t, "protocol"),
		DSCP:     rapid.IntRange(-1, 63).Draw(t, "dscp"),
	}
	if r.Protocol == 6 || r.Protocol == 17 {
		r.SourcePorts = pick(t, config.PortRange{}, config.PortRange{First: 1, Last: 65535})
		r.DestinationPorts = pick(t, config.PortRange{}, config.PortRange{First: 80, Last: 80})
	}
	return r
}

func drawMerge(t *rapid.T) *config.Merge {
	m := &config.Merge{Interfaces: []config.XDPInterface{{Name: "m0", Mode: config.Auto}}}
	mark := rapid.IntRange(0, 1<<32-1).Draw(t, "mark")
	for i := range rapid.IntRange(1, 3).Draw(t, "protected flows") {
		s := config.MergeSID{
			Prefix: netip.MustParsePrefix("fcbb:bb00:2:f::/80"), Mark: mark,
			Form:  pick(t, config.NumberedInTLV, config.NumberedInSID),
			Flows: []int{2*i + 1, 2*i + 2}, Reset: time.Duration(rapid.IntRange(10, 10000).Draw(t,
				"reset")) * time.Millisecond,
			Copies: rapid.IntRange(0, 2).Draw(t, "copies"), Ordered: mark == 0 &&
				rapid.Bool().Draw(t, "ordered"),
		}
		if rapid.Bool().Draw(t, "history") {
			s.History = rapid.IntRange(10, 14).Draw(t, "log2")
		} else {
			s.Rate, s.Skew = rapid.IntRange(1, 1000).Draw(t, "rate"),
				time.Duration(rapid.IntRange(0, 1000).Draw(t, "skew"))*time.Millisecond
		}
		m.SIDs = append(m.SIDs, s)
	}
	return m
}

// The lists of a policy that mirrors are numbered unless they say otherwise; paths are preferred in
// their order; headers take what they take.
func TestHeadendDefaults(t *testing.T) {
	h := load(t, "policies").Headend
	video := h.Policies[0]
	if video.Paths[0].Preference != 100 || video.Paths[1].Preference != 99 {
		t.Errorf("preferences %d and %d, want 100 and 99", video.Paths[0].Preference,
			video.Paths[1].Preference)
	}
	for _, want := range []struct {
		list  config.SegmentList
		form  config.Redundancy
		bytes int
	}{
		{video.Paths[0].Lists[0], config.NumberedInTLV, 40 + 8 + 2*16 + 16},
		{video.Paths[0].Lists[1], config.NumberedInTLV, 40 + 8 + 16 + 16},
		{h.Policies[1].Paths[0].Lists[0], config.NotNumbered, 40},
		{h.Policies[2].Paths[0].Lists[0], config.NumberedInSID, 40 + 8 + 16},
	} {
		if got := want.list.HeaderBytes(); got != want.bytes || want.list.Redundancy != want.form {
			t.Errorf("list %s: %d bytes, %s; want %d, %s", want.list.Name, got,
				want.list.Redundancy, want.bytes, want.form)
		}
	}
	if got := video.InnerMTU(config.Domain{MTU: 1500}); got != 1500-96 {
		t.Errorf("inner MTU %d, want 1404", got)
	}
	if got := h.Policies[1].InnerMTU(config.Domain{MTU: 1500}); got != 1300 {
		t.Errorf("inner MTU %d, want what the file says", got)
	}
}

func TestSetListState(t *testing.T) {
	n := load(t, "policies")
	next, err := config.SetListState(n, "video", "north", config.ListDown)
	if err != nil {
		t.Fatal(err)
	}
	if d := config.Diff(n, next); len(d) != 2 ||
		d[0].String() != "~ policy video: path both: list north: state up -> down" {
		t.Errorf("changes %v, want the list in its two paths", d)
	}
	for _, wrong := range []struct {
		node         *config.Node
		policy, list string
		state        config.ListState
		kind         error
	}{
		{n, "audio", "north", config.ListDown, config.ErrNotFound},
		{n, "video", "west", config.ListDown, config.ErrNotFound},
		{n, "video", "north", "gone", config.ErrInvalid},
		{load(t, "edge"), "video", "north", config.ListDown, config.ErrConflict},
	} {
		if _, err := config.SetListState(wrong.node, wrong.policy, wrong.list,
			wrong.state); !errors.Is(err, wrong.kind) {
			t.Errorf("policy %s list %s state %s: error %v, want one of %v", wrong.policy,
				wrong.list, wrong.state, err, wrong.kind)
		}
	}
}

func TestDiffOfPolicies(t *testing.T) {
	with, without := load(t, "policies"), load(t, "edge")
	changed := with.Clone()
	changed.Headend.Uplinks, changed.Headend.Policies[0].Paths[0].Lists[0].Segments[0] = nil,
		netip.MustParseAddr("fcbb:bb00:77::")
	changed.Headend.Rules, changed.Merge.SIDs[0].Mark = changed.Headend.Rules[1:], 7
	text := ""
	for _, pair := range [][2]*config.Node{{without, with}, {with, changed}, {with, without}} {
		for _, c := range config.Diff(pair[0], pair[1]) {
			text += c.String() + "\n"
		}
		text += "\n"
	}
	golden(t, "testdata/diff-policies.txt", text)
}

// Who is behind a head-end's interface is not believed, unless the file says that it is the
// domain.
func TestHeadendInterfacesFaceHosts(t *testing.T) {
	const text = `
node: ingress
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
headend:
  interfaces: [{name: eth0}, {name: eth1, side: internal}, {name: eth2, side: mixed}]
  local: [eth0, eth1]
  source: fd00:5e::1
`
	n, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []config.Side{config.External, config.Internal, config.Mixed} {
		if got := n.Headend.Interfaces[i].Side; got != want {
			t.Errorf("interface %d is %s, want %s", i, got, want)
		}
	}
	warnings := config.Warnings(n)
	if len(warnings) != 2 || !strings.HasPrefix(warnings[0],
		"headend.interfaces[2]: eth2 is mixed: ") ||
		!strings.HasPrefix(warnings[1], "headend.local: several interfaces: ") {
		t.Errorf("warnings %q, want one about eth2 and one about several interfaces", warnings)
	}
}
