package role

import (
	"os"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
)

// Change is a role's part of a change of the node.
type Change interface {
	// Guard refuses a change that would end connections.
	Guard(next *config.Node) error
	// Begin is called before the role is switched to.
	Begin() error
	// Commit switches to what was prepared. If it fails, RollBack is to follow.
	Commit() error
	// RollBack brings back what ran before.
	RollBack() error
	// Discard releases what was prepared, when it is not to run.
	Discard()
	// Adopt writes into the state what a restart must find.
	Adopt(*state.Kept)
	// Finish releases what ran before.
	Finish()
	Leaves() bool // the role goes
}

// Preparable is a pointer to a role. The zero value is a node without the role.
type Preparable[R any] interface {
	comparable
	Switchable[R]
}

// Switchable is a role with what a change needs of it.
type Switchable[R any] interface {
	Role
	// Same says whether both, which are there, run by the same program.
	Same(R) bool
	// Load loads the programs.
	Load(dir string) error
	// Continue takes over those of a role that runs by the same program.
	Continue(running Role) error
	// Fill brings the program's tables from the previous services (zero: they are empty) to its
	// own.
	Fill(before R) error
}

// Loaded is the part of a role that is about its program: what most roles have in common.
type Loaded[P interface {
	comparable
	Program
}] struct {
	Program     P // the zero value as long as there is none
	Attachments []datapath.Attachment
	Broken      bool
	Fault       string // why it does less than it should; "": it does all
}

// Uses is Role.
func (r *Loaded[P]) Uses() Program {
	var none P
	if r.Program == none {
		return nil
	}
	return r.Program
}

// Continue is Switchable. It is called with a role of the same type.
func (r *Loaded[P]) Continue(running Role) error {
	*r = *running.(interface{ loaded() *Loaded[P] }).loaded()
	return nil
}

func (r *Loaded[P]) loaded() *Loaded[P] { return r }

// Attached is Role.
func (r *Loaded[P]) Attached() []datapath.Attachment { return r.Attachments }

// Expected is Role.
func (r *Loaded[P]) Expected() []datapath.Attachment { return r.Attachments }

// RunsAt is Role.
func (r *Loaded[P]) RunsAt(attachments []datapath.Attachment) { r.Attachments = attachments }

// IsBroken is Role.
func (r *Loaded[P]) IsBroken() bool { return r.Broken }

// Adopt is Role.
func (r *Loaded[P]) Adopt(*state.Kept) {}

// Resolves is Role.
func (r *Loaded[P]) Resolves() bool { return false }

// Shortfall is Role.
func (r *Loaded[P]) Shortfall() string { return r.Fault }

// Count is Role.
func (r *Loaded[P]) Count(*api.Counters) error { return nil }

// Shown leaves the side out: only an edge's programs have one that is shown.
func (r *Loaded[P]) Shown(at datapath.Attachment) api.Program {
	p := api.Program{Name: at.Program, Interface: at.On, Tag: at.Tag, ID: at.ID}
	if at.Index == 0 {
		p.Interface, p.Cgroup = "", at.On
	}
	if at.Mode != 0 {
		p.Mode = config.Mode(at.Mode.String())
	}
	return p
}

// Prepared is a change of a role that is built, but not yet switched to.
type Prepared[R Preparable[R]] struct {
	Dir       string // of the pins
	start     bool   // the agent begins: whatever is pinned is an earlier one's
	slot      *R     // the agent's
	old, Next R
	Begun     bool               // commit has begun to change what runs
	before    *datapath.Snapshot // what was pinned then, if programs are replaced
}

// SameProgram reports whether the programs stay.
func (p *Prepared[R]) SameProgram() bool {
	var none R
	return p.old != none && p.Next != none && p.old.Same(p.Next)
}

// Load builds the role, and loads its programs if others run, or none.
func (p *Prepared[R]) Load(build func() (R, error)) error {
	next, err := build()
	var none R
	if err != nil || next == none {
		return err
	}
	if p.Next = next; p.SameProgram() {
		return next.Continue(p.old)
	}
	return next.Load(p.Dir)
}

// Leaves is Change.
func (p *Prepared[R]) Leaves() bool {
	var none R
	return p.Next == none
}

// Guard is Change.
func (p *Prepared[R]) Guard(*config.Node) error { return nil }

// Begin is Change.
func (p *Prepared[R]) Begin() error { return nil }

// Adopt is Role.
func (p *Prepared[R]) Adopt(k *state.Kept) {
	if !p.Leaves() {
		p.Next.Adopt(k)
	}
}

// Commit switches to what was prepared. If it fails, rollBack is to follow.
func (p *Prepared[R]) Commit() (err error) {
	var none R
	if p.old == none && p.Next == none && !p.start {
		return nil
	}
	if p.Begun = true; p.SameProgram() {
		return p.Next.Fill(p.old)
	}
	if p.before, err = datapath.TakeSnapshot(p.Dir); err != nil {
		return err
	}
	if p.Next == none {
		return datapath.Unload(p.Dir)
	}
	if err := p.Next.Fill(none); err != nil {
		return err
	}
	attachments, err := p.Next.Uses().Commit()
	p.Next.RunsAt(attachments)
	return err
}

// RollBack brings back what ran before, whether this agent or an earlier one had put it there.
func (p *Prepared[R]) RollBack() error {
	switch {
	case p.Begun && p.SameProgram():
		return p.old.Fill(p.Next)
	case p.before != nil:
		var none R
		err := p.before.Restore()
		if p.old != none {
			p.old.Uses().Hold() // the links that were put back
		}
		return err
	}
	return nil
}

// TakenOver are programs of an earlier agent.
type TakenOver interface {
	Program
	// Confirm ends the comparison of the tables with what is filled in.
	Confirm() error
}

// TakesOver returns why programs that an earlier agent left can't run on, and releases them then:
// their tables do not have exactly what fill wants. Nil: they can.
func TakesOver(p TakenOver, fill func() error) error {
	err := fill()
	if err == nil {
		err = p.Confirm()
	}
	if err != nil {
		p.Close()
	}
	return err
}

// Discard releases what was prepared.
func (p *Prepared[R]) Discard() {
	var none R
	if p.Next != none && p.Next.Uses() != nil && !p.SameProgram() {
		abandon(p.Next.Uses())
	}
	if p.before != nil {
		p.before.Close()
	}
	os.Remove(p.Dir) // if nothing is pinned in it
}

// abandon releases what was loaded, and what was made for it.
func abandon(p Program) {
	if a, makes := p.(interface{ Abandon() error }); makes {
		_ = a.Abandon() // what it leaves serves the next one
		return
	}
	p.Close()
}

// Finish releases what ran before, and makes the role the agent's.
func (p *Prepared[R]) Finish() {
	var none R
	if p.old != none && !p.SameProgram() {
		p.old.Uses().Close()
	}
	if p.before != nil {
		p.before.Close()
	}
	*p.slot = p.Next
}
