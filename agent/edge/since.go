package edge

import (
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/packet/lists"
)

// Of ten thousand services a change touches a few, and leaves the others where they are in the
// configuration: what is done for each service is done for those few.

// since is of a role that is to take the place of another one, until it has taken it: both have the
// same endpoints at the same places.
type since struct {
	runs    *Role
	changed []int // places of services that are not what they were
}

// number gives all services their numbers, and says where they are.
func (e *Room) number(next *Role, n *config.Node) error {
	services := n.Edge.Services
	if e.Runs != nil && e.Runs.isOf(services) {
		next.since = &since{runs: e.Runs}
		next.numbers, next.places = e.Runs.numbers, e.Runs.places
		return nil
	}
	next.places = make(map[config.Endpoint]int, len(services))
	for i := range services {
		next.places[services[i].Endpoint] = i
	}
	var err error
	next.numbers, _, err = state.NumberServices(e.Store.Kept.EdgeServices, lists.Map(services,
		func(s config.Service) config.Endpoint { return s.Endpoint }), datapath.MaxServices)
	return err
}

// isOf reports whether the role has exactly the endpoints of these services, in their order.
func (e *Role) isOf(services []config.Service) bool {
	if len(e.Services) != len(services) {
		return false
	}
	for i := range services {
		if e.Services[i].Endpoint != services[i].Endpoint {
			return false
		}
	}
	return true
}

// unchanged is the running service that a change leaves as it is: it follows the backends and the
// time already. Nil: there is none.
func (e *Room) unchanged(place int, s *config.Service) *Service {
	if e.Runs == nil {
		return nil
	}
	if place >= len(e.Runs.Services) || e.Runs.Services[place].Endpoint != s.Endpoint {
		var runs bool
		if place, runs = e.Runs.places[s.Endpoint]; !runs {
			return nil
		}
	}
	if !config.SharesService(&e.Node.Edge.Services[place], s) {
		return nil
	}
	return &e.Runs.Services[place]
}

// hasAllOf reports whether the two are one after the other and have the same endpoints.
func (e *Role) hasAllOf(other *Role) bool {
	return other != nil && (e.since != nil && e.since.runs == other ||
		other.since != nil && other.since.runs == e)
}

// placesSince are the places of services that may differ from those of another role.
func (e *Role) placesSince(other *Role) []int {
	switch {
	case !e.hasAllOf(other):
		return allPlaces(e.Services)
	case e.since != nil && e.since.runs == other:
		return e.since.changed
	}
	return other.since.changed
}

// allPlaces are all places of a list.
func allPlaces[T any](list []T) []int {
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	return places
}
