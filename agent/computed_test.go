package agent

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"sextant/agent/headend"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/te/srpolicy"
)

const headendText = `
node: pe1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR
api: {socket: DIR/agent.sock}
headend:
  interfaces: [{name: p0}]
  source: fd00:5e::1
  policies: [{name: web, paths: [{name: one, action: path, lists: [{name: a, segments: ["fcbb:bb00:2:d6::"]}]}]}]
  rules: [{policy: web, destination: 2001:db8:b::/64}]
`

// inNamespace runs f on a machine with the interface p0.
func inNamespace(t *testing.T, f func(pins string)) {
	t.Helper()
	ns, name := linuxtest.Netns(t)
	bpffs, _, err := linux.BPFFS()
	if err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p0"}, PeerName: "p1"}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		pins := filepath.Join(bpffs, name)
		f(pins)
		return Unload(pins)
	})
	if err != nil {
		t.Error(err)
	}
}

// takenOver is an agent that has taken over and answers nobody: the test is its owner.
func takenOver(t *testing.T, pins, text string, more ...role.Kind) *Agent {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	a, err := newAgent(t.Context(), Options{Node: node, PinDirectory: pins, Log: log, more: more})
	if err == nil {
		err = a.takeOver(node)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// headendOf is the agent's room of the head-end.
func headendOf(a *Agent) *headend.Room { return role.TheRoom[*headend.Room](a.Roles) }

func leave(a *Agent) {
	headendOf(a).Runs.Program.Close()
	a.Store.Close()
}

// pair are two lists of which one is enough.
func pair() state.Computed {
	segments := func(via string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr(via), netip.MustParseAddr("fcbb:bb00:2:f::")}
	}
	lists := []srpolicy.List{
		{Name: "north", Segments: segments("fcbb:bb00:11::"), Redundancy: srpolicy.TLV},
		{Name: "south", Segments: segments("fcbb:bb00:12::"), Redundancy: srpolicy.TLV},
	}
	return state.Computed{
		Rules: []srpolicy.Rule{{Policy: "protected",
			Match: srpolicy.Match{Destination: netip.MustParsePrefix("2001:db8:c::/64")}}},
		Policies: []srpolicy.Policy{{Name: "protected", Paths: []srpolicy.CandidatePath{
			{Name: "both", Action: srpolicy.Mirror, Lists: lists, LeastLists: 2},
			{Name: "one", Preference: 50, Action: srpolicy.Mirror, Lists: lists},
		}}},
	}
}

// protected says how the computed policy does: its active path, flows, and which lists are used.
func protected(t *testing.T, a *Agent) string {
	t.Helper()
	views, err := headendOf(a).PolicyViews()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range views {
		if v.Name != "protected" {
			continue
		}
		text := fmt.Sprintf("computed %v, index %d, path %s:", v.Computed, v.Index, v.ActivePath)
		for _, path := range v.Paths {
			for _, l := range path.Lists {
				if l.Used {
					text += fmt.Sprintf(" %s flow %d", l.Name, l.Flow)
				}
			}
		}
		return text
	}
	return "none"
}

// Computed policies run beside those of the file, survive a restart with their flows and marks, and
// end with another file.
func TestComputedPolicies(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir())
	const both, south = "computed true, index 1, path both: north flow 65 south flow 66",
		"computed true, index 1, path one: south flow 66"
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, text)
		expect := func(want string) {
			t.Helper()
			if got := protected(t, a); got != want {
				t.Errorf("%s; want %s", got, want)
			}
		}
		try := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		expect("none")
		try(headendOf(a).SetComputed(pair()))
		expect(both)
		clash := pair()
		clash.Policies[0].Name = "web"
		if err := headendOf(a).SetComputed(clash); err == nil || !strings.Contains(err.Error(),
			`two policies "web"`) {
			t.Errorf("error %v", err)
		}
		if err := headendOf(a).MarkLists(map[state.ListKey]bool{{Policy: "protected",
			List: "north"}: true,
			{Policy: "protected", List: "west"}: true}); err == nil {
			t.Error("a list that is not there goes down")
		}
		expect(both)
		try(headendOf(a).MarkLists(map[state.ListKey]bool{{Policy: "protected",
			List: "north"}: true}))
		expect(south)
		before := headendOf(a).ComputedNow()
		leave(a)

		a = takenOver(t, pins, text)
		expect(south)
		if diff := cmp.Diff(before, headendOf(a).ComputedNow(),
			cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
			cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("after a restart the computed policies are others (-before +after):\n%s", diff)
		}
		try(headendOf(a).MarkLists(map[state.ListKey]bool{{Policy: "protected",
			List: "north"}: false}))
		expect(both)
		last := a.Latest[len(a.Latest)-1].String()
		if last != "policy protected: path both: active (over north, south)" {
			t.Errorf("the last event is %q", last)
		}
		leave(a)

		a = takenOver(t, pins, strings.Replace(text, "headend:\n", "headend:\n  hopLimit: 63\n", 1))
		defer leave(a)
		expect("none")
	})
}
