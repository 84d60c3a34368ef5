package agent

import (
	"errors"
	"slices"

	"sextant/config"
)

// preparedRoles are a change of all roles that is built, but not yet switched to. Those after one
// that refused are nil.
type preparedRoles struct {
	edge    *prepared[*edgeRole]
	host    *prepared[*hostRole]
	merge   *prepared[*mergeRole]
	headend *prepared[*headendRole]
	strays  *prepared[*straysRole]
}

func (p *preparedRoles) prepare(a *Agent, next *config.Node) (err error) {
	if p.edge, err = a.prepareEdge(next); err != nil {
		return err
	}
	if p.host, err = a.prepareHost(next); err != nil {
		return err
	}
	if p.merge, err = a.prepareMerge(next); err != nil {
		return err
	}
	if p.headend, err = a.prepareHeadend(next); err != nil {
		return err
	}
	p.strays, err = a.prepareStrays(next)
	return err
}

// step is one role's part of a change.
type step struct {
	commit, rollBack func() error
	leaves           bool // the role goes
}

// steps are the parts in the order in which they are taken: roles that go before those that may
// want their interfaces, and where copies are merged before where they are made.
func (p *preparedRoles) steps() []step {
	steps := []step{
		{p.edge.commit, p.edge.rollBack, p.edge.next == nil},
		{p.host.commit, p.host.rollBack, p.host.next == nil},
		{p.merge.commit, p.merge.rollBack, p.merge.next == nil},
		{p.headend.commit, p.headend.rollBack, p.headend.next == nil},
		{p.strays.commit, p.strays.rollBack, p.strays.next == nil},
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		switch {
		case a.leaves == b.leaves:
			return 0
		case a.leaves:
			return -1
		}
		return 1
	})
	return steps
}

// commit switches to what was prepared. If it fails, rollBack is to follow.
func (p *preparedRoles) commit() error {
	for _, s := range p.steps() {
		if err := s.commit(); err != nil {
			return err
		}
	}
	return nil
}

// rollBack goes back the way that commit came.
func (p *preparedRoles) rollBack() error {
	var failures []error
	for _, s := range slices.Backward(p.steps()) {
		failures = append(failures, s.rollBack())
	}
	return errors.Join(failures...)
}

func (p *preparedRoles) discard() {
	p.edge.discard()
	p.host.discard()
	p.merge.discard()
	p.headend.discard()
	p.strays.discard()
}

// adopt keeps the numbers under which the kernel's tables know things.
func (p *preparedRoles) adopt(k *kept) {
	if p.edge.next != nil {
		adopt(k.EdgeServices, p.edge.next.numbers)
	}
	if p.host.next != nil {
		adopt(k.HostServices, p.host.next.numbers)
	}
	k.Merges = nil
	if p.merge.next != nil {
		k.Merges = p.merge.next.numbers()
	}
	if p.headend.next != nil {
		p.headend.next.steering.keep(k)
	}
}

// finish makes the roles the agent's.
func (p *preparedRoles) finish(a *Agent) {
	a.edge, a.host, a.merge, a.headend = p.edge.finish(), p.host.finish(), p.merge.finish(),
		p.headend.finish()
	a.strayRole = p.strays.finish()
	if a.host != nil {
		a.host.fresh = nil // their numbers are theirs now
	}
}
