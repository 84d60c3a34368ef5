package kernelfib

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
	"sextant/routing/equalcost"
)

// Router follows the routes of a router, in tables main and local, with their next hops, links and
// neighbours. All is read anew after changes, so no message that is lost matters. Its methods may
// be called from any goroutine.
type Router struct {
	told    *socket // of changes
	asked   *socket
	handle  *netlink.Handle
	log     *slog.Logger
	changes chan struct{}
	ending  atomic.Bool
	closed  chan struct{}

	mu    sync.Mutex
	state equalcost.State
	err   error // of the last reading
}

// quiet is how long nothing has to change before all is read: what belongs together comes together.
const quiet = 5 * time.Millisecond

// patienceWithChanges bounds the wait for quiet.
const patienceWithChanges = 10 * quiet

// FollowRouter begins to follow the routes of this network namespace.
func FollowRouter(log *slog.Logger) (_ *Router, err error) {
	r := &Router{log: log, changes: make(chan struct{}, 1), closed: make(chan struct{})}
	r.told, err = openSocket(unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEXTHOP,
		unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH)
	if err != nil {
		return nil, fmt.Errorf("follow the router: %w", err)
	}
	if r.asked, err = openSocket(); err == nil {
		r.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
	}
	if err == nil {
		r.state, err = r.read()
	}
	if err != nil {
		r.release()
		return nil, fmt.Errorf("read the router's routes: %w", err)
	}
	r.changes <- struct{}{}
	go r.follow()
	return r, nil
}

func (r *Router) release() {
	r.told.close()
	if r.asked != nil {
		r.asked.close()
	}
	if r.handle != nil {
		r.handle.Close()
	}
}

// Close ends it.
func (r *Router) Close() {
	r.ending.Store(true)
	r.told.close()
	<-r.closed
	r.release()
}

// Changes yields a value when Take has something new, first for what was there at the beginning;
// several changes may be one value. It is closed by Close.
func (r *Router) Changes() <-chan struct{} { return r.changes }

// Take returns what is known, and why it can't be brought up to date.
func (r *Router) Take() (equalcost.State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state, r.err
}

func (r *Router) follow() {
	defer close(r.closed)
	defer close(r.changes)
	for failed := false; ; {
		err := r.await(failed)
		if r.ending.Load() {
			return
		}
		var state equalcost.State
		if err == nil {
			state, err = r.read()
		}
		r.mu.Lock()
		if r.err = err; err == nil {
			r.state = state
		}
		r.mu.Unlock()
		select {
		case r.changes <- struct{}{}:
		default:
		}
		if failed = err != nil; failed {
			r.log.Warn("the router's routes can't be read; tried again soon", "error", err)
		}
	}
}

// again is when all is read anew after an error, if nothing changes before.
const again = time.Second

// await returns when something has changed, and nothing more does for a while.
func (r *Router) await(failed bool) error {
	until := time.Time{}
	if failed {
		until = time.Now().Add(again)
	}
	if err := r.told.file.SetReadDeadline(until); err != nil {
		return err
	}
	_, err := r.told.receive()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case err != nil && !errors.Is(err, unix.ENOBUFS):
		return err
	}
	for end := time.Now().Add(patienceWithChanges); time.Now().Before(end); {
		if err := r.told.file.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return err
		}
		_, err := r.told.receive()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			return err
		}
	}
	return nil
}

// read reads all.
func (r *Router) read() (s equalcost.State, err error) {
	s = equalcost.State{Objects: map[uint32]rtnetlink.WayObject{},
		Links: map[uint32]equalcost.Link{}, Neighbours: map[equalcost.Neighbour][6]byte{}}
	err = r.asked.dump(r.asked.nextHops(), func(h rtnetlink.Header, body []byte) error {
		n, ok, err := rtnetlink.WayObjectIn(h, body)
		if ok {
			s.Objects[n.ID] = n
		}
		return err
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = nil // a kernel without next hop objects
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		for _, table := range []uint32{unix.RT_TABLE_LOCAL, unix.RT_TABLE_MAIN} {
			if err != nil {
				return s, err
			}
			err = r.asked.dump(r.asked.routesOf(family, table),
				func(h rtnetlink.Header, body []byte) error {
					route, ok, err := rtnetlink.RouterRouteIn(h, body)
					if ok && route.Table == table {
						s.Routes = append(s.Routes, route)
					}
					return err
				})
		}
	}
	if err != nil {
		return s, err
	}
	return s, r.readLinks(s)
}

func (r *Router) readLinks(s equalcost.State) error {
	links, err := r.handle.LinkList()
	if err != nil {
		return fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		at := l.Attrs()
		link := equalcost.Link{Name: at.Name, MTU: at.MTU}
		if at.EncapType == "ether" {
			copy(link.Address[:], at.HardwareAddr)
		}
		s.Links[uint32(at.Index)] = link
	}
	neighbours, err := r.handle.NeighList(0, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list neighbours: %w", err)
	}
	const known = netlink.NUD_REACHABLE | netlink.NUD_STALE | netlink.NUD_DELAY |
		netlink.NUD_PROBE | netlink.NUD_PERMANENT
	for _, n := range neighbours {
		address, ok := netip.AddrFromSlice(n.IP)
		if ok && n.State&known != 0 && len(n.HardwareAddr) == 6 {
			s.Neighbours[equalcost.Neighbour{Interface: uint32(n.LinkIndex),
				Address: address.Unmap()}] = [6]byte(n.HardwareAddr)
		}
	}
	return nil
}
