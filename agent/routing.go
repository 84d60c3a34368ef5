package agent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/role"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/fpm"
	"sextant/routing/kernelfib"
	"sextant/routing/rib"
)

// routing is what other routing software tells this node. One that was not opened listens to none.
type routing struct {
	*role.Core
	found  *role.Discoveries
	fpm    *fpm.Server       // nil: none is open
	kernel *kernelfib.Source // nil: none is open
	tables map[config.RouteSource]*toldTable
	router *router // nil: the kernel forwards by no VRF
	// News waits to be taken in: for a moment after it came, so that what changes and changes back
	// is seen as one.
	waits   bool
	refused map[refusal]bool     // routes that are of no use to the edge now
	ignored map[ignoredBy]uint64 // routes that were, since the agent began
}

// ignoredBy is what routes of no use are counted by: the way on which they came, and why.
type ignoredBy struct {
	way    discovery.Source
	reason discovery.Reason
}

// toldTable is what a source told.
type toldTable struct {
	routes   map[rib.Destination]rib.Set
	complete bool // what is not in it is not there
}

// gather is how long news is gathered before it is taken in.
const gather = 10 * time.Millisecond

// openRouting begins to listen, if the node file wants it. What the kernel's tables hold of an
// earlier agent stays until all is told.
func (r *routing) open(n *config.Node) error {
	r.tables, r.refused, r.ignored = map[config.RouteSource]*toldTable{}, map[refusal]bool{},
		map[ignoredBy]uint64{}
	var err error
	if r.router, err = openRouter(n); err != nil {
		return fmt.Errorf("routing: %w", err)
	}
	for _, source := range []config.RouteSource{config.SourceFPM, config.SourceKernel,
		config.SourceBGP} {
		tables := n.Routing.Tables(source)
		if len(tables) == 0 {
			continue
		}
		r.tables[source] = &toldTable{routes: map[rib.Destination]rib.Set{}}
		switch source {
		case config.SourceFPM:
			r.fpm, err = fpm.Listen(r.Life, fpm.Options{
				Listen: n.Routing.FPM.Listen, Settle: n.Routing.FPM.Settle, Log: r.Log,
				Tables: func(table uint32) bool { return slices.Contains(tables, table) },
			})
		case config.SourceKernel:
			r.kernel, err = kernelfib.Watch(tables, r.Log)
		}
		if err != nil {
			return fmt.Errorf("routing: %w", err)
		}
	}
	return nil
}

// hear gives the owner goroutine what the sources say.
func (r *routing) hear() {
	news := func(struct{}) { r.news() }
	if r.fpm != nil {
		role.Follow(r.Life, &r.Loop, r.fpm.Changes(), news)
	}
	if r.kernel != nil {
		role.Follow(r.Life, &r.Loop, r.kernel.Changes(), news)
	}
	r.keepTables()
}

// close stops to listen. What was written stays.
func (r *routing) close() {
	if r.fpm != nil {
		r.fpm.Close()
	}
	if r.kernel != nil {
		r.kernel.Close()
	}
	if r.router != nil {
		r.router.forwarder.Close()
	}
}

// news notes that a source has something to say.
func (r *routing) news() {
	if r.waits {
		return
	}
	r.waits = true
	time.AfterFunc(gather, func() { _ = r.Do(r.Life, r.takeRoutes) }) // else the agent ends
}

// takeRoutes takes in what the sources told since it was called last.
func (r *routing) takeRoutes() {
	r.waits = false
	if r.fpm != nil {
		changes, complete := r.fpm.Take()
		r.routesTold(config.SourceFPM, changes, complete)
	}
	if r.kernel != nil {
		changes, complete := r.kernel.Take()
		r.routesTold(config.SourceKernel, changes, complete)
	}
	r.forwardRoutes()
	if r.Node.Edge != nil && r.teaches() {
		r.Announce()
	}
}

// routesTold notes what a source told, and tells the VRFs that have their routes from it.
func (r *routing) routesTold(source config.RouteSource, changes []rib.Change, complete bool) {
	told := r.tables[source]
	for _, c := range changes {
		if c.Set == (rib.Set{}) {
			delete(told.routes, c.Destination)
		} else {
			told.routes[c.Destination] = c.Set
		}
		r.router.want(source, c)
	}
	if complete && !told.complete {
		told.complete = true
		r.Log.Info("routing: all routes are told", "source", source, "routes",
			len(told.routes))
		r.router.dropUntold(source, told.routes)
	}
}

// teaches reports whether backends are learned from a source other than BGP.
func (r *routing) teaches() bool {
	return r.tables[config.SourceFPM] != nil || r.tables[config.SourceKernel] != nil
}

// peersOf are the sources as those who tell of backends.
var peersOf = map[config.RouteSource]netip.Addr{config.SourceFPM: discovery.ViaFPM,
	config.SourceKernel: discovery.ViaKernel}

// sessions adds what the word of the sources is worth.
func (r *routing) sessions(sessions map[netip.Addr]discovery.Session) {
	for source, told := range r.tables {
		if peer, teaches := peersOf[source]; teaches {
			if sessions[peer] = discovery.Settling; told.complete {
				sessions[peer] = discovery.Standing
			}
		}
	}
}

// settling reports whether a source has not yet told all it knows.
func (r *routing) settling() bool {
	for source, told := range r.tables {
		if _, teaches := peersOf[source]; teaches && !told.complete {
			return true
		}
	}
	return false
}

// backendRoutes are the routes of VRFs of the edge: one for each next hop.
func (r *routing) backendRoutes(n *config.Node) (
	routes []discovery.Route, refused []discovery.Refusal) {
	if n.Routing == nil {
		return nil, nil
	}
	for _, v := range n.Routing.VRFs {
		peer, teaches := peersOf[v.Source]
		if v.Datapath != config.WithEBPF || !teaches {
			continue
		}
		vips := map[netip.Prefix]bool{}
		for _, s := range n.Edge.Services {
			vips[netip.PrefixFrom(s.VIP, s.VIP.BitLen())] = true
		}
		for vip := range vips { // not all routes: there may be a hundred thousand of others
			set := r.tables[v.Source].routes[rib.Destination{Table: uint32(v.Table), Prefix: vip}]
			for _, hop := range set.Members() {
				route := discovery.Route{
					Peer: peer, Distinguisher: v.Name, Prefix: vip, SID: hop.Segments[0],
					Weight: hop.Weight, Behavior: srv6.End,
				}
				if len(hop.Segments) > 1 {
					refused = append(refused, discovery.Refusal{Route: route,
						Reason: discovery.Segments})
					continue
				}
				routes = append(routes, route)
			}
		}
	}
	return routes, refused
}

// warning says what is wrong; "" if nothing is.
func (r *routing) warning() string {
	if r.router == nil {
		return ""
	}
	return cmp.Or(r.router.kept.problem, r.router.problem)
}

// unchangeableRouting refuses what only a restart can change.
func unchangeableRouting(is, wanted *config.Routing) error {
	if is.Equal(wanted) {
		return nil
	}
	return &config.Problem{
		Kind: config.ErrConflict, Path: "routing",
		Text: "routing can't change while the agent runs",
		Mend: "restart the agent with this file (packets are forwarded on meanwhile)",
	}
}
