package agent

import (
	"os"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
)

// change is a role's part of a change of the node.
type change interface {
	// guard refuses a change that would end connections.
	guard(next *config.Node) error
	// begin is called before the role is switched to.
	begin() error
	commit() error
	rollBack() error
	discard()
	adopt(*kept)
	finish()
	leaves() bool // the role goes
}

// preparable is a pointer to a role. The zero value is a node without the role.
type preparable[R any] interface {
	comparable
	switchable[R]
}

// switchable is a role with what a change needs of it.
type switchable[R any] interface {
	role
	// same says whether both, which are there, run by the same program.
	same(R) bool
	// load takes over the programs of a role that is the same, or loads them anew if running is
	// the zero value.
	load(dir string, running R) error
	// fill brings the program's tables from the previous services (zero: they are empty) to its
	// own.
	fill(before R) error
}

// loaded is the part of a role that is about its program: what most roles have in common.
type loaded[P interface {
	comparable
	program
}] struct {
	program     P // the zero value as long as there is none
	attachments []datapath.Attachment
	broken      bool
	fault       string // why it does less than it should; "": it does all
}

func (r *loaded[P]) uses() program {
	var none P
	if r.program == none {
		return nil
	}
	return r.program
}

func (r *loaded[P]) attached() []datapath.Attachment          { return r.attachments }
func (r *loaded[P]) expected() []datapath.Attachment          { return r.attachments }
func (r *loaded[P]) runsAt(attachments []datapath.Attachment) { r.attachments = attachments }
func (r *loaded[P]) isBroken() bool                           { return r.broken }
func (r *loaded[P]) adopt(*kept)                              {}
func (r *loaded[P]) resolves() bool                           { return false }
func (r *loaded[P]) shortfall() string                        { return r.fault }
func (r *loaded[P]) count(*api.Counters) error                { return nil }

// shown leaves the side out: only an edge's programs have one that is shown.
func (r *loaded[P]) shown(at datapath.Attachment) api.Program {
	p := api.Program{Name: at.Program, Interface: at.On, Tag: at.Tag, ID: at.ID}
	if at.Index == 0 {
		p.Interface, p.Cgroup = "", at.On
	}
	if at.Mode != 0 {
		p.Mode = config.Mode(at.Mode.String())
	}
	return p
}

// prepared is a change of a role that is built, but not yet switched to.
type prepared[R preparable[R]] struct {
	dir       string // of the pins
	start     bool   // the agent begins: whatever is pinned is an earlier one's
	slot      *R     // the agent's
	old, next R
	begun     bool               // commit has begun to change what runs
	before    *datapath.Snapshot // what was pinned then, if programs are replaced
}

func (p *prepared[R]) sameProgram() bool {
	var none R
	return p.old != none && p.next != none && p.old.same(p.next)
}

// load builds the role, and loads its programs if others run, or none.
func (p *prepared[R]) load(build func() (R, error)) error {
	next, err := build()
	var running R
	if err != nil || next == running {
		return err
	}
	if p.next = next; p.sameProgram() {
		running = p.old
	}
	return next.load(p.dir, running)
}

func (p *prepared[R]) leaves() bool {
	var none R
	return p.next == none
}

func (p *prepared[R]) guard(*config.Node) error { return nil }
func (p *prepared[R]) begin() error             { return nil }

func (p *prepared[R]) adopt(k *kept) {
	if !p.leaves() {
		p.next.adopt(k)
	}
}

// commit switches to what was prepared. If it fails, rollBack is to follow.
func (p *prepared[R]) commit() (err error) {
	var none R
	if p.old == none && p.next == none && !p.start {
		return nil
	}
	if p.begun = true; p.sameProgram() {
		return p.next.fill(p.old)
	}
	if p.before, err = datapath.TakeSnapshot(p.dir); err != nil {
		return err
	}
	if p.next == none {
		return datapath.Unload(p.dir)
	}
	if err := p.next.fill(none); err != nil {
		return err
	}
	attachments, err := p.next.uses().Commit()
	p.next.runsAt(attachments)
	return err
}

// rollBack brings back what ran before, whether this agent or an earlier one had put it there.
func (p *prepared[R]) rollBack() error {
	switch {
	case p.begun && p.sameProgram():
		return p.old.fill(p.next)
	case p.before != nil:
		var none R
		err := p.before.Restore()
		if p.old != none {
			p.old.uses().Hold() // the links that were put back
		}
		return err
	}
	return nil
}

// discard releases what was prepared.
func (p *prepared[R]) discard() {
	var none R
	if p.next != none && p.next.uses() != nil && !p.sameProgram() {
		abandon(p.next.uses())
	}
	if p.before != nil {
		p.before.Close()
	}
	os.Remove(p.dir) // if nothing is pinned in it
}

// abandon releases what was loaded, and what was made for it.
func abandon(p program) {
	if a, makes := p.(interface{ Abandon() error }); makes {
		_ = a.Abandon() // what it leaves serves the next one
		return
	}
	p.Close()
}

// finish releases what ran before, and makes the role the agent's.
func (p *prepared[R]) finish() {
	var none R
	if p.old != none && !p.sameProgram() {
		p.old.uses().Close()
	}
	if p.before != nil {
		p.before.Close()
	}
	*p.slot = p.next
}
