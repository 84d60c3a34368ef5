package explain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath/packettest"
)

// hostNode answers as a host of a SID does, which takes what comes as the last and passes all else
// on, and counts what it is asked.
func hostNode(name, sid string, asked *[]string) Node {
	own := netip.MustParsePrefix(sid)
	return Node{name, func(_ context.Context, q api.Question) (list []api.Explanation, err error) {
		*asked = append(*asked, name)
		if q.Role != api.Host {
			return nil, errors.New("this node has no edge")
		}
		for _, frame := range q.Frames {
			e := api.Explanation{Why: "passed on", Outcome: "handed", Verdict: "hand_to_kernel"}
			c := travelling{frame: slices.Clone(frame)}
			if own.Contains(c.destination()) {
				e.SID = &api.SID{Prefix: own}
			}
			at := c.destination()
			if c.end(true); c.destination() == at { // nothing is left
				e.Why, e.Outcome = "taken", "taken"
			}
			e.Frame = hex.EncodeToString(c.frame)
			list = append(list, e)
		}
		return list, nil
	}}
}

// edgeNode answers with an outer packet to an address.
func edgeNode(t *testing.T, outer packettest.Outer, header, other []api.HeaderSID,
	offered ...string) Node {
	e := api.Explanation{Packet: "opening", Why: "offered", Verdict: "redirect", Header: header,
		OfferedTo: offered, Frame: hex.EncodeToString(packettest.FromClient().Frame(t,
			outer.Around(t, packettest.Web6("S").Bytes(t))))}
	if other != nil {
		e.OtherCopy = &api.OtherCopy{Header: other}
	}
	return Node{"edge", func(context.Context, api.Question) ([]api.Explanation, error) {
		return []api.Explanation{e}, nil
	}}
}

func header(ids ...string) (list []api.HeaderSID) {
	for _, id := range ids {
		role, digits, _ := strings.Cut(id, " ")
		list = append(list, api.HeaderSID{Bytes: digits, Role: role, Does: "End"})
	}
	return list
}

// Packets are followed over routers and hosts, as one or two copies, whatever the header; hosts
// that are likely are asked first, and one that is not known ends it.
func TestFollow(t *testing.T) {
	carrier := func(text string) packettest.Outer {
		return packettest.To(netip.MustParseAddr(text))
	}
	segments := carrier("fcbb:bb00:a1::")
	segments.Extensions = packettest.SRH(41, 2, 2, netip.MustParseAddr("fcbb:bb00:2::"),
		netip.MustParseAddr("fcbb:bb00:1::"), netip.MustParseAddr("fcbb:bb00:a1::"))
	two := carrier("fcbb:bb00:a1::")
	two.Extensions = packettest.SRH(41, 1, 0, netip.MustParseAddr("fcbb:bb00:1:2::"))
	long := strings.Repeat("0", 31) + "1"
	for name, test := range map[string]struct {
		outer         packettest.Outer
		header, other []api.HeaderSID
		want, asked   string
	}{
		"a carrier": {carrier("fcbb:bb00:1:2::"), header("backend 0001", "backend 0002"), nil,
			"edge/1 web1/1 web2/1", "web1 web1 web2"},
		"a path": {carrier("fcbb:bb00:a1:2::"), header("path 00a1", "backend 0002"), nil,
			"edge/1 /1 web2/1", "web1 web2"},
		"two carriers": {two, header("path 00a1", "backend 0001", "backend 0002"), nil,
			"edge/1 /1 web1/1 web2/1", "web1 web1 web2"},
		"two copies": {carrier("fcbb:bb00:a1:1::fffe"),
			header("path 00a1", "backend 0001", "mark fffe"),
			header("path 00a2", "path 00a3", "backend 0001", "mark ffff"),
			"edge/1 /1 /2 /2 web1/1 web1/2", "web1"},
		"a host that is not known": {carrier("fcbb:bb00:7::"), header("backend 0007"), nil,
			"edge/1 /1", "web1 web2 other"},
		"segments": {segments, header("path " + long), nil, "edge/1 /1 web1/1 web2/1",
			"web1 web1 web2"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, steps []string
			hosts := []Node{hostNode("other", "fcbb:bb00:9::/48", &asked),
				hostNode("web2", "fcbb:bb00:2::/48", &asked),
				hostNode("web1", "fcbb:bb00:1::/48", &asked)}
			list, err := Follow(t.Context(), edgeNode(t, test.outer, test.header, test.other,
				"web1", "web2"), hosts, api.Flow{Protocol: config.TCP})
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			for _, s := range list[0].Steps {
				steps = append(steps, fmt.Sprintf("%s/%d", s.Node, s.Copy))
			}
			if got := strings.Join(steps, " "); got != test.want {
				t.Errorf("steps %s, want %s", got, test.want)
			}
			if got := strings.Join(asked, " "); got != test.asked {
				t.Errorf("asked %s, want %s", got, test.asked)
			}
		})
	}
}
