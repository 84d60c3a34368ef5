package agent

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/agent/headend"
	"sextant/agent/network"
	"sextant/config"
	"sextant/te/protection"
)

// tried is a head-end with a protection of two copies and a spare, of which an egress tells.
// Nothing is probed, no topology is known.
type tried struct {
	*Agent
	t      *testing.T
	x      *headend.RunningProtection
	now    time.Duration // since the agent began
	counts [protection.MaxSlots]uint64
	dead   map[int]bool
}

func newTried(t *testing.T, a *Agent) *tried {
	c := config.NewProtection("video", "z", netip.MustParseAddr("fcbb:bb00:7:f::"))
	c.Flow, c.Spares, c.Agent = 40000, 1, netip.MustParseAddrPort("[fd00:5e::7]:9477")
	c.Matches = []config.SteeringRule{{Destination: netip.MustParsePrefix("2001:db8:c::/64"),
		DSCP: config.AnyDSCP}}
	settings := &config.Protect{Network: config.Network{Node: "a"}, BoundPermille: 800,
		Protections: []config.Protection{c}}
	x := &headend.RunningProtection{Protection: c, Intent: headend.IntentOf(c, settings)}
	x.Begin(protection.Plan{Paths: threePaths()})
	a.Started = time.Now()
	p := &headendOf(a).Protecting
	p.Config, p.Running, p.Seed = settings, []*headend.RunningProtection{x}, 1
	p.InstallProtections()
	return &tried{Agent: a, t: t, x: x, dead: map[int]bool{}}
}

// threePaths are by b1, b2 and b3.
func threePaths() (paths []protection.Path) {
	for i := range 3 {
		router := fmt.Sprintf("b%d", i+1)
		paths = append(paths, protection.Path{
			Links: []protection.Link{{From: "a", To: router}, {From: router, To: "z"}},
			SIDs: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:b%d::", i+1)),
				netip.MustParseAddr("fcbb:bb00:7::")},
			Names: []string{router, "z"},
		})
	}
	return paths
}

// lists are those that the kernel has.
func (w *tried) lists() string {
	var names []string
	for _, p := range headendOf(w.Agent).Runs.Steering.Policies {
		if p.Name == w.x.Name {
			for _, l := range p.Paths[0].Lists {
				names = append(names, strings.TrimPrefix(l.Name, "path"))
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

// pass lets seconds pass, after each of which the egress tells of packets that came by the lists
// that are sent along.
func (w *tried) pass(seconds int) {
	w.t.Helper()
	for range seconds {
		w.now += time.Second
		paths := map[uint32]api.MergedPath{}
		for slot := range w.counts {
			sent := strings.Contains(w.lists(), fmt.Sprint(slot+1))
			if sent && !w.dead[slot] {
				w.counts[slot] += 100
			}
			paths[uint32(w.x.Flow+slot)] = api.MergedPath{Packets: w.counts[slot],
				Silent: w.dead[slot] && w.counts[slot] > 0}
		}
		headendOf(w.Agent).Protecting.BelieveEgress(w.x, paths, w.now)
	}
}

func (w *tried) expect(when, lists string) {
	w.t.Helper()
	if got := w.lists(); got != lists {
		w.t.Fatalf("%s packets are sent along %s, want %s: %+v", when, got, lists,
			w.x.State.Slots[0])
	}
}

// A list that the egress calls silent is put aside and sent copies again, later each time; it is
// said when, and when copies come it is used.
func TestSilentListsAreTriedAgain(t *testing.T) {
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, strings.ReplaceAll(headendText, "DIR", t.TempDir()))
		defer leave(a)
		w := newTried(t, a)
		w.expect("first", "12")
		w.pass(3)
		w.dead[0] = true
		w.pass(1)
		w.expect("after silence", "23")
		if r := w.x.Latest; r == nil || r.Because != "path1 silent, as the egress says" ||
			r.Installed.Before(r.Noticed) {
			t.Errorf("replaced: %+v", r)
		}
		view := headendOf(a).Protecting.PathView(w.x, 0, w.x.RoleOf(0))
		if view.NextTrial == nil || view.Role != api.Broken || view.TrialsInVain != 0 {
			t.Fatalf("put aside: %+v", view)
		}
		if wait := view.NextTrial.Sub(a.Started) - w.now; wait < headend.FirstTrial/2 ||
			wait > headend.FirstTrial+time.Second {
			t.Errorf("the first trial is in %v", wait)
		}
		w.pass(5)
		w.expect("in the first trial", "123")
		if view := headendOf(a).Protecting.PathView(w.x,
			0, w.x.RoleOf(0)); view.Role != api.Trial ||
			view.NextTrial != nil {
			t.Errorf("in a trial: %+v", view)
		}
		w.pass(4)
		w.expect("after a trial in vain", "23")
		if view := headendOf(a).Protecting.PathView(w.x, 0, w.x.RoleOf(0)); view.NextTrial == nil ||
			view.TrialsInVain != 1 {
			t.Errorf("after a trial in vain: %+v", view)
		}
		delete(w.dead, 0)
		w.pass(6)
		w.expect("before the second trial", "23")
		w.pass(9)
		w.expect("when copies came again", "12")
		var said []string
		for _, e := range a.Latest {
			if e.Policy == "video" && e.List == "path1" {
				said = append(said, e.Status)
			}
		}
		if got := strings.Join(said, " "); got != "trial silent trial answers" {
			t.Errorf("it was said: %s", got)
		}
	})
}

// A list that never brought a packet, of which the egress can't know that it carries, gives way to
// a spare; and so does a spare that is dead when its turn comes.
func TestListsThatNeverCame(t *testing.T) {
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, strings.ReplaceAll(headendText, "DIR", t.TempDir()))
		defer leave(a)
		w := newTried(t, a)
		w.dead[1] = true
		w.pass(2)
		w.expect("as long as it may be late", "12")
		w.pass(4)
		w.expect("when nothing came by the second list", "13")
		if role := w.x.RoleOf(1); role != api.Broken {
			t.Errorf("the list that never came is %s", role)
		}
		w.dead[0] = true
		delete(w.dead, 1)
		w.pass(18)
		w.expect("when it comes in a trial, and the first one fell silent", "23")
	})
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, strings.ReplaceAll(headendText, "DIR", t.TempDir()))
		defer leave(a)
		w := newTried(t, a)
		w.pass(3)
		w.dead[0], w.dead[2] = true, true
		w.pass(1)
		w.expect("when the first list fell silent", "23")
		w.pass(5)
		if answer := w.x.State.Slots[2].Answer; answer != protection.Silent {
			t.Errorf("nothing comes by the spare, and it counts as %d", answer)
		}
		w.x.Agent = netip.AddrPort{} // nobody is there to say what the egress merges
		if v := w.view(); v.State != api.Degraded {
			t.Errorf("with one list that brings packets: %s, %s", v.State, v.Reason)
		}
	})
}

// Links that protections load up to their bound have no room for a trial.
func TestTrialsNeedRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "network.edges")
	text := "a -- b1 10 10 10M\nb1 -- z 10 10 10M\na -- b2 10 10 10M\nb2 -- z 10 10 10M\na -- b3 " +
		"10 10 10M\nb3 -- z 10 10 10M\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := network.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	paths := threePaths()
	intent := protection.Intent{RateKbps: 5000, BoundPermille: 800}
	p := headend.Protections{Network: n, Running: []*headend.RunningProtection{{Intent: intent,
		Plan: protection.Plan{Paths: paths[1:]}}}}
	if !p.HasRoom(intent, paths[0]) {
		t.Error("5 Mbit/s don't fit into 80 % of 10 Mbit/s")
	}
	if p.HasRoom(intent, paths[1]) {
		t.Error("5 Mbit/s more fit into 80 % of 10 Mbit/s, of which 5 are taken")
	}
}

// view is the protection as the API shows it.
func (w *tried) view() api.Protection {
	w.t.Helper()
	go func() { (<-w.Work)() }()
	list, err := headendOf(w.Agent).Protecting.Protections(w.t.Context())
	if err != nil || len(list) != 1 {
		w.t.Fatalf("protections %+v, %v", list, err)
	}
	return list[0]
}

// carrying are the lists that carry, as the API says.
func carrying(v api.Protection) string {
	names := ""
	for _, p := range v.Paths {
		if p.Role == api.Carries {
			names += strings.TrimPrefix(p.List, "path")
		}
	}
	return names
}

// Paths that the kernel was not told of do not carry: that is said until the table is taken.
func TestRefusedProtection(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir())
	// It has the flow of the third list.
	conflict := strings.Replace(text, `{name: a, segments: ["fcbb:bb00:2:d6::"]}`,
		`{name: a, redundancy: tlv, flow: 40002, segments: ["fcbb:bb00:2:d6::"]}`, 1)
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, conflict)
		defer leave(a)
		w, h := newTried(t, a), headendOf(a)
		w.x.Agent = netip.AddrPort{} // nobody is there to say what the egress merges
		w.pass(3)
		w.dead[0] = true
		w.pass(1)
		w.expect("with the table refused", "12")
		v := w.view()
		if carrying(v) != "12" || v.Replacements != 0 || v.State != api.Degraded ||
			!strings.Contains(v.Reason, "can't be installed") {
			t.Errorf("with the table refused: %+v", v)
		}
		if !slices.ContainsFunc(a.warnings,
			func(w string) bool { return strings.Contains(w, "have flow 40002 both") }) {
			t.Errorf("warnings %q", a.warnings)
		}
		if _, waits := h.Due(); !waits {
			t.Fatal("it is not tried again")
		}
		h.Act()
		w.expect("with the table refused again", "12")
		next, err := config.Parse("node.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a.Node = next // what it was refused for is gone
		h.Act()
		w.expect("with the table taken", "23")
		v = w.view()
		if carrying(v) != "23" || v.Replacements != 1 || v.State != api.Protected ||
			v.Replaced == nil || len(a.warnings) > 0 {
			t.Errorf("with the table taken: %+v, warnings %q", v, a.warnings)
		}
		if _, waits := h.Due(); waits {
			t.Error("it is tried again without need")
		}
	})
}
