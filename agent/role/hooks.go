package role

import (
	"net/netip"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/routing/bgp"
)

// What a room may have beside the methods of interface Room. The owner goroutine calls all but
// those of collector.

// Opener is a room that has something to do before the data plane is touched.
type Opener interface {
	// Opened gets the node file. It is called once.
	Opened(file *config.Node)
}

// Ender is a room with something that works beside the owner goroutine.
type Ender interface {
	// End is called once, also if the node never ran.
	End()
}

// Server is a room with news for the owner goroutine, which it gives it from now on.
type Server interface {
	// Serve is called once.
	Serve()
}

// Settler is a room that has something to do when a change of the node has been made.
type Settler interface {
	// Settled is called with the new node in place.
	Settled()
}

// follower is a room that looks, after everything that the owner has done, what is to be noted.
type follower interface {
	Note()
}

// timed is a room that has something to do at a time.
type timed interface {
	Due() (wait time.Duration, waits bool)
	Act()
}

// Troubled is a room that may have warnings which stay until something changes: core.rewarn.
type Troubled interface {
	// Troubles are the warnings of now.
	Troubles() []string
}

// DeviceWatcher is a room with network interfaces of its own, looked at before attachments are.
type DeviceWatcher interface {
	// WatchDevices is called at each look at attachments.
	WatchDevices()
}

// PlaceWatcher is a room that wants to know when programs are attached that were not, or no longer.
type PlaceWatcher interface {
	// PlacesChanged is called before routing is told.
	PlacesChanged()
}

// RouteWatcher is a room that wants to know when routes have changed.
type RouteWatcher interface {
	// RoutesChanged is called after changes of routes or neighbours.
	RoutesChanged()
}

// RoutingListener is a room that wants to know when BGP has news.
type RoutingListener interface {
	// RoutingNews is called after each piece of news.
	RoutingNews()
}

// Announcer is a room that announces routes to VIPs.
type Announcer interface {
	// Announcements are all that the room announces now.
	Announcements(now time.Time) []bgp.Announcement
}

// Learner is a room that learns backends by routing.
type Learner interface {
	// Limit is how many backends a service can have.
	Limit(*config.Service) int
	// Refresh makes what runs follow what was learned: the services of endpoints, nil: all.
	Refresh(of map[config.Endpoint]bool) error
}

// Serving is a room with services to show.
type Serving interface {
	// ServiceNames returns the names of all, in their order.
	ServiceNames() []string
	// Services are those of the names, in the order of the configuration.
	Services(names map[string]bool) ([]api.Service, error)
}

// Capturer is a room whose packets are copied while the role runs, or that says where they are
// seen.
type Capturer interface {
	// Capture begins to copy so many bytes of packets, on some interfaces or all.
	Capture(bytes int, interfaces ...string) (*datapath.Capture, error)
	// Account returns what names what captured packets met.
	Account() Accountant
}

// Accountant completes an explanation from a captured packet, of which the end may be missing.
type Accountant func(e *api.Explanation, got datapath.Captured, frame []byte)

// Solicited is a room whose programs send to SIDs that may be neighbours.
type Solicited interface {
	// Sids are the destinations.
	Sids() []netip.Addr
}

// LearnInterval is how often routing is looked at, besides when it says something: the patience
// with a silent session ends.
const LearnInterval = time.Second
