package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/agent/api"
	"sextant/config"
)

// routerText is a head-end and egress.
const routerText = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
headend:
  interfaces: [{name: edge0}]
  uplinks: [host0]
  local: [host0]
  source: fd00:5e::1
  policies:
    - name: video
      paths:
        - name: both
          action: mirror
          leastLists: 2
          lists:
            - &north {name: north, segments: ["fcbb:bb00:11::", "fcbb:bb00:2:f::"]}
            - &south {name: south, segments: ["fcbb:bb00:12::", "fcbb:bb00:2:f::"]}
        - {name: one, action: mirror, lists: [*north, *south]}
    - {name: web, dropIfInvalid: true, paths: [{name: only, action: path, lists: [{name: a, segments: ["fcbb:bb00:2:d6::"], reduced: true}]}]}
  rules:
    - {policy: video, destination: 2001:db8:b::/64, protocol: udp, destinationPorts: 5000-5010}
    - {policy: web, destination: 2001:db8:b::/64}
merge:
  interfaces: [{name: host0}]
  sids: [{prefix: "fcbb:bb00:1:f::/80", flows: [1, 2]}, {prefix: "fcbb:bb00:1:e::/80", form: sid, flows: [7], mark: 10}]
`

// policies are those of a running agent.
func (r *running) policies() []api.Policy {
	r.t.Helper()
	list, err := r.Policies(r.t.Context())
	must(r.t, err)
	return list
}

// flowsOf are the flow ids of a policy's lists.
func flowsOf(policies []api.Policy, name string) []uint32 {
	var flows []uint32
	for _, p := range policies {
		for _, path := range p.Paths {
			for _, l := range path.Lists {
				if p.Name == name && !slices.Contains(flows, l.Flow) {
					flows = append(flows, l.Flow)
				}
			}
		}
	}
	return flows
}

// epoch is what the state file says of the numbers given.
func (m *machine) epoch() uint8 {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, "state", "both1.json"))
	must(m.t, err)
	var kept struct{ Epoch uint8 }
	must(m.t, json.Unmarshal(text, &kept))
	return kept.Epoch
}

func (m *machine) hasLoop() bool { return m.hasLink("srv6loop") }

func (m *machine) hasLink(name string) (has bool) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		_, err := netlink.LinkByName(name)
		has = err == nil
		return nil
	}))
	return has
}

// Head-end and egress run, survive their agent, and go with unload; a head-end whose numbers begin
// afresh has another epoch.
func TestRouterTakeOver(t *testing.T) {
	m := newMachine(t)
	a := m.start(routerText)
	status, err := a.Status(t.Context())
	must(t, err)
	if !slices.Equal(status.Roles, []string{"headend", "merge"}) || len(status.Programs) != 5 {
		t.Errorf("roles %v, programs %+v", status.Roles, status.Programs)
	}
	was, flows, epoch := m.state(), flowsOf(a.policies(), "video"), m.epoch()
	if !slices.Equal(flows, []uint32{1, 2}) {
		t.Errorf("flows %v, want 1 and 2", flows)
	}
	_, err = a.SetList(t.Context(), "video", "north", api.ListSpec{State: config.ListDown})
	must(t, err)
	a.stop()
	a = m.start(routerText)
	same(t, "after a restart", m.linksOf(was), m.linksOf(m.state()))
	if p := a.policies()[0]; p.ActivePath != "one" || m.epoch() != epoch {
		t.Errorf("after a restart path %s is active in epoch %d, want one in %d", p.ActivePath,
			m.epoch(), epoch)
	}
	a.stop()
	must(t, m.unload())
	if m.hasLoop() {
		t.Error("the loop is still there after unload")
	}
	a = m.start(routerText)
	if m.epoch() != epoch+1 {
		t.Errorf("numbers begin afresh in epoch %d, the last ones were of %d", m.epoch(), epoch)
	}
	a.stop()
}

// linksOf are the lines that tell which link holds which program on what; programs are loaded anew.
func (m *machine) linksOf(state []string) []string {
	var links []string
	for _, line := range state {
		if what, _, isLink := strings.Cut(line, ", program"); isLink && strings.Contains(line,
			": link") {
			links = append(links, what)
		}
	}
	return links
}

// Flows are put in order when the configuration says so, by one agent after the other.
func TestOrdering(t *testing.T) {
	m := newMachine(t)
	ordered := strings.Replace(routerText, "flows: [1, 2]", "flows: [1, 2], ordered: true", 1)
	a := m.start(ordered)
	for _, text := range []string{routerText, ordered, strings.Replace(ordered, "ordered: true",
		"ordered: true, skew: 10ms, rate: 5", 1)} {
		if _, err := a.apply(m.text(text), false); err != nil {
			t.Fatal(err)
		}
		if status, err := a.Status(t.Context()); err != nil || len(status.Warnings) != 0 {
			t.Errorf("warnings %q, error %v", status.Warnings, err)
		}
	}
	a.stop()
	m.start(ordered).stop()
	if !m.hasLink("srv6order") {
		t.Error("no packet can be put in order")
	}
	must(t, m.unload())
	if m.hasLink("srv6order") {
		t.Error("what packets were put in order by is left after unload")
	}
}

// A list goes down and comes back: the best valid path is active, and no program, link or number
// changes. Events tell of it.
func TestListsGoDown(t *testing.T) {
	m := newMachine(t)
	a := m.start(routerText)
	defer a.stop()
	ctx := t.Context()
	was := m.state()
	set := func(policy, list string, state config.ListState, active string) {
		t.Helper()
		_, err := a.SetList(ctx, policy, list, api.ListSpec{State: state})
		must(t, err)
		for _, p := range a.policies() {
			if p.Name == policy && p.ActivePath != active {
				t.Errorf("list %s of %s is %s, and path %q active, want %q", list, policy, state,
					p.ActivePath, active)
			}
		}
	}
	set("video", "north", config.ListDown, "one")
	set("video", "south", config.ListDown, "")
	set("web", "a", config.ListDown, "")
	status, err := a.Status(ctx)
	must(t, err)
	warnings := strings.Join(status.Warnings, "\n")
	if !strings.Contains(warnings, "policy video has no valid path: its traffic is forwarded") ||
		!strings.Contains(warnings, "policy web has no valid path: its traffic is dropped") {
		t.Errorf("warnings %q", warnings)
	}
	if got := a.metric(`sextant_policy_list_up{list="north",policy="video"}`); got != "0" {
		t.Errorf("the metric says %q of a list that is down", got)
	}
	set("video", "north", config.ListUp, "one")
	set("video", "south", config.ListUp, "both")
	set("web", "a", config.ListUp, "only")
	same(t, "after all lists are up again", was, m.state())
	if _, err := a.SetList(ctx, "video", "west", api.ListSpec{State: config.ListDown}); err == nil {
		t.Error("a list that is not there goes down")
	}
	if got := a.metric(`sextant_policy_path_active{path="both",policy="video"}`); got != "1" {
		t.Errorf("the metric says %q of the active path", got)
	}
}

// What is refused changes nothing, and what is only tried leaves nothing behind.
func TestRouterRefuses(t *testing.T) {
	m := newMachine(t)
	if why := m.fails(strings.Replace(routerText, "interfaces: [{name: host0}]",
		"interfaces: [{name: nowhere}]", 1)); !strings.Contains(why, "nowhere") {
		t.Errorf("the agent says %q", why)
	}
	if m.hasLoop() {
		t.Error("an agent that could not start left the loop")
	}
	a := m.start(routerText)
	defer a.stop()
	was := m.state()
	for name, pairs := range map[string][]string{
		"an interface that is not there": {"interfaces: [{name: edge0}]",
			"interfaces: [{name: nowhere}]", "flows: [1, 2]", "flows: [1, 2, 3]", "mark: 10",
			"mark: 11"},
		"more flows, and such a local": {"local: [host0]", "local: [nowhere]", "flows: [1, 2]",
			"flows: [2, 3]"},
	} {
		if _, err := a.apply(m.text(routerText, pairs...), false); err == nil ||
			!strings.Contains(err.Error(), "nowhere") {
			t.Errorf("%s: error %v", name, err)
		}
		same(t, name, withoutLinks(was), withoutLinks(m.state()))
	}
	changed := m.text(routerText, "flows: [1, 2]", "flows: [2, 1, 3]", "protocol: udp",
		"protocol: tcp", "hopLimit: 64", "hopLimit: 63")
	would, err := a.apply(changed, true)
	must(t, err)
	did, err := a.apply(changed, false)
	must(t, err)
	if len(did) == 0 || !slices.Equal(would, did) {
		t.Errorf("the dry run said\n%v\nthe change was\n%v", would, did)
	}
	merged, err := a.Merge(t.Context())
	must(t, err)
	if len(merged) != 2 || !slices.Equal(merged[0].Flows, []uint32{2, 1, 3}) ||
		len(merged[0].Paths) != 3 {
		t.Errorf("protected flows %+v", merged)
	}
	if got := a.metric(
		`sextant_merge_passed_packets_total{flows="2,1,3",sid="fcbb:bb00:1:f::/80"}`); got != "0" {
		t.Errorf("the metric says %q", got)
	}
	// All roles go, and come back.
	none := nodeText
	if _, err := a.apply(m.text(none, "edge0", "edge0", "CGROUP", m.cgroup), false); err != nil {
		t.Fatal(err)
	}
	if m.hasLoop() {
		t.Error("the loop outlives the head-end")
	}
	if _, err := a.apply(m.text(routerText), false); err != nil {
		t.Fatal(err)
	}
	if counters, err := a.Counters(t.Context()); err != nil || len(counters) != 2 ||
		counters[0].Role != api.Headend {
		t.Errorf("counters %+v, error %v", counters, err)
	}
}
