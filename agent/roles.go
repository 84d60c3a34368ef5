package agent

import (
	"errors"
	"path/filepath"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
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
	// begin is called before the role is switched to.
	begin(*Agent) error
	// adopt keeps the numbers under which the kernel's tables know things.
	adopt(*kept)
	// resolves reports whether its programs look next hops up, and remember them.
	resolves() bool
	// shortfall says why the role does less than it should; "": it does all. It is part of what
	// collectWarnings collects, warnings are looked for whenever status is asked for.
	shortfall() string
	warnings(*Agent) []string
	// count adds the counters that other roles do not have.
	count(*api.Counters) error
	// shown is what status says of a program.
	shown(datapath.Attachment) api.Program
	// explain opens what explains packets that arrive on an interface, "": the usual one.
	explain(x *explaining, on string) error
}

// capturer is a role whose packets are copied, or that says where they are seen.
type capturer interface {
	capture(bytes int, interfaces ...string) (*datapath.Capture, error)
	// model makes x name what captured packets met.
	model(*explaining)
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

// roles are those that run, by kind; nil: the node does not have the role.
type roles struct {
	edge      *edgeRole
	host      *hostRole
	headend   *headendRole
	merge     *mergeRole  // egress of protected traffic
	strayRole *straysRole // takes strays away beside a router
}

// kind is a role that a node may have.
type kind struct {
	name api.Role // its directory of pins, too
	// late roles are switched to after the others: those that send what others must know before.
	late bool
	// prepare builds what the configuration wants. The change is to be discarded also after an
	// error.
	prepare func(*Agent, *config.Node) (change, error)
	running func(*Agent) role // nil: none
	// clean removes what the role has made beside its programs; nil: nothing.
	clean func(pins string) error
}

// kinds lists all roles, in the order in which they are shown. It is the one place that does.
func kinds() []kind {
	return []kind{
		kindOf(api.Edge, func(a *Agent) **edgeRole { return &a.edge }, (*Agent).buildEdge).
			cleanedBy(cleanEdge),
		kindOf(api.Host, func(a *Agent) **hostRole { return &a.host }, (*Agent).buildHost),
		kindOf(api.Headend, func(a *Agent) **headendRole { return &a.headend },
			(*Agent).buildHeadend).committedLate(),
		kindOf(api.Merge, func(a *Agent) **mergeRole { return &a.merge }, (*Agent).buildMerge),
		kindOf(api.Strays, func(a *Agent) **straysRole { return &a.strayRole },
			(*Agent).buildStrays).committedLate(),
	}
}

// kindOf is a kind of role, with the agent's place for the one that runs. Build returns nil for a
// node without the role.
func kindOf[R preparable[R]](name api.Role, slot func(*Agent) *R,
	build func(*Agent, *config.Node) (R, error)) kind {
	return kind{
		name: name,
		prepare: func(a *Agent, next *config.Node) (change, error) {
			p := &prepared[R]{dir: a.pins(name), start: a.node == nil, slot: slot(a),
				old: *slot(a)}
			return p, p.load(func() (R, error) { return build(a, next) })
		},
		running: func(a *Agent) role {
			var none R
			if r := *slot(a); r != none {
				return r
			}
			return nil
		},
	}
}

func (k kind) committedLate() kind {
	k.late = true
	return k
}

func (k kind) cleanedBy(clean func(pins string) error) kind {
	k.clean = clean
	return k
}

// pins is where a role's programs and tables are pinned.
func (a *Agent) pins(name api.Role) string { return filepath.Join(a.dir, string(name)) }

// namedRole is a role that runs.
type namedRole struct {
	name api.Role
	role
}

// running lists the roles that run.
func (a *Agent) running() (list []namedRole) {
	for _, k := range a.kinds {
		if r := k.running(a); r != nil {
			list = append(list, namedRole{k.name, r})
		}
	}
	return list
}

// isBroken reports whether a role's programs are to be loaded anew.
func (a *Agent) isBroken() bool {
	return slices.ContainsFunc(a.running(), func(r namedRole) bool { return r.isBroken() })
}

// chosen is the running role of a name, or the first one if the name is "".
func (a *Agent) chosen(name api.Role) (namedRole, bool) {
	list := a.running()
	i := slices.IndexFunc(list, func(r namedRole) bool { return name == "" || r.name == name })
	if i < 0 {
		return namedRole{name: name}, false
	}
	return list[i], true
}

// roleChanges are a change of all roles that is built, but not yet switched to: in the order in
// which they were prepared, up to one that refused.
type roleChanges []change

func (c *roleChanges) prepare(a *Agent, next *config.Node) error {
	for _, late := range []bool{false, true} {
		for _, k := range a.kinds {
			if k.late != late {
				continue
			}
			one, err := k.prepare(a, next)
			*c = append(*c, one)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// changeOf is the change of one role, nil if it was not prepared.
func changeOf[R preparable[R]](c roleChanges) *prepared[R] {
	for _, one := range c {
		if p, ok := one.(*prepared[R]); ok {
			return p
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

func (c roleChanges) begin(a *Agent) error {
	for _, one := range c {
		if err := one.begin(a); err != nil {
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
