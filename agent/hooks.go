package agent

import (
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/routing/bgp"
)

// What a room may have beside the methods of interface room. The owner goroutine calls all but
// those of collector.

// opener is a room that works beside the owner goroutine. Opened is called once, before the data
// plane is touched, serve when the node runs, end in any case.
type opener interface {
	opened()
	end()
}

// server is a room with news for the owner goroutine, which it gives it from now on.
type server interface {
	serve()
}

// settler is a room that has something to do when a change of the node has been made.
type settler interface {
	settled()
}

// follower is a room that looks, after everything that the owner has done, what is to be noted.
type follower interface {
	note()
}

// timed is a room that has something to do at a time.
type timed interface {
	due() (wait time.Duration, waits bool)
	act()
}

// troubled is a room that may have warnings which stay until something changes: core.rewarn.
type troubled interface {
	troubles() []string
}

// deviceWatcher is a room with network interfaces of its own, looked at before attachments are.
type deviceWatcher interface {
	watchDevices()
}

// placeWatcher is a room that wants to know when programs are attached that were not, or no longer.
type placeWatcher interface {
	placesChanged()
}

// routeWatcher is a room that wants to know when routes have changed.
type routeWatcher interface {
	routesChanged()
}

// routingListener is a room that wants to know when BGP has news.
type routingListener interface {
	routingNews()
}

// announcer is a room that announces routes to VIPs.
type announcer interface {
	announcements(now time.Time) []bgp.Announcement
}

// learner is a room that learns backends by routing.
type learner interface {
	// limit is how many backends a service can have.
	limit(*config.Service) int
	// refresh makes what runs follow what was learned.
	refresh() error
}

// serving is a room with services to show.
type serving interface {
	services() ([]api.Service, error)
}

// collector adds metrics that other roles do not have. It asks the owner goroutine.
type collector interface {
	Collect(out chan<- prometheus.Metric)
}

// capturer is a room whose packets are copied while the role runs, or that says where they are
// seen.
type capturer interface {
	capture(bytes int, interfaces ...string) (*datapath.Capture, error)
	// account returns what names what captured packets met.
	account() accountant
}

// accountant completes an explanation from a captured packet, of which the end may be missing.
type accountant func(e *api.Explanation, got datapath.Captured, frame []byte)

// solicited is a room whose programs send to SIDs that may be neighbours.
type solicited interface {
	sids() []netip.Addr
}
