package agent_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

func flowTo(destination string, protocol config.Protocol) *api.Flow {
	return &api.Flow{Source: netip.MustParseAddrPort("[2001:db8:a::1]:4000"), Destination: netip.MustParseAddrPort(destination), Protocol: protocol}
}

// What a head-end explains of a flow: policy, active path, the lists that its packets take, and a frame for each; and that a list which is
// taken out of use makes another path active. Nothing is counted.
func TestExplainAtHeadend(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a := m.start(routerText)
	defer a.stop()
	before := a.metrics()
	ask := func(f *api.Flow) api.Explanation { return a.explain(api.Question{Flow: f})[0] }
	video := ask(flowTo("[2001:db8:b::1]:5005", config.UDP))
	if p := video.Policy; p == nil || *p != (api.PolicyChoice{
		Name: "video", Rule: "destination 2001:db8:b::/64 protocol udp destinationPorts 5000-5010", Path: "both", Action: "mirror",
	}) || len(video.Copies) != 2 || video.Verdict != "redirect" || video.Frame != "" {
		t.Fatalf("explained %+v by %+v", video, video.Policy)
	}
	for i, want := range []string{"north 1 [fcbb:bb00:11:: fcbb:bb00:2:f::]", "south 2 [fcbb:bb00:12:: fcbb:bb00:2:f::]"} {
		c := video.Copies[i]
		if got := fmt.Sprint(c.List, " ", c.Flow, " ", c.Segments); got != want || c.NextHop == nil || c.NextHop.Interface != "edge0" || len(c.Frame) == 0 {
			t.Errorf("copy %d: %s, next hop %+v, want %s", i+1, got, c.NextHop, want)
		}
	}
	web := ask(flowTo("[2001:db8:b::1]:80", config.TCP))
	if len(web.Copies) != 1 || web.Policy.Name != "web" || web.NextHop == nil || fmt.Sprint(web.Path) != "[fcbb:bb00:2:d6::]" {
		t.Errorf("explained %+v", web)
	}
	if other := ask(flowTo("[2001:db8:c::1]:80", config.TCP)); other.Verdict != "pass" || other.Policy != nil || !strings.Contains(other.Why, "no rule") {
		t.Errorf("explained %+v", other)
	}
	_, err := a.SetList(t.Context(), "video", "north", api.ListSpec{State: config.ListDown})
	must(t, err)
	if video = ask(flowTo("[2001:db8:b::1]:5005", config.UDP)); video.Policy.Path != "one" || len(video.Copies) != 1 || video.Copies[0].List != "south" {
		t.Errorf("with one list down: %+v by %+v", video.Copies, video.Policy)
	}
	if after := a.metrics(); packetLines(before) != packetLines(after) {
		t.Errorf("explaining has counted packets:\n%s", packetLines(after))
	}
}

// What an egress explains of a flow: of the copies of its next packet the first goes on, and the other is dropped.
func TestExplainAtMerge(t *testing.T) {
	m := newMachine(t)
	a := m.start(routerText)
	defer a.stop()
	list := a.explain(api.Question{Role: api.Merge, Flow: flowTo("[2001:db8:b::1]:5005", config.UDP)})
	if len(list) != 2 || list[0].Copy == nil || list[1].Copy == nil {
		t.Fatalf("explained %+v", list)
	}
	first, second := list[0], list[1]
	if !first.Copy.First || first.Copy.Flow != 1 || first.Verdict != "hand_to_kernel" || first.Flow == nil || first.Flow.Destination.Port() != 5005 {
		t.Errorf("the first copy: %+v, %+v", first, first.Copy)
	}
	if second.Copy.First || second.Copy.Flow != 2 || second.Reason != "duplicate" || second.Copy.Number != first.Copy.Number {
		t.Errorf("the second copy: %+v, %+v", second, second.Copy)
	}
}
