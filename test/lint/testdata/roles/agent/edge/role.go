package edge

import "sextant/agent/host"

// Room works with another role.
type Room struct{ beside *host.Room }
