package edge

import (
	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/agent/role"
	"sextant/linux"
	"sextant/linux/rtnetlink"
)

// keepRoutes sees to it that routes and rules of the edge are written again that others delete, or
// that an interface takes along which goes down.
func (e *Room) keepRoutes() {
	e.keep(health.TakesPaths, e.checksKept, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_RULE,
		unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	e.keep(takesBlackhole, e.dropStrays, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
}

// keep has a look at routes now, for those that are gone already, and whenever messages say that
// some may be.
func (e *Room) keep(takes func(rtnetlink.Header, []byte) bool, look func(), groups ...uint) {
	news, err := linux.News(e.Life, takes, groups...)
	if err != nil {
		e.Log.Warn("routes that are gone are written again when the node changes, not before",
			"error", err)
		return
	}
	ifRuns := func() {
		if e.Runs != nil {
			look()
		}
	}
	ifRuns()
	role.Follow(e.Life, &e.Loop, news, func(struct{}) { ifRuns() })
}

// checksKept writes what is missing of the paths of checks.
func (e *Room) checksKept() {
	if e.checks.paths == nil {
		return
	}
	whole, err := e.checks.paths.Whole()
	if err != nil {
		e.Log.Warn("the kernel does not say whether routes of health checks are there", "error",
			err)
		return
	}
	if !whole {
		e.Log.Warn("routes or rules of health checks are gone; they are written again")
		e.check()
	}
}

// takesBlackhole tells messages after which a route may be gone that drops what comes for a VIP.
func takesBlackhole(h rtnetlink.Header, body []byte) bool {
	return h.Type == unix.RTM_DELROUTE && len(body) >= unix.SizeofRtMsg &&
		body[routeType] == unix.RTN_BLACKHOLE
}

// routeType is where a message about a route has its type (struct rtmsg).
const routeType = 7
