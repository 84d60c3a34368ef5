package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/routing/bgp"
)

// role is what the node does by one set of programs. Type loaded has the methods that a role leaves
// out.
type role interface {
	uses() program
	// attached is where its programs run.
	attached() []datapath.Attachment
	// expected is where they should run now, as far as the devices are there.
	expected() []datapath.Attachment
	runsAt([]datapath.Attachment)
	// isBroken reports whether the programs are of no use any more, whatever their settings.
	isBroken() bool
	// adopt keeps the numbers under which the kernel's tables know things.
	adopt(*kept)
	// resolves reports whether its programs look next hops up, and remember them.
	resolves() bool
	// shortfall says why the role does less than it should; "": it does all.
	shortfall() string
	// count adds the counters that other roles do not have.
	count(*api.Counters) error
	// shown is what status says of a program.
	shown(datapath.Attachment) api.Program
}

// program is what package datapath loads for a role.
type program interface {
	Commit() ([]datapath.Attachment, error)
	Hold()
	Close()
	Faults([]datapath.Attachment) ([]string, error)
	Reattach() error
	Attachments() []datapath.Attachment
	ForgetNextHops() error
	Drops() ([]datapath.Counter, error)
	Outcomes() ([]datapath.Counter, error)
	Maps() []datapath.MapUse
	Dump(name string, limit int) ([]datapath.Entry, error)
}

// room is what an agent has for a role for as long as the agent lives, whether its node has the
// role now or not. Type slot has the methods that a room leaves out. What else a room may have:
// interfaces of hooks.go.
type room interface {
	// prepare builds what the configuration wants. The change is to be discarded also after an
	// error.
	prepare(next *config.Node) (change, error)
	running() role // nil: none
	// warnings are looked for whenever status is asked for.
	warnings() []string
	// explain opens what explains packets that arrive on an interface, "": the usual one. It is
	// called while the role runs.
	explain(x *explaining, on string) error
}

// parts are what a room is given of its agent.
type parts struct {
	*core
	found    *discoveries
	attached interface {
		// processes says whether all programs of a role run.
		processes(api.Role) bool
	}
	// speaker is the node's part in BGP; nil: none.
	speaker func() *bgp.Speaker
	// change makes what edit returns the configuration that runs.
	change func(ctx context.Context, edit func(*config.Node) (*config.Node, error)) (
		[]config.Change, error)
	reload func() error // loads broken programs anew
}

// slot is the part of a room that is about the role that runs: what all rooms have in common.
type slot[R preparable[R]] struct {
	parts
	name api.Role
	runs R // the zero value: the node does not have the role
}

func (s *slot[R]) running() role {
	var none R
	if s.runs == none {
		return nil
	}
	return s.runs
}

func (s *slot[R]) warnings() []string { return nil }

// changeTo is a change to the role that build returns: the zero value for a node without it.
func (s *slot[R]) changeTo(build func() (R, error)) (*prepared[R], error) {
	p := &prepared[R]{dir: s.pins(s.name), start: s.node == nil, slot: &s.runs, old: s.runs}
	return p, p.load(build)
}

// kind is a role that a node may have.
type kind struct {
	name api.Role // its directory of pins, too
	// late roles are switched to after the others: those that send what others must know before.
	late bool
	open func(parts) room
	// clean removes what the role has made beside its programs; nil: nothing.
	clean func(pins string) error
}

// kinds lists all roles, in the order in which they are shown. It is the one place that does.
func kinds() []kind {
	return []kind{
		kindOf(api.Edge, newEdgeRoom).cleanedBy(cleanEdge),
		kindOf(api.Host, newHostRoom),
		kindOf(api.Headend, newHeadendRoom).committedLate(),
		kindOf(api.Merge, newMergeRoom),
		kindOf(api.Strays, newStraysRoom).committedLate(),
		kindOf(api.CFLB, newCFLBRoom),
		kindOf(api.Telemetry, newTelemetryRoom),
	}
}

// kindOf is a kind of role with the room that an agent has for it.
func kindOf[R room](name api.Role, open func(parts) R) kind {
	return kind{name: name, open: func(p parts) room { return open(p) }}
}

func (k kind) committedLate() kind {
	k.late = true
	return k
}

func (k kind) cleanedBy(clean func(pins string) error) kind {
	k.clean = clean
	return k
}

// roles are all roles, with their rooms.
type roles struct {
	rooms []namedRoom
}

// namedRoom is the room of a kind of role.
type namedRoom struct {
	kind
	room
}

func openRooms(kinds []kind, p parts) *roles {
	l := &roles{}
	for _, k := range kinds {
		l.rooms = append(l.rooms, namedRoom{k, k.open(p)})
	}
	return l
}

// namedRole is a role that runs.
type namedRole struct {
	name api.Role
	role
	room room
}

// running lists the roles that run.
func (l *roles) running() (list []namedRole) {
	for _, room := range l.rooms {
		if r := room.running(); r != nil {
			list = append(list, namedRole{room.name, r, room.room})
		}
	}
	return list
}

// isBroken reports whether a role's programs are to be loaded anew.
func (l *roles) isBroken() bool {
	return slices.ContainsFunc(l.running(), func(r namedRole) bool { return r.isBroken() })
}

// chosen is the running role of a name, or the first one if the name is "".
func (l *roles) chosen(name api.Role) (namedRole, bool) {
	list := l.running()
	i := slices.IndexFunc(list, func(r namedRole) bool { return name == "" || r.name == name })
	if i < 0 {
		return namedRole{name: name}, false
	}
	return list[i], true
}

// forgetNextHops makes the programs look at routes and neighbours again.
func (l *roles) forgetNextHops(log *slog.Logger) {
	for _, r := range l.running() {
		if !r.resolves() {
			continue
		}
		if err := r.uses().ForgetNextHops(); err != nil {
			log.Warn("next hops stay remembered for up to 100 ms", "error", err)
		}
	}
}

// note has the rooms look what is to be noted.
func (l *roles) note() {
	for _, room := range having[follower](l) {
		room.note()
	}
}

// dueTime reports when a room has something to do because of the time alone; never if none has.
func (l *roles) dueTime() <-chan time.Time {
	first, any := time.Duration(0), false
	for _, room := range having[timed](l) {
		if wait, waits := room.due(); waits && (!any || wait < first) {
			first, any = wait, true
		}
	}
	if !any {
		return nil
	}
	return time.After(first)
}

// act has the rooms do what is due.
func (l *roles) act() {
	for _, room := range having[timed](l) {
		if wait, waits := room.due(); waits && wait <= 0 {
			room.act()
		}
	}
}

// having are the rooms that have a hook, in the order of the roles.
func having[T any](l *roles) (list []T) {
	for _, room := range l.rooms {
		if t, has := room.room.(T); has {
			list = append(list, t)
		}
	}
	return list
}

// theRoom is the first room that has some methods; the zero value: none has.
func theRoom[T any](l *roles) (t T) {
	if list := having[T](l); len(list) > 0 {
		return list[0]
	}
	return t
}

// roleChanges are a change of all roles that is built, but not yet switched to: in the order in
// which they were prepared, up to one that refused.
type roleChanges []change

func (c *roleChanges) prepare(l *roles, next *config.Node) error {
	for _, late := range []bool{false, true} {
		for _, room := range l.rooms {
			if room.late != late {
				continue
			}
			one, err := room.prepare(next)
			*c = append(*c, one)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// guard refuses a change that would end connections.
func (c roleChanges) guard(next *config.Node) error {
	for _, one := range c {
		if err := one.guard(next); err != nil {
			return err
		}
	}
	return nil
}

// ordered are the changes in the order in which they are made: roles that go before those that may
// want their interfaces.
func (c roleChanges) ordered() []change {
	list := slices.Clone(c)
	slices.SortStableFunc(list, func(a, b change) int {
		switch {
		case a.leaves() == b.leaves():
			return 0
		case a.leaves():
			return -1
		}
		return 1
	})
	return list
}

func (c roleChanges) begin() error {
	for _, one := range c {
		if err := one.begin(); err != nil {
			return err
		}
	}
	return nil
}

// commit switches to what was prepared. If it fails, rollBack is to follow.
func (c roleChanges) commit() error {
	for _, one := range c.ordered() {
		if err := one.commit(); err != nil {
			return err
		}
	}
	return nil
}

// rollBack goes back the way that commit came.
func (c roleChanges) rollBack() error {
	var failures []error
	for _, one := range slices.Backward(c.ordered()) {
		failures = append(failures, one.rollBack())
	}
	return errors.Join(failures...)
}

func (c roleChanges) discard() {
	for _, one := range c {
		one.discard()
	}
}

func (c roleChanges) adopt(k *kept) {
	k.Merges = nil
	for _, one := range c {
		one.adopt(k)
	}
}

// finish makes the roles the agent's.
func (c roleChanges) finish() {
	for _, one := range c {
		one.finish()
	}
}
