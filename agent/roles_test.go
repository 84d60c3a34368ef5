package agent

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
)

// idleRole is a role that does nothing, beside every head-end. This file is all of it; the test
// adds it by one line.
type idleRole struct {
	loaded[*idleProgram]
	refuses *bool
}

var _ switchable[*idleRole] = (*idleRole)(nil)

// idleProgram notes what is done with it.
type idleProgram struct {
	done     []string
	detached bool
}

var idlePlace = []datapath.Attachment{{Program: "idle", On: "p0", Index: 1}}

func (p *idleProgram) note(what string) { p.done = append(p.done, what) }

func (p *idleProgram) Commit() ([]datapath.Attachment, error) {
	p.note("commit")
	return idlePlace, nil
}
func (p *idleProgram) Hold()                              { p.note("hold") }
func (p *idleProgram) Close()                             { p.note("close") }
func (p *idleProgram) Reattach() error                    { p.detached = false; return nil }
func (p *idleProgram) Attachments() []datapath.Attachment { return idlePlace }
func (p *idleProgram) ForgetNextHops() error              { p.note("forget"); return nil }
func (p *idleProgram) Drops() ([]datapath.Counter, error) { return nil, nil }
func (p *idleProgram) Outcomes() ([]datapath.Counter, error) {
	return []datapath.Counter{{Name: "passed", Packets: 7}}, nil
}
func (p *idleProgram) Maps() []datapath.MapUse { return nil }
func (p *idleProgram) Dump(string, int) ([]datapath.Entry, error) {
	return []datapath.Entry{{Key: "idle", CPU: -1}}, nil
}
func (p *idleProgram) Faults(on []datapath.Attachment) ([]string, error) {
	faults := make([]string, len(on))
	if p.detached {
		p.note("detached")
		faults[0] = "detached"
	}
	return faults, nil
}

func (r *idleRole) same(*idleRole) bool { return true }

func (r *idleRole) load(_ string, running *idleRole) error {
	if r.program = new(idleProgram); running != nil {
		r.loaded = running.loaded
	}
	r.program.note("load")
	return nil
}

func (r *idleRole) fill(*idleRole) error {
	r.program.note("fill")
	if *r.refuses {
		*r.refuses = false // it can be brought back
		return errors.New("idle refuses")
	}
	return nil
}

// idleRoom is the node's place for the role.
type idleRoom struct {
	slot[*idleRole]
	refuses bool
}

func newIdleRoom(p parts) *idleRoom {
	return &idleRoom{slot: slot[*idleRole]{parts: p, name: "idle"}}
}

func (r *idleRoom) prepare(next *config.Node) (change, error) {
	return r.changeTo(func() (*idleRole, error) {
		if next.Headend == nil {
			return nil, nil
		}
		return &idleRole{refuses: &r.refuses}, nil
	})
}

func (r *idleRoom) warnings() (list []string) {
	if r.runs != nil {
		list = append(list, "idle is idle")
	}
	return list
}

func (r *idleRoom) explain(*explaining, string) error { return errors.New("idle explains nothing") }

// A role is whole with a file of its own and one line: it is loaded, shown, watched, rolled back
// and taken away with the others.
func TestAddedRole(t *testing.T) {
	text := strings.ReplaceAll(headendText, "DIR", t.TempDir())
	inNamespace(t, func(pins string) {
		a := takenOver(t, pins, text, kindOf("idle", newIdleRoom).committedLate())
		idle := theRoom[*idleRoom](a.roles)
		defer a.store.close()
		past := theRoom[*edgeRoom](a.roles).past
		past.journal = openJournal(a.node.State, a.node.Name, a.options.Log)
		defer past.journal.close()
		p := idle.runs.program
		expectDone(t, p, "load", "fill", "commit")
		shownEverywhere(t, a)

		p.detached = true
		if err := a.watch.look(); err != nil || p.detached {
			t.Errorf("the agent has not attached the program again: %v", err)
		}
		expectDone(t, p, "detached")

		steering := headend(a).runs.steering
		idle.refuses = true
		next, err := config.Parse("node.yaml", []byte(strings.ReplaceAll(text, "d6", "d7")))
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.reconcile(next, nil, terms{breaks: true})
		if err == nil || !strings.Contains(err.Error(), "idle refuses") {
			t.Errorf("a change that the role refuses gives %v", err)
		}
		is := headend(a).runs.steering
		if steering.policies[0].Index != is.policies[0].Index || a.node == next {
			t.Error("what the role refuses has become what runs")
		}
		expectDone(t, p, "load", "fill", "fill") // to the next, and back

		next = a.node.Clone()
		next.Headend = nil
		if _, err := a.reconcile(next, nil, terms{breaks: true}); err != nil {
			t.Fatal(err)
		}
		expectDone(t, p, "close")
		if idle.runs != nil || len(a.running()) > 0 {
			t.Errorf("roles that run without any: %v", a.running())
		}
	})
}

// expectDone wants what was done with the program since it was looked at last.
func expectDone(t *testing.T, p *idleProgram, want ...string) {
	t.Helper()
	if !slices.Equal(p.done, want) {
		t.Errorf("done %q, want %q", p.done, want)
	}
	p.done = nil
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
