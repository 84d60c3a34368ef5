package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/southbound"
)

var behindLeaf2 = netip.MustParsePrefix("2001:db8:2::/64")

// spreading starts a controller that has head-ends spread flows, by a policy.
func (l *southLab) spreading(address string, epoch int, policy, more string) (*Client, func()) {
	l.t.Helper()
	text := fmt.Sprintf(controllerText, address, epoch, l.dir, "queueBytes: 1000\n"+more)
	return start(l.t, strings.Replace(text, "policy: {", "policy: {name: "+policy+
		", groups: 1ms, ", 1))
}

const leafPrefixes = "routers: [{name: leaf1, prefixes: [\"2001:db8:1::/64\"]}, " +
	"{name: leaf2, prefixes: [\"2001:db8:2::/64\", 192.0.2.0/24]}]\n"

func withGroups(o *southbound.Options) { o.Groups = 100 }

// weightVia is the weight of a group's path over a spine; false if it has none.
func (l *southLab) weightVia(g southbound.Group, spine string) (uint32, bool) {
	sid := spineSID(l.t, spine)
	i := slices.IndexFunc(g.Paths, func(p southbound.WeighedPath) bool {
		return slices.Contains(p.Segments, sid)
	})
	if i < 0 {
		return 0, false
	}
	return g.Paths[i].Weight, true
}

// A head-end with room gets a group for each prefix behind another router: all shortest paths, with
// weights that follow queues, and end with a link. It gets nothing for its own prefixes; one
// without room gets nothing.
func TestHeadsGetGroups(t *testing.T) {
	l, address, h, without := newSouthLab(t), freePort(t), newFakeHead(), newFakeHead()
	c, stop := l.spreading(address, 1, "sextant", leafPrefixes)
	defer stop()
	l.follower(h, withGroups, address)
	l.follower(without, func(o *southbound.Options) {
		o.Router, o.TokenFile = "leaf2", l.dir+"/token2"
	}, address)
	await(t, "leaf1 has its groups", func() bool {
		_, six, _ := h.group(behindLeaf2)
		_, four, _ := h.group(netip.MustParsePrefix("192.0.2.0/24"))
		return six && four
	})
	g, _, _ := h.group(behindLeaf2)
	if len(g.Paths) != 4 || g.Flowlet != 0 || g.Hold < 4*100*time.Millisecond {
		t.Errorf("%+v", g)
	}
	for i := range 4 {
		if w, ok := l.weightVia(g, fmt.Sprintf("spine%d", i)); !ok || w != g.Paths[0].Weight {
			t.Errorf("over spine%d: %d, %v; weights are alike at first", i, w, ok)
		}
	}
	listed, err := c.Groups(t.Context())
	if err != nil || len(listed) != 1 || listed[0].From != "leaf1" || listed[0].To != "leaf2" ||
		len(listed[0].Prefixes) != 2 || len(listed[0].Paths) != 4 ||
		*listed[0].Paths[0].Share != 0.25 || len(listed[0].Paths[0].Path) != 3 {
		t.Errorf("%+v, %v", listed, err)
	}
	full := Report{Flow: testFlow(1), Path: []string{"leaf1", "spine1", "leaf2"},
		Queues: []QueueState{{From: "leaf1", To: "spine1", Bytes: 900, Size: 1000}}}
	await(t, "few flows are to begin where the queue is full", func() bool {
		if _, err := c.Report(t.Context(), []Report{full}); err != nil {
			t.Fatal(err)
		}
		g, _, _ := h.group(behindLeaf2)
		one, _ := l.weightVia(g, "spine1")
		two, _ := l.weightVia(g, "spine2")
		return one > 0 && one < two/8
	})
	if _, err := c.SetLink(t.Context(), LinkState{From: "spine3", To: "leaf2"}); err != nil {
		t.Fatal(err)
	}
	await(t, "no flow begins over a link that is down", func() bool {
		g, known, _ := h.group(behindLeaf2)
		w, _ := l.weightVia(g, "spine3")
		return known && w == 0
	})
	for i := range 4 {
		link := LinkState{From: fmt.Sprintf("spine%d", i), To: "leaf2"}
		if _, err := c.SetLink(t.Context(), link); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "without a path there is no group", func() bool {
		_, known, _ := h.group(behindLeaf2)
		return !known
	})
	if _, known, _ := h.group(netip.MustParsePrefix("2001:db8:1::/64")); known {
		t.Error("leaf1 has a group for its own prefix")
	}
	if _, _, sets := without.group(behindLeaf2); sets > 0 {
		t.Error("leaf2 has no room, and got groups")
	}
}

// Weights that do not change are sent again before their time is over, and not more often. A
// controller that follows another one clears the groups of prefixes that it does not know.
func TestGroupsAreRenewed(t *testing.T) {
	l, address, h := newSouthLab(t), freePort(t), newFakeHead()
	foreign := netip.MustParsePrefix("2001:db8:f::/64")
	h.groups[foreign] = southbound.Group{Prefix: foreign}
	_, stop := l.spreading(address, 1, "letflow", leafPrefixes)
	defer stop()
	l.follower(h, withGroups, address)
	await(t, "the group is sent a second time", func() bool {
		_, _, sets := h.group(behindLeaf2)
		return sets >= 4 // of two prefixes
	})
	if _, known, _ := h.group(foreign); known {
		t.Error("the group of another controller is left")
	}
	g, _, sets := h.group(behindLeaf2)
	if g.Flowlet != 500*time.Microsecond {
		t.Errorf("letflow has flowlets after %v", g.Flowlet)
	}
	begun := time.Now()
	await(t, "it is sent again", func() bool {
		_, _, now := h.group(behindLeaf2)
		return now >= sets+4
	})
	if took := time.Since(begun); took < g.Hold/4 {
		t.Errorf("sent again twice within %v; a group lasts for %v", took, g.Hold)
	}
}

// With groups, letflow and clove-int leave the choice to head-ends: a pause gives no flow a path of
// its own. CLOVE-INT's weights send all flows that begin over the path whose queue is the least
// full.
func TestHeadsSwitchFlowlets(t *testing.T) {
	for _, policy := range []string{"letflow", "clove-int"} {
		l, address, h := newSouthLab(t), freePort(t), newFakeHead()
		c, stop := l.spreading(address, 1, policy, leafPrefixes)
		l.follower(h, withGroups, address)
		await(t, "leaf1 has its group", func() bool {
			_, known, _ := h.group(behindLeaf2)
			return known
		})
		report := paused(1, "leaf1", "spine1", "leaf2")
		for spine, bytes := range map[string]int64{"spine0": 300, "spine2": 600, "spine3": 900} {
			report.Queues = append(report.Queues, QueueState{From: "leaf1", To: spine,
				Bytes: bytes, Size: 1000})
		}
		decisions, err := c.Report(t.Context(), []Report{report})
		if err != nil || len(decisions) > 0 {
			t.Errorf("%s decides %+v, %v", policy, decisions, err)
		}
		if policy == "clove-int" {
			await(t, "spine0 has the least full queue", func() bool {
				g, _, _ := h.group(behindLeaf2)
				best, _ := l.weightVia(g, "spine0")
				other, _ := l.weightVia(g, "spine2")
				return best > 10_000 && other == 1
			})
		}
		stop()
	}
}

// Prefixes and times that say nothing, or too much, are refused.
func TestSpreadConfig(t *testing.T) {
	twice := `routers: [{name: a, prefixes: ["::/0"]}, {name: b, prefixes: ["::/0"]}]`
	for text, want := range map[string]string{
		"policy: {groups: 10ms}":                        "routers[].prefixes",
		"policy: {groups: 1us}\n" + leafPrefixes:        "at least 1ms",
		"routers: [{name: a, prefixes: [10.0.0.1/24]}]": "bits behind",
		twice: "behind a already",
		"policy: {name: smoothie, groups: 10ms}\n" + leafPrefixes: "begin alone",
		"policy: {name: letflow, flowlet: 2m}\n" + leafPrefixes:   "at most 1m",
	} {
		_, err := Parse([]byte("topology: x\n" + text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	c, err := Parse([]byte("topology: x\npolicy: {tau: 1ms, name: clove-int}\n" + leafPrefixes))
	if err != nil || c.Policy.Groups != 100*time.Millisecond ||
		c.Policy.Flowlet != 5*time.Millisecond {
		t.Errorf("%+v, %v", c.Policy, err)
	}
}
