package agent

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// watchRoutes reports changes of routes and of neighbours. Reports that nobody has read yet are
// one.
func watchRoutes(ctx context.Context, log *slog.Logger) (<-chan struct{}, error) {
	routes, neighbours := make(chan netlink.RouteUpdate, 64), make(chan netlink.NeighUpdate, 64)
	failed := func(err error) {
		if ctx.Err() == nil { // else it is the end of the watch
			log.Warn("messages from the kernel about routes were lost; next hops may be out of "+
				"date for 100 ms", "error", err)
		}
	}
	if err := netlink.RouteSubscribeWithOptions(routes, ctx.Done(),
		netlink.RouteSubscribeOptions{ErrorCallback: failed}); err != nil {
		return nil, fmt.Errorf("watch routes: %w", err)
	}
	if err := netlink.NeighSubscribeWithOptions(neighbours, ctx.Done(),
		netlink.NeighSubscribeOptions{ErrorCallback: failed}); err != nil {
		return nil, fmt.Errorf("watch neighbours: %w", err)
	}
	changes := make(chan struct{}, 1)
	go func() {
		for routes != nil || neighbours != nil {
			select {
			case r, ok := <-routes:
				if !ok {
					routes = nil
					continue
				}
				if r.Family == unix.AF_INET6 {
					notify(changes)
				}
			case n, ok := <-neighbours:
				if !ok {
					neighbours = nil
					continue
				}
				if n.Family == unix.AF_INET6 {
					notify(changes)
				}
			}
		}
	}()
	return changes, nil
}

func notify(changes chan<- struct{}) {
	select {
	case changes <- struct{}{}:
	default:
	}
}
