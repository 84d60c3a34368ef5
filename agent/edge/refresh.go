package edge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sextant/agent/health"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// Running services are brought up to date many at once: their tables change together, and the edge
// waits for packets under way once for all of them.

// refreshedAtOnce is of how many services both the previous and the next chains are in memory.
const refreshedAtOnce = 128

// Refresh brings the chains of the running services up to date: with what is known of the backends,
// and with the time. Those of endpoints, nil: of all.
func (e *Room) Refresh(of map[config.Endpoint]bool) error {
	if e.Runs == nil {
		return nil
	}
	if err := errors.Join(e.endFormer(), e.makePathRoom()); err != nil {
		return err
	}
	places := allPlaces(e.Runs.Services)
	if of != nil {
		places = slices.DeleteFunc(places, func(i int) bool {
			return !of[e.Runs.Services[i].Endpoint]
		})
	}
	if err := e.refreshServices(places); err != nil {
		return err
	}
	if e.checks.stale {
		e.followLoads()
		e.keepDetours()
		e.check()
	}
	e.checks.notePanics()
	return nil
}

// refreshNamed brings the chains of some services up to date: a host that dies makes each of its
// services ask for it.
func (e *Room) refreshNamed(services []string) {
	var places []int
	for _, service := range services {
		if i, runs := e.Runs.placesByName()[service]; runs {
			places = append(places, i)
		}
	}
	e.retryLater(e.refreshServices(places))
	e.checks.notePanics()
}

// refreshRetry is when chains are brought up to date again that could not be.
const refreshRetry = time.Second

func (e *Room) refreshOrWarn() {
	e.retryAt = 0
	e.retryLater(e.Refresh(nil))
}

// retryLater has all chains brought up to date again soon if there is an error.
func (e *Room) retryLater(err error) {
	if err != nil {
		e.retryAt = e.Now() + refreshRetry
		e.Log.Warn("chains stay as they were; tried again soon", "error", err, "after",
			refreshRetry)
	}
}

// refreshing is a running service that is brought up to date.
type refreshing struct {
	runs    *Service
	service config.Service // as the configuration has it
	members []pool.Backend
	effect  health.Effect
	order   pool.Order
	next    *pool.Generation
	former  *pool.Generation
	err     error // why it stays as it was
}

// hasOthers reports whether the backends are not those that the service runs with.
func (r *refreshing) hasOthers() bool {
	return !slices.EqualFunc(r.runs.Backends, r.service.Backends, config.Backend.Equal)
}

// refreshServices takes services, by their places, as the configuration has them. One that fails
// stays as it was, and keeps no other from being brought up to date.
func (e *Room) refreshServices(places []int) error {
	var first error
	failed := 0
	for some := range slices.Chunk(places, refreshedAtOnce) {
		for _, r := range e.refreshSome(some) {
			if r.err == nil {
				continue
			}
			if failed++; first == nil {
				first = fmt.Errorf("service %s: bring its chains up to date: %w", r.runs.Name,
					r.err)
			}
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w; and %d more services", first, failed-1)
	}
	return first
}

func (e *Room) refreshSome(places []int) []*refreshing {
	all, running := make([]*refreshing, len(places)), make([]*Service, len(places))
	var others []*Service // with backends that may have no ids yet
	for i, place := range places {
		running[i] = &e.Runs.Services[place]
		all[i] = &refreshing{runs: running[i],
			service: e.Found.WithLearned(e.Node.Edge.Services[place])}
		if all[i].hasOthers() {
			others = append(others, &Service{Service: all[i].service})
		}
	}
	e.makeRoom(e.Node, others...)
	for _, r := range all {
		if r.members, r.err = e.members(&r.service, e.Node); r.err == nil {
			r.effect = e.effect(&r.service, r.runs, r.members)
			r.members = r.effect.Backends
		}
	}
	_ = eachAtOnce(running, func(i int, s *Service) error {
		if r := all[i]; r.err == nil {
			r.next, r.err = e.follow(s, s.Spec(e.Node), e.Node, r.members)
		}
		return nil
	})
	for _, r := range all {
		if r.err == nil {
			r.err = e.prepareRefresh(r)
		}
	}
	e.switchRefreshed(all)
	return all
}

// prepareRefresh does what comes before the chains.
func (e *Room) prepareRefresh(r *refreshing) (err error) {
	s := r.runs
	if r.service.Way != nil && r.hasOthers() {
		s.way = e.computeWay(&r.service, s.way, e.Node, e.ways.known)
	}
	as := *s // as it will be
	as.Service, as.Members = r.service, r.members
	r.order = e.orderOf(&as, e.Node)
	r.next = r.next.Ordered(r.order)
	if err := e.refreshPaths(s, &r.service, r.members); err != nil {
		return err
	}
	if r.former, err = e.nextFormer(s, r.members); err != nil || r.next == s.Generation {
		return err
	}
	as.Generation, as.former = r.next, r.former
	return errors.Join(e.Runs.setSIDs(r.service.Backends, r.members, s.pastSIDs),
		e.Runs.setQUIC(&as))
}

// switchRefreshed has the program replace what differs, and notes what it has.
func (e *Room) switchRefreshed(all []*refreshing) {
	var chains []datapath.ServiceChains
	var took []func()
	var of []*refreshing
	change := func(r *refreshing, to datapath.ServiceChains, then func()) {
		chains, took, of = append(chains, to), append(took, then), append(of, r)
	}
	for _, r := range all {
		switch {
		case r.err != nil:
			continue
		case r.next == r.runs.Generation:
			e.refreshed(r)
		default:
			change(r, datapath.ServiceChains{Index: r.runs.Index, Generation: r.next},
				func() { e.refreshed(r) })
		}
		if r.former != r.runs.former {
			change(r, datapath.FormerChains(r.runs.Index, r.former),
				func() { r.runs.former = r.former })
		}
	}
	e.Runs.changeChains(chains, func(i int, err error) {
		if err == nil {
			took[i]()
			return
		}
		of[i].err = err
	})
}

// refreshed notes that the program has the service as it is to be.
func (e *Room) refreshed(r *refreshing) {
	s := r.runs
	e.checks.stale = e.checks.stale || r.hasOthers()
	s.Service, s.Members, s.Generation = r.service, r.members, r.next
	s.effect, s.order = r.effect, r.order
}

// changeChains has the program replace chains together, and tells of each whether it did. If they
// can't change together, each is tried alone, so that one keeps no other as it was.
func (e *Role) changeChains(all []datapath.ServiceChains, told func(i int, err error)) {
	if len(all) == 0 {
		return
	}
	changed, err := e.Program.ChangeChains(all)
	for i := range all {
		switch {
		case i < changed:
			told(i, nil)
		case len(all) == 1:
			told(i, err)
		default:
			_, err := e.Program.ChangeChains(all[i : i+1])
			told(i, err)
		}
	}
}
