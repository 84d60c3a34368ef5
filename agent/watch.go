package agent

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/rtnetlink"
)

// watchRoutes reports changes of routes and of neighbours of IPv6.
func watchRoutes(ctx context.Context) (<-chan struct{}, error) {
	changes, err := linux.News(ctx, ofIPv6, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEIGH)
	if err != nil {
		return nil, fmt.Errorf("watch routes and neighbours: %w", err)
	}
	return changes, nil
}

// ofIPv6 tells messages about routes and neighbours of IPv6: the family comes first in both.
func ofIPv6(_ rtnetlink.Header, body []byte) bool {
	return len(body) > 0 && body[0] == unix.AF_INET6
}
