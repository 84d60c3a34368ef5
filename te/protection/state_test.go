package protection_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
)

var egress = netip.MustParseAddr("fcbb:bb00:3:f::")

func begin(t testing.TB, n protection.Network, i protection.Intent) protection.State {
	t.Helper()
	plan, err := n.Compute(i, protection.Question{})
	if err != nil {
		t.Fatal(err)
	}
	return protection.New(i, plan)
}

// second names the node that each carrying list goes to first: it tells the ladder's paths apart.
func second(s protection.State) string {
	var names []string
	for _, i := range s.Carrying() {
		names = append(names, s.Slots[i].Path.Links[0].To)
	}
	return strings.Join(names, "")
}

// A story on the ladder: slots 0, 1 and 2 go by b, c and d.
func TestSparesTakeOver(t *testing.T) {
	n := network(t, ladder...)
	s := begin(t, n, intent(2, 1))
	for i, step := range []struct {
		event   string // slot and + or -; or "plan"
		carries string
		suspect bool
		due     bool
	}{
		{"0+", "bc", false, false},
		{"1+", "bc", false, false},
		{"2+", "bc", false, false},
		{"0-", "cd", false, true},    // at once
		{"plan", "cd", false, false}, // around a-b-z there are two, as before; b is watched
		{"1-", "d", false, true},     //
		{"plan", "d", false, false},  // no other way
		// all silent: the return path, probably; nothing is switched off
		{"2-", "db", true, false},
		{"2+", "d", false, false},    //
		{"1+", "dc", false, true},    // back: it helps before the plan says so
		{"plan", "cd", false, false}, //
		{"0+", "cd", false, true},    // back, but two are enough until the plan has it
		{"plan", "bc", false, false}, // revertive
	} {
		if step.event == "plan" {
			around := s.Avoid()
			plan, err := n.Compute(s.Intent, protection.Question{Avoid: around})
			if err != nil {
				t.Fatal(err)
			}
			s = s.Adopt(plan, around)
		} else {
			s = s.Probed(int(step.event[0]-'0'), step.event[1] == '+')
		}
		if second(s) != step.carries || s.ReturnSuspected() != step.suspect || s.Due() != step.due {
			t.Fatalf("step %d, %s: carries %q, suspect %v, due %v; want %+v", i, step.event,
				second(s), s.ReturnSuspected(), s.Due(), step)
		}
	}
}

// A replacement carries when it has answered; what carried before stays until then.
func TestMakeBeforeBreak(t *testing.T) {
	n := network(t, append(slices.Clone(ladder), "a-e 1 0", "e-z 1 0")...)
	old := begin(t, network(t, ladder...), intent(2, 0))
	old = old.Probed(0, true).Probed(1, true)
	plan, err := n.Compute(intent(2, 0), protection.Question{})
	if err != nil {
		t.Fatal(err)
	}
	if got := ways(plan.Paths); got[1] != "a>e e>z" {
		t.Fatal(got)
	}
	s := old.Adopt(plan, nil)
	if second(s) != "bc" {
		t.Fatalf("the replacement carries before it answered: %s", second(s))
	}
	for i, carries := range []string{"bc",
		"be"} { // by b, too, there is another list now, as the way by e is as short
		fresh := slices.IndexFunc(s.Slots[:], func(l protection.Slot) bool { return l.Trial })
		if s = s.Probed(fresh, true); second(s) != carries {
			t.Fatalf("%d replacements answered: %s", i+1, second(s))
		}
	}
	if slices.ContainsFunc(s.Slots[:],
		func(l protection.Slot) bool { return l.Used && l.Rank == protection.NoRank }) {
		t.Errorf("what is not needed any more is still known: %+v", s.Slots)
	}
}

// The same without probes: nothing ever answers, so replacements carry at once.
func TestWithoutProbes(t *testing.T) {
	n := network(t, ladder...)
	s := begin(t, n, intent(2, 0))
	s = s.Checked(func(p protection.Path) string {
		if p.Crosses(protection.Link{From: "b", To: "z"}) {
			return "link b>z is down"
		}
		return ""
	})
	if second(s) != "c" {
		t.Fatalf("over a link that is down: %s", second(s))
	}
	around := []protection.Link{{From: "b", To: "z"}}
	plan, err := n.Compute(s.Intent, protection.Question{Avoid: around})
	if err != nil {
		t.Fatal(err)
	}
	if s = s.Adopt(plan, around); second(s) != "cd" {
		t.Errorf("after the new plan: %s", second(s))
	}
}

// A list is at fault when its link is down, and when another list became as short as its segments.
func TestFault(t *testing.T) {
	n := network(t, ladder...)
	s := begin(t, n, intent(2, 0))
	fault := func(n protection.Network, slot int) string {
		engine, err := segment.New(n.View)
		if err != nil {
			t.Fatal(err)
		}
		return n.Fault(engine, s.Intent.From, s.Slots[slot].Path)
	}
	for slot := range 2 {
		if f := fault(n, slot); f != "" {
			t.Errorf("slot %d of a whole network: %s", slot, f)
		}
	}
	e, _ := protection.EdgeOf(n.View.Graph, protection.Link{From: "b", To: "z"})
	less := protection.Network{View: n.View.Without(e), Block: n.Block}
	if f := fault(less, 0); f != "link b>z is down" {
		t.Errorf("without its link: %q", f)
	}
	equal := network(t, append(slices.Clone(ladder), "a-e 1 0", "e-z 1 0")...)
	if f := fault(equal, 0); f != "shortest paths changed" {
		t.Errorf("with an equal way: %q", f)
	}
}

// Whatever probes and links do on random networks: no two lists that carry share a link, none
// carries over a link known to be down, and once the lists of a plan answer, as many copies travel
// as there are disjoint paths, up to what is wanted.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := randomNetwork(t, r)
		i := intent(rapid.IntRange(1, 3).Draw(r, "copies"), rapid.IntRange(0, 2).Draw(r, "spares"))
		s := begin(t, n, i)
		down := map[protection.Link]bool{}
		crosses := func(p protection.Path) string {
			for l := range down {
				if p.Crosses(l) {
					return "link " + l.String() + " is down"
				}
			}
			return ""
		}
		for range rapid.IntRange(1, 12).Draw(r, "events") {
			switch rapid.IntRange(0, 3).Draw(r, "event") {
			case 0:
				s = s.Probed(rapid.IntRange(0, protection.MaxSlots-1).Draw(r, "slot"),
					rapid.Bool().Draw(r, "answers"))
			case 1:
				l := protection.LinkOf(n.View.Graph, anyEdge(r, n))
				if down[l] = !down[l]; !down[l] {
					delete(down, l)
				}
				s = s.Checked(crosses)
			default:
				s = replan(t, r, n, s, down)
			}
			verify(r, s, crosses)
		}
	})
}

// replan computes a plan on what is up, and checks that all copies that are possible travel.
func replan(t *testing.T, r *rapid.T, n protection.Network, s protection.State,
	down map[protection.Link]bool) protection.State {
	avoid := s.Avoid()
	around := slices.Clone(avoid)
	for l := range down {
		around = append(around, l)
	}
	plan, err := n.Compute(s.Intent, protection.Question{Avoid: around})
	if err != nil {
		t.Fatal(err)
	}
	s = s.Adopt(plan, avoid)
	if len(plan.Paths) > 0 && len(s.Carrying()) == 0 {
		r.Fatalf("nothing carries of a plan of %d: %+v", len(plan.Paths), s.Slots)
	}
	answered := answering(s)
	if carrying := len(answered.Carrying()); carrying < min(len(plan.Paths), s.Intent.Copies) {
		r.Fatalf("%d lists carry of a plan of %d that answers: %+v", carrying, len(plan.Paths),
			answered.Slots)
	}
	return s
}

// answering is the state once all lists of the plan have answered: until then, a list that works
// may hold the place of two that have yet to show that they do.
func answering(s protection.State) protection.State {
	for i, l := range s.Slots {
		if l.Rank != protection.NoRank {
			s = s.Probed(i, true)
		}
	}
	return s
}

func verify(r *rapid.T, s protection.State, fault func(protection.Path) string) {
	carrying := s.Carrying()
	if len(carrying) > s.Intent.Copies {
		r.Fatalf("%d lists carry", len(carrying))
	}
	for at, i := range carrying {
		if f := fault(s.Slots[i].Path); f != "" {
			r.Fatalf("slot %d carries although %s", i, f)
		}
		for _, j := range carrying[:at] {
			for _, l := range s.Slots[i].Path.Links {
				if s.Slots[j].Path.Crosses(l) {
					r.Fatalf("slots %d and %d both cross %s", i, j, l)
				}
			}
		}
	}
}

func anyEdge(r *rapid.T, n protection.Network) topology.Edge {
	return topology.Edge(rapid.IntRange(0, n.View.Edges()-1).Draw(r, "edge"))
}

// randomNetwork has a ring through all nodes, so that there are two paths at least, and chords.
func randomNetwork(t *testing.T, r *rapid.T) protection.Network {
	const nodes = "abcdez"
	var links []string
	add := func(i, j int) {
		if i != j {
			links = append(links, fmt.Sprintf("%c-%c %d", nodes[i], nodes[j],
				rapid.IntRange(1, 9).Draw(r, "weight")))
		}
	}
	for i := range nodes {
		add(i, (i+1)%len(nodes))
	}
	for range rapid.IntRange(0, 6).Draw(r, "chords") {
		add(rapid.IntRange(0, len(nodes)-1).Draw(r, "from"), rapid.IntRange(0, len(nodes)-1).Draw(r,
			"to"))
	}
	return network(t, links...)
}
