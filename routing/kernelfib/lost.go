package kernelfib

import (
	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
)

// MayLose tells messages after which something may be gone that a forwarder wrote: those about
// routes, next hops and rules that others deleted, and about the loopback interface, with which
// next hops and their routes go without a message of their own. Own is the forwarder's port.
func MayLose(h rtnetlink.Header, body []byte, own uint32) bool {
	switch h.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		l, ok := rtnetlink.LinkIn(h, body)
		return ok && l.Index == loopback
	case unix.RTM_DELRULE:
		return true // there are few
	case unix.RTM_DELROUTE:
		return h.Port != own && len(body) > routeProtocol && body[routeProtocol] == protocol
	case unix.RTM_DELNEXTHOP:
		return h.Port != own && len(body) > hopProtocol && body[hopProtocol] == protocol
	}
	return false
}

// LossGroups are those to which the kernel sends such messages.
var LossGroups = []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
	unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEXTHOP}

const (
	loopback      = 1 // index of the loopback interface, on which the next hops lie
	routeProtocol = 5 // where a message about a route has its protocol (struct rtmsg)
	hopProtocol   = 2 // and one about a next hop (struct nhmsg)
)

// Port is the number by which the kernel tells what this forwarder has asked for.
func (f *Forwarder) Port() (port uint32, err error) {
	err = f.socket.control(false, func(fd int) error {
		own, err := unix.Getsockname(fd)
		if a, ok := own.(*unix.SockaddrNetlink); ok {
			port = a.Pid
		}
		return err
	})
	return port, err
}
