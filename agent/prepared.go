package agent

import (
	"os"

	"sextant/datapath"
)

// role is *edgeRole, *hostRole, *headendRole, *mergeRole or *straysRole. The zero value is a node
// without the role.
type role[R any] interface {
	comparable
	roleMethods[R]
}

type roleMethods[R any] interface {
	// same says whether both, which are there, run by the same program.
	same(R) bool
	// fill brings the program's tables from the services of before (zero: they are empty) to its
	// own.
	fill(before R) error
	// loaded is its program, nil as long as there is none.
	loaded() pinnable
	// runsAt notes where the program runs.
	runsAt([]datapath.Attachment)
}

var (
	_ roleMethods[*edgeRole]    = (*edgeRole)(nil)
	_ roleMethods[*hostRole]    = (*hostRole)(nil)
	_ roleMethods[*headendRole] = (*headendRole)(nil)
	_ roleMethods[*mergeRole]   = (*mergeRole)(nil)
	_ roleMethods[*straysRole]  = (*straysRole)(nil)
)

// pinnable is what package datapath loads.
type pinnable interface {
	Commit() ([]datapath.Attachment, error)
	Hold()
	Close()
}

// prepared is a change of a role that is built, but not yet switched to.
type prepared[R role[R]] struct {
	dir       string // of the pins
	start     bool   // the agent begins: whatever is pinned is an earlier one's
	old, next R
	begun     bool               // commit has begun to change what runs
	before    *datapath.Snapshot // what was pinned then, if programs are replaced
}

func (p *prepared[R]) sameProgram() bool {
	var none R
	return p.old != none && p.next != none && p.old.same(p.next)
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
	attachments, err := p.next.loaded().Commit()
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
			p.old.loaded().Hold() // the links that were put back
		}
		return err
	}
	return nil
}

// discard lets go of what was prepared.
func (p *prepared[R]) discard() {
	var none R
	if p == nil {
		return
	}
	if p.next != none && p.next.loaded() != nil && !p.sameProgram() {
		abandon(p.next.loaded())
	}
	if p.before != nil {
		p.before.Close()
	}
	os.Remove(p.dir) // if nothing is pinned in it
}

// abandon lets go of what was loaded, and of what was made for it.
func abandon(p pinnable) {
	if a, makes := p.(interface{ Abandon() error }); makes {
		_ = a.Abandon() // what it leaves serves the next one
		return
	}
	p.Close()
}

// finish lets go of what ran before, and returns what runs.
func (p *prepared[R]) finish() R {
	var none R
	if p.old != none && !p.sameProgram() {
		p.old.loaded().Close()
	}
	if p.before != nil {
		p.before.Close()
	}
	return p.next
}
