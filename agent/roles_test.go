package agent

import (
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/agent/edge"
	"sextant/agent/role"
	"sextant/agent/role/roletest"
	"sextant/config"
)

// A role is whole with a folder of its own and one line: it is loaded, shown, watched, rolled back
// and taken away with the others.
func TestAddedRole(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir())
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, text, role.KindOf("idle", roletest.New).CommittedLate())
		idle := role.TheRoom[*roletest.Room](a.Roles)
		defer a.Store.Close()
		past := role.TheRoom[*edge.Room](a.Roles).Past
		past.Journal = edge.OpenJournal(a.Node.State, a.Node.Name, a.Log)
		defer past.Journal.Close()
		p := idle.Runs.Program
		expectDone(t, p, "load", "fill", "commit")
		shownEverywhere(t, a)

		p.Detached = true
		if err := a.watch.look(); err != nil || p.Detached {
			t.Errorf("the agent has not attached the program again: %v", err)
		}
		expectDone(t, p, "detached")

		steering := headendOf(a).Runs.Steering
		idle.Refuses = true
		next, err := config.Parse("node.yaml", []byte(strings.ReplaceAll(text, "d6", "d7")))
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.reconcile(next, nil, terms{breaks: true})
		if err == nil || !strings.Contains(err.Error(), "idle refuses") {
			t.Errorf("a change that the role refuses gives %v", err)
		}
		is := headendOf(a).Runs.Steering
		if steering.Policies[0].Index != is.Policies[0].Index || a.Node == next {
			t.Error("what the role refuses has become what runs")
		}
		expectDone(t, p, "continue", "fill", "fill") // to the next, and back

		next = a.Node.Clone()
		next.Headend = nil
		if _, err := a.reconcile(next, nil, terms{breaks: true}); err != nil {
			t.Fatal(err)
		}
		expectDone(t, p, "close")
		if idle.Runs != nil || len(a.Running()) > 0 {
			t.Errorf("roles that run without any: %v", a.Running())
		}
	})
}

// expectDone wants what was done with the program since it was looked at last.
func expectDone(t *testing.T, p *roletest.Program, want ...string) {
	t.Helper()
	if !slices.Equal(p.Done, want) {
		t.Errorf("done %q, want %q", p.Done, want)
	}
	p.Done = nil
}

// shownEverywhere wants the role in all that is told of roles.
func shownEverywhere(t *testing.T, a *Agent) {
	t.Helper()
	status, err := a.status()
	if err != nil || !slices.Contains(status.Warnings, "idle is idle") ||
		!slices.ContainsFunc(status.Programs,
			func(p api.Program) bool { return p.Name == "idle" }) {
		t.Errorf("status: %v, %+v", err, status)
	}
	counters, err := a.counters()
	if err != nil || !slices.ContainsFunc(counters, func(c api.Counters) bool {
		return c.Role == "idle" && c.PassedPackets == 7
	}) {
		t.Errorf("counters: %v, %+v", err, counters)
	}
	entries, err := a.dumpMap("idle", "any", 1)
	if err != nil || len(entries) != 1 || entries[0].Key != "idle" {
		t.Errorf("entries: %v, %+v", err, entries)
	}
	if _, err := a.explain(api.Question{Role: "idle"}); err == nil ||
		err.Error() != "idle explains nothing" {
		t.Errorf("explain: %v", err)
	}
}
