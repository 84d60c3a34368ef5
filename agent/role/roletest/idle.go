// Package roletest is a role that does nothing, beside every head-end. This folder is all of it; a
// test adds it by one line.
package roletest

import (
	"errors"

	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
)

// Role is the role as it runs.
type Role struct {
	role.Loaded[*Program]
	refuses *bool
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Program notes what is done with it.
type Program struct {
	Done     []string // since it was looked at last
	Detached bool     // from its place, until it is attached again
}

var places = []datapath.Attachment{{Program: "idle", On: "p0", Index: 1}}

func (p *Program) note(what string) { p.Done = append(p.Done, what) }

// Commit is role.Program.
func (p *Program) Commit() ([]datapath.Attachment, error) {
	p.note("commit")
	return places, nil
}

// Hold is role.Program.
func (p *Program) Hold() { p.note("hold") }

// Close is role.Program.
func (p *Program) Close() { p.note("close") }

// Reattach is role.Program.
func (p *Program) Reattach() error { p.Detached = false; return nil }

// Attachments is role.Program.
func (p *Program) Attachments() []datapath.Attachment { return places }

// ForgetNextHops is role.Program.
func (p *Program) ForgetNextHops() error { p.note("forget"); return nil }

// Drops is role.Program.
func (p *Program) Drops() ([]datapath.Counter, error) { return nil, nil }

// Outcomes is role.Program.
func (p *Program) Outcomes() ([]datapath.Counter, error) {
	return []datapath.Counter{{Name: "passed", Packets: 7}}, nil
}

// Maps is role.Program.
func (p *Program) Maps() []datapath.MapUse { return nil }

// Dump is role.Program.
func (p *Program) Dump(string, int) ([]datapath.Entry, error) {
	return []datapath.Entry{{Key: "idle", CPU: -1}}, nil
}

// Faults is role.Program.
func (p *Program) Faults(on []datapath.Attachment) ([]string, error) {
	faults := make([]string, len(on))
	if p.Detached {
		p.note("detached")
		faults[0] = "detached"
	}
	return faults, nil
}

// Same is role.Switchable.
func (r *Role) Same(*Role) bool { return true }

// Load is role.Switchable.
func (r *Role) Load(string) error {
	r.Program = new(Program)
	r.Program.note("load")
	return nil
}

// Continue is role.Switchable.
func (r *Role) Continue(running role.Role) error {
	err := r.Loaded.Continue(running)
	r.Program.note("continue")
	return err
}

// Fill is role.Switchable.
func (r *Role) Fill(*Role) error {
	r.Program.note("fill")
	if *r.refuses {
		*r.refuses = false // it can be brought back
		return errors.New("idle refuses")
	}
	return nil
}

// Room is the node's place for the role.
type Room struct {
	role.Slot[*Role]
	Refuses bool // the next change; then no more
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
}

// Prepare is role.Room.
func (r *Room) Prepare(next *config.Node) (role.Change, error) {
	return r.ChangeTo(func() (*Role, error) {
		if next.Headend == nil {
			return nil, nil
		}
		return &Role{refuses: &r.Refuses}, nil
	})
}

// Warnings is role.Room.
func (r *Room) Warnings() (list []string) {
	if r.Runs != nil {
		list = append(list, "idle is idle")
	}
	return list
}

// Explain is role.Room.
func (r *Room) Explain(*explain.Explaining, string) error {
	return errors.New("idle explains nothing")
}
