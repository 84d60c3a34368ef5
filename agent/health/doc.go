// Package health checks the backends of a service through the SRv6 path, and derives from the
// results which of them the service uses.
//
//	check --> Result --> State.After --> Usage.Apply --> []pool.Backend
//
// A check runs on the edge and takes the way of a client's packet: its socket carries a mark, by
// which the kernel routes it to the VIP on the one host, inside an IPv6 header with the backend's
// SID (Paths). So it meets the host's decapsulation, its VIP and the server, not merely the host.
// Answers come straight back, as they go to clients.
//
// Decisions (state.go, effective.go, jitter.go) are functions of plain values and know no clock.
// Checks run in goroutines of their own (Monitor).
package health
