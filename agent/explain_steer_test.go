package agent_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath/packettest"
	"sextant/packet/srv6"
)

func flowTo(destination string, protocol config.Protocol) *api.Flow {
	return &api.Flow{Source: netip.MustParseAddrPort("[2001:db8:a::1]:4000"),
		Destination: netip.MustParseAddrPort(destination), Protocol: protocol}
}

// What a head-end explains of a flow: policy, active path, the lists that its packets take, and a
// frame for each; and that a list which is taken out of use makes another path active. Nothing is
// counted.
func TestExplainAtHeadend(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a := m.start(routerText)
	defer a.stop()
	before := a.metrics()
	ask := func(f *api.Flow) api.Explanation { return a.explain(api.Question{Flow: f})[0] }
	video := ask(flowTo("[2001:db8:b::1]:5005", config.UDP))
	if p := video.Policy; p == nil || *p != (api.PolicyChoice{
		Name: "video", Rule: "destination 2001:db8:b::/64 protocol udp destinationPorts 5000-5010",
		Path: "both", Action: "mirror",
	}) || len(video.Copies) != 2 || video.Verdict != "redirect" || video.Frame != "" {
		t.Fatalf("explained %+v by %+v", video, video.Policy)
	}
	for i, want := range []string{"north 1 [fcbb:bb00:11:: fcbb:bb00:2:f::]",
		"south 2 [fcbb:bb00:12:: fcbb:bb00:2:f::]"} {
		c := video.Copies[i]
		if got := fmt.Sprint(c.List, " ", c.Flow, " ", c.Segments); got != want ||
			c.NextHop == nil || c.NextHop.Interface != "edge0" || len(c.Frame) == 0 {
			t.Errorf("copy %d: %s, next hop %+v, want %s", i+1, got, c.NextHop, want)
		}
	}
	web := ask(flowTo("[2001:db8:b::1]:80", config.TCP))
	if len(web.Copies) != 1 || web.Policy.Name != "web" || web.NextHop == nil ||
		fmt.Sprint(web.Path) != "[fcbb:bb00:2:d6::]" {
		t.Errorf("explained %+v", web)
	}
	if other := ask(flowTo("[2001:db8:c::1]:80", config.TCP)); other.Verdict != "pass" ||
		other.Policy != nil || !strings.Contains(other.Why, "no rule") {
		t.Errorf("explained %+v", other)
	}
	_, err := a.SetList(t.Context(), "video", "north", api.ListSpec{State: config.ListDown})
	must(t, err)
	if video = ask(flowTo("[2001:db8:b::1]:5005", config.UDP)); video.Policy.Path != "one" ||
		len(video.Copies) != 1 || video.Copies[0].List != "south" {
		t.Errorf("with one list down: %+v by %+v", video.Copies, video.Policy)
	}
	if after := a.metrics(); packetLines(before) != packetLines(after) {
		t.Errorf("explaining has counted packets:\n%s", packetLines(after))
	}
}

// What an egress explains of a flow, for every protected flow: of the copies of its next packet the
// first goes on, and others are dropped.
func TestExplainAtMerge(t *testing.T) {
	m := newMachine(t)
	a := m.start(strings.Replace(routerText, "flows: [7], mark: 10", "flows: [7], ordered: true",
		1))
	defer a.stop()
	list := a.explain(api.Question{Role: api.Merge, Flow: flowTo("[2001:db8:b::1]:5005",
		config.UDP)})
	if len(list) != 3 || list[0].Copy == nil || list[1].Copy == nil || list[2].Copy == nil {
		t.Fatalf("explained %+v", list)
	}
	first, second, other := list[0], list[1], list[2]
	if !first.Copy.First || first.Copy.Flow != 1 || first.Verdict != "hand_to_kernel" ||
		first.Flow == nil || first.Flow.Destination.Port() != 5005 {
		t.Errorf("the first copy: %+v, %+v", first, first.Copy)
	}
	if second.Copy.First || second.Copy.Flow != 2 || second.Reason != "duplicate" ||
		second.Copy.Number != first.Copy.Number {
		t.Errorf("the second copy: %+v, %+v", second, second.Copy)
	}
	if first.Copy.Waits || !other.Copy.Waits || !strings.Contains(other.Why, "put in order") {
		t.Errorf("waits for its turn: %v, %v (%s); want the copy of the ordered flow alone",
			first.Copy.Waits, other.Copy.Waits, other.Why)
	}
	if !other.Copy.First || other.Copy.Flow != 7 || other.Verdict != "hand_to_kernel" ||
		other.Flow == nil || *other.Flow != *first.Flow {
		t.Errorf("the copy of the other protected flow: %+v, %+v", other, other.Copy)
	}
	for i, want := range []string{"fcbb:bb00:1:f::/80 [1 2] by flow 1",
		"fcbb:bb00:1:f::/80 [1 2] by flow 2", "fcbb:bb00:1:e::/80 [7] by flow 7"} {
		if got := fmt.Sprint(list[i].SID.Prefix, " ", list[i].Copy.Flows, " ",
			list[i].Packet); got != want || list[i].Number != i+1 {
			t.Errorf("packet %d is that of %s, want %s", list[i].Number, got, want)
		}
	}
	// Given packets are those of the protected flow that they name; one by a path that no protected
	// flow has belongs to none.
	var frames []api.Frame
	for _, flow := range []uint32{7, 2, 3} {
		frames = append(frames, copyBy(t, flow))
	}
	for i, e := range a.explain(api.Question{Role: api.Merge, Frames: frames}) {
		want := []string{"[7] true ", "[1 2] true ", "[] false unknown_flow"}[i]
		if got := fmt.Sprint(e.Copy.Flows, e.Copy.First, " ", e.Reason); got != want {
			t.Errorf("frame %d: %s, want %s (%s)", i+1, got, want, e.Why)
		}
	}
}

// copyBy is a numbered packet by a path of the router's protected flows.
func copyBy(t *testing.T, flow uint32) api.Frame {
	t.Helper()
	inner := packettest.Web6("A").Bytes(t)
	next, number := packettest.ProtocolOf(inner), uint32(1)
	if flow == 7 { // in the SID: 20 bits of flow, 16 of number
		sid := netip.MustParseAddr("fcbb:bb00:1:e::").As16()
		binary.BigEndian.PutUint64(sid[8:], binary.BigEndian.Uint64(sid[8:])|uint64(flow)<<28|
			uint64(number)<<12)
		return packettest.FromClient().Frame(t, packettest.To(netip.AddrFrom16(sid)).Around(t,
			inner))
	}
	sid := netip.MustParseAddr("fcbb:bb00:1:f::")
	header := packettest.SRH(next, 0, 0, sid)
	header[1] += 2 // units of 8 bytes
	tlv := srv6.Redundancy{Flow: flow, Sequence: number}.TLV()
	header = append(append(header, tlv.Type, byte(len(tlv.Value))), tlv.Value...)
	return packettest.FromClient().Frame(t, packettest.To(sid).With(layers.IPProtocolIPv6Routing,
		header).Around(t, inner))
}
