// Package role is what roles share: what a role is, the room that an agent has for it, how it
// changes, and the goroutine that owns the agent's state, as others see it.
package role

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/metrics"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/routing/bgp"
)

// Role is what the node does by one set of programs. Type Loaded has the methods that a role leaves
// out.
type Role interface {
	// Uses is what runs in the kernel; nil: nothing.
	Uses() Program
	// Attached is where its programs run.
	Attached() []datapath.Attachment
	// Expected is where they should run now, as far as the devices are there.
	Expected() []datapath.Attachment
	// RunsAt notes where its programs run.
	RunsAt([]datapath.Attachment)
	// IsBroken reports whether the programs are of no use any more, whatever their settings.
	IsBroken() bool
	// Adopt keeps the numbers under which the kernel's tables know things.
	Adopt(*state.Kept)
	// Resolves reports whether its programs look next hops up, and remember them.
	Resolves() bool
	// Shortfall says why the role does less than it should; "": it does all.
	Shortfall() string
	// Count adds the counters that other roles do not have.
	Count(*api.Counters) error
	// Shown is what status says of a program.
	Shown(datapath.Attachment) api.Program
}

// Program is what package datapath loads for a role.
type Program interface {
	// Commit attaches and pins the programs.
	Commit() ([]datapath.Attachment, error)
	// Hold keeps the links open.
	Hold()
	// Close releases the programs, which run on.
	Close()
	// Faults says what is wrong at each place, "": nothing.
	Faults([]datapath.Attachment) ([]string, error)
	// Reattach attaches what is missing.
	Reattach() error
	// Attachments are the places at which the programs run.
	Attachments() []datapath.Attachment
	// ForgetNextHops makes the programs look at routes and neighbours again.
	ForgetNextHops() error
	// Drops counts packets by the reason for which they were dropped.
	Drops() ([]datapath.Counter, error)
	// Outcomes counts packets that were not dropped.
	Outcomes() ([]datapath.Counter, error)
	// Maps returns the tables.
	Maps() []datapath.MapUse
	// Dump returns at most limit entries of a table, datapath.ErrNoMap if there is none.
	Dump(name string, limit int) ([]datapath.Entry, error)
}

// Room is what an agent has for a role for as long as the agent lives, whether its node has the
// role now or not. Type Slot has the methods that a room leaves out. What else a room may have:
// interfaces of hooks.go.
type Room interface {
	// Prepare builds what the configuration wants. The change is to be discarded also after an
	// error.
	Prepare(next *config.Node) (Change, error)
	Running() Role // nil: none
	// Warnings are looked for whenever status is asked for.
	Warnings() []string
	// Explain opens what explains packets that arrive on an interface, "": the usual one. It is
	// called while the role runs.
	Explain(x *explain.Explaining, on string) error
}

// Parts are what a room is given of its agent.
type Parts struct {
	*Core
	Name     api.Role // of the room's role
	Found    *Discoveries
	Attached interface {
		// Processes says whether all programs of a role run.
		Processes(api.Role) bool
	}
	// Speaker is the node's part in BGP; nil: none.
	Speaker func() *bgp.Speaker
	// Change makes what edit returns the configuration that runs.
	Change func(ctx context.Context, edit func(*config.Node) (*config.Node, error)) (
		[]config.Change, error)
	Reload func() error // loads broken programs anew
}

// Slot is the part of a room that is about the role that runs: what all rooms have in common.
type Slot[R Preparable[R]] struct {
	Parts
	Runs R // the zero value: the node does not have the role
}

// Running is Room.
func (s *Slot[R]) Running() Role {
	var none R
	if s.Runs == none {
		return nil
	}
	return s.Runs
}

// Warnings is Room.
func (s *Slot[R]) Warnings() []string { return nil }

// Counters asks the owner goroutine, for a scrape, for what the role counts and others do not; the
// zero value: the role does not run, or its counters can't be read, which the scrape tells.
func (s *Slot[R]) Counters(out chan<- prometheus.Metric) (c api.Counters) {
	metrics.Part(out, string(s.Name), func(ctx context.Context) (err error) {
		c, err = See(ctx, &s.Loop, func() (c api.Counters, err error) {
			if r := s.Running(); r != nil {
				err = r.Count(&c)
			}
			return c, err
		})
		return err
	})
	return c
}

// ChangeTo is a change to the role that build returns: the zero value for a node without it.
func (s *Slot[R]) ChangeTo(build func() (R, error)) (*Prepared[R], error) {
	p := &Prepared[R]{Dir: s.Pins(s.Name), start: s.Node == nil, slot: &s.Runs, old: s.Runs}
	return p, p.Load(build)
}

// Kind is a role that a node may have.
type Kind struct {
	Name api.Role // its directory of pins, too
	// late roles are switched to after the others: those that send what others must know before.
	late bool
	open func(Parts) Room
	// Clean removes what the role has made beside its programs; nil: nothing.
	Clean func(pins string) error
}

// KindOf is a kind of role with the room that an agent has for it.
func KindOf[R Room](name api.Role, open func(Parts) R) Kind {
	return Kind{Name: name, open: func(p Parts) Room { return open(p) }}
}

// CommittedLate is the kind, switched to after the others.
func (k Kind) CommittedLate() Kind {
	k.late = true
	return k
}

// CleanedBy is the kind with something to remove beside its programs.
func (k Kind) CleanedBy(clean func(pins string) error) Kind {
	k.Clean = clean
	return k
}

// Roles are all roles, with their rooms.
type Roles struct {
	Rooms []namedRoom
}

// namedRoom is the room of a kind of role.
type namedRoom struct {
	Kind
	Room
}

// OpenRooms makes the rooms of all kinds.
func OpenRooms(kinds []Kind, p Parts) *Roles {
	l := &Roles{}
	for _, k := range kinds {
		p.Name = k.Name
		l.Rooms = append(l.Rooms, namedRoom{k, k.open(p)})
	}
	return l
}

// NamedRole is a role that runs.
type NamedRole struct {
	Name api.Role
	Role
	Room Room
}

// Running lists the roles that run.
func (l *Roles) Running() (list []NamedRole) {
	for _, room := range l.Rooms {
		if r := room.Running(); r != nil {
			list = append(list, NamedRole{room.Name, r, room.Room})
		}
	}
	return list
}

// IsBroken reports whether a role's programs are to be loaded anew.
func (l *Roles) IsBroken() bool {
	return slices.ContainsFunc(l.Running(), func(r NamedRole) bool { return r.IsBroken() })
}

// Chosen is the running role of a name, or the first one if the name is "".
func (l *Roles) Chosen(name api.Role) (NamedRole, bool) {
	list := l.Running()
	i := slices.IndexFunc(list, func(r NamedRole) bool { return name == "" || r.Name == name })
	if i < 0 {
		return NamedRole{Name: name}, false
	}
	return list[i], true
}

// ForgetNextHops makes the programs look at routes and neighbours again.
func (l *Roles) ForgetNextHops(log *slog.Logger) {
	for _, r := range l.Running() {
		if !r.Resolves() {
			continue
		}
		if err := r.Uses().ForgetNextHops(); err != nil {
			log.Warn("next hops stay remembered for up to 100 ms", "error", err)
		}
	}
}

// Note has the rooms look what is to be noted.
func (l *Roles) Note() {
	for _, room := range Having[follower](l) {
		room.Note()
	}
}

// DueTime reports when a room has something to do because of the time alone; never if none has.
func (l *Roles) DueTime() <-chan time.Time {
	first, any := time.Duration(0), false
	for _, room := range Having[timed](l) {
		if wait, waits := room.Due(); waits && (!any || wait < first) {
			first, any = wait, true
		}
	}
	if !any {
		return nil
	}
	return time.After(first)
}

// Act has the rooms do what is due.
func (l *Roles) Act() {
	for _, room := range Having[timed](l) {
		if wait, waits := room.Due(); waits && wait <= 0 {
			room.Act()
		}
	}
}

// Having are the rooms that have a hook, in the order of the roles.
func Having[T any](l *Roles) (list []T) {
	for _, room := range l.Rooms {
		if t, has := room.Room.(T); has {
			list = append(list, t)
		}
	}
	return list
}

// TheRoom is the first room that has some methods; the zero value: none has.
func TheRoom[T any](l *Roles) (t T) {
	if list := Having[T](l); len(list) > 0 {
		return list[0]
	}
	return t
}

// RoleChanges are a change of all roles that is built, but not yet switched to: in the order in
// which they were prepared, up to one that refused.
type RoleChanges []Change

// Prepare is Room.
func (c *RoleChanges) Prepare(l *Roles, next *config.Node) error {
	for _, late := range []bool{false, true} {
		for _, room := range l.Rooms {
			if room.late != late {
				continue
			}
			one, err := room.Prepare(next)
			*c = append(*c, one)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Guard refuses a change that would end connections.
func (c RoleChanges) Guard(next *config.Node) error {
	for _, one := range c {
		if err := one.Guard(next); err != nil {
			return err
		}
	}
	return nil
}

// ordered are the changes in the order in which they are made: roles that go before those that may
// want their interfaces.
func (c RoleChanges) ordered() []Change {
	list := slices.Clone(c)
	slices.SortStableFunc(list, func(a, b Change) int {
		switch {
		case a.Leaves() == b.Leaves():
			return 0
		case a.Leaves():
			return -1
		}
		return 1
	})
	return list
}

// Begin is Change.
func (c RoleChanges) Begin() error {
	for _, one := range c {
		if err := one.Begin(); err != nil {
			return err
		}
	}
	return nil
}

// Commit switches to what was prepared. If it fails, rollBack is to follow.
func (c RoleChanges) Commit() error {
	for _, one := range c.ordered() {
		if err := one.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// RollBack goes back the way that commit came.
func (c RoleChanges) RollBack() error {
	var failures []error
	for _, one := range slices.Backward(c.ordered()) {
		failures = append(failures, one.RollBack())
	}
	return errors.Join(failures...)
}

// Discard is Change.
func (c RoleChanges) Discard() {
	for _, one := range c {
		one.Discard()
	}
}

// Adopt is Role.
func (c RoleChanges) Adopt(k *state.Kept) {
	k.Merges = nil
	for _, one := range c {
		one.Adopt(k)
	}
}

// Finish makes the roles the agent's.
func (c RoleChanges) Finish() {
	for _, one := range c {
		one.Finish()
	}
}
