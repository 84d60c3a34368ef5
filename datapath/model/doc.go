// Package model implements docs/reference/dataplane.md as Go functions over plain values.
// Differential tests compare the eBPF programs with it.
//
// An [Edge] spreads the flows of its services over chains of backends, and a
// [Host] takes the flows it is offered or passes them on. A [Headend] sends
// packets along the segment lists of SR policies, a [Merge] lets the first copy
// of each pass, and [Strays] are taken away beside a router. All look at one
// Ethernet frame at a time. Everything they cannot know from the frame (tables,
// sockets, next hops, the time) is a field or an argument, so that the same
// code serves the differential test, "explain" on the command line, and the
// simulator.
//
// The files follow a packet's way: frame.go, ipv4.go, ipv6.go and transport.go
// parse; edge.go decides and encap.go encapsulates; host.go and offer.go decide
// at the other end, where take.go decapsulates; nexthop.go sends; egress.go
// looks at what leaves a host; border.go guards the SR domain.
//
// A frame given to this package is never written to.
package model
